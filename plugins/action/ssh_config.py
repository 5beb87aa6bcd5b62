# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps on the controller a file for each instance, for `ssh -F`; all of them in one task, without a module."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import keep

SPEC = dict(
    folder=dict(type="path", required=True),
    instances=dict(type="list", elements="dict", required=True),
    options=dict(type="list", elements="str", default=[]),
    state=dict(type="str", choices=["present", "absent"], default="present"),
)


class ActionModule(ActionBase):
    """Never touches a host; in check mode it only says what would change."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, given = self.validate_argument_spec(SPEC)
        present, check = given["state"] == "present", self._task.check_mode
        return dict(result, **keep(given["folder"], given["instances"], given["options"], present, check))
