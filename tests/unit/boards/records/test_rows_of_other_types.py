# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of state.db whose values have no type of ours: SQLite keeps what it is given. If these fail, one row of history
or of the queue ends status, claims and checks of all boards in a traceback.

Tests boards/records/board_rows.py, instances/kinds/tickets.py.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import lost_database, tables
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import checks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_claims, info
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable_data
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds.tickets import work
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

BAD = ("x", b"\xff\x00", "[1]", 1e300, math.inf, -5)
#: What is not known of a board is not known; no verb needs it.
HISTORY = {
    "health": ("time", "what", "passed", "text", "figures"),
    "boards": ("since", "power_seen", "score"),
    "energy": ("outlet", "kwh", "counter", "watts", "seen"),
    "events": ("time", "actor", "phase", "text", "seconds"),
}
TICKETS = [
    *((column, value) for column in ("asked", "priority", "renewed", "lasts", "others") for value in BAD[:2]),
    *((column, value) for column in ("wish", "elsewhere") for value in BAD[1:3]),
    ("request", b"\xff"),
    *(("wish", text) for text in ("{}", '{"flavor": {}, "count": 1}', '{"flavor": 3, "count": 1}')),
]
#: By these a board is somebody's: where they cannot be read, nothing is guessed.
RIGHTS = [
    *(("claims", column, value) for column in ("created", "expires") for value in BAD),
    *(("claims", column, BAD[1]) for column in ("owner", "request", "host_key", "image_hash", "boot_source")),
    *(("claims", "request", value) for value in (1e300, "[1]")),
    *(("boards", column, BAD[1]) for column in ("state", "power", "note")),
    ("boards", "power", "x"),
]


@pytest.fixture
def asked(node):
    """Jackie and Eve have boards, Lab waits for three; the third board failed lately."""
    node.image()
    with node.proxy() as proxy:
        (mine,) = claimed(proxy, lease_hours=5)
        claimed(proxy, "eve", (1,), lease_hours=5)
        proxy.store.outcome(2, "check", False, "bad", {"ram": {"mb": 2}})
        proxy.store.outcome(2, "boot", False, "bad")
        row = ("jackie", mine.created, "pdu-a outlet 1", 1.0, 2.0, 3.0, 4.0)
        proxy.store._db.write("INSERT INTO energy VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    wait(node, "lab", count=3)
    return node


def wait(node, instance, count=1):
    given = dict(
        node.params, instance=instance, owner="ann", state="present", kind="board", flavor=FLAVOR, image="debian",
        ssh_public_key=KEY, asked=time.time(), priority=0, seconds=3600.0, elsewhere=[], board=None, boot_source="nfs",
        devices=[], count=count, numbers=[], partial=False, lease_hours=2, others=None, takes_over=True,
    )  # fmt: skip
    return work(given, False)["place"]


def damage(node, table, column, value):
    """Write a value into a column of all rows; what the first one had."""
    with closing(sqlite3.connect(node.params["state_db"])) as db:
        (before,) = db.execute(f"SELECT {column} FROM {table} ORDER BY rowid LIMIT 1").fetchone()
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    return before


def answer(node, **asked):
    with node.proxy(create=False) as proxy:
        said = json.loads(json.dumps(printable_data(info.information(proxy, **asked)), allow_nan=False))
    assert checked(said, "board_info") is said
    return said


def claim(proxy, check=True):
    request = ClaimRequest("bob", "bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY, lease_hours=9)
    return board_claims.present(proxy, request, Change(check))


@pytest.mark.parametrize("value", BAD)
def test_history_that_cannot_be_read_is_left_out(asked, value):
    """Lost: status, claims and checks of all boards, to a row on which nobody's right depends."""
    for table, columns in HISTORY.items():
        for column in columns:
            damage(asked, table, column, value)
    assert [one["instance"] for one in answer(asked)["claims"]] == ["jackie", "eve"]
    answer(asked, ids=[0, 1, 2], events=50)
    with asked.proxy() as proxy:
        with pytest.raises(NoneFree, match="held for lab of ann"):
            claim(proxy)
        assert sorted(checks.idle(proxy)[1]) == ["board0", "board1", "board2"]
        assert reap.reap(proxy, lambda text: None)
        assert proxy.store.prune(1, time.time())[1]
        proxy.store.outcome(2, "boot", True)
        assert 0 <= proxy.store.record(2).score <= 100


def test_a_damaged_place_in_the_queue_is_none(asked):
    """Lost: each claim on the node, also of those who ask for something else, until a person edits the database."""
    for column, value in TICKETS:
        damage(asked, "tickets", column, value)
        answer(asked)
        with asked.proxy() as proxy:
            claim(proxy)
        assert wait(asked, "lab", count=3)["ahead"] == [], "its play has the place again as soon as it asks"
        with asked.proxy() as proxy:
            assert [one.request for one in proxy.store.tickets.living()] == ["lab"], (column, value)
            assert len(proxy.store._db.rows("SELECT * FROM tickets")) == 1, "what is damaged is removed"
            with pytest.raises(NoneFree, match="held for lab of ann"):
                claim(proxy)


def test_a_claim_that_cannot_be_read_is_said_to_be_damaged(asked):
    """Lost: the way out, which no traceback tells; or whose board it is."""
    for table, column, value in RIGHTS:
        before = damage(asked, table, column, value)
        with asked.proxy() as proxy:
            verbs = [lambda: info.information(proxy), lambda: claim(proxy, check=False)]
            if table == "claims":
                verbs.append(lambda: reap.reap(proxy, lambda text: None))
            for verb in verbs:
                with pytest.raises(HeteroError, match=r"state\.db: is damaged \(.*reconcile"):
                    verb()
        damage(asked, table, column, before)
    answer(asked)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("claims", "created", "x"),
        ("claims", "flavor", "["),
        ("claims", "expires", math.inf),
        ("claims", "request", "[1]"),
        ("boards", "state", "melting"),
        ("boards", "state", BAD[1]),
        ("boards", "power", "x"),
        ("boards", "note", BAD[1]),
    ],
)
def test_the_copy_that_is_to_be_put_back_is_not_damaged_as_well(asked, table, column, value):
    """Lost: the way out, which put the same damage back again and again: copies are made each hour, also of that."""
    path = asked.params["state_db"]
    good = backups.make(path)
    damage(asked, table, column, value)
    with asked.proxy() as proxy:
        proxy.store._db.write("INSERT INTO boards (board, state) VALUES (7, 'power off')")  # the hour after
    assert backups.make(path) not in (None, good)
    with asked.proxy() as proxy, pytest.raises(HeteroError) as error:
        proxy.store.records([0])
    way = error.value.remedy.partition(" && ")[2].partition(" and then")[0]
    assert f"cp -p {good} " in way
    subprocess.run(["sh", "-c", f"mkdir -p {asked.state}/backups/aside && {way}"], check=True)
    assert [one["instance"] for one in answer(asked)["claims"]] == ["jackie", "eve"]


def test_a_copy_whose_history_cannot_be_read_is_put_back_all_the_same(asked):
    """Lost: the claims of the last hour, to a score."""
    for table, columns in HISTORY.items():
        for column in columns:
            damage(asked, table, column, BAD[1])
    path = asked.params["state_db"]
    newest = backups.make(path)
    assert backups.newest_good(path, tables.RIGHTS) == newest
    with closing(sqlite3.connect(newest)) as db:
        db.execute("ALTER TABLE boards DROP COLUMN score")
        db.commit()
    assert backups.newest_good(path, tables.RIGHTS) == newest, "an earlier release had no such column"


def test_a_lost_database_is_not_put_back_from_a_damaged_copy(asked):
    """Lost: hours, to a copy that is as bad as none."""
    path = asked.params["state_db"]
    good = backups.make(path)
    damage(asked, "boards", "state", "melting")
    assert backups.make(path) not in (None, good)
    os.unlink(path)
    with pytest.raises(HeteroError, match=rf"state\.db: is not there.*cp -p {good} "):
        lost_database.must_not_be_lost(path, str(asked.state))
