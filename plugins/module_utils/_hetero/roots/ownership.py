# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell for which claim a board's root was made, by the files beside it, and when that contradicts the record of claims.

No record alone is reason enough to remove a root that may be somebody's, or to switch its board's power: a database
that was put back from a backup does not have the claims that were made after the backup.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable, Iterator, Union

from ..core.errors import HeteroError, Refused
from ..core.plays import play
from ..site.boot_sources import DISK
from ..site.state_folder import OLDER, ROOTS
from .board_parts import disk_of_board, files_of_board, root_of_board
from .disk_files import DiskFiles
from .disk_files import Made as MadeOnDisk
from .made_json import is_unread, kept_of, token_of, why_unproven, word_of
from .roots import MADE, REMOVED, SOURCE, Made, Root, made_of
from .used_disks import NOBODY_KNOWS, is_wiped, user_of

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import Numbered, RootClaim, RootsNode

#: What a made.json says, of a root that lies here or on a disk.
AnyMade = Union[Made, MadeOnDisk]

THEIRS = (
    "nothing is touched: the database may be older than that (put back from a backup): "
    f"{play('reconcile')} adopts what proves itself"
)
OWN = "nothing is touched: correct made.json in its folder; or rebuild the instance for a new root, or terminate it"
NOT_THERE = (
    "nothing is made: mount the file system that it is on, or bring it back; or rebuild the instance for a new root, "
    "or terminate it"
)
LIES_THERE = (
    "nothing is made: its root lies in {folder}: where a move to another board was cut off, "
    f"{play('migrate_instance', instance='{name}')} brings it after; where a person put it there, put it back"
)
FILE_GONE = (
    "{file} is gone, and what is in {name}'s root stays only as long as it is mounted: save it: "
    f"{play('stop_instance', instance='{name}')}, copy its device, which losetup --list shows as deleted, to that "
    "file (sync; e2image -fra DEVICE FILE), and restart the machine, which mounts it; or rebuild it for a new root"
)
UNPROVEN = (
    "neither the record of its claim nor its root bears out that it is {name}'s, as the database has it, which may be "
    "older than they were (put back from a copy)"
)
BY_WORD = (
    "nothing is touched: put a newer copy of the database back; or, by an operator's word: where the database is "
    f"right, {play('reconcile', adopt='{name}')} has the record written anew (remove one that cannot be read first); "
    f"where it is older, {play('reconcile', forget='{name}')} ends that claim, and touches nothing of the board"
)
HAS_ONE = "{name} has a root of which neither the database nor the record of its claim know"
USED_DISK = "disk {disks} was used by {user}, and neither the database nor the record of its claim know of a root there"
FORGOTTEN = "nothing is touched: put a newer backup back; or rebuild the instance for a new root, or terminate it"
UNREADABLE = "somebody (what made.json says cannot be read)"


def whose_root(proxy: RootsNode, board: Numbered) -> str | None:
    """Return the instance that a board's root was made for; None for no root, or one half made or half removed."""
    root = root_of_board(proxy, board.id)
    made = root.made()
    if made is None:
        # A removal that was begun leaves removed.json, and a root that is being made has made.json from the first.
        return UNREADABLE if root.exists() and not root.is_half_removed else None
    return _of(made) if made.whole else None


def whose_archive(proxy: RootsNode, board: Numbered) -> str | None:
    """Return the instance whose root on the board's own disk this proxy knows of; None where it knows of none."""
    return made_for(disk_of_board(proxy, board.id))


def made_for(root: Root | DiskFiles) -> str | None:
    """Return the instance that a root was made for, whole or not; None where it has no made.json."""
    made = root.made()
    if made is None:
        return UNREADABLE if has_word(root.folder) else None
    return _of(made)


def forgotten_of(proxy: RootsNode, board: Board, claim: RootClaim) -> str | None:
    """Return what a tenant may have left on a board whose claim names no root, in words; None where there is nothing.

    That is a root of this claim, a root whose made.json cannot be read, or a disk that a tenant has used.
    """
    if claim.image_hash:
        return None
    root = files_of_board(proxy, board.id, claim.boot_source)
    made, user = root.made(), user_of(proxy, board)
    own = made is not None and (isinstance(made, MadeOnDisk) or made.whole) and made.claim == token_of(claim)
    if own or (made is None and root.exists()):
        return HAS_ONE.format(name=claim.instance)
    return USED_DISK.format(disks=" and ".join(proxy.disks(board)), user=user) if user else None


def is_gone(proxy: RootsNode, board: Board, claim: RootClaim) -> bool:
    """Return whether the root of a claim is gone: its removal was begun, or somebody removed it by hand."""
    whose = whose_archive if claim.boot_source == DISK else whose_root
    return bool(claim.image_hash) and whose(proxy, board) is None


def is_lost(proxy: RootsNode, board: Board, claim: RootClaim) -> bool:
    """Return whether nothing is left of what was made for a claim, neither on the proxy nor on the board's disk."""
    root, disk = files_of_board(proxy, board.id, claim.boot_source), claim.boot_source == DISK
    # A root on a disk counts as there until a wipe is proven, also where no record says any more who used the disk.
    on_disk = user_of(proxy, board) is not None or (disk and not is_wiped(proxy, board))
    return bool(claim.image_hash) and not root.exists() and not on_disk


def is_of_claim(proxy: RootsNode, board: Board, claim: RootClaim) -> bool:
    """Return whether a board's root is whole, and was made for this claim and from the image that the claim names."""
    if claim.boot_source == DISK:
        made: AnyMade | None = disk_of_board(proxy, board.id).made()
    else:
        word = word_of(proxy, board, claim)
        made = word if word and word.whole else None
    return made is not None and (made.claim, made.image) == (token_of(claim), claim.image_hash)


def why_not_of(proxy: RootsNode, board: Board, claim: RootClaim, check: bool) -> str | None:
    """Return why what a board boots from is not the root of a claim, in words; None where it is.

    Where made.json is lost, why_unproven tells from what else lies there.

    :param claim: the claim as its own record has it.
    :param check: mount nothing to look at the root (check mode).
    """
    if is_of_claim(proxy, board, claim):
        return None
    root, disk = root_of_board(proxy, board.id), disk_of_board(proxy, board.id)
    if claim.boot_source == DISK and disk.made() is None and disk.remade(token_of(claim), claim):
        return None
    if claim.boot_source == DISK or not is_unread(root):
        return "its root is not there, or is not this claim's"
    try:
        why = why_unproven(proxy, root, claim, check)
    except HeteroError as error:
        why = str(error)
    return f"made.json of its root cannot be read, nor be told anew ({why})" if why else None


def refuse_unproven(proxy: RootsNode, board: Board, claim: RootClaim | None) -> None:
    """Raise Refused where a board has a root, and nothing but the database says that its claim has the board.

    The database may be an older copy, and the root another instance's. A board without a claim passes, and one without
    a root.
    """
    if claim is not None and has_root(proxy, board) and not is_borne_out(proxy, board, claim):
        raise unproven(board, claim)


def unproven(board: Board, claim: RootClaim) -> Refused:
    """Return the error of a board that is a claim's by the database alone."""
    return Refused(UNPROVEN.format(name=claim.instance), board.name, BY_WORD.format(name=claim.instance))


def has_root(proxy: RootsNode, board: Board) -> bool:
    """Return whether a board has a root, here or on its disk, whose removal was not begun."""
    root = root_of_board(proxy, board.id)
    return (root.exists() and not root.is_half_removed) or disk_of_board(proxy, board.id).exists()


def is_borne_out(proxy: RootsNode, board: Board, claim: RootClaim) -> bool:
    """Return whether anything but the database says that a board is a claim's.

    That is the record of the claim, made.json of a root, or the host key in a root.
    """
    root, disk = root_of_board(proxy, board.id), disk_of_board(proxy, board.id)
    with suppress(HeteroError):
        kept = proxy.store.kept(board.id)
        if kept and kept.claim.is_same(claim):
            return True
    words = [made.claim for made in (root.made(), disk.made()) if made]
    if token_of(claim) in words or disk.remade(token_of(claim), claim):
        return True
    with suppress(HeteroError, OSError):
        return claim.host_key is not None and root.host_key() == claim.host_key
    return False


def is_made(proxy: RootsNode, claim: RootClaim) -> bool:
    """Return whether a root was made for a claim, by the database or by the claim's own record.

    Both are asked, for the database may be put back from an older backup. A rebuild removes the root from both.
    """
    return bool(claim.image_hash) or (not _is_dry(proxy, claim) and kept_of(proxy, claim) is not None)


def _is_dry(proxy: RootsNode, claim: RootClaim) -> bool:
    """Return whether a claim has no root only because it is in a dry run (check mode) after that of a rebuild."""
    row = proxy.store.record(claim.board).claim
    return row is not None and bool(row.image_hash) and not claim.image_hash


def refuse_anothers(proxy: RootsNode, board: Board, claim: RootClaim | None) -> None:
    """Raise Refused where a board is another instance's than that of the database's claim.

    That is so by its root, here or on its disk, by the file system in the root's file, by a newer record of a claim, or
    by who used its disks last. A board without a claim passes.
    """
    if claim is None:
        return
    _refuse_newer(proxy, board, claim)
    roots = {
        "root": root_of_board(proxy, board.id).made(),
        "root on its disk": disk_of_board(proxy, board.id).made(),
    }
    for root, made in roots.items():
        if made is not None and made.claim != token_of(claim):
            whose = _of(made)
            same = f"its {root} was made for another claim of {whose}"
            what = same if whose == claim.instance else f"its {root} is that of {whose}, not of {claim.instance}"
            raise Refused(what, board.name, THEIRS)
    root_of_board(proxy, board.id).must_be_own(token_of(claim), map(token_of, elsewhere(proxy, board.id)))
    user = user_of(proxy, board)
    if user not in (None, claim.instance, NOBODY_KNOWS):
        what = f"disk {' and '.join(proxy.disks(board))} was used by {user} since, not by {claim.instance}"
        raise Refused(what, board.name, THEIRS)


def elsewhere(proxy: RootsNode, board: int) -> Iterator[RootClaim]:
    """Yield each claim of another board, by the database and by the records of claims."""
    yield from (claim for claim in proxy.store.claims() if claim.board != board)
    yield from (kept.claim for _path, kept in proxy.store.kept_anywhere() if kept.claim.board != board)


def _refuse_newer(proxy: RootsNode, board: Board, claim: RootClaim) -> None:
    """Raise Refused where the board has a record of another claim, newer than this one.

    A record that cannot be read passes, and an older one, which a claim that ended has left.
    """
    try:
        kept = proxy.store.kept(board.id)
    except HeteroError:
        return
    if kept and not kept.claim.is_same(claim) and kept.claim.created > claim.created:
        what = f"it is {kept.claim.instance}'s by the record of its claim, which is newer than {claim.instance}'s"
        raise Refused(what, board.name, THEIRS)


def refuse_to_replace(proxy: RootsNode, board: Board, claim: RootClaim, fresh: bool, told: Made | None = None) -> None:
    """Raise Refused where making a root anew would destroy one that may hold somebody's work.

    :param fresh: whether the root is to be made anew.
    :param told: what made.json of the root is about to say, where it is missing or cannot be read.
    """
    refuse_anothers(proxy, board, claim)
    root = root_of_board(proxy, board.id)
    made, ran = root.made() or told, proxy.store.has_run(claim)
    ready = is_made(proxy, claim)
    cut_off = root.is_half_removed and proxy.store.is_ending(claim)
    if made is None and root.exists() and not cut_off and (ready or not is_asked(proxy, board, claim)):
        what = f"{root.folder} is there, and what it says of whom it was made for cannot be read"
        raise Refused(
            what, board.name, "look at made.json in it; to have it made anew, rebuild or terminate the instance"
        )
    if made is not None and made.whole and fresh:
        refuse_unasked(proxy, board, claim, made)
    if made is not None and fresh and ready and ran:
        found = "is of another image" if made.whole else "is not whole"
        raise Refused(f"{claim.instance} ran from its root, which {found} by its made.json", board.name, OWN)


@dataclass(frozen=True)
class Forgotten:
    """A root that no claim has. It has the fields of a claim, so that its image counts as used."""

    instance: str
    image_hash: str
    image: str = ""


def forgotten(state: str, claims: Iterable[RootClaim]) -> list[Forgotten]:
    """Return a Forgotten for each root below a proxy's state folder that none of these claims has."""
    known = {(token_of(claim), claim.image_hash) for claim in claims}
    there = [made for _board, _folder, made in roots_there(state)]
    return [Forgotten(_of(made), made.image) for made in there if made and (made.claim, made.image) not in known]


def unread_roots(state: str) -> list[str]:
    """Return the folders of roots, also on boards' disks, that are not half removed and do not say whose they are."""
    there = [folder for _board, folder, made in roots_there(state) if made is None]
    disks = os.path.join(state, "disks", "")
    return [folder for folder in there if has_word(folder) or (not folder.startswith(disks) and _is_whole(folder))]


def _is_whole(folder: str) -> bool:
    """Return whether a root's folder holds anything, and its removal was not begun."""
    names = os.listdir(folder) if os.path.isdir(folder) else [MADE]
    return bool(names) and REMOVED not in names


def roots_there(state: str) -> list[tuple[int, str, AnyMade | None]]:
    """Return [(board id, folder, what its made.json says or None)] of all roots, also of those on boards' disks."""
    disks = os.path.join(state, "disks")
    roots = [(*found, made_of(found[1])) for name in (ROOTS, OLDER) for found in _numbered(os.path.join(state, name))]
    return roots + [(board, folder, DiskFiles(disks, board).made()) for board, folder in _numbered(disks)]


def has_word(folder: str) -> bool:
    """Return whether a root's folder has a made.json, whatever it says; a root that is half removed has none."""
    return os.path.lexists(os.path.join(folder, MADE))


def of_token(claim: str) -> tuple[str, float | None]:
    """Return (instance, unix time of its claim) of a text made by token_of; None as the time where it has no number."""
    instance, _blank, created = claim.partition(" ")
    try:
        return instance, float(created)
    except ValueError:
        return instance, None


def _numbered(folder: str) -> list[tuple[int, str]]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [re.fullmatch(rf"{SOURCE}(\d+)", name) for name in names]
    return [(int(name[1]), os.path.join(folder, name[0])) for name in found if name]


def refuse_unasked(proxy: RootsNode, board: Board, claim: RootClaim, made: AnyMade) -> None:
    """Raise Refused where this claim's root is to be made anew, and neither its record nor a dry run asks for that.

    A rebuild removes the image from the database and from the claim's record. Where only the database lacks it, the
    database was put back from an older backup.
    """
    if made.claim == token_of(claim) and not claim.image_hash and not is_asked(proxy, board, claim):
        raise Refused(HAS_ONE.format(name=claim.instance), board.name, FORGOTTEN)


def is_asked(proxy: RootsNode, board: Board, claim: RootClaim) -> bool:
    """Return whether the claim's record, too, says that its root is yet to be made (for a new claim, or a rebuild)."""
    try:
        kept = proxy.store.kept(board.id)
    except HeteroError:
        kept = None
    asked = kept is not None and kept.claim.is_same(claim) and not kept.claim.image_hash
    return asked or _is_dry(proxy, claim)


def refuse_lost(proxy: RootsNode, board: Board, claim: RootClaim) -> None:
    """Raise Refused where the root that an instance ran from, or its file, is missing: a new one would be empty.

    An instance whose end was begun passes: its root went by somebody's word.
    """
    root = root_of_board(proxy, board.id)
    lost = root.folder if not root.exists() else root.file if root.is_file_lost and not root.is_mounted else None
    if not lost or claim.boot_source == DISK or not is_made(proxy, claim) or proxy.store.is_ending(claim):
        return
    if proxy.store.has_run(claim):
        there = [(made.claim, folder) for _board, folder, made in roots_there(proxy.config.state_folder) if made]
        found = [folder for token, folder in there if token == token_of(claim) and folder != root.folder]
        way = LIES_THERE.format(folder=found[0], name=claim.instance) if found else NOT_THERE
        raise Refused(f"{claim.instance} ran from {lost}, which is not there", board.name, way)


def about_to_go(proxy: RootsNode, board: Board, claim: RootClaim) -> str | None:
    """Return a warning, as text, where the file of a mounted root is gone; None where the file is there."""
    root = root_of_board(proxy, board.id)
    lost = claim.boot_source != DISK and root.is_file_lost and root.is_mounted
    return FILE_GONE.format(file=root.file, name=claim.instance) if lost else None


def refuse_forgotten(proxy: RootsNode, board: Board, claim: RootClaim) -> None:
    """Raise Refused where a root or a used disk may be lost that no record of the claim knows of (forgotten_of)."""
    what = forgotten_of(proxy, board, claim)
    if what and not is_asked(proxy, board, claim):
        raise Refused(what, board.name, FORGOTTEN)


def must_never_have_run(proxy: RootsNode, board: Board, claim: RootClaim | None) -> None:
    """Raise Refused where an instance has run in the meantime, or has a root that no record knows of.

    The caller saw earlier that the instance never ran. A board without a claim passes.
    """
    if claim is None:
        return
    if proxy.store.has_run(claim):
        what = f"runs {claim.instance}, or ran it, since it was looked at: nothing of it is taken back"
        raise Refused(what, board.name, "run this again")
    refuse_forgotten(proxy, board, claim)


def _of(made: AnyMade) -> str:
    return made.claim.partition(" ")[0]
