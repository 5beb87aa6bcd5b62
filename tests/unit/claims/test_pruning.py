# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Old events are removed, and nothing on which somebody depends. If these fail, a disk fills up in a year, or an
instance that runs is taken for one that never did.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store as Boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import pruning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store as Hosts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import reserve, retention
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

NOW = 1.8e9
DAY = 86400.0
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample"
TERMS = ClaimTerms("alice", {"name": "tp64.8x8"}, "debian", KEY)


class Past:
    """What happened on the day on which it is asked for, by a clock that shows it."""

    def __init__(self, monkeypatch):
        self.day = 0.0
        monkeypatch.setattr(time, "time", lambda: NOW - self.day * DAY)

    def at(self, day):
        """So many days ago."""
        self.day = day


@pytest.fixture
def past(monkeypatch):
    monkeypatch.setattr(retention, "EVENTS_OF_EACH", 3)
    monkeypatch.setattr(retention, "EVENTS_NEWEST", 4)
    monkeypatch.setattr(retention, "REST", 0.0)
    return Past(monkeypatch)


@pytest.fixture
def boards(tmp_path, past):
    with Boards(str(tmp_path / "state.db"), records=str(tmp_path / "claims")) as store:
        yield store


@pytest.fixture
def hosts(tmp_path, past):
    with Hosts(str(tmp_path / "host.db")) as store:
        yield store


def texts(store):
    return [event.text for event in store.events(limit=10**6)]


def filled(store, past):
    """What else goes on, on another board, so that nothing is among the newest of all."""
    past.at(0)
    for number in range(5):
        store.event(99, "note", f"of today {number}")


def pruned(store, past):
    """The events that are left, but for those of today."""
    filled(store, past)
    removed, is_all = store.prune(90, NOW)
    assert is_all
    left = [text for text in texts(store) if not text.startswith("of today")]
    assert store.prune(90, NOW) == (0, True), "the second turn finds nothing to do"
    return removed, left


def test_old_events_go_but_the_last_of_each_board_stay(boards, past):
    """Lost: what a board that nobody had for a year did last; or the disk, to all that boards ever did."""
    for board in (1, 2):
        for number, day in enumerate((200, 150, 120, 100, 95) if board == 1 else (200, 100)):
            past.at(day)
            boards.event(board, "note", f"board{board} {number}")
    past.at(89)
    boards.event(1, "note", "board1 young")
    past.at(96)
    removed, left = pruned(boards, past)
    assert left == ["board1 3", "board1 4", "board2 0", "board2 1", "board1 young"]
    assert removed == 3


def test_the_life_of_a_claim_stays(boards, past):
    """Lost: that an instance ever ran, and with it its root at the next provision."""
    past.at(300)
    for number in range(4):
        boards.event(1, "note", f"before {number}")
    past.at(200)
    (claim,) = boards.claim("jackie", ["jackie"], TERMS, [1])
    boards.event(None, "choice", "board1 chosen", instance="jackie")
    boards.event(1, "running", "ssh answers")
    boards.event(1, "console log", "/log (inode 1), from byte 2")
    for number in range(10):
        boards.event(1, "note", f"life {number}")
    boards.event(None, "choice", "another's", instance="bob")
    _removed, left = pruned(boards, past)
    life = [f"life {number}" for number in range(10)]
    told = ["board1 chosen", "each claim has a record of its own from now on", "ssh answers"]
    assert [text for text in left if text not in told] == [
        "claimed for jackie by alice", "/log (inode 1), from byte 2", *life
    ]  # fmt: skip
    assert set(told) < set(left)
    assert boards.has_run(claim)
    assert boards.first_since_claim(claim, "console log") is not None


def test_the_life_of_a_claim_that_was_made_by_a_clock_ahead_stays(boards, past):
    """Lost: that an instance ran, as all that it did since is dated before its claim."""
    past.at(-3650)
    (claim,) = boards.claim("jackie", ["jackie"], TERMS, [1])
    past.at(200)
    boards.event(1, "running", "ssh answers")
    for number in range(5):
        boards.event(1, "note", f"later {number}")
    assert pruned(boards, past)[1][-6:] == ["ssh answers", *(f"later {number}" for number in range(5))]
    assert boards.has_run(claim)


def test_the_life_of_a_claim_on_the_board_that_it_left_stays(boards, past):
    past.at(200)
    boards.claim("jackie", ["jackie"], TERMS, [1])
    boards.move(1, "booting")
    boards.move(1, "error", "stalled at tftp")
    past.at(199)
    boards.move_claim("jackie", [2])
    for number in range(5):
        boards.event(1, "note", f"another's {number}")
    _removed, left = pruned(boards, past)
    assert left[0] == "claimed for jackie by alice"
    assert "jackie moved to board2" in left
    assert "another's 0" not in left


def test_a_database_that_keeps_records_stays_one(boards, past):
    """Lost: the doubt in a claim whose record is lost, and an instance to its board's next tenant."""
    past.at(200)
    boards.keep_missing()
    assert pruned(boards, past)[1] == ["each claim has a record of its own from now on"]
    boards.keep_missing()
    assert texts(boards).count("each claim has a record of its own from now on") == 1


@pytest.mark.parametrize("left_a_copy", [True, False])
def test_that_a_claim_ended_is_known_as_long_as_a_record_of_it_lies_about(boards, past, tmp_path, left_a_copy):
    """Lost: an operator's hours, to a copy of a record that is taken for that of a claim whose end was never told."""
    past.at(200)
    (claim,) = boards.claim("jackie", ["jackie"], TERMS, [1])
    record = tmp_path / "claims" / "1.json"
    record = record if record.exists() else next((tmp_path / "claims").iterdir())
    text = record.read_text()
    boards.release(1, claim)
    if left_a_copy:
        record.with_name(f"{record.stem}.old.json").write_text(text)
        assert boards.kept_anywhere()
    for number in range(3):
        boards.event(1, "note", f"later {number}")
    _removed, left = pruned(boards, past)
    assert boards.has_ended(claim) is left_a_copy
    assert "claimed for jackie by alice" not in left


def test_a_clock_that_jumped_makes_nothing_of_today_old(boards, past):
    """Lost: what happened today, dated 1970 by a clock that lost its battery; what is dated ten years ahead stays."""
    past.at(200)
    for number in range(4):
        boards.event(1, "note", f"old {number}")
    past.at(-3650)
    boards.event(1, "note", "ahead")
    past.at(100)
    for number in range(3):
        boards.event(1, "note", f"after it {number}")
    past.at(50)
    boards.event(2, "note", "young")
    past.at(NOW / DAY)
    for number in range(9):
        boards.event(1, "note", f"1970 {number}")
    _removed, left = pruned(boards, past)
    assert left == ["ahead", "young", *(f"1970 {number}" for number in range(9))]
    with boards.transaction():
        boards._db.write("UPDATE events SET time = 'x' WHERE text = 'ahead'")
    boards.prune(1, NOW)
    assert "ahead" in texts(boards), "what has no time has no age"


def test_by_a_wrong_word_that_the_clock_is_right_the_newest_stay(boards, past):
    """Lost: all that is known, to an operator's mistake about a clock that is ten years ahead."""
    past.at(1)
    for number in range(20):
        boards.event(number, "note", f"{number} of today")
    for number in range(20, 24):
        boards.event(None, "note", f"{number} of today")
    assert boards.prune(90, NOW + 3650 * DAY) == (0, True), "the last of each board, and the newest of all"
    for number in range(24, 30):
        boards.event(None, "note", f"{number} of today")
    assert boards.prune(90, NOW + 3650 * DAY) == (6, True)
    assert texts(boards)[-4:] == [f"{number} of today" for number in range(26, 30)]


def test_events_of_a_host(hosts, past):
    """Lost: what became of a container that still runs, or of a GPU that was last used a year ago."""
    past.at(200)
    asked = Asked("ml-1", "alice", {"name": "tiny", "memory_mb": 1, "vcpus": 1}, "debian", KEY, "lxc", None)
    for number in range(2):
        hosts.event("ml-1", "container", f"an earlier ml-1 {number}")
    for number in range(4):
        hosts.event(None, "gpus", f"gpu {number}", address="0000:01:00.0")
    past.at(150)
    hosts.claim(asked, dict(memory_mb=9, vcpus=9, local_gb=9), dict, [])
    for number in range(4):
        hosts.event("ml-1", "container", f"life {number}")
        hosts.event("ml-2", "container", f"ended {number}")
    past.at(0)
    for number in range(5):
        hosts.event("ml-3", "note", f"of today {number}")
    assert hosts.prune(90, NOW) == (7, True)
    left = [text for text in texts(hosts) if not text.startswith("of today")]
    assert left == ["gpu 1", "gpu 2", "gpu 3", "claimed by alice", left[4], *(f"life {number}" for number in range(4))]
    assert left[4].startswith("each claim has a record")


@pytest.fixture
def much(boards, past):
    """Twenty boards with half a year of events."""
    with boards.transaction():
        for day in range(180, 0, -1):
            past.at(day)
            for board in range(20):
                boards.event(board, "note", f"{board} {day}")
    past.at(0)
    return boards


def test_a_claim_comes_between_two_steps(much, monkeypatch):
    """Lost: the seconds of each who claims while a year of events goes."""
    monkeypatch.setattr(retention, "REST", 9.0)
    sizes, rests, claimed = [], [], []
    before = much._db._db.total_changes

    def rest(seconds):
        nonlocal before
        rests.append(seconds)
        sizes.append(much._db._db.total_changes - before)
        before = much._db._db.total_changes
        if len(rests) % 3 == 0:  # whoever else writes waits for nobody
            with Boards(much.path, busy=0.0) as other:
                claimed.extend(other.claim(f"n-{len(rests)}", [f"n-{len(rests)}"], TERMS, range(20)))

    removed, is_all = pruning.prune(much._db, much._kept_events(), 90, NOW, rest)
    assert is_all
    assert removed == sum(sizes) == 20 * 90
    assert max(sizes) <= retention.STEP
    assert len(claimed) >= 5
    assert min(rests) > 0, "a step is followed by a rest, in which others get their turn"


def test_a_turn_ends_in_time_and_the_next_goes_on(much, monkeypatch):
    monkeypatch.setattr(retention, "TURN", 0.0)
    assert much.prune(90, NOW) == (0, False)
    monkeypatch.setattr(retention, "TURN", 60.0)
    assert much.prune(90, NOW) == (20 * 90, True)


def test_two_turns_at_once(much):
    """Lost: the timer's turn, or more than is to go, where an operator makes a copy by hand."""
    said, faults = [], []

    def turn():
        try:
            with Boards(much.path, records=much.path.replace("state.db", "claims")) as store:
                said.append(store.prune(90, NOW))
        except HeteroError as error:
            faults.append(error)

    threads = [threading.Thread(target=turn) for _turn in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert [is_all for _removed, is_all in said] == [True, True]
    assert len(texts(much)) == 20 * 90
    assert much.prune(90, NOW) == (0, True)


def test_the_file_is_used_again_and_does_not_grow(much, past):
    """Lost: the disk, to a file that grows although as much is removed from it as is written."""
    much.prune(90, NOW)
    pages = much._db.rows("PRAGMA page_count")[0][0]
    for week in range(1, 20):
        with much.transaction():
            for day in range(7 * week - 6, 7 * week + 1):
                past.at(-day)
                for board in range(20):
                    much.event(board, "note", f"{board} {day}")
        much.prune(90, NOW + 7 * week * DAY)
    assert much._db.rows("PRAGMA page_count")[0][0] <= pages
    much.must_be_whole()


def test_nothing_is_removed_on_a_full_disk(much, monkeypatch):
    """Lost: the space that is kept for who ends instances, to a log of what is removed."""
    monkeypatch.setattr(reserve, "is_short", lambda database, more=0: True)
    assert much.prune(90, NOW) == (0, False)


@pytest.fixture
def small(tmp_path):
    """A file system of 2 MiB for the database."""
    if os.geteuid() != 0:
        pytest.skip("a file system of one's own needs root: run as root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_disk_that_fills_up_in_between_costs_no_event_that_stays(small, much, monkeypatch):
    expected = {text for text in texts(much) if int(text.split()[1]) <= 90}
    much._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    monkeypatch.setattr(reserve, "is_short", lambda database, more=0: False)
    with open(small / "filler", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with pytest.raises(HeteroError, match="cannot grow, its disk is full"):
        much.prune(90, NOW)
    assert expected < set(texts(much))
    (small / "filler").unlink()
    assert much.prune(90, NOW)[1]
    assert set(texts(much)) == expected
    much.must_be_whole()
