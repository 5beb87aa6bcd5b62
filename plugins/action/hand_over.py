# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends a verb on the controller: fails where a node did not do its part, keeps the way in to what the others brought
up, and says how it stands. plugin_utils/handover.py has the words; this file reads the nodes' results from Ansible's
variables.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import one_line
from ansible_collections.hetero.compute.plugins.plugin_utils import handover
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import done
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import tell
from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import keep

SPEC = dict(
    plan=dict(type="dict", required=True),
    says=dict(type="str", choices=["ways", "leases", "nothing"], default="ways"),
    folder=dict(type="path", default=""),
    options=dict(type="list", elements="str", default=[]),
    stats=dict(type="bool", default=False),
)


class ActionModule(ActionBase):
    """Never touches a host. In check mode nothing is there to be reached, so only what failed is told."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = dict(super().run(tmp, task_vars), changed=False)
        _spec, given = self.validate_argument_spec(SPEC)
        parts = given["plan"]["parts"]
        hostvars = (task_vars or {})["hostvars"]
        said = {part["item"]: done(hostvars, part["item"]) for part in parts}
        left = handover.undone(said)
        if left:
            return dict(result, failed=True, undone=left, msg=handover.NOT_DONE.format(nodes=", ".join(left)))
        moved = handover.moved_on(parts, said)
        if moved:
            return dict(result, failed=True, msg=one_line("; ".join(moved)))
        if self._task.check_mode or given["says"] == "nothing":
            return result
        instances = handover.brought_up(parts, said)
        lines = handover.leases(instances)
        if given["says"] == "ways":
            lines = handover.ways(instances, given["folder"]) + lines
            if given["folder"]:
                result.update(keep(given["folder"], instances, given["options"]))
        for line in lines:
            tell(one_line(line))
        if given["stats"]:  # as ansible.builtin.set_stats gives them
            result["ansible_stats"] = dict(data=dict(hetero_instances=instances), per_host=False, aggregate=True)
        return result
