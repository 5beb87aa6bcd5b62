# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a request, decided on the controller from what the nodes said (plugin_utils/request_steps.py)."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import answers, done
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import show

SPEC = dict(
    step=dict(type="str", choices=["find", "choose", "claimed", "settle"], required=True),
    request=dict(type="dict", required=True),
    nodes=dict(type="list", elements="str", required=True),
    without=dict(type="list", elements="str", default=[]),
    plan=dict(type="dict", default={}),
    alone=dict(type="dict"),
    force=dict(type="bool", default=False),
    to=dict(type="str"),
    wait=dict(type="float", default=0.0),
    interval=dict(type="float", default=10.0),
)


class ActionModule(ActionBase):
    """Never touches a host: what the nodes said is in their variables."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, given = self.validate_argument_spec(SPEC)
        try:
            plan = STEPS[given["step"]](given, (task_vars or {})["hostvars"], self._task.check_mode)
        except request_steps.Stop as stop:
            return dict(result, **dict(stop.result, failed=True, msg=str(stop)))
        show(plan.pop("lines", ()))
        return dict(result, **dict(plan, changed=False))


def _find(given: dict[str, Any], hostvars: Any, _check: bool) -> dict[str, Any]:
    said = answers(hostvars, given["nodes"])
    return request_steps.find(given["request"], said, given["without"], given["force"], given["to"])


def _choose(given: dict[str, Any], hostvars: Any, _check: bool) -> dict[str, Any]:
    if given["alone"]:
        return request_steps.alone(given["alone"])
    plan = dict(given["plan"], without=given["without"])
    return request_steps.choose(given["request"], answers(hostvars, given["nodes"]), given["without"], plan)


def _claimed(given: dict[str, Any], hostvars: Any, check: bool) -> dict[str, Any]:
    plan = given["plan"]
    heard = answers(hostvars, given["nodes"]) if plan["looked"] else []
    said = {visit["item"]: done(hostvars, visit["item"]) for visit in plan["visits"]}
    wait = request_steps.Wait(given["wait"], given["interval"], check)
    return request_steps.claimed(given["request"], heard, plan, said, wait)


def _settle(given: dict[str, Any], hostvars: Any, check: bool) -> dict[str, Any]:
    if check:  # a dry run has claimed nothing
        return dict(given["plan"], surplus=[], taken="", visits=[])
    return request_steps.settle(given["request"], answers(hostvars, given["nodes"]), given["plan"], given["without"])


STEPS = dict(find=_find, choose=_choose, claimed=_claimed, settle=_settle)
