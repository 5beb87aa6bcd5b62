# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a play waits, and what it makes of its places. If these fail, a request waits for what no node ever has,
looks too late when it is its turn, or says nothing for an hour.
"""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.queue import Lot, Wish
from ansible_collections.hetero.compute.plugins.plugin_utils import queue_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.queue_steps import Wait, as_text
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_request_steps import asked

NODES = [dict(owner="p1", kind="boards", name="board0"), dict(owner="p1", kind="boards", name="board1")]
FOUND = dict(
    text="lab wants tp64: no node.", waiting="board0 in use", possible=True, some=False, most=4, candidates=[],
    could={"p1": 2, "p9": 0},
    rejected=[*(dict(one, never=False) for one in NODES), dict(owner="p9", kind="boards", name="board0", never=True)],
)  # fmt: skip
WALL = 1_700_000_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Clocks that stand still at the seconds in its list: since the start, and by the wall."""
    now = [1000.0]
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(queue_steps.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(queue_steps.time, "time", lambda: WALL + now[0] - 1000.0)
    yield now
    monkeypatch.undo()
    time.tzset()


def place(may=0, held=0, there=0, ahead=(), steps=(), ends=(), asked=WALL, possible=9, stuck=()):
    named = [dict(name=name, owner=owner, when=when) for name, owner, when in ends]
    before = [dict(request=name, owner="bob") for name in ahead]
    fixed = dict(asked=asked, may=may, held=held, there=there, ahead=before)
    fixed.update(possible=possible, stuck=[dict(name=name, why=why) for name, why in stuck])
    return dict(place=dict(fixed, steps=[list(one) for one in steps], ends=named))


def planned(wait=None, request=None, **more):
    """A plan of a request that has just begun to wait."""
    before = dict(before=[], **more)
    return dict(before, **(wait or Wait(5.0)).goes_on(request or asked(), before, dict(FOUND)))


@pytest.mark.parametrize(
    ("wait", "found", "ending"),
    [
        (Wait(0.0), FOUND, "none"),
        (Wait(5.0, check=True), FOUND, "none"),
        (Wait(5.0), dict(FOUND, possible=False), "request"),
    ],
)
def test_there_is_nothing_to_wait_for(wait, found, ending):
    """Lost: the minutes of a wait for what no node ever has; or what a program that reads the ending does about it."""
    plan = wait.goes_on(asked(), dict(before=[]), found)
    assert (plan["waits"], plan["ending"]) == (False, ending)


@pytest.mark.parametrize(
    ("wait", "found", "ways"),
    [
        (Wait(0.0), FOUND, ["wait for it: -e wait=MINUTES"]),
        (Wait(0.0), dict(FOUND, some=True), ["wait for it: -e wait=MINUTES; or take what there is: -e partial=true"]),
        (
            Wait(0.0),
            dict(FOUND, could={"p1": 0, "p9": 0}),
            ["nothing of it gets free by itself: ask an operator, and wait for that: -e wait=MINUTES"],
        ),
        (Wait(0.0), dict(FOUND, possible=False, most=0), []),
        (
            Wait(5.0),
            dict(FOUND, possible=False, some=True),
            ["no wait helps: of these there are 4 in all, whoever has them", "take what there is: -e partial=true"],
        ),
    ],
)
def test_who_gets_nothing_is_told_which_options_help(wait, found, ways):
    """Lost: that a request can wait, or take a part, to somebody who does not know the options; or an option that would
    not help.
    """
    told = wait.goes_on(asked(), dict(before=[]), found)["text"].splitlines()
    assert told == [FOUND["text"], *(f"  {way}" for way in ways)]


def test_a_place_is_kept_at_each_node_that_could_serve():
    """Lost: the place at a node that has a board free first."""
    plan = planned(request=asked(count=3))
    assert plan["queue"] == [dict(item="p1", kind="board", numbers=[1, 2, 3], elsewhere=[], others=0)]
    assert (plan["asked"], plan["waits"], "until" in plan) == (WALL, True, False)
    request = asked(count=3)
    some = dict(before=["lab-2"])
    assert Wait(5.0).goes_on(request, some, FOUND)["queue"][0]["numbers"] == [1, 3]
    assert planned()["queue"][0]["numbers"] == []
    # of a request for some of its numbers only, others get no place
    assert Wait(5.0).goes_on(dict(request, numbers=[2, 3]), some, FOUND)["queue"][0]["numbers"] == [3]


def test_a_wait_says_what_it_waits_for_and_ends(clock):
    """Lost: why nothing happens for minutes; or the end of the wait."""
    wait = Wait(1.5, 10.0)
    plan = planned(wait)
    plan = wait.waited(asked(), plan, {"p1": place()})
    assert plan["lines"] == ["lab waits for tp64, 1.5 min at most: 1st in the queue, none free for it; board0 in use"]
    assert (plan["waits"], plan["go"], plan["pause"], plan["looks"], plan["lasts"]) == (True, False, 10, 9, 60.0)
    clock[0] += 10
    plan = wait.waited(asked(), plan, {"p1": place()})
    assert (plan["waits"], plan["lines"], plan["until"]) == (True, [], 1090.0)
    clock[0] += 5
    plan = wait.waited(asked(), plan, {"p1": place(ahead=["z"])})
    waits = "2nd in the queue, none free for it; board0 in use, and z of bob goes first"
    assert plan["lines"] == [f"lab waits, 2 min more at most: {waits}"]
    clock[0] = 1085.0
    assert wait.waited(asked(), plan, {"p1": place()})["pause"] == 5
    clock[0] = 1090.0
    last = wait.waited(asked(), plan, {"p1": place()})
    assert (last["waits"], last["go"], last["has_place"]) == (False, False, True)
    assert last["text"].splitlines() == [
        FOUND["text"], "  waited 1.5 min: 1st in the queue, none free for it; board0 in use",
    ]  # fmt: skip
    over = dict(waits=False, text=f"{FOUND['text']}\n  waited 1.5 min", ending="none")
    assert wait.goes_on(asked(), plan, FOUND) == over


def test_the_time_begins_with_the_first_place(clock):
    """Lost: a short wait, to nodes that take long to keep a place."""
    plan = planned(Wait(0.05))
    clock[0] += 20
    plan = Wait(0.05).waited(asked(), plan, {"p1": place()})
    assert (plan["waits"], plan["pause"], plan["until"]) == (True, 3, 1023.0)
    assert plan["lines"][0].startswith("lab waits for tp64, 0.05 min at most: 1st in the queue")


def test_looks_are_enough_for_the_whole_time(clock):
    """Lost: the last minutes of a long wait, whose looks are used up."""
    assert planned(Wait(1.0, 0.1))["looks"] == 60


def test_what_others_have_until_when_is_told():
    """Lost: whether to wait for minutes or to come back tomorrow."""
    ends = [("board0", "ann", WALL + 600), ("board1", "bob", WALL + 1200), ("board2", "cy", WALL + 1300)]
    steps = [(WALL, 3), (WALL + 600, 4), (WALL + 1200, 8)]
    told = as_text([place(held=3, steps=steps, ends=ends)["place"]], "6 boards in use", 8, WALL)
    until = "board0 until 22:23 (ann), board1 until 22:33 (bob), …"
    assert told == f"1st in the queue, 3 free and held for it; {until}: expected 22:33"
    late = [place(held=3, steps=[(WALL + 3e5, 8)], ends=[("board0", "a\nb", WALL + 3e5)])["place"]]
    assert as_text(late, "", 8, WALL).endswith("board0 until 2023-11-18 09:33 (a\\x0ab): expected 2023-11-18 09:33")


def test_the_second_is_not_told_the_boards_of_the_first_as_its_own():
    """Lost: an hour, to who reads that board0 is in use until ten past, and does not learn that another one gets it."""
    lent = {"board0": (600, "ann"), "board1": (900, "cy")}
    lots = [Lot(WALL + seconds, {}, (name,), name, who) for name, (seconds, who) in lent.items()]
    boards = ((frozenset(lent), 1),)
    wishes = [Wish(name, "b\nob", asked, need, need, devices=boards, seconds=3600.0) for name, asked, need in
              (("old", 1.0, 2), ("young", 2.0, 1))]  # fmt: skip
    old, young = (as_text([places.place(WALL, lots, wishes, one, 0, {})], "2 boards in use", one.need, WALL)
                  for one in wishes)  # fmt: skip
    leases = "board0 until 22:23 (ann), board1 until 22:28 (cy): expected 22:28"
    assert old == f"1st in the queue, none free for it; {leases}"
    theirs = "2 boards in use, and old of b\\x0aob goes first: expected 23:28"
    assert young == f"2nd in the queue, none free for it; {theirs}"


def test_a_wait_that_is_too_short_is_told_so_at_once(clock):
    """Lost: an hour of a wait that cannot help, and the boards that go to others meanwhile."""
    wait = Wait(60.0)
    said = {"p1": place(ends=[("board0", "ann", WALL + 7200)], steps=[(WALL + 7200, 1)])}
    plan = wait.waited(asked(), planned(wait), said)
    late = "board0 until 00:13 (ann): expected 00:13, after the end of your wait (23:13)"
    assert plan["lines"] == [f"lab waits for tp64, 60 min at most: 1st in the queue, none free for it; {late}"]
    clock[0] += 10.5
    assert wait.waited(asked(), plan, said)["lines"] == [], "it is said once"
    sooner = {"p1": place(ends=[("board0", "ann", WALL + 3600)], steps=[(WALL + 3600, 1)])}
    assert wait.waited(asked(), plan, sooner)["lines"][0].endswith("board0 until 23:13 (ann): expected 23:13")
    clock[0] += 3600
    assert wait.waited(asked(), plan, said)["text"].endswith(late)


def test_a_request_that_nobody_can_serve_says_what_an_operator_has_to_do():
    """Lost: hours of a wait that nothing ends but a repair of which nobody thinks."""
    why = "is in error: it sme\x1bells: ansible-playbook hetero.compute.repair -e node=board2 makes it free again"
    stuck = [("board2", why), ("board3", "is in error: x"), ("board4", "is in error: y")]
    request, wait = asked(count=3), Wait(5.0)
    plan = wait.waited(request, planned(wait, request), {"p1": place(possible=2, stuck=stuck[:1])})
    way = why.replace("\x1b", "\\x1b")
    assert plan["lines"] == [
        "lab waits for 3 tp64, 5 min at most: 1st in the queue, nothing is held for it, for 2 of 3 can become free by "
        f"themselves; board2 {way}"
    ]
    told = as_text([dict(place(possible=0, stuck=stuck)["place"], node="p1")], "2 boards in use", 1, WALL)
    assert told.startswith("1st in the queue, nothing is held for it, for none of 1 can become free by themselves; ")
    assert told.endswith("makes it free again, board3 of p1 is in error: x, …")
    assert as_text([place(possible=0)["place"]], "no room", 1, WALL).endswith("by themselves; no room")
    assert "nothing is held" not in as_text([place(possible=0)["place"]], "", 1, WALL, more=True)


def test_no_node_says_who_is_first_on_others():
    """Lost: everybody's turn on all nodes, to whom one of them, which a stranger has, puts first; or the place of a
    play that was started again, on the nodes that know it.
    """
    wait, request = Wait(5.0), asked(count=3)
    plan = planned(wait, request)
    lies = wait.waited(request, plan, {"p1": place(), "p2": place(asked=1.0)})
    assert (lies["asked"], lies["settled"]) == (WALL, True)
    old, lost = place(asked=WALL - 50), place()
    back = wait.waited(request, plan, {"p1": old, "p2": old, "p3": lost})
    assert back["asked"] == WALL - 50, "the time of a place that it took over counts everywhere"
    assert wait.waited(request, back, {"p1": place(asked=1.0)})["asked"] == WALL - 50, "no later word counts"
    assert wait.goes_on(request, back, FOUND)["asked"] == WALL - 50
    silent = wait.waited(request, plan, {"p1": dict(msg="no route", unreachable=True)})
    assert (silent["asked"], silent["settled"]) == (WALL, False)


def test_each_node_is_told_how_many_the_others_can_give_at_all():
    """Lost: the hold of a request that two nodes serve together; or that of all others, for one that they cannot."""
    wait, request = Wait(5.0), asked(count=4)
    plan = planned(wait, request)
    assert [one["others"] for one in plan["queue"]] == [0], "the only one has nobody to ask"
    two = [dict(NODES[0], never=False), dict(NODES[0], owner="p2", never=False)]
    known = dict(FOUND, rejected=two, could={"p1": 2, "p2": 1})
    plan = dict(before=[], **wait.goes_on(request, dict(before=[]), known))
    assert [one["others"] for one in plan["queue"]] == [1, 2], "at first, by the look at all"
    said = {"p1": place(possible=2), "p2": place(possible=1, there=1)}
    plan = wait.waited(request, plan, said)
    assert [one["others"] for one in plan["queue"]] == [2, 2]
    assert [one["others"] for one in wait.goes_on(request, plan, known)["queue"]] == [2, 2]
    assert "nothing is held" not in plan["lines"][0]
    fewer = wait.waited(request, plan, dict(said, p1=place(possible=1)))
    assert "nothing is held for it, for 2 of 3 can become free" in fewer["lines"][0]
    assert [one["others"] for one in fewer["queue"]] == [2, 1]
    silent = wait.waited(request, plan, {"p1": place(possible=2), "p2": dict(msg="no route", unreachable=True)})
    assert [one["others"] for one in silent["queue"]] == [None, 2]
    never = wait.waited(request, plan, {"p1": place(possible=2), "p2": dict(place=None)})
    assert [one["others"] for one in never["queue"]] == [0, 2]


def test_places_of_several_nodes_are_one():
    """Lost: the place among all who wait, of whom each node knows some; and when two nodes have enough together."""
    wait, request = Wait(5.0), asked(count=3)
    plan = planned(wait, request)
    plan["queue"] = [dict(plan["queue"][0], item=name) for name in ("p1", "p2")]
    first = place(held=1, may=1, ahead=["x", "y"], steps=[(WALL, 1)], asked=WALL - 50)
    second = place(may=0, ahead=["y", "z"], steps=[(WALL + 60, 2)])
    plan = wait.waited(request, plan, {"p1": first, "p2": second})
    waits = "board0 in use, and x of bob, y of bob, … go first: expected 22:14"
    assert f"4th in the queue, 1 free and held for it; {waits}" in plan["lines"][0]
    assert (plan["asked"], plan["go"]) == (WALL, False)
    assert [one["elsewhere"] for one in plan["queue"]] == [[[WALL + 60, 2]], [[WALL, 1]]]
    plan = wait.waited(request, plan, {"p1": first, "p2": place(may=2)})
    assert plan["go"]


@pytest.mark.parametrize(
    ("request_", "said", "go"),
    [
        (asked(), place(may=1), True),
        (asked(), place(may=0), False),
        (asked(count=3), place(may=2), False),
        (asked(count=3), place(may=2, there=1), True),
        (asked(count=3, partial=True), place(may=1), True),
        (asked(count=3, partial=True), place(may=0), False),
        (asked(), place(there=1), True),
        (asked(), dict(msg="no route", unreachable=True), True),
        (asked(), dict(place=None), False),
    ],
)
def test_a_play_looks_when_it_is_its_turn(request_, said, go):
    """Lost: a board that is held for a play that does not claim it; or the work of all nodes, for one that waits."""
    plan = Wait(5.0).waited(request_, planned(request=request_), {"p1": said})
    assert (plan["waits"], plan["go"]) == (True, go)


def test_a_play_looks_now_and_then_all_the_same(clock):
    """Lost: nodes that are new, or gone, while it waits."""
    plan = planned()
    clock[0] += 59
    assert not Wait(5.0).waited(asked(), plan, {"p1": place()})["go"]
    clock[0] += 1
    assert Wait(5.0).waited(asked(), plan, {"p1": place()})["go"]


def test_a_place_outlasts_slow_rounds(clock):
    """Lost: the place, while one of many nodes does not answer for a minute."""
    wait, plan = Wait(60.0), planned(Wait(60.0))
    plan = wait.waited(asked(), plan, {"p1": place()})
    clock[0] += 45
    assert wait.waited(asked(), plan, {"p1": place()})["lasts"] == 165.0
