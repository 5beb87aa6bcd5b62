# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task that asks a node what it has. If these fail, a node is asked by the module of another kind, or believed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.action import node_info
from ansible_collections.hetero.compute.plugins.plugin_utils import progress
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_answers import HOST, NODE


@pytest.fixture
def ask(monkeypatch):
    """A function that runs the task on a node that answers `answer`; returns (module, its arguments, result)."""

    def run(answer, **args):
        called = []

        def execute(plugin, **_how):
            called.append((plugin.module, dict(plugin._task.args)))
            return answer

        monkeypatch.setattr(node_info.ActionModule, "_execute_module", execute)
        task = SimpleNamespace(args=args, async_val=0, check_mode=False, action="hetero.compute.node_info")
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        result = node_info.ActionModule(task, connection, None, None, None, None).run(None, {})
        return (*called[0], result)

    return run


@pytest.mark.parametrize(("kind", "module", "answer"), [("proxy", "board_info", NODE), ("host", "host_info", HOST)])
def test_each_kind_of_node_has_its_module(ask, kind, module, answer):
    """Lost: all nodes of one kind; the module refuses options that it does not have."""
    called, args, result = ask(answer, node=kind, instance="jackie", events=5)
    assert called == f"hetero.compute.{module}"
    assert args == dict(instance="jackie", events=5)
    assert result == answer


@pytest.mark.parametrize(("kind", "module", "answer"), [("proxy", "board_info", HOST), ("host", "host_info", NODE)])
def test_an_answer_is_checked_as_that_of_its_module(ask, kind, module, answer):
    """Lost: what all others say, to a node that answers as another kind of node, which the scheduler believes."""
    *_called, result = ask(answer, node=kind)
    assert result["failed"] is True
    assert f"what the node answers to {module} cannot be (" in result["msg"]


def test_no_lines_of_a_node_that_is_only_asked_are_shown(ask, monkeypatch):
    """Lost: who trusts and pastes them: "bob is running on board7: ssh root@…" among the collection's own."""
    shown = []
    monkeypatch.setattr(progress, "tell", shown.append)
    ask(dict(NODE, lines=["bob is running on board7: ssh root@192.0.2.66"]), node="proxy")
    assert shown == []


@pytest.mark.parametrize("kind", [None, "board", "", ["proxy"], "x" * 10**6])
def test_what_is_no_kind_of_node_is_refused(ask, kind):
    with pytest.raises(AnsibleActionFail, match=r"^node is .{0,300}: give proxy or host$"):
        ask(NODE, node=kind)
    with pytest.raises(AnsibleActionFail, match=r"^node is None: give proxy or host$"):
        ask(NODE)


@pytest.fixture
def watch(monkeypatch):
    """A function that watches on a proxy node that gives these answers, one after another; (result, lines, calls)."""

    def run(*answers, limit=600.0):
        now, told, calls, left = [1000.0], [], [], list(answers)

        def execute(plugin, **_how):
            calls.append(dict(plugin._task.args))
            return left.pop(0) if len(left) > 1 else left[0]

        def sleep(seconds):
            now[0] += seconds

        monkeypatch.setattr(node_info.ActionModule, "_execute_module", execute)
        monkeypatch.setattr(node_info, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
        monkeypatch.setattr(progress, "tell", told.append)
        args = dict(node="proxy", instance="jackie", events=50, watch=limit)
        task = SimpleNamespace(args=args, async_val=0, check_mode=False, action="hetero.compute.node_info")
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        result = node_info.ActionModule(task, connection, None, None, None, None).run(
            None, dict(inventory_hostname="p1")
        )
        return result, told, calls

    return run


def at(state, *events, instance="jackie"):
    """An answer of a node on which the instance has a board in a state."""
    (board, *_others) = NODE["boards"]
    said = [dict(id=len(text), time=2e9, phase="tftp", text=text, instance=instance) for text in events]
    return dict(NODE, boards=[dict(board, instance=instance, state=state, since=1.0, since_seconds=9.0, events=said)])


def test_who_watches_is_told_until_it_runs(watch):
    """Lost: what happens, or the end."""
    result, told, calls = watch(at("booting"), at("booting", "kernel"), at("running", "kernel", "mounted"))
    assert [line.split()[3] for line in told] == ["kernel", "mounted"]
    assert calls == [dict(instance="jackie", events=50)] * 3
    assert [(one["instance"], one["state"]) for one in result["watched"]] == [("jackie", "running")]


def test_a_watch_ends_where_nothing_happens_or_the_node_fails(watch):
    """Lost: a shell, or a job of AWX, that watches for ever."""
    result, told, _calls = watch(at("booting"), limit=60)
    assert result["watched"][0]["note"] == "nothing has happened for 60 s"
    assert len(told) == 5, told
    result, _told, _calls = watch(at("booting"), dict(failed=True, msg="no route"))
    assert (result["msg"], "watched" in result) == ("no route", False)
    result, _told, _calls = watch(at("booting"), dict(NODE, boards="none"))
    assert "what the node answers to board_info cannot be (" in result["msg"]


@pytest.mark.parametrize("limit", ["soon", 0, -1, 1e9, [1]])
def test_a_watch_has_an_end(watch, limit):
    with pytest.raises(AnsibleActionFail, match=r"^watch is .{0,300}: give seconds, at most 86400$"):
        watch(at("running"), limit=limit)
