# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a request, decided on the controller from what the nodes said. plugin_utils/request_steps.py has the
rules; this file reads the nodes' answers from Ansible's variables.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import (
    LONGEST,
    brief,
    printable_data,
)
from ansible_collections.hetero.compute.plugins.plugin_utils import asks, move_steps, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import PLACE, answers, done
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import show
from ansible_collections.hetero.compute.plugins.plugin_utils.queue_steps import Wait

REQUEST = dict(
    instance=dict(type="str", required=True),
    owner=dict(type="str", required=True),
    flavor=dict(type="dict", default={}),
    count=dict(type="int", default=1),
    numbers=dict(type="list", elements="int", default=[]),
    partial=dict(type="bool", default=False),
    placement=dict(type="str", default="spread"),
    board=dict(type="str", default=""),
    proxy=dict(type="str", default=""),
    boot_source=dict(type="str", default="nfs"),
    image=dict(type="str", default=""),
)
SPEC = dict(
    step=dict(type="str", choices=["find", "choose", "claimed", "waited", "settle", "target", "moved"], required=True),
    request=dict(type="dict", required=True, options=REQUEST),
    nodes=dict(type="list", elements="str", required=True),
    without=dict(type="list", elements="str", default=[]),
    plan=dict(type="dict", default={}),
    force=dict(type="bool", default=False),
    to=dict(type="str"),
    came=dict(type="dict", default={}),
    node=dict(type="str", default=""),
    back=dict(type="bool", default=False),
    runs=dict(type="bool", default=True),
    target=dict(type="dict", default={}),
    wait=dict(type="float", default=0.0),
    interval=dict(type="float", default=10.0),
)


#: Most characters of an error, and most lines and characters of one, that are told of what nodes answered.
MOST, LINES, LINE = 50_000, 500, LONGEST


def few(lines: Sequence[Any]) -> list[Any]:
    """Return lines for people, with as many and as long ones as anybody reads."""
    told = [brief(line, LINE) if isinstance(line, str) else line for line in lines[:LINES]]
    return told + ([f"and {len(lines) - LINES} lines more"] if lines[LINES:] else [])


class ActionModule(ActionBase):
    """Touches no host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        asks.spread(self._task.args)
        _spec, given = self.validate_argument_spec(SPEC)
        try:
            plan = decided(given, (task_vars or {})["hostvars"], self._task.check_mode)
        except request_steps.Stop as stop:
            told = dict(stop.result or dict(ending=stop.ending), failed=True, msg=brief(str(stop), MOST))
            return dict(result, **printable_data(told))
        show(few(plan.pop("lines", ())))
        return dict(result, **dict(plan, changed=False))


def decided(given: dict[str, Any], hostvars: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the plan that one step makes of the options and the nodes' answers; raise Stop if the play ends here."""
    step, request, plan, without = (given[key] for key in ("step", "request", "plan", "without"))
    wait = Wait(given["wait"], given["interval"], check)
    if step == "waited":
        said = {one["item"]: done(hostvars, one["item"], PLACE) for one in plan["queue"]}
        return wait.waited(request, plan, said)
    if step == "moved":
        return move_steps.moved(plan, given["target"], given["runs"], check)
    heard = answers(hostvars, given["nodes"])
    if step == "target":
        return move_steps.target(request, heard, plan, given["came"], given["node"], given["back"])
    if step == "find":
        return request_steps.find(request, heard, without, given["force"], given["to"])
    if step == "choose":
        return request_steps.choose(request, heard, without, plan)
    if step == "settle" and "parts" in plan:
        return request_steps.settle(request, heard, plan, without)
    said = {visit["item"]: done(hostvars, visit["item"]) for visit in plan["visits"]}
    if step == "settle":
        return request_steps.confirmed(request, heard, plan, said, wait, without)
    return request_steps.claimed(request, heard if plan["looked"] else [], plan, said, wait, without)
