# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs the code that a node is to keep, and hands it to module node_tools, which does the work."""

from __future__ import annotations

import tempfile
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.plugin_utils.awaited import awaited
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import told_while_it_lasts


class ActionModule(ActionBase):
    """One file is sent before the module."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        node = self._task.delegate_to or (task_vars or {}).get("inventory_hostname")
        with told_while_it_lasts(awaited(node, "node_tools", self._task.args)):
            result.update(self._sent(task_vars))
        return result

    def _sent(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the module's result; the files that were sent for it are removed."""
        archive = self._connection._shell.join_path(self._connection._shell.tmpdir, "code.tar")
        with tempfile.NamedTemporaryFile(prefix="hetero-code-") as file:
            file.write(packed())
            file.flush()
            self._transfer_file(file.name, archive)
        self._fixup_perms2((self._connection._shell.tmpdir, archive))
        result: dict[str, Any] = self._execute_module(
            module_args=dict(self._task.args, archive=archive), task_vars=task_vars
        )
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
