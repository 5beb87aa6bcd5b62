# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints lines as they are, for tables and farewells, writes texts into files of the controller, and gives data to the
play's statistics, which AWX keeps as a job's artifacts. The play says where they come from.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import write_whole
from ansible_collections.hetero.compute.plugins.plugin_utils.controller_files import led_to
from ansible_collections.hetero.compute.plugins.plugin_utils.telling import tell

SPEC = dict(
    lines=dict(type="list", elements="str", default=[]),
    files=dict(type="dict", default={}),
    mode=dict(type="str", default="0644"),
    stats=dict(type="dict", default={}),
)


class ActionModule(ActionBase):
    """Never touches a host; in check mode it writes no file either."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(SPEC)
        for path, text in {} if self._task.check_mode else arguments["files"].items():
            try:
                write_whole(led_to(path), text, int(arguments["mode"], 8))
            except OSError as error:
                remedy = "let who runs this write there, or name another place"
                return dict(result, failed=True, msg=one_line(f"{path} cannot be written ({error.strerror}): {remedy}"))
        for line in arguments["lines"]:  # whole: a status as JSON is one line
            tell(one_line(line))
        result.update(changed=False)
        if arguments["stats"]:  # as ansible.builtin.set_stats gives them
            result["ansible_stats"] = dict(data=arguments["stats"], per_host=False, aggregate=True)
        return result
