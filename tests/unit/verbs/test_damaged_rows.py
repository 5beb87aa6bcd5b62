# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of state.db that SQLite finds whole and that say nothing. If these fail, each verb ends in a traceback, and
nobody reads which file is damaged and what to do.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import WISH, verb

ASKED = {
    "present": WISH,
    "running": {},
    "stopped": {},
    "rebooted": dict(how="hard"),
    "rebuilt": dict(fresh=True),
    "extended": dict(lease_hours=1),
    "absent": {},
}


@pytest.mark.parametrize("column", ["claims.flavor = '['", "claims.flavor = '3'", "boards.state = 'nonsense'"])
def test_a_damaged_row_is_said_to_be_damaged(jackie, column):
    """Lost: the way out, and in a traceback nobody finds it."""
    table, _dot, value = column.partition(".")
    with closing(sqlite3.connect(jackie.params["state_db"])) as db:
        db.execute(f"UPDATE {table} SET {value}")
        db.commit()
    power = jackie.outlets()
    for state, given in ASKED.items():
        for check in (True, False):
            result = verb(jackie, state, check=check, **given)
            assert result.get("failed"), (state, result)
            assert "state.db: is damaged (" in result["msg"]
            assert "reconcile" in result["msg"]
    assert jackie.outlets() == power
    assert jackie.root_is_whole()
