# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a node what it has, by module board_info on a proxy node and host_info on a compute host: one task for both.
Who watches an instance has it asked again and again (watch).
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.plugins.plugin_utils.instance_watch import Watched
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Checks, Lines, as_text

#: What a node is → the module that says what it has.
MODULES = {"proxy": "board_info", "host": "host_info"}
#: Seconds from one question of who watches to the next. Each is a call of the module on the node.
LOOK = 1.5
#: Most seconds for which nothing happens while somebody watches.
LONGEST = 86400.0
STILL = "nothing has happened for {limit:.0f} s"


class ActionModule(Checks):
    """The call of the node's own module. No lines are shown: the modules have none, so they would be a liar's."""

    @property
    def module(self) -> str:
        return f"hetero.compute.{MODULES[self._node]}"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # Its module has no such options.
        self._node = str(self._task.args.pop("node", None))
        watch = self._task.args.pop("watch", None)
        if self._node not in MODULES:
            raise AnsibleActionFail(f"node is {brief(self._node)}: give {' or '.join(MODULES)}")
        try:
            self._limit = None if watch is None else float(watch)
        except (TypeError, ValueError):
            self._limit = -1.0
        if self._limit is not None and not 0 < self._limit <= LONGEST:
            raise AnsibleActionFail(f"watch is {brief(str(watch))}: give seconds, at most {LONGEST:g}")
        return super().run(tmp, task_vars)

    def _asked(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        answer = super()._asked(tmp, task_vars)
        return answer if self._limit is None else self._watched(answer, self._limit, task_vars)

    def _watched(self, answer: dict[str, Any], limit: float, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Print what happens to the instances that are asked for, until they are settled, or nothing happens any more;
        return the last answer, with how they stand then.
        """
        seen, module = Watched(time.monotonic()), self.module.rpartition(".")[2]
        lines = Lines(f"{(task_vars or {}).get('inventory_hostname')}: watch of {self._task.args.get('instance')}")
        while True:
            answer, now = checked(answer, module), time.monotonic()
            if answer.get("failed") or answer.get("unreachable"):
                return answer
            for line in seen.look(answer, now):
                lines.tell(as_text(line))
            if seen.settled(now):
                return dict(answer, watched=seen.parts)
            if seen.quiet(now) >= limit:
                return dict(answer, watched=[dict(one, note=STILL.format(limit=limit)) for one in seen.parts])
            time.sleep(LOOK)  # no event of a node reaches the controller by itself
            answer = self._execute_module(task_vars=task_vars)
