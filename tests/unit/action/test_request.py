# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task by which plays decide. If these fail, a play goes by an answer of another step, or by no answer at all."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleError

from ansible_collections.hetero.compute.plugins.action import request as action
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_request_steps import FLAVOR, asked, claim, node

ASKED_FOR = {key: value for key, value in asked().items() if value != ""}
SHELL = SimpleNamespace(tmpdir="/nowhere")


@pytest.fixture
def told(monkeypatch):
    """The lines that were shown to people."""
    lines = []
    monkeypatch.setattr(action, "show", lines.extend)
    return lines


@pytest.fixture
def decide(told):
    """A function that runs the task; `said` is {node: its variables}."""

    def run(said, check=False, **args):
        task = SimpleNamespace(args=args, async_val=0, check_mode=check, action="hetero.compute.request")
        plugin = action.ActionModule(task, SimpleNamespace(_shell=SHELL), None, None, None, None)
        return plugin.run(None, {"hostvars": said})

    return run


def asked(*answers, **done):
    """Variables of nodes that were asked, and of some that were then asked to claim."""
    said = {one["item"]: dict(_asked=one) for one in answers}
    for name, result in done.items():
        said[name]["_done"] = result
    return said


def test_each_step_goes_by_the_plan_of_the_one_before(decide, told):
    """Lost: the way from one step to the next, such as what was there before this request."""
    said = asked(node("p1", 1), node("p2", 0))
    given = dict(request=ASKED_FOR, nodes=["p1", "p2"])
    plan = decide(said, step="choose", **given)
    assert (plan["visits"], plan["changed"]) == ([dict(item="p1", kind="board", numbers=[])], False)
    mine = claim("lab", 20)
    said["p1"]["_done"] = dict(instances=[mine], changed=True)
    plan = decide(said, step="claimed", plan=plan, **given)
    assert (plan["placed"], plan["surplus"], plan["changed"], "lines" in plan) == (True, [], False, False)
    older = asked(node("p1", 0, [mine]), node("p2", 0, [claim("lab", created=9.0)]))
    plan = decide(older, step="settle", plan=plan, **given)
    assert [part["item"] for part in plan["surplus"]] == ["p1"]
    assert [visit["item"] for visit in plan["visits"]] == ["p2"]
    found = decide(older, step="find", to="stop", request=dict(instance="lab", owner="jo"), nodes=["p1"])
    assert [part["item"] for part in found["parts"]] == ["p1"]
    assert told == []


def test_the_first_claims_are_judged_when_all_were_asked_again(decide):
    """Lost: what a request of several nodes was given: nobody looked at it before whose its names are."""
    given = dict(request=ASKED_FOR, nodes=["p1", "p2"])
    plan = decide(asked(node("p1", 1), node("p2", 0)), step="choose", **given)
    mine = claim("lab", 20)
    said = asked(node("p1", 0, [mine]), node("p2", 0), p1=dict(instances=[mine], changed=True))
    plan = decide(said, step="settle", plan=plan, **given)
    assert (plan["placed"], plan["taken"], plan["moves"]) == (True, "", [])
    assert [part["item"] for part in plan["parts"]] == ["p1"]
    # of a plan that has its parts nobody is asked what it gave
    assert decide(asked(node("p1", 0, [mine]), node("p2", 0)), step="settle", plan=plan, **given)["moves"] == []


def test_what_people_are_to_read_is_shown(decide, told):
    nobody = decide(asked(node("p1")), step="find", request=ASKED_FOR, nodes=["p1"])
    assert told == ["lab: no such instance on p1: ansible-playbook hetero.compute.status shows who has what"]
    assert nobody == dict(parts=[], changed=False)


def test_a_stop_is_a_failure_with_its_reason(decide):
    """Lost: what a program reads of the failure, such as what is still claimed."""
    result = decide(asked(node("p1")), step="find", to="stop", request=ASKED_FOR, nodes=["p1"])
    assert (result["failed"], result["msg"].partition(":")[0]) == (True, "There is no instance lab to stop")
    assert result["ending"] == "request"
    plan = dict(visits=[dict(item="p1", kind="board", numbers=[])], refused=[], looked=False)
    failure = dict(msg="Task failed: no power", failed=False, failure=dict(what="no power"), changed=True)
    result = decide(dict(p1=dict(_done=failure)), step="claimed", request=ASKED_FOR, nodes=["p1"], plan=plan)
    assert result == dict(failure, failed=True, msg="no power")


def test_a_stop_that_holds_somebodys_words_is_printable(decide):
    """Lost: the operator's terminal, or which lines are ours, to the name of who asks."""
    asks = dict(ASKED_FOR, owner="ann\x1b[31m")
    result = decide(asked(node("p1", 0, [claim("lab", owner="bob")])), step="find", request=asks, nodes=["p1"])
    assert "not to ann\\x1b[31m: ask bob" in result["msg"]


def test_the_options_reach_the_step(decide):
    """Lost: `force`, `without`, `wait` or check mode, in a play that gives them."""
    of_bob = asked(node("p1", 0, [claim("lab", owner="bob")]))
    assert decide(of_bob, step="find", request=ASKED_FOR, nodes=["p1"])["failed"] is True
    assert decide(of_bob, step="find", request=ASKED_FOR, nodes=["p1"], force=True)["parts"] != []
    silent = asked(dict(item="p1", unreachable=True, msg="x"))
    said = decide(silent, step="find", request=ASKED_FOR, nodes=["p1"], without=["p9"])["msg"]
    assert said.endswith("-e without=p9,p1")
    full = asked(node("p1", 0, [claim("eve", 3, owner="eve")]))
    given = dict(request=ASKED_FOR, nodes=["p1"], wait=5, interval=7)
    plan = decide(full, step="choose", request=ASKED_FOR, nodes=["p1"])
    waits = decide(full, step="claimed", plan=plan, **given)
    assert (waits["waits"], waits["pause"]) == (True, 7)
    assert decide(full, check=True, step="claimed", plan=plan, **given)["waits"] is False
    gone = asked(node("p1", 1), p1=dict(unreachable=True, msg="x"))
    plan = decide(gone, step="choose", request=ASKED_FOR, nodes=["p1"])
    said = decide(gone, step="claimed", request=ASKED_FOR, nodes=["p1"], plan=plan, without=["p9"])["msg"]
    assert said.endswith("-e without=p9,p1")


def test_a_request_may_be_text_as_older_releases_of_ansible_give_it(decide):
    """Lost: all requests, with an Ansible before 2.19: a template makes text of numbers there."""
    given = dict(instance="lab", owner="jo", flavor=FLAVOR, count="2", partial="False")
    plan = decide(asked(node("p1", 2)), step="choose", request=given, nodes=["p1"])
    assert [visit["numbers"] for visit in plan["visits"]] == [[1, 2]]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (dict(step="find", nodes=[]), "missing required arguments: request"),
        (dict(step="guess", nodes=[], request=ASKED_FOR), "value of step must be one of"),
        (dict(step="find", nodes=[], request=dict(instance="lab")), "missing required arguments: owner"),
        (dict(step="choose", nodes=[], request=dict(ASKED_FOR, count="many")), "count"),
        (dict(step="choose", nodes=[], request=dict(ASKED_FOR, colour="red")), "Unsupported parameters"),
    ],
)
def test_a_slip_in_a_play_names_the_option(decide, args, why):
    with pytest.raises(AnsibleError, match=why):
        decide({}, **args)
