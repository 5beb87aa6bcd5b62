# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.holders`: which owners have an instance, or parts of a request
(module_utils/_hetero/site/owners.py).
"""

from __future__ import annotations

from typing import Any, Container

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners, without_claims


def holders(
    results: Any, name: str, count: int | None = None, owner: str | None = None, keep: Container[str] | None = None
) -> dict[str, Any]:
    if isinstance(results, (str, dict)) or not all("claims" in one and "item" in one for one in results):
        raise AnsibleFilterError(
            "hetero.compute.holders needs results of board_info and host_info of a loop over owners"
        )
    parts, surplus = owners.holders(results, name, count, owner, keep)
    others = owners.taken(results, name, count, owner) if count and owner else []
    told = owners.as_text(others) if others else ""
    lost, notes = without_claims.unclaimed(results), without_claims.notes(results)
    twice = owners.twice(results, name, owner)
    return dict(parts=parts, surplus=surplus, taken=told, unclaimed=lost, notes=notes, twice=twice)
