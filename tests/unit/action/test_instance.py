# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task that acts on an instance's node. If these fail, one node speaks for instances of others: the way into them
leads to the stranger, who shows a host key of its own.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.action import instance
from ansible_collections.hetero.compute.plugins.plugin_utils import progress

ONE = dict(name="board0", ip="10.0.2.1", known_hosts="10.0.2.1 ssh-ed25519 AAAA", board=0)


@pytest.fixture
def answered(monkeypatch):
    """A function that runs the task on a node which names `names`, or answers these dicts; returns its result."""

    def run(*names, action="instance", check=True, **args):
        named = [dict(ONE, instance=one) if isinstance(one, str) else one for one in names]
        result = dict(changed=False, lines=[], instances=named)
        monkeypatch.setattr(instance.ActionModule, "_execute_module", lambda plugin, **_how: dict(result))
        monkeypatch.setattr(progress, "show", lambda lines: None)
        name = f"hetero.compute.{action}"
        task = SimpleNamespace(args=args, async_val=0, check_mode=check, action=name, collections=[])
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        return instance.ActionModule(task, connection, None, None, None, None).run(None, {})

    return run


def names(result):
    return [one["instance"] for one in result["instances"]]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (dict(instance="jackie"), ["jackie", "jackie-1", "jackie-2"]),
        (dict(instance="jackie", numbers=[]), ["jackie", "jackie-1", "jackie-2"]),
        (dict(instance="jackie", numbers=[2]), ["jackie", "jackie-2"]),
        (dict(instance="jackie", numbers=["1", "7"]), ["jackie", "jackie-1"]),
        (dict(instance="jack"), []),
    ],
)
def test_what_a_node_says_of_instances_that_it_was_not_asked_for_does_not_count(answered, asked, left):
    given = answered("alice", "jackie", "jackie-1", "jackie-2", "jackie-x", "jackied", **asked)
    assert names(given) == left


def test_the_steps_modules_are_left_as_they_are(answered):
    """Lost: what tools that work alone say of their boards, which have no such names."""
    assert names(answered("alice", action="board_image", boards=[0])) == ["alice"]


SOUND = [
    ("running", dict(state="running")),
    ("rebooted", dict(state="running")),
    ("rebuilt", dict(state="running")),
    ("stopped", dict(state="power off")),
    ("stopped", dict(state="stopped")),
    ("extended", dict(state="running", until="no end")),
    ("absent", dict(state="power off")),
    ("absent", dict(state="error")),
    ("absent", dict(state="shutting down")),
    ("absent", dict(state="ending")),
    ("present", dict(state="power off")),
]


@pytest.mark.parametrize(("state", "one"), SOUND)
def test_what_a_verb_leaves_is_passed_on_as_it_is(answered, state, one):
    """Lost: each verb, to a look at the states that it leaves which knows these badly."""
    one = dict(ONE, instance="jackie", **one)
    assert answered(one, check=False, instance="jackie", state=state)["instances"] == [one]


@pytest.mark.parametrize(
    ("state", "one", "why"),
    [
        ("stopped", dict(state="running"), "state of jackie is 'running', and it is to be stopped"),
        ("stopped", dict(), "state of jackie is not there, and it is to be stopped"),
        ("stopped", dict(state=["stopped"]), "state of jackie is ['stopped'], and it is to be stopped"),
        ("absent", dict(state="running"), "state of jackie is 'running', and it is to be absent"),
        ("absent", dict(state=None), "state of jackie is None, and it is to be absent"),
        ("running", dict(state="booting"), "state of jackie is 'booting', and it is to be running"),
        ("running", dict(state="running", ip=None), "ip of jackie is None, and it is to be running"),
        ("rebuilt", dict(state="running", name=None), "name of jackie is None, and it is to be rebuilt"),
        ("rebooted", dict(state="error"), "state of jackie is 'error', and it is to be rebooted"),
        ("extended", dict(), "until of jackie is not there, and it is to be extended"),
        ("extended", dict(until=None), "until of jackie is None, and it is to be extended"),
        # which is said of each state: it is in the lines that a play ends with
        ("running", dict(state="running", until=["no end"]), "instances is [{'name': 'board0', "),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_a_failure(answered, state, one, why):
    """Lost: an operator who cuts a cable, or lends the board on, as an instance that runs was called stopped or ended;
    or the others' lines, to an error of Ansible's own about a key."""
    result = answered({**ONE, "instance": "jackie", **one}, check=False, instance="jackie", state=state)
    assert result["failed"] is True
    assert result["msg"].startswith(f"what the node answers to instance cannot be ({why}")
    assert "instances" not in result


@pytest.mark.parametrize(("answer", "there"), [([], 0), (["lab-1", "lab-1"], 1), (["lab-1", "eve"], 1)])
def test_an_instance_of_which_nothing_is_said_is_not_done(answered, answer, there):
    """Lost: the part of a request that a node left as it was, and said nothing of."""
    said = [dict(ONE, instance=name, state="stopped") for name in answer]
    asked = dict(instance="lab", numbers=[1, 2], created=[1.5, 1.5])
    result = answered(*said, check=False, state="stopped", **asked)
    assert f"(it names {there} of 2 instances that are to be stopped): " in result["msg"]
    ended = [dict(one, state="power off") for one in said]
    assert "failed" not in answered(*ended, check=False, state="absent", **asked)


def test_a_dry_run_leaves_all_as_it_is(answered):
    """Lost: each dry run of a verb on an instance that is not yet as the verb would leave it."""
    one = dict(ONE, instance="jackie", state="running")
    assert answered(one, check=True, instance="jackie", state="stopped")["instances"] == [one]
