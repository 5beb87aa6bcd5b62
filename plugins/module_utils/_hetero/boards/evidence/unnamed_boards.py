# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what lies on a proxy for boards that the boards file does not name: claims, records, roots, boot files, exports.

Only a person can say what that is. So it is reported, and removed only by an operator's word.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Collection, Iterable, Mapping, NamedTuple, Pattern

from ...core.errors import HeteroError
from ...core.plays import play
from ...roots.board_parts import disk_of_board, nfs_server_of, root_of_board
from ...roots.disk_files import DiskFiles
from ...roots.made_json import token_of
from ...roots.misplaced_roots import misplaced
from ...roots.ownership import made_for
from ...roots.roots import ROOT_NAME, SOURCE, Root
from ...site.state_folder import OLDER, ROOTS
from ..power.gone_boards import sign_of_life
from ..records import misfiled_records
from ..records.board_records import RELEASE_PHASE

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...nfs.exporter import Export
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

UNREAD = "add the board to the boards file; or, where it is gone for good, remove it"
MOVED = "{way}, or, where nobody has board{number} any more, remove it"
LEFT = f"add it to the boards file; or, where it is gone for good, {play('reconcile', forget='{name}')} ends it"
ALIVE = (
    "not ended: {what}: add it to the boards file; or, where it is gone for good: {remedy}; then "
    f"{play('reconcile', forget='{name}')} ends it"
)
WOULD_BE_ENDED = "would be ended"
ENDED = "{name}'s claim is ended by an operator's word: its board is not in the boards file"
STRAY = "no record of a claim by its name, so nothing reads it: remove it once nobody wants it"
REMOVE = play("reconcile", remove="board{number}")
UNWANTED = f"once nobody wants it, {REMOVE} removes it, with all that lies here of that board"
BOOT_FILES = "copies of what a board boots, and no data: remove it once no board has that address"
BOARDS_PATH = re.compile(r"/fs_(\d+)/root$")
#: Folders of boards under the TFTP root, by name.
FILES_NAME = re.compile(r"\d+(\.\d+){3}")


class Left(NamedTuple):
    """A claim or record of a board that the boards file does not name.

    :param name: the board's instance; None where the record cannot be read.
    :param claim: the claim of the database; None where there is only a record.
    :param unread: the text on a record that cannot be read.
    """

    board: int
    name: str | None
    claim: Claim | None
    unread: str = ""


def let_go(
    proxy: Proxy, names: Collection[str], change: Change, deadline: Deadline
) -> tuple[list[str], dict[str, str]]:
    """End the claims of these instances on boards that the boards file does not name and that show no sign of life.

    Other records of such a board, which are another's or cannot be read, stay.

    :returns: ([names of ended instances], {name: why its claim was not ended}).
    """
    ended: list[str] = []
    kept: dict[str, str] = {}
    for left in _left(proxy):
        board, name, claim = left.board, left.name, left.claim
        if name is None or name not in names:
            continue
        sign = None if _is_anothers(proxy, board, claim) else sign_of_life(proxy, board, deadline)
        if sign:
            kept[name] = ALIVE.format(what=sign[0], remedy=sign[1], name=name)
        elif change.note(name, {"board": f"board{board}"}, {}):
            ended.append(name)
            if claim and not change.check:
                proxy.store.forget(claim, f"board{board} is not in the boards file")
            elif not change.check:
                proxy.store.keep_anew(board)
                proxy.store.event(board, RELEASE_PHASE, ENDED.format(name=name), instance=name)
    return ended, kept


def _is_anothers(proxy: Proxy, board: int, claim: Claim | None) -> bool:
    """Return whether a board's root was made for another claim, so that what has power there is not this claim's.

    :param claim: None for the claim that the board's record has.
    """
    if claim is None:
        kept = proxy.store.kept(board)
        if kept is None:
            return False
        claim = kept.claim
    words = [part.made() for part in (root_of_board(proxy, board), disk_of_board(proxy, board))]
    return any(made and made.claim != token_of(claim) for made in words)


def not_ended(proxy: Proxy, names: Collection[str], ended: Collection[str]) -> dict[str, list[str]]:
    """Return the instances whose claims were to be ended by an operator's word, and were not ended.

    :returns: dict of `kept`, instances with a claim or a record here, and `gone`, those that had a claim once. An
        instance that never had a claim here is in neither.
    """
    known = {claim.instance for claim in proxy.store.claims()}
    for board in proxy.store.kept_boards():
        with suppress(HeteroError):
            kept = proxy.store.kept(board)
            known.update([kept.claim.instance] if kept else [])
    left = [name for name in names if name not in ended]
    gone = [name for name in left if name not in known and _had_a_board(proxy, name)]
    return dict(kept=[name for name in left if name in known], gone=gone)


def _had_a_board(proxy: Proxy, name: str) -> bool:
    """Return whether an instance ever had a board here; the name of a request for several has events, and no board."""
    return any(event.board is not None for event in proxy.store.events(instance=name))


def _left(proxy: Proxy) -> list[Left]:
    """Return what is known of boards that the boards file does not name, in their order."""
    claims = {claim.board: claim for claim in proxy.store.claims()}
    found = [Left(board, claim.instance, claim) for board, claim in claims.items()]
    for board in proxy.store.kept_boards():
        try:
            kept = proxy.store.kept(board)
        except HeteroError as error:
            found.append(Left(board, None, None, _unread(proxy, board, error)))
        else:
            if kept and not (board in claims and kept.claim.is_same(claims[board])):
                found.append(Left(board, kept.claim.instance, None))
    return sorted([one for one in found if one.board not in proxy.boards], key=lambda one: one.board)


def others(proxy: Proxy, said: Mapping[str, str]) -> list[str]:
    """Return a text on each thing that lies here for boards that the boards file does not name.

    :param said: {instance: text on its claim, in place of the way to end it}.
    """
    known = {f"fs_{number}" for number in proxy.boards}
    addresses = {board.ip for board in proxy.boards.values()}
    roots = [proxy.folder(folder) for folder in (ROOTS, OLDER)]
    found = [_told(said, left) for left in _left(proxy)]
    records = dict(proxy.store.kept_anywhere())
    strays = [(path, records.get(path)) for path in proxy.store.strays()]
    found += [f"file {path}: {misfiled_records.stray(proxy, path, kept) if kept else STRAY}" for path, kept in strays]
    unnamed = [board for board in proxy.store.out_of_use_boards() if board not in proxy.boards]
    found += filter(None, map(proxy.store.anothers_out_of_use, unnamed))
    found += [
        _way_of_root(proxy, number, root)
        for number in _numbers([*roots, proxy.folder("disks")])
        if number not in proxy.boards
        for root in (root_of_board(proxy, number), disk_of_board(proxy, number))
        if root.exists()
    ]
    tftp_root = proxy.config.tftp_root
    names = _names(tftp_root, FILES_NAME)
    found += [f"folder {os.path.join(tftp_root, name)}: {BOOT_FILES}" for name in names if name not in addresses]
    server = nfs_server_of(proxy)
    try:
        exports = server.show().values()
    except HeteroError as error:
        return [*found, str(error)]
    below = {export for export in exports if export.path.startswith(tuple(f"{folder}/" for folder in roots))}
    own = {os.path.join(folder, name, "root") for folder in roots for name in known}
    left = [export for export in below if export.path not in own]
    return found + sorted(f"export {export.id} {export.pseudo}: {_way_of(export)}" for export in left)


def _way_of_root(proxy: Proxy, number: int, root: Root | DiskFiles) -> str:
    anothers = misplaced(proxy, number)
    if anothers and anothers.thing == root.folder:
        return f"folder {anothers}"
    return f"{told(root)}: {UNWANTED.format(number=number)}"


def told(root: Root | DiskFiles) -> str:
    """Return, in words, a root's folder and the instance that the root was made for."""
    whose = made_for(root)
    return f"folder {root.folder}, made for {whose}" if whose else f"folder {root.folder}"


def _numbers(folders: Iterable[str]) -> list[int]:
    """Return the ids of boards that have a folder in one of these, in order."""
    return sorted({int(name[len(SOURCE) :]) for folder in folders for name in _names(folder, ROOT_NAME)})


def _way_of(export: Export) -> str:
    number = BOARDS_PATH.search(export.path)
    return UNWANTED.format(number=number[1]) if number else "look who made it"


def _told(said: Mapping[str, str], left: Left) -> str:
    name, claim = left.name, left.claim
    if name is None:
        return left.unread
    whose = f"claim of {name} ({claim.owner})" if claim else f"record of the claim of {name}"
    return f"{whose} on board{left.board}: {said.get(name) or LEFT.format(name=name)}"


def _unread(proxy: Proxy, board: int, error: HeteroError) -> str:
    """Return the text on a record that cannot be read."""
    return f"record on board{board}: {error.thing}: {error.what}: {way_of_anothers(proxy, board, error) or UNREAD}"


def way_of_anothers(proxy: Proxy, board: int, error: HeteroError) -> str | None:
    """Return what is done with the unreadable record in a board's place, which is another board's; else None."""
    other, path = error.facts.get("of"), proxy.store.path_of_kept(board)
    if other is None:
        return None
    kept = dict(proxy.store.kept_anywhere()).get(path) if proxy.store.is_copy(error) else None
    if kept:
        return misfiled_records.of_elsewhere(proxy, path, kept)
    return MOVED.format(way=misfiled_records.way_of(proxy, path, other), number=other)


def _names(folder: str, pattern: Pattern[str]) -> list[str]:
    return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name)) if os.path.isdir(folder) else []
