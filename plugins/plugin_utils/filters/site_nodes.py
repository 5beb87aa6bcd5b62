# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.site_nodes`: the nodes of an inventory that have boards, containers or guests."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BOARD, KINDS


def site_nodes(groups: Any, without: Any = "") -> dict[str, Any]:
    """Return the nodes, each list in the inventory's order, without those that are left out.

    :param groups: Ansible's {group: names}.
    :param without: names that are left out, as text with commas.
    """
    if not isinstance(groups, Mapping):
        raise AnsibleFilterError("hetero.compute.site_nodes needs the inventory's groups before the bar")
    left_out = [name for name in map(str.strip, str(without or "").split(",")) if name]
    of = {
        kind.name: [name for name in groups.get(kind.group, ()) if name not in left_out] for kind in KINDS.values()
    }
    hosts = list(dict.fromkeys(name for kind in of if kind != BOARD.name for name in of[kind]))
    places = [dict(item=name, kind=kind, numbers=[]) for kind, names in of.items() for name in names]
    return dict(
        of=of,
        hosts=hosts,
        nodes=[*of[BOARD.name], *hosts],
        alone=places if len(places) == 1 and not left_out else [],
        without=left_out,
        unknown=[name for name in left_out if name not in groups.get("all", ())],
    )
