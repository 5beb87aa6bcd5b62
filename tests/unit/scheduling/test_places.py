# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Places in the queue, as people read them. If these fail, who waits reads a time or a position that is not so."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import Lot, Wish

NOW = 1000.0


def wish(request, asked, need=1, owner="ann", **more):
    return Wish(request, owner, asked, need, need, devices=((frozenset({"board1", "board2"}), 1),), **more)


def test_the_place_of_a_request():
    """Lost: who is ahead, how many it may have, and whose ends it waits for."""
    lots = [
        Lot(0.0, {}, ("board1",)),
        Lot(NOW + 60, {}, ("board2",), "jackie", "bob"),
    ]
    first, own = wish("first", 1.0, owner="eve"), wish("lab", 2.0)
    found = places.place(NOW, lots, [own, first], own, 3, {"board2": "is in error", "board9": "is in error"})
    assert found == dict(
        asked=2.0,
        ahead=[dict(request="first", owner="eve")],
        may=0,
        held=0,
        there=3,
        steps=[[NOW + 60, 1]],
        ends=[dict(name="jackie", owner="bob", when=NOW + 60)],
        possible=1,
        stuck=[dict(name="board2", why="is in error")],
    )
    alone = places.place(NOW, lots, [own], own, 0, {})
    assert (alone["may"], alone["held"], alone["ahead"], alone["ends"]) == (1, 1, [], [])


def test_of_many_ends_the_first_are_told():
    """Lost: a line that one can read."""
    lots = [Lot(NOW + number, {}, (f"board{number}",), f"i{number}", "bob") for number in range(1, 9)]
    many = Wish("lab", "ann", 1.0, 8, 8, devices=((frozenset(f"board{n}" for n in range(1, 9)), 1),))
    ends = places.place(NOW, lots, [many], many, 0, {})["ends"]
    assert [one["name"] for one in ends] == ["i1", "i2", "i3", "i4"]


def test_what_status_shows():
    """Lost: the queue, for who reads `status`."""
    lots = [Lot(0.0, {}, ("board1",)), Lot(None, {}, ("board2",), "jackie", "bob")]
    own, late = wish("lab", 1.0, priority=2), wish("late", 3.0)
    shown, following = places.shown(NOW, lots, [late, own], {("lab", "ann"): "tp64", ("late", "ann"): "tgx"}, {})
    assert shown[0] == dict(
        request="lab", owner="ann", flavor="tp64", need=1, position=1, priority=2, asked=1.0, held=1, expected=NOW,
        enough=True, stuck=[],
    )  # fmt: skip
    assert (shown[1]["request"], shown[1]["position"], shown[1]["expected"]) == ("late", 2, None)
    assert following == {"board1": "lab (queue 1)"}, "of what has no end nobody is promised anything"


def test_why_a_free_node_is_not_given():
    """Lost: whom to ask."""
    assert places.held_for(wish("lab", 1.0)) == "held for lab of ann, which waits and goes first"
