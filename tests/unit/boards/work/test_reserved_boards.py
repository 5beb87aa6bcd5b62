# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations of boards by date, in the claim, in leases and in the queue. If these fail, the boards of a course are
others' when it begins, or a board is idle for days before it.
"""

from __future__ import annotations

import json
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_leases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import node_clock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.leases import at
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.boards.work.test_board_queue import HOUR, boards, present, wait

COURSE = "course"


def hours_from_now(hours):
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(time.time() + hours * HOUR))


def reserve(node, begin, end, owner="ann", **more):
    """Reserve from so many hours from now to so many; without more, two boards of the flavor."""
    entry = {"owner": owner, "from": hours_from_now(begin), "until": hours_from_now(end), "why": COURSE}
    entry.update(more or {"flavor": FLAVOR["name"], "count": 2})
    table = node.config.setdefault("reservations", {"table": [], "flavors": {FLAVOR["name"]: FLAVOR}})
    table["table"].append(entry)


@pytest.fixture
def site(node):
    """A proxy node with three boards, of which ann has two reserved for ten hours, in five hours."""
    node.image()
    reserve(node, 5, 15)
    return node


def why(error, board):
    return error.value.facts["rejected"][board]


def extended(proxy, name, hours, check=False):
    return board_leases.extend(proxy, Instances(name), hours, Change(check), Deadline(60))


def test_before_it_a_lease_that_is_over_in_time_is_no_harm(site):
    """Lost: boards that nobody needs for hours, or a course that begins on others' boards."""
    with site.proxy() as proxy:
        assert boards(present(proxy, "jackie")) == [0], "one board is left whatever the lease"
        with pytest.raises(NoneFree) as error:
            present(proxy, "eve")
        (course,) = proxy.config.reservations
        told = f"reserved for ann from {at(course.start)} to {at(course.end)}"
        assert why(error, "board1") == [f"{told} (course): until then with -e hours=4.9"]
        assert error.value.facts["unfit"] == {}, "it can be had later"
        assert "claimed for jackie" in why(error, "board0")[0]
        with pytest.raises(NoneFree):
            present(proxy, "eve", lease_hours=5.1)
        assert boards(present(proxy, "eve", lease_hours=4.9)) == [1]
        assert boards(present(proxy, "lab", owner="ann", lease_hours=20)) == [2]


def test_during_it_the_boards_are_its_owners(node):
    """Lost: a board in the middle of the course."""
    node.image()
    reserve(node, -1, 10)
    with node.proxy() as proxy:
        assert boards(present(proxy, "jackie", lease_hours=1)) == [0]
        with pytest.raises(NoneFree) as error:
            present(proxy, "eve", lease_hours=0.1)
        assert why(error, "board1") == [f"reserved for ann until {at(proxy.config.reservations[0].end)} (course)"]
        assert boards(present(proxy, "lab", owner="ann", count=2)) == [1, 2]
        assert boards(present(proxy, "lab", owner="ann", count=2)) == [1, 2], "a second run"


def test_certain_boards_are_reserved_by_number_or_name(node):
    """Lost: the board with the card that the course is about, while others are free."""
    node.image()
    reserve(node, 5, 15, which=[0, "board2"])
    with node.proxy() as proxy:
        (said,) = information(proxy)["reservations"]
        assert said["text"].startswith("board0, board2 for ann from ")
        assert boards(present(proxy, "jackie")) == [1]
        with pytest.raises(NoneFree):
            present(proxy, "eve", board=0)
        assert boards(present(proxy, "eve", board=0, lease_hours=4)) == [0]


def test_a_reservation_that_is_over_keeps_nothing(node):
    """Lost: boards, to a table that nobody tidied."""
    node.image()
    reserve(node, -15, -5)
    with node.proxy() as proxy:
        assert boards(present(proxy, "lab", count=3)) == [0, 1, 2]
        assert information(proxy)["reservations"] == []


def test_what_runs_is_never_ended_and_keeps_nothing_from_others(site):
    """Lost: an instance, to a table that was written after it; or the boards beside it, for nothing."""
    with site.proxy() as proxy:
        claimed(proxy, "old", [0, 1], made=False, owner="bob")
        with pytest.raises(NoneFree):
            present(proxy, "jackie")
        assert boards(present(proxy, "old", count=2)) == [0, 1]
        shown = information(proxy)["reservations"]
        (course,) = proxy.config.reservations
        text = f"2 {FLAVOR['name']} for ann from {at(course.start)} to {at(course.end)} (course)"
        assert [one["text"] for one in shown] == [text]
        assert shown[0]["lacks"] == (
            "1 of it cannot be had then by present leases: board0 is bob's without end, board1 is bob's without end"
        )


def test_no_lease_grows_into_it(site):
    """Lost: the boards of a course, to who had one for an hour and made it a month."""
    with site.proxy() as proxy:
        present(proxy, "jackie", lease_hours=1)
        present(proxy, "eve", lease_hours=1)
        assert not extended(proxy, "jackie", 0)["boards"][0]["failed"], "one may stay"
        for check in (True, False):
            (one,) = extended(proxy, "eve", 6, check)["boards"]
            assert one["error"].startswith("eve: would keep what is reserved for ann from ")
            assert "-e hours=4.9 is possible" in one["error"]
        assert not extended(proxy, "eve", 4.9)["boards"][0]["failed"]
        assert "leave its lease as it is" in extended(proxy, "eve", 0)["boards"][0]["error"]
        assert proxy.store.claim_of("eve").expires == pytest.approx(time.time() + 4.9 * HOUR, abs=60)


@pytest.mark.parametrize(
    ("most", "asked", "said", "then"),
    [
        (8, 0, "would keep what is reserved for ann from ", 4.9),
        (8, 20, "would keep what is reserved for ann from ", 4.9),
        (8, 6, "would keep what is reserved for ann from ", 4.9),
        (3, 6, "is bob's, who may have it for 3 h from now: ", 3),
        (3, 0, "is bob's, who may have it for 3 h from now: ", 3),
    ],
)
def test_beside_a_limit_of_hours_what_is_nearer_is_named(site, most, asked, said, then):
    """Lost: a second refusal, to who gives the hours that the first one said are possible."""
    site.config["owner_limits"] = {"bob": {"hours": most}}
    with site.proxy() as proxy:
        present(proxy, "jackie", lease_hours=1)
        present(proxy, "eve", lease_hours=1)
        assert not extended(proxy, "jackie", most)["boards"][0]["failed"], "one may stay"
        error = extended(proxy, "eve", asked)["boards"][0]["error"]
        assert error.startswith(f"eve: {said}")
        assert f"-e hours={then:g} is possible" in error
        assert not extended(proxy, "eve", then)["boards"][0]["failed"]


def test_of_two_claims_at_once_one_takes_the_last_that_is_left(site):
    """Lost: a board of the course, to two who ask at the same moment."""
    found, begin, opening = [], threading.Barrier(2), threading.Lock()

    def ask(name):
        with opening:  # it writes proxy.json
            opened = site.proxy()
        with opened as proxy:
            begin.wait(30)
            try:
                found.append(boards(present(proxy, name)))
            except NoneFree as none:
                found.append("reserved for ann" in str(none))

    asking = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
    for one in asking:
        one.start()
    for one in asking:
        one.join(60)
    assert sorted(map(str, found)) == ["True", "[0]"]


def test_who_waits_is_told_of_it_and_holds_nothing_that_is_not_for_it(node):
    """Lost: the time at which a request can start; or the boards of the course, to who waits for them."""
    node.image()
    reserve(node, -1, 5, count=3, flavor=FLAVOR["name"])
    with node.proxy() as proxy:
        place = wait(node, "own", owner="bob")
        end = proxy.config.reservations[0].end
        assert (place["may"], place["held"], place["steps"]) == (0, 0, [[end, 1]])
        assert place["ends"] == [dict(name="reserved", owner="ann", when=end)]
        assert information(proxy)["queue"][0]["expected"] == end
        assert boards(present(proxy, "lab", owner="ann", count=3)) == [0, 1, 2]


def test_who_waits_without_a_lease_waits_for_its_end(site):
    """Lost: hours, to who waits for boards that a shorter lease would have had now."""
    with site.proxy() as proxy:
        present(proxy, "jackie")
        end = proxy.config.reservations[0].end
        assert wait(site, "own", owner="eve")["steps"] == [[end, 1]]
        assert wait(site, "own", owner="eve", lease_hours=4.0)["may"] == 1
        assert boards(present(proxy, "own", owner="eve", lease_hours=4.0)) == [1]


def test_a_dry_run_and_an_instance_that_moves_keep_to_it(site):
    """Lost: a board of the course, to an instance whose own board failed."""
    with site.proxy() as proxy:
        present(proxy, "jackie")
        proxy.store.move(0, "booting")
        proxy.store.move(0, "error", "stalled at tftp")
        with pytest.raises(NoneFree, match="reserved for ann"):
            present(proxy, "jackie", move=True)
        with pytest.raises(NoneFree, match="reserved for ann"):
            present(proxy, "eve", check=True)


def offer(node, owner="eve"):
    """How many boards the node says that an owner could have now, and why no more; None where it says nothing."""
    with node.proxy() as proxy:
        said = information(proxy, asks=(owner, {FLAVOR["name"]: FLAVOR}))
    assert checked(json.loads(json.dumps(said)), "board_info").get("msg") is None
    found = said["offers"].get(FLAVOR["name"])
    return found and (found["may"], found["why"])


def test_what_is_offered_is_what_a_claim_gives(node):
    """Lost: the time of who asks for boards that flavors says are free, and no claim gives."""
    node.image()
    assert offer(node) is None, "all that is free is offered to everybody"
    reserve(node, 5, 15)
    assert offer(node) == (3, []), "with a lease that is over by then"
    node.config.pop("reservations")
    reserve(node, -1, 15)
    assert offer(node, "ann") == (3, [])
    with node.proxy() as proxy:
        (course,) = proxy.config.reservations
        told = f"reserved: 2 {FLAVOR['name']} for ann from {at(course.start)} to {at(course.end)} (course)"
        assert offer(node) == (1, [told])
        with pytest.raises(NoneFree):
            present(proxy, "eve", owner="eve", count=2, lease_hours=0.1)
        present(proxy, "eve", owner="eve", lease_hours=0.1)
        assert offer(node) == (0, [told])


def test_what_is_held_or_too_much_is_not_offered(node):
    """Lost: the same, to who waits and to the site's limits."""
    node.image()
    with node.proxy() as proxy:
        present(proxy, "jackie")
    wait(node, "lab", count=3)
    assert offer(node) == (0, ["held for lab of ann, which waits and goes first"])
    with node.proxy() as proxy:
        proxy.store.tickets.end("lab", "ann")
    assert offer(node) is None
    node.config["owner_limits"] = {"eve": 1}
    assert (offer(node), offer(node, "bob")) == ((1, ["eve may have 1 more of it"]), None)
    with node.proxy() as proxy:
        present(proxy, "eve", owner="eve")
    assert offer(node) == (0, ["eve may have no more of it"])


@pytest.mark.parametrize("kept", [False, True])
def test_a_clock_that_jumps_ahead_ends_no_reservation(node, monkeypatch, kept):
    """Lost: the boards of a course, for good, to who asks in the minute in which a clock shows next year. One
    that a time server keeps is right.
    """
    node.image()
    reserve(node, -1, 10, count=3, flavor=FLAVOR["name"])
    real = time.time
    monkeypatch.setattr(node_clock, "synchronised", lambda: kept)
    with node.proxy() as proxy:
        node_clock.set_right(proxy.store.path)
        end = proxy.config.reservations[0].end
    monkeypatch.setattr(time, "time", lambda: real() + 400 * 86400)
    with node.proxy() as proxy:
        shown = [one["text"] for one in information(proxy)["reservations"]]
        assert len(shown) == (0 if kept else 1)
        if kept:
            assert boards(present(proxy, "eve")) == [0]
            return
        with pytest.raises(NoneFree) as error:
            present(proxy, "eve")
        assert why(error, "board0") == [f"reserved for ann until {at(end)} (course)"]
        assert boards(present(proxy, "lab", owner="ann")) == [0]
    monkeypatch.setattr(time, "time", lambda: real() - 400 * 86400)
    with node.proxy() as proxy, pytest.raises(NoneFree, match="reserved for ann from"):
        present(proxy, "eve")


def test_what_is_held_for_who_waits_serves_no_reservation_of_others(node):
    """Lost: the turn of who waits for boards that are free, as one after the other is given past it and it is told that
    the rest is reserved.
    """
    node.image()
    reserve(node, -1, 10, flavor=FLAVOR["name"], count=1)
    with node.proxy() as proxy:
        assert wait(node, "lab", owner="bob", count=3)["held"] == 2
        for name in ("eve", "carol"):
            with pytest.raises(NoneFree, match="reserved for ann until"):
                present(proxy, name)
        assert boards(present(proxy, "own", owner="ann")) == [2]
        with pytest.raises(NoneFree, match="held for lab of bob"):
            present(proxy, "eve")
