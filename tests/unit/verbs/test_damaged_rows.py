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

from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, verb

ASKED = {
    "present": REQUEST,
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


@pytest.mark.parametrize("key", ["", "ssh-ed25519", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLP=x", "\u00e4 \u00e4"])
def test_a_damaged_key_of_a_claim_is_said_and_replaced(jackie, key):
    """Lost: the way out, which is another key; what was found was a traceback."""
    with jackie.proxy() as proxy:
        proxy.store.put("jackie", ssh_public_key=key)
    there = jackie.what_is_there()
    for state, given in (("rebuilt", dict(fresh=True)), ("rebuilt", dict(image="debian-13")), ("running", {})):
        result = verb(jackie, state, **given)
        assert (result["failed"], result["changed"], result["diff"]) == (True, False, [])
        assert result["msg"] == (
            f"board0: the ssh key of jackie's claim in {jackie.params['state_db']} is damaged: give a key "
            "(ansible-playbook hetero.compute.rebuild_instance -e instance=jackie -e key_file=FILE), or terminate it"
        )
    assert jackie.what_is_there() == there
    result = verb(jackie, "rebuilt", ssh_public_key=OTHER_KEY)
    assert not result.get("failed"), result
    assert jackie.record(0).claim.ssh_public_key == OTHER_KEY
    assert jackie.what_is_there() == jackie.running("jackie")
