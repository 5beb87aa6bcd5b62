# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.unknown_variables`: which variable is meant by one that a role does not know."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like, meant_by


def unknown_variables(given: Any, known: Any, prefix: str = "", slips: bool = False) -> list[dict[str, str]]:
    for what, names in (("before the bar", given), ("in brackets", known)):
        if isinstance(names, str):
            raise AnsibleFilterError(f"hetero.compute.unknown_variables needs a list of names {what}")
    known = sorted(known)
    meant = {name: meant_by(name, known) if slips else like(name, known, prefix) for name in map(str, given)}
    return [
        {
            "thing": name,
            "what": "is no variable of this role",
            "remedy": f"write {meant[name]}; a variable of your own needs another name",
        }
        for name in sorted(meant)
        if meant[name] and name not in known
    ]
