# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that are held for those who wait, as a proxy node decides it in the claim. If these fail, who waits longest is
overtaken by whoever asks at the right moment.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.tables import LAYOUT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import (
    board_claims,
    board_leases,
    checked_boards,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import tickets
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.room import room_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.tickets import work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

HOUR = 3600.0
#: Times at which somebody asked are counted from here (unix seconds).
START = time.time() - HOUR
WAITS = "held for lab of ann, which waits and goes first"


@pytest.fixture
def proxy(node):
    node.image()
    with node.proxy() as opened:
        yield opened


def present(proxy, request="jackie", check=False, owner="bob", **more):
    asked = dict(request=request, owner=owner, flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    if more.get("asked"):
        more["asked"] += START
    return board_claims.present(proxy, ClaimRequest(**dict(asked, **more)), Change(check))


def wait(node, instance="lab", check=False, **more):
    """What module ticket answers: the place."""
    given = dict(
        node.params, instance=instance, owner="ann", state="present", kind="board", flavor=FLAVOR, image="debian",
        ssh_public_key=KEY, asked=100.0, priority=0, seconds=60.0, elsewhere=[], board=None, boot_source="nfs",
        devices=[], count=1, numbers=[], partial=False, lease_hours=None, others=None,
    )  # fmt: skip
    given = dict(dict(given, takes_over=True), **more)
    result = work(dict(given, asked=START + given["asked"]), check)
    assert checked(json.loads(json.dumps(result)), "ticket").get("msg") is None
    assert result["changed"] is False
    return result["place"]


def soon(hours):
    return pytest.approx(time.time() + hours * HOUR, abs=120)


def boards(result):
    return [one["board"] for one in result["boards"]]


def test_who_does_not_wait_gets_nothing_that_is_held(proxy, node):
    """Lost: the place of who waits for three boards, of which two are free, to a request for one."""
    claimed(proxy, "eve", [2], made=False)
    place = wait(node, count=3)
    assert (place["held"], place["may"], place["ahead"], place["steps"][0][1]) == (2, 2, [], 2)
    with pytest.raises(NoneFree) as error:
        present(proxy)
    assert error.value.facts["rejected"]["board0"] == [WAITS]
    assert WAITS in str(error.value)
    assert error.value.facts["unfit"] == {}
    present(proxy, priority=1)
    proxy.store.tickets.end("lab", "ann")
    assert boards(present(proxy, "carol")) == [1]


def test_the_rest_of_what_is_free_goes_to_the_next(proxy, node):
    """Lost: a board that nobody who waits needs."""
    wait(node)
    assert boards(present(proxy)) == [1]
    assert boards(present(proxy, "carol")) == [2]
    with pytest.raises(NoneFree):
        present(proxy, "dora")
    assert boards(present(proxy, "lab", owner="ann")) == [0]
    assert proxy.store.tickets.living() == [], "who has what it waits for has no place any more"


def test_those_who_wait_are_served_in_their_order(proxy, node):
    """Lost: the turn of the first, to whom the node hears of first."""
    claimed(proxy, "eve", [1, 2], made=False)
    wait(node, "second", asked=200.0)
    first = wait(node, "first", asked=100.0)
    second = wait(node, "second", asked=200.0)
    assert (first["ahead"], first["may"]) == ([], 1)
    assert (second["ahead"], second["may"]) == ([dict(request="first", owner="ann")], 0)
    for asked in (200.0, None):
        with pytest.raises(NoneFree):
            present(proxy, "second", owner="ann", asked=asked)
    assert boards(present(proxy, "first", owner="ann", asked=100.0)) == [0]


def test_a_play_that_came_back_claims_with_its_earlier_time(proxy, node):
    """Lost: the turn of a play that was started again, and does not know since when it waits."""
    claimed(proxy, "eve", [1, 2], made=False)
    wait(node, asked=100.0)
    wait(node, "other", asked=200.0)
    assert boards(present(proxy, "lab", owner="ann", asked=999.0)) == [0]


def test_the_play_says_in_the_end_since_when_it_waits(proxy, node):
    """Lost: one order on all nodes, to one that kept an earlier time than the others did."""
    claimed(proxy, "eve", [1, 2], made=False)
    wait(node, asked=100.0)
    wait(node, "other", asked=200.0)
    assert (wait(node, asked=300.0)["asked"], wait(node, asked=300.0)["ahead"]) == (START + 100, [])
    place = wait(node, asked=300.0, takes_over=False)
    assert (place["asked"], place["ahead"]) == (START + 300, [dict(request="other", owner="ann")])
    with pytest.raises(NoneFree):
        present(proxy, "lab", owner="ann", asked=100.0)


@pytest.mark.parametrize(
    "asked", [1.0 - START, 100 * HOUR, 60.1e6 * -1 - 30 * HOUR], ids=["1970", "days ahead", "two years ago"]
)
def test_a_time_at_which_nobody_asked_is_refused(proxy, node, asked):
    """Lost: everybody's turn, to a play that says 1970, or whose clock does."""
    with pytest.raises(BadInput, match=r"asked: is .*, and the clock of node .* says .* both clocks are right"):
        wait(node, asked=asked)
    with pytest.raises(BadInput, match="asked: is "):
        present(proxy, asked=asked)
    assert proxy.store.tickets.living() == []


def test_a_place_for_one_is_none_for_all(proxy, node):
    """Lost: everybody's turn, to who keeps a place for one board and then asks for all."""
    wait(node, "mine", asked=100.0)
    wait(node, "lab", asked=200.0, count=3)
    with pytest.raises(NoneFree):
        present(proxy, "mine", owner="ann", count=3)
    assert boards(present(proxy, "mine", owner="ann")) == [0]


def test_a_board_in_error_is_waited_for_with_a_place(proxy, node):
    """Lost: the turn of who waits for a board that is being repaired."""
    for number in (0, 1):
        proxy.store.move(number, "error", "it smells")
    place = wait(node, board=0)
    assert (place["may"], place["held"], place["steps"]) == (0, 0, [])
    assert len(proxy.store.tickets.living()) == 1
    assert boards(present(proxy)) == [2]


@pytest.mark.parametrize(
    ("state", "way"),
    [
        ("error", "ansible-playbook hetero.compute.repair -e node=board2 makes it free again"),
        ("maintenance", "ansible-playbook hetero.compute.maintenance -e node=board2 -e state=off makes it free again"),
    ],
)
def test_a_board_that_an_operator_has_to_mend_costs_nobody_the_others(proxy, node, state, way):
    """Lost: two sound boards for hours, for a request for three that nobody can serve; or its turn, once it is mended;
    or what keeps it.
    """
    proxy.store.move(2, state, "it smells")
    place = wait(node, count=3, others=0)
    assert (place["possible"], place["held"], place["stuck"]) == (
        2, 0, [dict(name="board2", why=f"is in {state}: it smells: {way}")],
    )  # fmt: skip
    (told,) = information(proxy)["queue"]
    assert (told["held"], told["enough"], [one["name"] for one in told["stuck"]]) == (0, False, ["board2"])
    assert wait(node, "two", count=2, asked=200.0, others=0)["ahead"] == [dict(request="lab", owner="ann")]
    assert boards(present(proxy, "two", owner="ann", count=2, asked=200.0)) == [0, 1]
    proxy.store.move(2, "shutting down", "mended")
    for board in (0, 1, 2):
        proxy.store.release(board, proxy.store.record(board).claim)
    with pytest.raises(NoneFree) as error:
        present(proxy)
    assert error.value.facts["rejected"]["board0"] == [WAITS], "its place is as it was, and what it needs is held again"
    assert wait(node, count=3, others=0)["may"] == 3


def test_what_becomes_free_by_itself_is_waited_for(proxy, node):
    """Lost: the two boards that are held, each time when the third one is in use, or being cleaned."""
    claimed(proxy, "eve", [2], made=False)
    assert (wait(node, count=3, others=0)["possible"], wait(node, count=3, others=0)["held"]) == (3, 2)
    proxy.store.release(2, proxy.store.record(2).claim)
    proxy.store.move(2, "error", "it smells")
    assert wait(node, count=3, others=0)["held"] == 0
    assert wait(node, count=3, others=1)["held"] == 2, "another node has one"
    proxy.store.move(2, "shutting down", "repair")
    place = wait(node, count=3, others=0)
    assert (place["possible"], place["held"], place["stuck"]) == (3, 2, [])
    with pytest.raises(NoneFree):
        present(proxy)


def test_a_younger_one_goes_first_where_its_lease_is_over_in_time(proxy, node):
    """Lost: hours of two boards that stand idle; or the start of who waits, for one that ends after it."""
    claimed(proxy, "eve", [2], made=False, lease_hours=5)
    place = wait(node, count=3)
    assert place["steps"] == [[soon(0), 2], [soon(5), 3]]
    assert [(end["name"], end["owner"]) for end in place["ends"]] == [("board2", "ann")]
    for hours in (None, 0, 6):
        with pytest.raises(NoneFree):
            present(proxy, lease_hours=hours)
    assert boards(present(proxy, lease_hours=4)) == [0]
    assert wait(node, count=3)["held"] == 1


def test_who_went_first_by_a_lease_keeps_to_it(proxy, node):
    """Lost: the start of who waits, to one that takes a board for an hour and another one for each hour."""
    (eve,) = claimed(proxy, "eve", [2], made=False, lease_hours=5)
    wait(node, count=3)
    present(proxy, lease_hours=4)

    def extend(name, hours):
        whose = Instances(name, None, (), ())
        return board_leases.extend(proxy, whose, hours, Change(), Deadline(10.0)).get("msg", "")

    for hours in (6, 0):
        assert "jackie: went before lab of ann by its lease, and that is to start at " in extend("jackie", hours)
    assert extend("jackie", 4.5) == ""
    assert extend("eve", 9) == "", "who was there before is nobody's guest"
    wait(node, count=3)
    assert extend("jackie", 8) == ""
    assert "as its lease" not in extend("jackie", 1)
    proxy.store.tickets.end("lab", "ann")
    assert extend("jackie", 0) == ""
    assert eve.board == 2


def test_what_other_nodes_have_counts_for_the_start(proxy, node):
    """Lost: the start of who waits for boards of two nodes, for one that this node alone would not need by then."""
    claimed(proxy, "eve", [2], made=False, lease_hours=5)
    wait(node, count=3, elsewhere=[[time.time() + 2 * HOUR, 1]])
    with pytest.raises(NoneFree):
        present(proxy, lease_hours=4)
    assert boards(present(proxy, lease_hours=1)) == [0]


def test_an_instance_that_moves_from_a_board_in_error_goes_first(proxy, node):
    """Lost: an instance whose board failed, for nobody's turn is before its own."""
    claimed(proxy, made=False, owner="bob")
    proxy.store.move(0, "error", "it smells")
    wait(node, count=2)
    assert boards(present(proxy, move=True)) == [1]
    assert boards(present(proxy)) == [1], "nor does who has all of it lose any"


def test_a_dead_play_holds_nothing(proxy, node):
    """Lost: boards, until somebody ends what does not run any more."""
    wait(node, count=3)
    with pytest.raises(NoneFree):
        present(proxy)
    proxy.store._db.write("UPDATE tickets SET renewed = renewed - 61")
    assert boards(present(proxy)) == [0]


def test_the_place_of_several_ends_with_the_last_of_them(proxy, node):
    """Lost: the rest of a request, of which another node has a part; or what is held for one that has all."""
    wait(node, count=3)
    assert boards(present(proxy, "lab", owner="ann", count=3, numbers=(1,))) == [0]
    assert len(proxy.store.tickets.living()) == 1
    place = wait(node, count=3)
    assert (place["there"], place["held"]) == (1, 2)
    present(proxy, "lab", owner="ann", count=3, numbers=(2, 3))
    assert proxy.store.tickets.living() == []
    done = wait(node, count=3)
    assert (done["there"], done["may"], proxy.store.tickets.living()) == (3, 0, [])


def test_a_part_ends_the_wait_of_who_takes_a_part(proxy, node):
    claimed(proxy, "eve", [2], made=False)
    assert wait(node, count=3, partial=True)["may"] == 2
    assert boards(present(proxy, "lab", owner="ann", count=3, partial=True)) == [0, 1]
    assert proxy.store.tickets.living() == []


def test_no_place_is_kept_for_what_no_board_serves(proxy, node):
    """Lost: boards, held for a request that they do not fit."""
    assert wait(node, flavor=dict(FLAVOR, cpu_arch="tile-gx64")) is None
    assert wait(node, image="fedora") is None
    assert proxy.store.tickets.living() == []
    assert boards(present(proxy)) == [0]


@pytest.mark.parametrize(
    "wrong", [[5], [[5]], [[5, "x"]], [[float("nan"), 1]], [[1e999, 1]], [[1, 1e999]], [[None, 1]]]
)
def test_what_others_have_is_checked(proxy, node, wrong):
    """Lost: the order of all who wait here, to the odd answer of another node."""
    with pytest.raises(BadInput, match=r"elsewhere: has an entry that is not \[seconds since 1970"):
        wait(node, elsewhere=wrong)
    assert proxy.store.tickets.living() == []


def test_no_place_is_kept_for_anothers_name(proxy, node):
    claimed(proxy, "lab", made=False, owner="eve")
    with pytest.raises(Refused, match="lab: belongs to eve"):
        wait(node)


def test_a_board_that_was_named_is_held_alone(proxy, node):
    """Lost: all other boards, to who waits for one of them."""
    claimed(proxy, "eve", [1], made=False)
    place = wait(node, board=1)
    assert (place["held"], place["may"]) == (0, 0)
    assert boards(present(proxy)) == [0]


def test_check_mode_keeps_no_place(proxy, node):
    assert wait(node, check=True)["may"] == 1
    assert proxy.store.tickets.living() == []
    wait(node)
    with pytest.raises(NoneFree):
        present(proxy, count=3, check=True)
    assert boards(present(proxy, "lab", owner="ann", check=True)) == [0]
    assert len(proxy.store.tickets.living()) == 1
    wait(node, state="absent", check=True)
    assert len(proxy.store.tickets.living()) == 1
    assert wait(node, state="absent") is None
    assert proxy.store.tickets.living() == []


def test_room_for_roots_is_held_too(proxy, node):
    """Lost: the start of a request for large roots, to small ones that take the room bit by bit."""
    node.config["roots_overcommit"] = 1
    with node.proxy() as tight:
        free = int(room_of(tight).promises.left) >> 30
        wait(node, count=3, flavor=dict(FLAVOR, local_gb=int(free * 0.45)))
        with pytest.raises(NoneFree, match="no room for a root"):
            present(tight, flavor=dict(FLAVOR, local_gb=int(free * 0.4)))
        assert boards(present(tight, flavor=dict(FLAVOR, local_gb=1))) == [2], "the two others are for the large ones"


def test_status_knows_who_waits_and_who_is_next(proxy, node):
    """Lost: whom a board that is off is for."""
    claimed(proxy, "eve", [2], made=False, lease_hours=5)
    wait(node, count=3)
    wait(node, "two", asked=200.0, board=2)
    told = checked(json.loads(json.dumps(information(proxy))), "board_info")
    assert told.get("msg") is None
    assert [one["next"] for one in told["boards"]] == ["lab (queue 1)"] * 3
    lab, two = told["queue"]
    assert [lab[key] for key in ("request", "owner", "flavor", "need", "position")] == ["lab", "ann", "tp64.8x8", 3, 1]
    assert (lab["held"], lab["expected"]) == (2, soon(5))
    assert (two["position"], two["held"], two["expected"]) == (2, 0, None)
    assert information(proxy, instance="eve")["queue"] == []


# ---- boards that failed lately, or are being checked


def test_who_waits_first_keeps_the_boards_that_failed_least(proxy, node):
    """Lost: the good board, which others get meanwhile, to who has waited for it."""
    for board, faults in ((0, 2), (1, 1)):
        for _fault in range(faults):
            proxy.store.outcome(board, "fault", False, "stalled at tftp")
            proxy.store.outcome(board, "boot", board == 1)
    wait(node)
    assert [one["next"] for one in information(proxy)["boards"]] == [None, None, "lab (queue 1)"]
    assert boards(present(proxy, "jackie")) == [1]
    assert boards(present(proxy, "eve")) == [0]
    with pytest.raises(NoneFree, match=f"board2: {WAITS}"):
        present(proxy, "dora")
    assert boards(present(proxy, "lab", owner="ann")) == [2]


def checked_board(proxy, monkeypatch, board, living=True):
    """Play a board that another process checks, or checked until it was killed."""
    proxy.store.move(board, "error", board_states.CHECKING)
    proxy.store.move(board, "shutting down", board_states.CHECKING)
    its_lock = (living, f"board{board}")
    monkeypatch.setattr(checked_boards.locks, "held_by_another", lambda folder, name: (True, name) == its_lock)


@pytest.mark.parametrize(("living", "may"), [(True, 1), (False, 0)])
def test_a_board_that_is_being_checked_is_there_for_who_waits(proxy, node, monkeypatch, living, may):
    """Lost: minutes, until the check is over by itself; or the same claim again and again, of one that was killed."""
    claimed(proxy, "eve", [0, 1], made=False)
    checked_board(proxy, monkeypatch, 2, living)
    assert wait(node)["may"] == may
    assert [one["next"] for one in information(proxy)["boards"]][2] == ("lab (queue 1)" if living else None)


def test_no_check_ends_for_who_would_not_get_the_board(proxy, node, monkeypatch):
    """Lost: each check of a site where somebody always waits; and minutes of who is told in the end that it is held."""
    claimed(proxy, "eve", [0, 1], made=False)
    checked_board(proxy, monkeypatch, 2)
    wait(node, count=2)
    with pytest.raises(NoneFree, match=f"board2: {WAITS}"):
        present(proxy, "jackie")
    assert not [event for event in proxy.store.events() if event.phase == "wait"]


def test_a_free_board_is_held_before_one_whose_check_would_have_to_end(proxy, node, monkeypatch):
    """Lost: half a minute of who waited first, for the board that nobody works on goes to the next one."""
    claimed(proxy, "eve", [2], made=False)
    checked_board(proxy, monkeypatch, 0)
    wait(node)
    assert wait(node, "two", asked=200.0)["may"] == 1
    ended = []

    def end_checks(proxy, request, could, count, deadline):
        ended.extend(board.name for board in could if checked_boards.gives_way(proxy, proxy.store.record(board.id)))
        if ended:
            proxy.store.release(0, None)
        return bool(ended)

    monkeypatch.setattr(checked_boards, "given_way", end_checks)
    assert boards(present(proxy, "two", owner="ann", asked=200.0)) == [1]
    assert (ended, boards(present(proxy, "lab", owner="ann", asked=100.0))) == (["board0"], [0])


# ---- databases of other releases


def test_a_database_of_an_earlier_release_gets_a_queue(proxy, node):
    """Lost: all claims of a node that is set up with this release."""
    claimed(proxy, "eve", [2], made=False)
    proxy.store.close()
    path = node.params["state_db"]
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE tickets")
        db.execute("DROP TABLE went_first")
        db.execute("PRAGMA user_version = 3")
        db.commit()
    with node.proxy(create=False) as looking:
        assert (looking.store.tickets.living(), len(looking.store.claims())) == ([], 1)
    assert backups.copies(path) == []
    assert wait(node)["may"] == 1
    with node.proxy() as opened:
        assert [one.instance for one in opened.store.claims()] == ["eve"]
    assert len(backups.copies(path)) == 1


def test_an_earlier_release_cannot_overtake(proxy, node, monkeypatch):
    """Lost: the place of who waits, to a controller with a release that knows no queue."""
    wait(node)
    before = tuple(one for one in LAYOUT.tables if one not in tickets.TABLES)
    before = replace(LAYOUT, schema=3, tables=before, upgrades={1: LAYOUT.upgrades[1], 2: LAYOUT.upgrades[2]})
    monkeypatch.setattr(Store, "layout", before)
    with pytest.raises(HeteroError, match=r"has schema 5, written by .*: install .* of hetero\.compute and run"):
        node.proxy()
