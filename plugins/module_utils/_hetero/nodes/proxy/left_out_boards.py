# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boards file that is about to be written against who has boards: none of those is to be left out of it, or moved.

No verb reaches a board that the file does not name, so its instance would run on where nobody sees it. Where the file
gives one that is on another address, that may be another tenant's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Collection, Iterable

from ...boards.records import at_rest
from ...boards.records.claim_records import FOLDER, ClaimRecords
from ...boards.records.store import Store
from ...core.errors import HeteroError
from ...core.plays import play
from ...site import board_states
from ...site.boards_file import BoardsFileError
from ...site.boards_file import read as read_boards

if TYPE_CHECKING:
    from ...boards.records.board_records import Record
    from ...core.findings import Findings
    from ...site.boards_file import Board
    from .setup_plan import Plan

BACK = "put its row back; or, where the board is gone for good,"
MOVED = "gives board{board}, which {instance} has and which was not seen off, {now} in place of {before}"
CHANGE = f"put its row back; or, where it is right, {play('stop_instance', instance='{name}')} first"


def claims(plan: Plan, boards: Iterable[Board], found: Findings) -> None:
    """Report a defect for each board that is left out, or moved while it is on, and that somebody has.

    He has it by the database or by a claim's own record.

    What cannot be read stops no set-up, which may be what mends it.
    """
    named = {board.id: board for board in boards}
    before = _before(plan)
    had = sorted(users(plan, found).items())
    kept = {board for board, _name in had} & set(named) & set(before)
    moved = {board for board in kept if _place(named[board]) != _place(before[board])}
    moved -= _at_rest(plan, moved)
    for board, instance in had:
        if board in moved:
            places = dict(now=_place(named[board]), before=_place(before[board]))
            what = MOVED.format(board=board, instance=instance, **places)
            found.defect(plan.boards_source, what, CHANGE.format(name=instance))
        if board not in named:
            what = f"leaves out board{board}, which {instance} has"
            found.defect(plan.boards_source, what, f"{BACK} {_way_out(plan, board in before, instance)}")


def users(plan: Plan, found: Findings) -> dict[int, str]:
    """Return {board id: instance} of all boards that somebody has; a note says what could not be read."""
    return {**_by_records(plan, found), **_by_database(plan, found)}


def _way_out(plan: Plan, is_known: bool, instance: str) -> str:
    """Return how its claim is ended: a word alone ends none of a board that the node still knows."""
    forget = play("reconcile", forget=instance)
    if not is_known:
        return f"{forget} first"
    file = _file(plan)
    terminate = play("terminate_instance", instance=instance)
    return f"{terminate} first; where that cannot end it, take the row out of {file} on the node, then {forget}"


def _by_database(plan: Plan, found: Findings) -> dict[int, str]:
    """Return {board id: instance} of the claims in the database, if there is one."""
    path = os.path.join(plan.state_folder, "state.db")
    try:
        if not os.path.exists(path):
            return {}
        store = Store(path, create=False)
        try:
            return {claim.board: claim.instance for claim in store.claims()}
        finally:
            store.close()
    except HeteroError as error:
        found.note(error.thing, error.what, error.remedy)
        return {}


def _by_records(plan: Plan, found: Findings) -> dict[int, str]:
    """Return the same by the records of claims for which anything was made, for the database may be older or lost."""
    records, users = ClaimRecords(os.path.join(plan.state_folder, FOLDER)), {}
    try:
        ids = records.boards()
    except HeteroError as error:
        found.note(error.thing, error.what, error.remedy)
        return {}
    for board in ids:
        try:
            kept = records.read(board)
        except HeteroError:
            continue  # unreadable() names it, and wiring_check.py says it
        if kept and kept.is_somebodys:
            users[board] = kept.claim.instance
    return users


def unreadable(plan: Plan) -> list[HeteroError]:
    """Return the errors of records of claims that cannot be read: somebody may have the boards of these, too."""
    records, errors = ClaimRecords(os.path.join(plan.state_folder, FOLDER)), []
    try:
        for board in records.boards():
            try:
                records.read(board)
            except HeteroError as error:
                errors.append(error)
    except HeteroError:
        pass  # users() notes it
    return errors


def _place(board: Board) -> str:
    return f"{board.ip} {board.mac}"


def _at_rest(plan: Plan, boards: Collection[int]) -> set[int]:
    """Return those of the boards that are at rest by the database, or whose claims nothing was made for yet."""
    path = os.path.join(plan.state_folder, "state.db")
    with suppress(HeteroError):  # users() notes it
        if boards and os.path.exists(path):
            with Store(path, create=False) as store:
                records = store.records(boards)
            return {board for board, record in records.items() if _is_at_rest(plan, record)}
    return set()


def _is_at_rest(plan: Plan, record: Record) -> bool:
    try:
        kept = ClaimRecords(os.path.join(plan.state_folder, FOLDER)).read(record.board)
    except HeteroError:
        return False
    claim, unused = record.claim, False
    if kept and kept.is_somebodys and kept.state != board_states.POWER_OFF:
        if not claim or not kept.claim.is_same(claim) or kept.claim.image_hash != claim.image_hash:
            return False  # the board may be on for that one
    if claim and not claim.image_hash and record.state == board_states.POWER_OFF:
        unused = record.power != "on" and not at_rest.is_at_work(kept, record)
    return unused or at_rest.is_at_rest(record, kept)


def _before(plan: Plan) -> dict[int, Board]:
    """Return {id: board} of the file that the node has; empty if it has no such file, or a wrong one."""
    try:
        return {board.id: board for board in read_boards(_file(plan))}
    except (BoardsFileError, OSError):
        return {}


def _file(plan: Plan) -> str:
    return os.path.join(plan.tftp_root, "tilera_boards")
