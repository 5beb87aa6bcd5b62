# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole records of claims in each other's place, or in no board's, and what is typed about them. If these fail, the
only word of an instance, or of its lease, goes by commands that were printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back

NAMES = ("jackie", "carol", "eve")


def texts(result):
    """All that a call says of what it did not mend."""
    said = [entry["found"] for board in result["boards"] for entry in board["found"] if entry["done"] is None]
    return said + result["others"]


def commands(said):
    """The commands in them, in order."""
    return [
        found[1]
        for found in (re.search(r"run on node \S+: (mv .+?)(?:, or|; where|$)", text) for text in said)
        if found
    ]


def type_all(site, turns=4):
    """Type every command that is printed, in order, until there is none."""
    for _turn in range(turns):
        typed = commands(texts(reconcile(site)))
        for command in dict.fromkeys(typed):
            subprocess.run(["sh", "-ec", command], check=True, timeout=600)
        if not typed:
            return


def hours(site, name):
    """How long a lease has yet to go."""
    with site.proxy() as proxy:
        return round((proxy.store.claim_of(name).expires - time.time()) / 3600)


def shift(site, count):
    """Each record in the place of the board before, the first one's in the last place."""
    there = [record(site, board).read_text() for board in range(count)]
    for board in range(count):
        record(site, board).write_text(there[(board + 1) % count])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("older", [None, "before both", "before the leases"])
def test_records_in_each_other_s_place_come_back_by_what_is_printed(ten, count, older):
    """Lost: a lease of a hundred hours, of which one was left; or a running instance of which no claim was known."""
    names = NAMES[:count]
    copy = None
    if older == "before both":
        assert not any(result.get("failed") for result in [*ten.provision("bob"), *ten.terminate("bob")])
        copy = backups.make(ten.params["state_db"])
    for name in names:
        assert not any(result.get("failed") for result in ten.provision(name))
        ten.module("board_lease", instance=name, hours=1)
    copy = backups.make(ten.params["state_db"]) if older == "before the leases" else copy
    for name in names:
        ten.module("board_lease", instance=name, hours=100)
    if copy:
        put_back(ten, copy)
    shift(ten, count)
    said = [found(reconcile(ten, check=True), board)[0][0] for board in range(count)]
    assert [len(commands([text])) for text in said] == [1] + [0] * (count - 1), "one command for all of them"
    assert all("what is said of board0 brings it to its place" in text for text in said[1:])
    assert commands([ten.module("board_info")["boards"][0]["note"]]) == (
        [] if older == "before both" else commands(said)
    )
    type_all(ten)
    result = reconcile(ten)
    assert (texts(result), result["changed"]) == ([], False)
    assert [hours(ten, name) for name in names] == [100] * count
    assert ten.what_is_there() == ten.running(*names)


def test_commands_that_undid_each_other_are_still_put_right(ten):
    """Lost: the same, by whoever typed what an earlier release printed, whose record is a stray by now."""
    for name in NAMES[:2]:
        assert not any(result.get("failed") for result in ten.provision(name))
        ten.module("board_lease", instance=name, hours=100)
    shift(ten, 2)
    for one, other in ((0, 1), (1, 0)):
        subprocess.run(["mv", "--backup=numbered", record(ten, one), record(ten, other)], check=True, timeout=600)
    ten.module("board_info")
    assert sorted(path.name for path in record(ten).parent.iterdir()) == ["board0.json", "board1.json.~1~"]
    type_all(ten)
    assert texts(reconcile(ten)) == []
    assert [hours(ten, name) for name in NAMES[:2]] == [100, 100]
    assert ten.what_is_there() == ten.running(*NAMES[:2])


def test_what_goes_to_a_place_that_is_another_s_waits_for_that(ten):
    """Lost: a record under another one's, which the second of two commands then moved away."""
    for name in NAMES:
        assert not any(result.get("failed") for result in ten.provision(name))
    before = [record(ten, board).read_text() for board in range(2)]
    record(ten, 1).replace(record(ten, 2))
    record(ten, 0).rename(record(ten, 1))
    said = [found(reconcile(ten), board)[0][0] for board in range(3)]
    assert [len(commands([text])) for text in said] == [0, 1, 0]
    assert "what is said of board1 brings it to its place" in said[0]
    assert f"first see to {record(ten, 1)}, which is a record of board0" in said[2]
    type_all(ten)
    assert [record(ten, board).read_text() for board in range(2)] == before
    assert ten.what_is_there() == ten.running(*NAMES)


@pytest.mark.parametrize("named", [{0}, {1}, set()])
def test_of_boards_that_the_file_does_not_name_one_command_is_said_too(ten, named):
    """Lost: the same, where a second command that is the first once more takes it back."""
    for name in NAMES[:2]:
        assert not any(result.get("failed") for result in ten.provision(name))
    before = [record(ten, board).read_text() for board in range(2)]
    shift(ten, 2)
    path = ten.folder / "tilera_boards"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for board, line in enumerate(lines) if board in named or board > 1))
    (command,) = commands(texts(reconcile(ten)))
    assert commands([ten.module("board_claim", instance=NAMES[1], state="absent").get("msg", "")]) == []
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert [record(ten, board).read_text() for board in range(2)] == before


@pytest.fixture
def lent(jackie):
    """jackie with a lease of a hundred hours, of which an older record and the database say one."""
    jackie.module("board_lease", instance="jackie", hours=1)
    copy = backups.make(jackie.params["state_db"])
    before = record(jackie).read_text()
    jackie.module("board_lease", instance="jackie", hours=100)
    put_back(jackie, copy)
    return jackie, before


@pytest.mark.parametrize("place", ["empty", "damaged", "older", "anew"])
def test_a_stray_that_is_the_newest_record_of_a_claim_is_moved_to_its_place(lent, place):
    """Lost: a lease, with a file of which was said that it is nobody's: remove it."""
    site, before = lent
    stray = record(site).rename(record(site).with_name("board0.json.~1~"))
    if place != "empty":
        record(site).write_text("{" if place == "damaged" else before)
        os.utime(record(site), (1, 1))
    if place == "anew":
        record(site).unlink()
        reconcile(site, adopt=["jackie"])
    result = reconcile(site, check=True)
    (text,) = (text for text in result["others"] if str(stray) in text)
    assert text.startswith(f"file {stray}: record of jackie's claim on board0 (lease until ")
    assert "remove" not in text
    if place in ("empty", "damaged"):
        assert f"{stray} is one of that claim, by which its lease is until " in found(result)[0][0]
        assert str(stray) in site.module("board_info")["boards"][0]["note"]
    subprocess.run(["sh", "-ec", commands([text])[0]], check=True, timeout=600)
    reconcile(site)
    assert hours(site, "jackie") == 100
    left = reconcile(site)["others"]
    if place in ("older", "anew"):
        assert re.search(r" 4 d [34] h left\): remove this one once nobody wants it$", left[0])
    assert len(left) == (place != "empty")
    assert site.what_is_there()["claims"] == {"jackie": 0}


def test_a_lease_that_a_stray_may_know_of_is_not_ended(lent):
    """Lost: an instance at the end of the lease that an older database has, with its record put aside by a hand."""
    site, _before = lent
    record(site).rename(record(site).with_name("board0.bak"))
    site.expire()
    (turn,) = site.reap()
    assert "it could not be ended: the record of its claim is lost" in turn["said"][0]
    assert site.what_is_there()["power"]["1"] == "on"


@pytest.mark.parametrize("stray", ["the same", "older", "longer", "of a claim before", "of one that ended"])
def test_a_stray_that_nothing_hangs_on_says_why(jackie, stray):
    """Lost: the truth of what lies there, for who tidies up."""
    if stray == "older":
        jackie.lease(1)
    path = record(jackie).with_name("board0.bak")
    shutil.copy2(record(jackie), path)
    if stray in ("older", "longer"):
        os.utime(path, (1, 1))
        jackie.lease(100)
    elif stray != "the same":
        assert not any(result.get("failed") for result in [*jackie.terminate(), *jackie.provision("bob")])
    if stray == "of a claim before":
        with jackie.proxy() as proxy:
            proxy.store._db.write("DELETE FROM events")
    before = jackie.what_is_there()
    (text,) = reconcile(jackie)["others"]
    why = {
        "the same": "its place has the same one: remove this one once nobody wants it",
        "older": " left): remove this one once nobody wants it",
        "longer": " left): look at this one, and keep it",
        "of a claim before": "of bob's later claim: remove this one once it is known that jackie's claim has ended",
        "of one that ended": "that claim has ended: remove it once nobody wants it",
    }
    assert text.endswith(why[stray])
    assert jackie.what_is_there() == before
