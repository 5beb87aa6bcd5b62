# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As tests/unit/instances/test_older_database.py, on a proxy: its database is of an older release as soon as there is
one of another schema, which is played here.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

NEXT = "CREATE TABLE of_the_next_release (board INTEGER PRIMARY KEY)"
ASKED = dict(owner="jo", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
LOOKS = [
    ("board_claim", dict(ASKED, instance="other")),
    ("board_claim", dict(instance="jackie", state="absent")),
    ("board_image", dict(boards=[0], instance="jackie")),
    ("board_image", dict(boards=[0], instance="jackie", state="absent")),
    *(("tilera_boot", dict(boards=[0], state=state, timeout=10)) for state in ("running", "stopped", "rebooted")),
    ("board_rebuild", dict(instance="jackie", fresh=True)),
    ("board_wipe", dict(boards=[0])),
    ("board_wipe", dict(boards=[0], inspect=True)),
    ("board_lease", dict(instance="jackie", hours=2.0)),
    ("board_maintenance", dict(boards=[1], state="on", reason="a fan")),
    ("board_maintenance", dict(boards=[1], state="off")),
    ("board_reconcile", {}),
    ("board_cabling", dict(boards=[1], timeout=10)),
    ("board_console_info", dict(board=0)),
    ("board_info", dict(events=5, power=True)),
]


def test_check_mode_leaves_an_older_database_as_it_is(jackie, monkeypatch):
    """As it runs, and as it is where somebody switched the board off by hand."""
    path, console = jackie.params["state_db"], jackie.folder / "console.log"
    console.write_text("login:\n")
    jackie.wire(0, console=str(console))
    layout = Store.layout
    upgrades = {**layout.upgrades, layout.schema: (NEXT,)}
    layout = replace(layout, schema=layout.schema + 1, tables=(*layout.tables, NEXT), upgrades=upgrades)
    monkeypatch.setattr(Store, "layout", layout)
    before = Path(path).read_bytes()
    for outlet in ("on", "off"):
        jackie.pdu(board0=outlet)
        for name, given in LOOKS:
            result = jackie.module(name, check=True, **given)
            # the root of a board that runs may be refused, whatever the database is
            assert not result.get("failed") or name == "board_image", (name, given, result)
            assert "older release" not in json.dumps(result), (name, given, result)
            assert (Path(path).read_bytes(), backups.copies(path)) == (before, []), (name, given)
    jackie.module("board_lease", instance="jackie", hours=2.0)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == Store.layout.schema
    assert len(backups.copies(path)) == 1
