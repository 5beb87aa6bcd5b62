# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.unknown_flavors`: which flavors of a table of limits or of reservations there are not."""

from __future__ import annotations

from typing import Any, Iterator

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.typed_keys import shown


def unknown_flavors(table: Any, flavors: Any, variable: str) -> list[dict[str, str]]:
    if not isinstance(flavors, dict):
        raise AnsibleFilterError("hetero.compute.unknown_flavors needs a mapping of flavors by name in brackets")
    found = []
    for place, name in _named(table):
        if name in flavors:
            continue
        near = like(name, flavors)
        remedy = f"did you mean {near}?" if near else f"name one that {play('flavors')} shows"
        found.append({"thing": f"{variable}{place}", "what": f"is {shown(name)}, which is no flavor", "remedy": remedy})
    return found


def _named(table: Any) -> Iterator[tuple[str, str]]:
    """Yield (place in a table of limits or of reservations, name of the flavor there). What is neither has none: the
    node says what is wrong with it.
    """
    for owner, limit in table.items() if isinstance(table, dict) else ():
        own = limit.get("flavors") if isinstance(limit, dict) else None
        for name in own if isinstance(own, dict) else ():
            yield f".{owner}.flavors.{name}", str(name)
    for number, entry in enumerate(table if isinstance(table, (list, tuple)) else ()):
        name = entry.get("flavor") if isinstance(entry, dict) else None
        if isinstance(name, (str, int)) and not isinstance(name, bool) and name != "":
            yield f"[{number}].flavor", str(name)
