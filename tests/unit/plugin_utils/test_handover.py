# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verb hands over. If these fail, a person is told of instances that nobody brought up, or not how to log in."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.handover import brought_up, leases, undone, ways

JACKIE = dict(instance="jackie", name="board0", ip="10.0.2.1", until="until 2026-11-21 18:31 UTC, 1 d left")
BOB = dict(instance="bob", name="board1", ip="10.0.2.2", until=None)
PARTS = [dict(item="p1", claims=[dict(instance="jackie")]), dict(item="p2", claims=[dict(instance="bob")])]


@pytest.mark.parametrize(
    ("result", "is_undone"),
    [
        (dict(instances=[JACKIE]), False),
        (dict(skipped=True), False),
        ({}, True),
        (dict(failed=True, msg="no power"), True),
        (dict(unreachable=True, msg="no route"), True),
        (dict(failed=False, instances=[]), False),
    ],
)
def test_a_node_that_did_not_do_its_part_is_named(result, is_undone):
    """Lost: that a part of an instance was not stopped, or did not boot."""
    assert undone(dict(p1=result, p2=dict(instances=[BOB]))) == (["p1"] if is_undone else [])


def test_what_a_node_says_of_others_is_left_out():
    """Lost: the way in to jackie, to a node that was never asked for it."""
    alice = dict(instance="alice", ip="192.0.2.66")
    said = dict(p1=dict(instances=[JACKIE, alice]), p2=dict(changed=False))
    assert brought_up(PARTS, said) == [JACKIE]
    assert brought_up(PARTS, dict(said, p2=dict(instances=[BOB]))) == [JACKIE, BOB]
    assert brought_up([], said) == []


def test_each_instance_has_a_line_that_says_how_it_is_reached(tmp_path, monkeypatch):
    """Lost: how to log in; or the shell of who pastes the line, to the name of a folder."""
    monkeypatch.chdir(tmp_path)
    assert ways([JACKIE, BOB], "") == [
        "jackie is running on board0: ssh root@10.0.2.1",
        "bob is running on board1: ssh root@10.0.2.2",
    ]
    assert ways([BOB], str(tmp_path / "ssh")) == ["bob is running on board1: ssh -F ssh/bob bob"]
    odd = os.path.join(tmp_path, "my ways;")
    assert ways([BOB], odd) == ["bob is running on board1: ssh -F 'my ways;'/bob bob"]


def test_a_lease_is_told_of_those_that_have_one():
    """Lost: when an instance ends."""
    assert leases([JACKIE, BOB]) == ["jackie has board0, lease: until 2026-11-21 18:31 UTC, 1 d left"]
