# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's database that is gone although instances were made there: what shows that, and the way back.

A node that is new has neither records of claims nor roots, and none of this concerns it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from types import SimpleNamespace

from ...claims import lost_database
from ...core.backups import copies, how_to_restore
from ...core.errors import HeteroError
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...roots.made_json import token_of
from ...roots.ownership import roots_there
from ...roots.roots import ROOT_NAME
from ...site.proxy_config import read_config
from ...site.state_folder import OLDER, ROOTS
from .claim_records import FOLDER, ClaimRecords

NO_BOARDS = (
    "nothing is touched or freed: bring it back; of boards that are gone for good, "
    f"{play('reconcile', forget='INSTANCE')} ends the claims"
)
BEGUN = "boards that were out of use are to be taken out again"


def must_not_be_lost(database, state_folder):
    """HeteroError where a database is missing, or empty, and instances were made on this node.

    :param database: its path.
    :param state_folder: where roots and records of claims lie.
    """
    lost_database.must_not_be_lost(database, lambda: _signs(database, state_folder))


def _signs(database, state_folder):
    records = ClaimRecords(os.path.join(state_folder, FOLDER))
    boards = records.boards()
    there = [f"record of a claim {records.path(board)}" for board in boards]
    there += [f"root {path}" for path in _roots(state_folder)]
    unreadable = [records.path(board) for board in boards if not _can_be_read(records, board)]
    besides = ""
    if unreadable and copies(database):
        unread = lost_database.listed(unreadable)
        besides = (
            f" (which cannot read {unread}, and takes the copy's word for it by {play('reconcile', adopt='INSTANCE')})"
        )
    return there, besides


def must_name_boards(path, claims, database, state_folder):
    """HeteroError for a boards file without a board where instances were made on this node: it was cut off, or is lost.

    Each verb would else take their boards for gone.

    :param path: the boards file.
    :param claims: those of the database.
    """
    there = [f"claim of {claim.instance} on board{claim.board}" for claim in claims]
    there = there or _signs(database, state_folder)[0]
    if there:
        what = f"is empty, and instances were made on {THIS_NODE} ({lost_database.listed(there)})"
        raise HeteroError(what, path, NO_BOARDS)


def said_if_lost(params, check=False):
    """What reconcile says of a database that it makes anew; None where it is there.

    :param params: the module's `config` and `state_db`.
    :param check: nothing is made in this run.
    :raises HeteroError: it is lost, and a copy is there, which knows what no record does (boards out of use, events).
    """
    database, folder = params["state_db"], read_config(params["config"])["state_folder"]
    return lost_database.said_if_lost(database, lambda: must_not_be_lost(database, folder), BEGUN, check)


def way_by_copy(proxy, board):
    """The way out by the newest copy in which somebody has a board, to come after another one; empty without such.

    Where made.json tells of just one claim, an older one of that name is none; nor is what the database in place says.

    :param board: its number.
    """
    there = roots_there(proxy.config["state_folder"])
    tokens = {made.claim for number, _folder, made in there if number == board and made}
    known, database = proxy.store.record(board).claim, proxy.store.path
    for path in reversed(copies(database)):
        claim = _who_has(path, board)
        if claim and not (known and known.is_same(claim)) and (not tokens or token_of(claim) in tokens):
            way = how_to_restore(database, path)
            adopt = play("reconcile", adopt=claim.instance)
            return f"; or, as the copy {path} says that it is {claim.instance}'s: {way}; {adopt} then"
    return ""


def _who_has(copy, board):
    """Who has a board by a copy of a database, as far as that tells one claim from another; None also where the copy
    cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
            rows = db.execute("SELECT instance, created FROM claims WHERE board = ?", (board,)).fetchall()
    except sqlite3.DatabaseError:
        return None
    return SimpleNamespace(instance=rows[0][0], created=rows[0][1]) if rows else None


def _roots(state_folder):
    folders = [os.path.join(state_folder, name) for name in (ROOTS, OLDER)]
    names = [(folder, name) for folder in folders if os.path.isdir(folder) for name in sorted(os.listdir(folder))]
    return [os.path.join(folder, name) for folder, name in names if ROOT_NAME.fullmatch(name)]


def _can_be_read(records, board):
    try:
        return records.read(board) is not None
    except HeteroError:
        return False
