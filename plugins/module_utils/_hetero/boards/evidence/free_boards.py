# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell when a board is free, and free it: for all callers, this is the one place where a board leaves its claim.

This file looks only at records and at what is left of the board on this proxy. verbs/release.py switches boards off and
cleans them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...roots.misplaced_roots import misplaced
from ...roots.ownership import whose_archive, whose_root
from ...roots.provision import leftovers
from ...site import board_states
from ...tftp.board_folder import BoardFiles
from ..records import console_logs
from ..records.board_records import NOBODYS
from ..records.disk_records import unwiped, used
from ..records.lost_database import in_use_since
from .changed_addresses import changed_address

if TYPE_CHECKING:
    from ...roots.proxy_node import Numbered
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

RECONCILE = f"({play('reconcile')})"
#: The remedy for a board that is somebody's by that, and that nobody has by the database.
ADOPT_OR_CLEAN = (
    f"have {play('reconcile')} adopt it, or say by which word it does; or clean what nobody wants: "
    "modules tilera_boot with state=stopped, then board_image with state=absent"
)
#: Of a board of which nothing else is known, on a node of which nothing tells that anybody had a board by then.
SERVED = "is made ready for somebody ({files}), and nothing here tells of whom"
#: The remedy for it.
MOUNT_OR_CLEAN = (
    "see that the file system of {folder} is mounted; or clean what nobody wants: module board_image with state=absent"
)
#: The hint for a used disk of a board without a claim: a tenant may still want it, so only an operator has it wiped.
WIPE = f"({play('repair', node='{board}')} wipes it)"


def left_by(proxy: Proxy, board: Board, record: Record) -> str | None:
    """Return why a board without a claim in the database is not free, by what else lies here; None where it is free.

    A record of its being out of use, a root, or the record of a claim keeps it from being free, for the database may be
    older.
    """
    if record.claim is not None:
        return None
    out = proxy.store.out_of_use(board.id)
    if out and out.state != record.state:
        anothers = proxy.store.anothers_out_of_use(board.id)
        return anothers or f"is in {out.state} by its own record: {out.reason} {RECONCILE}"
    return unknown_tenant(proxy, board)


def unknown_tenant(proxy: Proxy, board: Numbered) -> str | None:
    """Return whose a board without a claim in the database is, by its root or the record of a claim, or None."""
    whose = whose_root(proxy, board) or whose_archive(proxy, board)
    if whose:
        anothers = misplaced(proxy, board.id)
        if anothers:
            return f"{anothers.thing} {anothers.what} {RECONCILE}"
        return f"has the root of {whose}, of which no claim is known {RECONCILE}"
    try:
        kept = proxy.store.kept(board.id)
    except HeteroError as error:
        return f"{error} {RECONCILE}"
    if kept is None or not kept.is_somebodys:
        return None
    return f"is {kept.claim.instance}'s by the record of its claim, and no claim is known {RECONCILE}"


def is_older(proxy: Proxy, board: Board) -> bool:
    """Return whether what a board without a claim is served was made before all claims that are known here.

    The state folder may be one under a file system that is not mounted, and its tenant be on that; what others claimed
    in it since then tells nothing of him.
    """
    since = in_use_since(proxy)
    if since is None:
        return True
    try:
        return os.lstat(BoardFiles(proxy.config.tftp_root, board.ip).folder).st_mtime < since
    except OSError:
        return False


def served(proxy: Proxy, board: Board) -> Refused | None:
    """Return the error that a board without a claim has boot files older than all known claims (is_older), or None."""
    files = BoardFiles(proxy.config.tftp_root, board.ip)
    with suppress(HeteroError):  # who may not read that folder switches nothing either
        names = ", ".join(map(files.path, files.names()))
        if names and is_older(proxy, board):
            remedy = MOUNT_OR_CLEAN.format(folder=proxy.config.state_folder)
            return Refused(SERVED.format(files=names), board.name, remedy)
    return None


def told_if_served(proxy: Proxy, board: Board) -> str | None:
    """Return the error of `served` as a text behind the board's name, with the way out; None where there is none."""
    made_ready = served(proxy, board)
    return f"{made_ready.what}: {made_ready.remedy}" if made_ready else None


def refuse_somebodys(proxy: Proxy, board: Board, whose: str | None) -> None:
    """Raise Refused for a board without a claim that may be somebody's, by `whose` (else None) or by its boot files."""
    if whose:
        raise Refused(whose, board.name, ADOPT_OR_CLEAN)
    made_ready = served(proxy, board)
    if made_ready:
        raise made_ready


def somebodys(proxy: Proxy, board: Board, record: Record) -> str | None:
    """Return why a board without a claim in the database is not free, also by outlet, disks and boot files; else None.

    For a board in state error or maintenance these are not looked at: its note says more.
    """
    why = left_by(proxy, board, record)
    if why or record.claim is not None or record.state != board_states.POWER_OFF:
        return why
    if record.power == "on":
        return f"its outlet was last seen on, and nobody has it {RECONCILE}"
    disks = used(proxy, board)
    if disks:
        return f"{disks[0]} {WIPE.format(board=board.name)}"
    changed = changed_address(proxy, board)
    return f"{changed.what} {RECONCILE}" if changed else told_if_served(proxy, board)


def in_the_way(proxy: Proxy, board: Board) -> list[str]:
    """Return the reasons why a board cannot be given back yet; an empty list when it is off and nothing is left."""
    record = proxy.store.record(board.id)
    texts: list[str] = []
    if record.state not in (board_states.POWER_OFF, board_states.SHUTTING_DOWN):
        texts.append(f"it is in state {record.state!r}")
    if record.power is None:
        texts.append("its outlet was not looked at since the claim")
    elif record.power != "off":
        texts.append("its outlet was last seen on")
    return texts + list(leftovers(proxy, board)) + unwiped(proxy, board)


def give_back(
    proxy: Proxy,
    board: Board,
    claim: Claim | None,
    thing: str,
    remedy: str,
    on: bool = False,
    out_of_use: str | None = None,
) -> None:
    """Make a board free; the caller holds its lock.

    :param claim: the claim that ends, None for a board that nobody has.
    :param thing: the name in an error: the board, or the instance that has it.
    :param on: allow a board to be on that never had power for its claim; it goes out of use (boot/stops.py).
    :param out_of_use: why nobody is to get the board, which is in error from then on; None for a sound one.
    :raises Refused: the board is not off or not clean, or has another claim by now.
    """
    left_on = claim if on and claim is not None and is_left_on(proxy, board, claim) else None
    texts = leftovers(proxy, board) if left_on else in_the_way(proxy, board)
    if texts:
        board_name = "" if thing == board.name else f"{board.name} "
        raise Refused(f"{board_name}is not clean: {'; '.join(texts)}", thing, remedy)
    proxy.store.release(board.id, claim, NOBODYS.format(name=left_on.instance) if left_on else out_of_use)
    console_logs.ended(proxy.config, board, claim.instance if claim else None)


def is_left_on(proxy: Proxy, board: Board, claim: Claim | None) -> bool:
    """Return whether a board was last seen on, but never switched on for its claim: others may be at work there.

    The claim's instance never wrote to the board's disks, so they are not wiped either.
    """
    return claim is not None and proxy.store.record(board.id).power == "on" and not proxy.store.had_power(claim)
