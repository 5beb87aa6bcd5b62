# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove roots and exports of boards that are gone for good, by an operator's word; no other verb reaches them.

It is done only for a board that the boards file does not name, that has neither a claim nor a record of one, and that
shows no sign of power.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Collection, Container

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused
from ...core.locks import lock
from ...core.plays import play
from ...core.printable import brief
from ...roots.board_parts import disk_of_board, nfs_server_of, root_of_board
from ...roots.misplaced_roots import refuse_to_remove
from ...roots.roots import UNMOUNT_TIME
from ..power.gone_boards import exports_of, sign_of_life
from ..records.misfiled_records import stray
from .unnamed_boards import told, way_of_anothers

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...nfs.exporter import Export
    from ..records.proxy import Proxy

VERB = "reconcile"
NAME = re.compile(r"board(0|[1-9][0-9]{0,8})")
AGAIN = "run this again"


def must_be_gone(proxy: Proxy, names: Collection[str]) -> None:
    """Check the names of boards that are gone, before anything is done.

    :param names: such as board7.
    :raises BadInput: a name is not that of a board.
    :raises Refused: the boards file names the board.
    """
    for name in names:
        if _number(name) in proxy.boards:
            remedy = (
                "terminate the instance that has it; module board_image with state=absent cleans one that nobody has; "
                "where that of another proxy node is meant, -e without=NODE leaves a node out"
            )
            raise Refused("is in the boards file: nothing is removed", name, remedy)


def discard(
    proxy: Proxy, names: Collection[str], ended: Container[str], change: Change, deadline: Deadline
) -> dict[str, list[str]]:
    """Remove the roots and exports of these boards, whose names must_be_gone has checked.

    :param ended: instances whose claims the same call ended, or would end in check mode.
    :returns: {name of a board of which there was something: texts of what there was}.
    :raises Refused: the board may be somebody's; nothing of it is touched.
    """
    found = {name: _discard(proxy, name, _number(name), ended, change, deadline) for name in names}
    return {name: there for name, there in found.items() if there}


def _number(name: str) -> int:
    found = NAME.fullmatch(name)
    if found is None:
        raise BadInput("is no name of a board", f"remove={brief(name)}", "give names such as board7")
    return int(found[1])


def _discard(
    proxy: Proxy, name: str, board: int, ended: Container[str], change: Change, deadline: Deadline
) -> list[str]:
    if change.check:
        return _remove(proxy, board, ended, change, deadline)
    with lock(proxy.config.run_folder, name, VERB, proxy.actor, deadline):
        return _remove(proxy, board, ended, change, deadline)


def _remove(proxy: Proxy, board: int, ended: Container[str], change: Change, deadline: Deadline) -> list[str]:
    _must_be_nobodys(proxy, board, ended)
    parts = _Parts(proxy, board)
    there = parts.there()
    if not there:
        return there
    refuse_to_remove(proxy, board, proxy.store.record(board).claim)
    _must_serve_nobody(proxy, board, parts.clients())
    _must_have_no_power(proxy, board, deadline)
    if not change.note(f"board{board}, not in the boards file", {"there": there}, {"there": []}) or change.check:
        return there
    parts.remove()
    left = parts.there()
    if left:
        raise HeteroError(f"still there after it was removed: {'; '.join(left)}", f"board{board}", "look who uses it")
    proxy.store.event(board, VERB, f"removed by an operator's word: {'; '.join(there)}")
    return there


def _must_be_nobodys(proxy: Proxy, board: int, ended: Container[str]) -> None:
    name, claim = f"board{board}", proxy.store.record(board).claim
    if claim and claim.instance not in ended:
        remedy = f"{play('reconcile', forget=claim.instance)} ends its claim; then {AGAIN}"
        raise Refused(f"is claimed for {claim.instance}: nothing is removed", name, remedy)
    for other in proxy.store.kept_boards():
        _must_not_be_its(proxy, board, other)
    _must_have_no_stray(proxy, board)
    if board in proxy.store.kept_boards() and not _is_ended(proxy, board, ended):
        path = proxy.store.path_of_kept(board)
        end = f"end the claim that it names ({play('reconcile', forget='NAME')}), or remove it"
        remedy = f"{_anothers(proxy, board) or end}; then {AGAIN}"
        raise Refused(f"has a record of a claim, {path}: nothing is removed", name, remedy)


def _must_have_no_stray(proxy: Proxy, board: int) -> None:
    """Raise Refused where a file that is called as no record is tells of a claim of this board, or cannot be read."""
    readable = dict(proxy.store.kept_anywhere())
    for path in proxy.store.strays():
        kept = readable.get(path)
        if kept is None:
            what = f"{path} is no record of a claim by its name, and may be one: nothing is removed"
            raise Refused(what, f"board{board}", f"look whose it is, and move it out of that folder; then {AGAIN}")
        if kept.claim.board == board:
            raise Refused(f"{path}: {stray(proxy, path, kept)}; nothing is removed", f"board{board}", AGAIN)


def _anothers(proxy: Proxy, board: int) -> str | None:
    """Return what is done with the record in a board's place where it is another board's; else None."""
    try:
        proxy.store.kept(board)
    except HeteroError as error:
        return way_of_anothers(proxy, board, error)
    return None


def _is_ended(proxy: Proxy, board: int, ended: Container[str]) -> bool:
    """Return whether the record in a board's place is that of a claim which the same call ends."""
    try:
        kept = proxy.store.kept(board)
    except HeteroError:
        return False
    return kept is not None and kept.claim.instance in ended


def _must_not_be_its(proxy: Proxy, board: int, other: int) -> None:
    """Raise Refused where the unreadable record in another board's place is this board's, or may be."""
    try:
        proxy.store.kept(other)
    except HeteroError as error:
        if error.facts.get("of", board) == board:
            what = f"{error.thing}: {error.what}; it may be of board{board}: nothing is removed"
            remedy = f"mend that record first ({play('reconcile')} says how); then {AGAIN}"
            raise Refused(what, f"board{board}", remedy) from error


def _must_serve_nobody(proxy: Proxy, board: int, clients: Container[str]) -> None:
    """Raise Refused where this board's root is exported to the address of a board that the boards file names."""
    for other in proxy.boards.values():
        if other.ip in clients:
            what = f"its root is exported to {other.ip}, which is {other.name} in the boards file: nothing is removed"
            raise Refused(
                what, f"board{board}", f"terminate what runs on {other.name}, and see that it is off; then {AGAIN}"
            )


def _must_have_no_power(proxy: Proxy, board: int, deadline: Deadline) -> None:
    sign = sign_of_life(proxy, board, deadline)
    if sign:
        what, remedy = sign
        raise Refused(f"{what}: nothing is removed", f"board{board}", f"{remedy}; then {AGAIN}")


class _Parts:
    """The exports, the root and the files of a disk root that this proxy has of one board."""

    def __init__(self, proxy: Proxy, board: int) -> None:
        self._proxy, self._board = proxy, board
        self.server = nfs_server_of(proxy)
        self.root = root_of_board(proxy, board)
        self.disk = disk_of_board(proxy, board)
        self.pseudo = self.server.mounted_as(board, self.root.path)

    def exports(self) -> list[Export]:
        return exports_of(self._proxy, self._board)

    def clients(self) -> set[str]:
        """Return the addresses to which the board's root is exported."""
        return {client for export in self.exports() for client in export.clients}

    def there(self) -> list[str]:
        """Return what there is of the board, a text each."""
        found = [f"export {export.id} {export.pseudo}" for export in self.exports()]
        found += [told(part) for part in (self.root, self.disk) if part.exists()]
        restore = self.server.restore_file(self.pseudo)
        return found + ([f"file {restore}"] if os.path.lexists(restore) else [])

    def remove(self) -> None:
        for export in self.exports():
            self.server.remove(export.id)
        self.root.unmount(Deadline(UNMOUNT_TIME))
        self.root.remove()
        self.disk.remove()
        self.server.forget(self.pseudo)
