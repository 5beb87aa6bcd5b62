# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look at a board keeps, what status says of its record, and what steps of a verb add to a failure."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import adoption, record_notes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import (
    ALIVE,
    OTHER_KEY,
    OWN_KEY,
    SILENT,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import misfiled_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import looks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen, not_adopted
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def look_at(proxy, board=0, check=False):
    look = Look(Seen(proxy, proxy.boards[board], Change(check)))
    look.work.read()
    look.begin()
    return look


def test_a_board_that_contradicts_its_claim_is_looked_at_all_the_same(node, proxy):
    """Lost: what speaks against a claim, where every other verb refuses it."""
    (mine,) = claimed(proxy)
    assert look_at(proxy).work.contradiction is None
    node.root(0, mine, of="eve 1.0")
    look = look_at(proxy)
    assert isinstance(look.work.contradiction, Refused)
    assert (look.work.claim, look.unseen, look.found) == (mine, False, [])


def test_what_was_found_is_in_the_result(node, proxy):
    """Lost: what reconcile found and did, for who shows it as a table."""
    claimed(proxy)
    look = look_at(proxy)
    assert look.result == dict(
        board=0,
        name="board0",
        instance="jackie",
        recorded="power off",
        state="power off",
        power=None,
        ssh=None,
        found=[],
        changed=False,
    )
    look.note("is dusty")
    assert (look.result["changed"], look.work.lines) == (False, [])
    look.mend("was off", "was put on")
    look.power, look.ssh = "on", OWN_KEY
    look.work.move("booting")
    result = look.result
    assert result["found"] == [dict(found="is dusty", done=None), dict(found="was off", done="was put on")]
    assert (result["recorded"], result["state"], result["power"], result["ssh"], result["changed"]) == (
        "power off", "booting", "on", OWN_KEY, True,
    )  # fmt: skip
    (event,) = [event for event in proxy.store.events() if event.phase == "reconcile"]
    assert (event.text, event.instance) == ("was off: was put on", "jackie")


@pytest.mark.parametrize(
    ("power", "ssh", "lives"),
    [
        ("off", OWN_KEY, True),
        ("off", OTHER_KEY, True),
        ("off", ALIVE, True),
        ("off", SILENT, False),
        ("off", None, False),
    ]
    + [("on", OWN_KEY, False), (None, OWN_KEY, False)],
)
def test_what_lives_without_its_outlet(power, ssh, lives):
    """Lost: a tenant's machine, which another outlet feeds than its wiring names."""
    look = Look(None)
    look.power, look.ssh = power, ssh
    assert look.lives_without_power == lives


def test_a_dry_run_says_nothing_of_a_board_at_work(node, proxy):
    """Lost: another's start, shown as a contradiction while it lasts."""
    claimed(proxy)
    with lock(str(node.run_folder), "board0", "start", "jo", Deadline(5)):
        look = look_at(proxy, check=True)
        assert look.work.over
        assert look.found[0]["found"].startswith("busy with start of jackie (jo, pid ")
        assert not look_at(proxy).work.over, "the lock is its own"
    look = look_at(proxy, check=True)
    look.mend("was off", "would be put on")
    look.yield_to_a_verb()
    assert (look.work.over, look.work.changed, len(look.found)) == (False, True, 1)
    with lock(str(node.run_folder), "board0", "start", "jo", Deadline(5)):
        look.yield_to_a_verb()
    assert (look.work.over, look.work.changed, len(look.found)) == (True, False, 1)


def test_a_word_that_was_in_vain_is_said(node, proxy):
    """Lost: that a name was mistyped, or that its board could not be looked at."""
    claimed(proxy)
    (eve,) = claimed(proxy, "eve", [1])
    ClaimRecords(str(node.state / "claims")).write(1, Kept(replace(eve, instance="carol"), "running"))
    node.record(0).write_text("{")
    seen = [look_at(proxy, board) for board in (0, 1, 2)]
    for look in seen:
        look.power = "off"
    names = ["jackie", "carol", "bob"]
    assert not_adopted(seen, names) == []
    seen[0].left = True
    assert not_adopted(seen, names) == ["jackie"]
    seen[1].power = None
    assert not_adopted(seen, names) == ["jackie", "carol"]
    assert not_adopted(seen, []) == []
    seen[0].left, seen[0].work.over = False, True
    assert not_adopted(seen, ["eve", "jackie"]) == ["eve", "jackie"]
    assert (seen[0].names, seen[1].names, seen[2].names) == ({"jackie"}, {"eve", "carol"}, {None})


# ---- what status says


def told(proxy, lost=(), board=0):
    return record_notes.told_of_record(proxy, proxy.boards[board], proxy.store.record(board), set(lost))


def test_status_says_nothing_of_a_record_that_is_as_it_should_be(node, proxy):
    """Lost: what is to be looked at, among what is not."""
    (mine,) = claimed(proxy)
    assert (told(proxy), told(proxy, [0]), told(proxy, [1], 1)) == (None, None, None)
    node.root(0, mine)
    node.record(0).unlink()
    assert told(proxy) is None
    assert told(proxy, [0]) == record_notes.LOST_ENDLESS.format(name="jackie")


@pytest.mark.parametrize("leased", [True, False])
def test_status_says_that_a_record_is_lost(node, proxy, leased):
    """Lost: that a lease waits for a word, until nobody knows any more what it was."""
    (mine,) = claimed(proxy, **(dict(lease_hours=1) if leased else {}))
    node.record(0).unlink()
    lost = record_notes.LOST if leased else record_notes.LOST_ENDLESS
    assert told(proxy, [0]) == lost.format(name="jackie")
    proxy.store.power_seen(0, "on")
    doubt = adoption.doubt_of(proxy, proxy.boards[0], mine, "on")
    assert told(proxy, [0]) == f"{doubt.what}: {doubt.remedy}"
    proxy.store.power_seen(0, "off")
    assert told(proxy, [0]) == lost.format(name="jackie")
    proxy.store.move(0, "booting")
    proxy.store.move(0, "shutting down")  # a stop, and no end
    assert told(proxy, [0]) == lost.format(name="jackie")
    proxy.store.begin_end(mine)
    assert told(proxy, [0]) is None


def test_status_says_that_a_record_cannot_be_read(node, proxy):
    """Lost: the word that is to be given; or that none is taken."""
    (mine,) = claimed(proxy)
    node.record(0).write_text("{")
    found = f"{node.record(0)}: what it says of a claim cannot be read"
    assert told(proxy) == f"{found}, {misfiled_records.NO_PROOF.format(name='jackie')}"
    node.root(0, mine)
    assert told(proxy) == f"{found}: {misfiled_records.ADOPT.format(name='jackie')}"
    node.root(0, mine, of="eve 1.0")
    assert told(proxy).startswith(f"{found}: nothing of its board is touched")


def test_status_says_that_the_database_is_older(node, proxy):
    """Lost: that a board is another's by the newest word, or that a lease is longer."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    proxy.store._db._db.execute("UPDATE claims SET expires = 5e9")
    assert told(proxy) == f"the record of its claim has another lease: no end; {record_notes.NEWER}"
    proxy.store._db._db.execute("UPDATE claims SET expires = NULL, image = 'x', host_key = 'y'")
    assert told(proxy) == f"the record of its claim has another image and host key; {record_notes.NEWER}"
    for created, text in ((1.0, None), (5e9, f"is eve's of bob by the record of its claim; {record_notes.NEWER}")):
        eve = replace(mine, instance="eve", owner="bob", created=created)
        ClaimRecords(str(node.state / "claims")).write(0, Kept(eve, "running"))
        assert told(proxy) == text
    record = proxy.store.record(0)
    proxy.store._db._db.execute("DELETE FROM claims")
    assert record_notes.told_of_record(proxy, proxy.boards[0], record, set()) is None


def test_a_busy_board_is_unseen():
    """Lost: that a board could not be looked at, among those that are as they should be."""
    work = SimpleNamespace(is_read=False, over=True, error="busy", change=Change())
    look = looks.Look(work)
    assert not look.unseen
    look.begin()
    assert (look.unseen, look.recorded) == (True, None)
