# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a node what it has, by module board_info on a proxy node and host_info on a compute host: one task for both."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import Checks

#: What a node is → the module that says what it has.
MODULES = {"proxy": "board_info", "host": "host_info"}


class ActionModule(Checks):
    """The call of the node's own module. No lines are shown: the modules have none, so they would be a liar's."""

    @property
    def module(self) -> str:
        return f"hetero.compute.{MODULES[self._node]}"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # Its module has no such option.
        self._node = str(self._task.args.pop("node", None))
        if self._node not in MODULES:
            raise AnsibleActionFail(f"node is {brief(self._node)}: give {' or '.join(MODULES)}")
        return super().run(tmp, task_vars)
