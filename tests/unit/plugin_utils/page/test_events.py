# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest events. If these fail, the page shows old ones first, or one node's answer ends it."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.page.events import MOST_EVENTS, recent
from ansible_collections.hetero.compute.plugins.plugin_utils.page.rack import Node


def node(place, *events):
    return Node(dict(events=list(events)), "running", place)


def event(time, number=1, **said):
    return dict(dict(time=time, id=number, phase="power", text="on", seconds=1.25), **said)


def test_the_newest_of_all_nodes_first():
    """Lost: what happened last."""
    found = recent([node("board1", event(1.0), event(3.0, instance="jackie")), node("board2", event(2.0))])
    assert [(one.node, one.instance) for one in found] == [("board1", "jackie"), ("board2", "-"), ("board1", "-")]
    assert (found[0].phase, found[0].text.first, found[0].seconds) == ("power", "on", "1.2")


def test_of_one_moment_the_one_that_was_written_last():
    """Lost: the order in which it happened."""
    found = recent([node("board1", event(1.0, 9), event(1.0, 10, phase="running"))])
    assert [one.phase for one in found] == ["running", "power"]


def test_no_more_than_fit_and_none_without_a_time():
    """Lost: the page."""
    many = [event(float(number), number) for number in range(MOST_EVENTS + 5)]
    assert len(recent([node("board1", *many)])) == MOST_EVENTS
    assert recent([node("board1", event("yesterday"), event(None)), Node({}, "free", "board2")]) == []
    assert recent([node("board1", event(1.0, seconds="x", text=None))])[0].seconds == ""
