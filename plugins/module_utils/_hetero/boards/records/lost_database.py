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
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Protocol

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
from .tables import RIGHTS

if TYPE_CHECKING:
    from ...site.proxy_config import ProxyConfig
    from .claim_copies import KeptClaims
    from .claim_records import Claim

NO_BOARDS = (
    "nothing is touched or freed: bring it back; of boards that are gone for good, "
    f"{play('reconcile', forget='INSTANCE')} ends the claims"
)
BEGUN = "boards that were in maintenance or in error stay out of use, by their own records"


class StatefulNode(Protocol):
    """What is used of a proxy node to tell its claims from those of a copy of its database."""

    @property
    def config(self) -> ProxyConfig: ...
    @property
    def store(self) -> KeptClaims: ...


class Holder(NamedTuple):
    """The claim of a board in a copy of a database, by what tells claims apart."""

    instance: str
    created: float


def must_not_be_lost(database: str, state_folder: str) -> None:
    """Raise HeteroError where a database is missing, or empty, and instances were made on this node.

    :param database: its path.
    :param state_folder: where roots and records of claims lie.
    """
    lost_database.must_not_be_lost(database, lambda: _signs(database, state_folder), RIGHTS)


def _signs(database: str, state_folder: str) -> tuple[list[str], str]:
    """Return texts of what shows that a database was there, and what else to know of a copy put in its place."""
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


def must_name_boards(path: str, claims: Iterable[Claim], database: str, state_folder: str) -> None:
    """Raise HeteroError for a boards file without a board where instances were made on this node.

    It was cut off, or is lost, and each verb would take their boards for gone.

    :param path: the boards file.
    :param claims: those of the database.
    """
    there = [f"claim of {claim.instance} on board{claim.board}" for claim in claims]
    there = there or _signs(database, state_folder)[0]
    if there:
        what = f"is empty, and instances were made on {THIS_NODE} ({lost_database.listed(there)})"
        raise HeteroError(what, path, NO_BOARDS)


def in_use_since(proxy: StatefulNode) -> float | None:
    """Return since when anything tells that somebody has, or had, a board of this node (unix time); None: nothing does.

    Nothing does if the state folder is new, or is the one under a file system that is not mounted; and what was claimed
    in that one tells of nothing before it. 0 stands for a time that is not known.
    """
    since = proxy.store.claimed_since()
    if since is None and _signs(proxy.store.path, proxy.config.state_folder)[0]:
        return 0.0
    return since


def said_if_lost(params: Mapping[str, Any], check: bool = False) -> str | None:
    """Return what reconcile says of a database that it makes anew, or None where it is there.

    :param params: the module's `config` and `state_db`.
    :param check: whether this run makes nothing.
    :raises HeteroError: it is lost, and a copy is there, which knows what no record does (events).
    """
    database, folder = params["state_db"], read_config(params["config"]).state_folder
    return lost_database.said_if_lost(database, lambda: must_not_be_lost(database, folder), BEGUN, check)


def way_by_copy(proxy: StatefulNode, board: int) -> str:
    """Return the way out by the newest copy in which somebody has a board, as a text to come after another way.

    The text is empty without such a copy. A claim that is not the one that made.json tells of does not count, nor does
    the one that the database in place has.

    :param board: its number.
    """
    there = roots_there(proxy.config.state_folder)
    tokens = {made.claim for number, _folder, made in there if number == board and made}
    known, database = proxy.store.record(board).claim, proxy.store.path
    for path in reversed(copies(database)):
        claim = _who_has(path, board)
        if claim and not (known and known.is_same(claim)) and (not tokens or token_of(claim) in tokens):
            way = how_to_restore(database, path)
            adopt = play("reconcile", adopt=claim.instance)
            return f"; or, as the copy {path} says that it is {claim.instance}'s: {way}; {adopt} then"
    return ""


def _who_has(copy: str, board: int) -> Holder | None:
    """Return who has a board by a copy of a database; None for nobody, and where the copy cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
            rows = db.execute("SELECT instance, created FROM claims WHERE board = ?", (board,)).fetchall()
    except sqlite3.DatabaseError:
        return None
    return Holder(*rows[0]) if rows else None


def _roots(state_folder: str) -> list[str]:
    """Return the paths of all roots, those of an earlier release too."""
    folders = [os.path.join(state_folder, name) for name in (ROOTS, OLDER)]
    names = [(folder, name) for folder in folders if os.path.isdir(folder) for name in sorted(os.listdir(folder))]
    return [os.path.join(folder, name) for folder, name in names if ROOT_NAME.fullmatch(name)]


def _can_be_read(records: ClaimRecords, board: int) -> bool:
    try:
        return records.read(board) is not None
    except HeteroError:
        return False
