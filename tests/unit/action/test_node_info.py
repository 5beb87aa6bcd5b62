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
