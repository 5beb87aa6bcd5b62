# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of several boards out of use that lie one place off, in a ring, or under a name that no record has, and the
commands that are printed for them. If these fail, who types what is printed has a board under an operator's hands given
to a tenant, and switched on.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_another_boards_file import deploy
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import maintenance, reconcile

#: {how they lie: (boards that are out of use, {board in whose place a record lies: board that it names})}.
PLACES = {
    "ring": ([0, 1, 2], {0: 1, 1: 2, 2: 0}),
    "one off": ([1, 2, 3], {0: 1, 1: 2, 2: 3}),
}


def path(site, board):
    return site.state / "maintenance" / f"board{board}.json"


def reasons(site, boards):
    there = [board for board in boards if path(site, board).exists()]
    return {board: json.loads(path(site, board).read_text())["reason"] for board in there}


def printed(site):
    """The commands that reconcile prints, in its order."""
    result = reconcile(site)
    texts = [one["found"] for board in result["boards"] for one in board["found"]] + result["others"]
    return [text.partition(": run on ")[2].partition(": ")[2] for text in texts if ": run on " in text]


@pytest.fixture(params=PLACES)
def misplaced(ten, request):
    """Ten boards, of which three are in maintenance; their records lie elsewhere, and the database is older."""
    boards, places = PLACES[request.param]
    with ten.proxy() as proxy:
        for board in range(10):
            proxy.store.power_seen(board, "off")
    copy = backups.make(ten.params["state_db"])
    for board in boards:
        assert maintenance(ten, "on", board, reason=f"reason of {board}")["changed"]
    texts = {board: path(ten, board).read_text() for board in boards}
    for board in boards:
        path(ten, board).unlink()
    for place, board in places.items():
        path(ten, place).write_text(texts[board])
    put_back(ten, copy)
    return ten, boards


@pytest.mark.parametrize("at_once", [True, False], ids=["all that one run prints", "one, then reconcile again"])
def test_what_is_printed_brings_each_record_to_its_place(misplaced, at_once):
    """Lost: two of three maintenances."""
    site, boards = misplaced
    for _turn in range(2 * len(boards)):
        typed = printed(site)
        for command in typed if at_once else typed[:1]:
            subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert printed(site) == []
    assert reasons(site, boards) == {board: f"reason of {board}" for board in boards}
    assert [site.record(board).state for board in boards] == ["maintenance"] * len(boards)
    assert sorted(one.name for one in path(site, 0).parent.iterdir()) == [f"board{board}.json" for board in boards]


def test_no_board_that_is_out_of_use_is_given_away_meanwhile(misplaced):
    """Lost: the open board, switched on for a tenant."""
    site, boards = misplaced
    for command in printed(site):
        subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    given = []
    for name in ("ann", "bob", "eve"):
        given += [board["board"] for board in site.provision(name)[0]["boards"]]
    assert not set(given) & set(boards), given


@pytest.fixture
def put_aside(site):
    """Board 0 is in maintenance by a record that a hand put aside; the database is older. board1 was seen off."""
    copy = site.copy_when_off()
    assert maintenance(site, "on", reason="its fan rattles")["changed"]
    stray = path(site, 0).rename(path(site, 0).with_name("board0.json.~1~"))
    put_back(site, copy)
    return site, stray


def test_a_record_that_was_put_aside_keeps_its_board_out_and_comes_back(put_aside):
    """Lost: the open board, to who typed what an earlier release printed; or that anything lies there."""
    site, stray = put_aside
    said = f"{stray} is a record of board0, whose place has none: run on "
    assert said in site.module("board_info")["boards"][0]["note"]
    assert site.provision()[0]["boards"][0]["board"] == 1
    (command,) = printed(site)
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    reconcile(site)
    assert (site.record(0).state, site.record(0).note) == ("maintenance", "its fan rattles")
    assert printed(site) == []


def test_the_word_that_ends_a_maintenance_ends_it_wherever_its_record_lies(put_aside):
    """Lost: the board, out of use for good by a file that nobody looks for; or a dry run that removes it."""
    site, stray = put_aside
    assert maintenance(site, "off", check=True)["changed"]
    assert stray.exists()
    assert maintenance(site, "off")["changed"]
    assert not stray.exists()
    assert site.provision()[0]["boards"][0]["board"] == 0


def test_a_fault_by_an_older_database_gives_no_power_to_a_board_whose_maintenance_was_put_aside(site):
    """Lost: the health of who has the board open, by a repair of a fault that was mended before."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "no boot request")
    copy = backups.make(site.params["state_db"])
    assert maintenance(site, "on", reason="its fan rattles")["changed"]
    path(site, 0).rename(path(site, 0).with_name("board0.bak"))
    put_back(site, copy)
    assert "is in maintenance" in site.module("tilera_boot", boards=[0], state="stopped", timeout=10)["msg"]


def test_a_record_beside_one_that_cannot_be_read_is_not_said_to_be_removed(site):
    """Lost: the one file that tells why a board is out of use."""
    assert maintenance(site, "on", reason="its fan rattles")["changed"]
    path(site, 0).rename(path(site, 1))
    path(site, 0).write_text("{")
    (command,) = printed(site)
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert reasons(site, range(2)) == {0: "its fan rattles"}


@pytest.mark.parametrize("places", [{0: 1, 1: 2, 2: 0}, {0: 1, 1: 2}], ids=str)
def test_the_first_board_may_be_gone_from_the_boards_file(ten, places):
    """Lost: the way back of all others in the ring, which is said of the first; and its boards for good."""
    for board in set(places.values()):
        assert maintenance(ten, "on", board, reason=f"reason of {board}")["changed"]
    texts = {board: path(ten, board).read_text() for board in places.values()}
    for board in texts:
        path(ten, board).unlink()
    for place, board in places.items():
        path(ten, place).write_text(texts[board])
    deploy(ten, set(range(1, 10)))
    for _turn in range(2):
        for command in printed(ten):
            subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert printed(ten) == []
    assert reasons(ten, texts) == {board: f"reason of {board}" for board in texts}
