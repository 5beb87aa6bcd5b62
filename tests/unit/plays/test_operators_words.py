# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that an operator gives plays, and slips in them. If these fail, a slip is done nothing about, or is answered
with an error of some program's.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import FOLDER
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR


def said(output):
    return " ".join(output.split())


def test_a_board_is_called_by_its_name_as_well(proxies):
    """Lost: a board by a traceback of int(), to who types the name that every table shows."""
    _folders, plays = proxies
    rc, output = plays.play("provision_instance", "--check", instance="jackie", flavor=FLAVOR, board="board1")
    assert rc == 0, output
    assert "board1" in output
    assert "board0" not in output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, board="p1,board1")
    assert rc == 2, output
    assert "board is p1,board1: give the id of one board, such as -e board=2" in said(output)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, board="board1", node="0")
    assert rc == 2, output
    assert "board is board1 and node is 0, which are two boards: give one of them" in said(output)


def test_adopt_of_a_name_that_nobody_has_names_those_that_wait_for_it(proxies):
    """Lost: the time of who looks for a record of a name that was misspelt."""
    folders, plays = proxies
    rc, output = plays.play("reconcile", adpot="jackie", site="north")
    assert rc == 2, output
    assert "adpot is no option: is adopt meant? A variable of your own needs another name" in said(output)
    assert "site is" not in output
    rc, output = plays.play("reconcile", adopt="jacky")
    assert rc == 2, output
    assert "Not adopted: jacky. Nothing that is found on a proxy node is to be adopted." in said(output)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, hours=1)
    assert rc == 0, output
    (record,) = (folders["p1"].folder / "var" / "lib" / "hetero" / FOLDER).glob("board*.json")
    record.write_text("{")
    rc, output = plays.play("reconcile", adopt="jacky")
    assert rc == 2, output
    assert "Not adopted: jacky. What is found names adopt for jackie: see the table." in said(output)
    rc, output = plays.play("reconcile", adopt="jackie,jacky")
    assert rc == 2, output
    assert "Not adopted: jacky. Nothing that is found on a proxy node is to be adopted. " in said(output)
    assert "adopted. Adopted, or as its record says: jackie." in said(output)
    assert ".  Nothing" not in output
    # one that is known here, and cannot be taken over
    whole = record.read_text()
    with closing(sqlite3.connect(folders["p1"].state_db)) as db:
        db.execute("DELETE FROM claims")
        db.commit()
    record.write_text(whole.replace('"image_hash": "', '"image_hash": "0'))
    for flags in (["--check"], []):
        rc, output = plays.play("reconcile", *flags, adopt="jackie")
        assert rc == 2, output
        assert "Not adopted: jackie. The table says why, and what helps." in said(output)
    rc, output = plays.play("reconcile", adopt="jackie,jacky")
    assert "Not adopted: jackie, jacky. The table says why of jackie, and what helps. Nothing" in said(output)
