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
    """A function that runs the task on a node which names `names`; returns those that are left."""

    def run(*names, action="instance", **args):
        result = dict(changed=False, lines=[], instances=[dict(ONE, instance=name) for name in names])
        monkeypatch.setattr(instance.ActionModule, "_execute_module", lambda plugin, **_how: dict(result))
        monkeypatch.setattr(progress, "show", lambda lines: None)
        name = f"hetero.compute.{action}"
        task = SimpleNamespace(args=args, async_val=0, check_mode=True, action=name, resolved_action=name)
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        said = instance.ActionModule(task, connection, None, None, None, None).run(None, {})
        return [one["instance"] for one in said["instances"]]

    return run


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
    assert answered("alice", "jackie", "jackie-1", "jackie-2", "jackie-x", "jackied", **asked) == left


def test_the_steps_modules_are_left_as_they_are(answered):
    """Lost: what tools that work alone say of their boards, which have no such names."""
    assert answered("alice", action="board_image", boards=[0]) == ["alice"]
