# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a compute host's database whose values have no type of ours: SQLite keeps what it is given. If these fail,
all verbs of the host end in a traceback, which tells no way out.

Tests claims/host/allocation_rows.py.
"""

from __future__ import annotations

import math
import os
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import tables
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLP test"
RIGHTS = [
    *(("instances", column, value) for column in ("created", "since", "expires") for value in ("x", b"\xff", math.inf)),
    *(("instances", column, b"\xff") for column in ("owner", "request", "state", "container", "address", "flavor")),
    ("instances", "memory_mb", "much"),
    ("allocations", "wanted", "x"),
    ("allocations", "wanted", "[1]"),
    ("allocations", "nodes", "[1]"),
    ("allocations", "nodes", b"\xff"),
    ("allocations", "since", "x"),
    ("allocations", "uuid", b"\xff"),
]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "host.db")


@pytest.fixture
def store(path):
    with Store(path, "test") as opened:
        asked = Asked("ml-7", "ann", {"name": "m1", "memory_mb": 5}, "demo", KEY, "lxc", lease_hours=1)
        opened.claim(asked, dict(memory_mb=9, vcpus=9, local_gb=9), lambda: None, [])
        wanted, nodes = GpuRequest(count=1), (("/dev/nvidia0", "c", 195, 0),)
        opened.grant(Allocation("0000:05:00.0", "instance:ml-7", None, False, ATTACHED, 5.0, wanted, nodes))
        yield opened


def test_what_says_whose_something_is_is_said_to_be_damaged(store, path):
    """Lost: the way out, and with it whose a container, its memory or a GPU is."""
    good = backups.make(path)
    claims, rows = store.claims(), store.allocations()
    for table, column, value in RIGHTS:
        before = store._db.rows(f"SELECT {column} FROM {table}")[0][0]
        store._db.write(f"UPDATE {table} SET {column} = ?", (value,))
        with pytest.raises(HeteroError, match=r"host\.db: is damaged \(what it says of .*cp -p .*reconcile"):
            store.claims() if table == "instances" else store.allocations()
        newest = backups.make(path)
        assert backups.newest_good(path, tables.RIGHTS) == good, (table, column, value)
        os.unlink(newest)
        store._db.write(f"UPDATE {table} SET {column} = ?", (before,))
        assert (store.claims(), store.allocations()) == (claims, rows)


@pytest.mark.parametrize("value", ["x", b"\xff", math.inf, -5])
def test_an_event_that_cannot_be_read_ends_no_verb(store, value):
    """Lost: status of all instances of the host, to a row that only tells what happened."""
    for column in ("time", "actor", "instance", "address", "phase", "text", "seconds"):
        store._db.write(f"UPDATE events SET {column} = ?", (value,))
    for event in store.newest_events(None, 50):
        told = [one for one in vars(event).values() if one is not None]
        assert all(isinstance(one, (int, float, str)) for one in told)
        assert math.isfinite(event.time)


def test_a_copy_of_an_earlier_release_can_be_put_back(store, path):
    """Lost: the copy that was made before an upgrade, to a column that came with it."""
    copy = backups.make(path)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("DROP INDEX one_range_of_ids")
        for column in ("first_id", "mover", "departure"):
            db.execute(f"ALTER TABLE instances DROP COLUMN {column}")
        db.commit()
    assert backups.newest_good(path, tables.RIGHTS) == copy
