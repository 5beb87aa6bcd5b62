# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of what was written down of boards, and of their events."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


@pytest.fixture
def store(tmp_path):
    with Store(str(tmp_path / "state.db"), "test") as opened:
        yield opened


def claim(store, name="jackie", board=0):
    return store.claim(name, [name], ClaimTerms("ann", {"name": "x"}, "debian", "ssh-ed25519 AAAA x"), [board])[0]


def test_a_board_nobody_touched():
    """Lost: a free board, as one of which something is known."""
    record = Record(3)
    assert vars(record) == dict(
        board=3, state="power off", since=None, power=None, power_seen=None, note="", claim=None, score=100
    )


def test_an_end_is_begun_by_a_removal_and_by_no_stop(store):
    """Lost: a root on what is not mounted, in whose place a start makes an empty one after a stop that was cut off."""
    mine = claim(store)
    for state in ("booting", "running", "shutting down"):
        store.move(0, state)
    assert not store.is_ending(mine)
    store.begin_end(mine)
    store.move(0, "error", "its disk cannot be wiped")
    store.move(0, "shutting down")
    assert store.is_ending(mine)
    for state in ("power off", "booting", "shutting down"):
        store.move(0, state)
    assert not store.is_ending(mine)  # it got a new root since
    store.begin_end(mine)
    store.move(0, "power off")
    store.release(0, mine)
    assert not store.is_ending(claim(store))


def test_a_state_that_is_none_of_ours_is_no_free_board(store, tmp_path):
    """Lost: a tenant's board, given to the next one by a row that says nothing."""
    store.move(2, "maintenance", "fan")
    with closing(sqlite3.connect(tmp_path / "state.db")) as db:
        db.execute("UPDATE boards SET state = 'melting'")
        db.commit()
    for ask in (lambda: store.record(2), lambda: store.records([1, 2]), lambda: store.records(range(500))):
        with pytest.raises(HeteroError, match=r"state\.db: is damaged \(board2 is in no state of ours there\)"):
            ask()
    assert store.record(1) == Record(1)


def test_events_are_those_that_were_asked_for(store):
    """Lost: what happened to one's board, among what happened to all others, or cut off where it begins."""
    first = claim(store)
    claim(store, "eve", 1)
    for number in range(4):
        store.event(number % 2, "step", f"no. {number}", 0.5 * number)
    store.event(None, "node", "restarted")
    alike = [(event.board, event.instance, event.text, event.seconds) for event in store.events()]
    assert alike == [
        (0, "jackie", "claimed for jackie by ann", None),
        (1, "eve", "claimed for eve by ann", None),
        (0, "jackie", "no. 0", 0.0),
        (1, "eve", "no. 1", 0.5),
        (0, "jackie", "no. 2", 1.0),
        (1, "eve", "no. 3", 1.5),
        (None, None, "restarted", None),
    ]
    ids = [event.id for event in store.events()]
    assert [event.id for event in store.events(ids[2])] == ids[3:]
    assert [event.text for event in store.events(boards=[1], instance="eve", limit=2)] == [
        "claimed for eve by ann",
        "no. 1",
    ]
    assert store.events(boards=[0], instance="eve") == []
    assert [event.text for event in store.newest_events(1, 2)] == ["no. 1", "no. 3"]
    assert [event.text for event in store.newest_events(None, 2)] == ["no. 3", "restarted"]
    assert len(store.events(limit=1)) == 1
    assert store.newest_events(None, 99)[0].text == "claimed for jackie by ann"
    assert store.first_since_claim(first, "step").text == "no. 0"
    assert store.first_since_claim(first, "step", "%2").text == "no. 2"
    assert store.first_since_claim(first, "step", newest=True).text == "no. 2"
    assert store.first_since_claim(first, "step", "%9") is None
    assert store.first_since_claim(first, "power") is None


def test_one_board_is_read_as_all_are(store):
    """Lost: a board's state, its score or whose it is, where it is read by itself."""
    claim(store)
    claim(store, "eve", 1)
    for board in (0, 2):
        store.move(board, "error", "fan")
        store.outcome(board, "fault", passed=False)
        store.power_seen(board, "off")
    for ids in ([0, 1, 2, 3], range(200)):
        assert [store.record(board) for board in range(4)] == list(store.records(ids).values())[:4]
    assert [bool(store.record(board).claim) for board in range(4)] == [True, True, False, False]
    assert [store.record(board).score for board in range(4)] == [0, 100, 0, 100]


def test_any_of_several_signs_counts(store):
    """Lost: the root of an instance that ran, for only one kind of event told of it."""
    mine = claim(store)
    signs = (("running", "%"), ("state", "% → running%"))
    assert not store.has_had(mine, signs)
    store.event(0, "state", "error → booting")
    store.event(1, "running", "ssh answers")
    store.event(0, "lease", "booting → running")
    assert not store.has_had(mine, signs)
    store.event(0, "state", "booting → running: x")
    assert store.has_had(mine, signs)
    assert not store.has_had(mine, signs[:1])
    assert not store.has_had(replace(mine, instance="eve"), signs)


def test_what_was_before_a_claim_is_not_its(store):
    """Lost: a root that nobody ever used, kept as one that ran, for what its board did for the last tenant."""
    first = claim(store)
    store.event(0, "running", "ssh answers")
    store.release(0, first)
    assert (store.has_ended(first), store.has_run(first)) == (True, True)
    assert store.was_released(replace(first, created=first.created - 1)) is True
    assert store.was_released(replace(first, created=first.created + 1)) is False
    assert store.was_released(replace(first, created=first.created - 60)) is False
    mine = claim(store)
    assert (store.first_since_claim(mine, "running"), store.has_run(mine), store.has_ended(mine)) == (
        None,
        False,
        False,
    )
    store.event(0, "running", "ssh answers")
    assert store.has_run(mine)


def test_control_characters_of_an_event_are_shown_escaped(store):
    """Lost: an operator's terminal, to a console's last words."""
    store.event(0, "error", "boot\x1b[2Jed")
    assert "\x1b" not in store.events()[0].text


def test_an_outlets_newest_event_is_of_its_own_pdu(store):
    """Lost: the word of which outlet was left on, to a PDU whose name ends alike, or has an _ for any character."""
    mine = store.event(None, "switch", "pdu_a outlet 1 (10.0.0.1) is to be switched on")
    store.event(None, "switch", "xpdu_a outlet 1 was switched off again")
    store.event(None, "switch", "pdu-a outlet 1 was switched off again")
    store.event(None, "switch", "pdu_a outlet 11 was switched off again")
    assert store.newest_of_outlet("switch", "pdu_a outlet 1").id == mine
    store.event(None, "switch", "board2 and board3 answer: pdu_a outlet 1 is to be switched off")
    assert store.newest_of_outlet("switch", "pdu_a outlet 1").id > mine
    assert store.newest_of_outlet("switch", "pdu_a outlet 2") is None
