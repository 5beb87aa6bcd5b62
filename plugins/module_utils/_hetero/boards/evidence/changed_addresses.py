# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell when the boards file gives a board in use another address or number than the one it is served at.

A board's boot files lie in a folder that is named for its address, and its root is exported to that address. While an
instance may be at work, they are not moved to another address, which may be another tenant's board by now.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Iterator

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...roots.board_parts import nfs_server_of, root_of_board
from ...tftp.kernels_by_hand import names
from ..records import at_rest

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

SERVED = "what {name} on board{number} boots from lies for {old}, and the boards file {says}"
GIVES, GONE = "gives that board {new}", "does not name that board"
CHANGE = (
    "nothing is touched: correct the boards file; or, where it is right, put the earlier row back, stop {name} "
    f"({play('stop_instance', instance='{name}')}), and change the row then"
)
FORGET = (
    "nothing is touched: correct the boards file; or, where board{number} is gone for good, "
    f"{play('reconcile', forget='{name}')} ends {{name}}'s claim"
)
KERNEL = re.compile(r"vmlinux_(\d+)")
#: In a block of `listed_once` {TFTP root: what _folders returned of it}, of those that were looked at.
_LISTED: ContextVar[dict[str, dict[str, str]] | None] = ContextVar("listed", default=None)


def refuse_changed(proxy: Proxy, board: Board) -> None:
    """Raise the error of changed_address, where there is one."""
    error = changed_address(proxy, board)
    if error:
        raise error


def changed_address(proxy: Proxy, board: Board, power: str | None = None) -> Refused | None:
    """Return why a board is not touched: it, or another one at its address, may be at work and is served elsewhere.

    :param power: the state of the board's outlet as it was just seen, of which "off" is enough; None for the record's.
    """
    for number in (board.id, *_kernels(proxy, board)):
        name = at_work(proxy, number, power if number == board.id else None)
        old = served_elsewhere(proxy, number) if name else None
        if old and (number == board.id or old == board.ip):
            known = proxy.boards.get(number)
            says, way = (GIVES.format(new=known.ip), CHANGE) if known else (GONE, FORGET)
            what = SERVED.format(name=name, number=number, old=old, says=says)
            return Refused(what, board.name, way.format(name=name, number=number))
    return None


def address_at_work(proxy: Proxy, board: Board) -> str:
    """Return the address at which a board is served: that of the boards file only where nobody may be at work."""
    return (at_work(proxy, board.id) and served_elsewhere(proxy, board.id)) or board.ip


def served_elsewhere(proxy: Proxy, number: int) -> str | None:
    """Return the address for which a board's export or boot files lie, where the boards file does not give it that."""
    known, root = proxy.boards.get(number), root_of_board(proxy, number)
    server = nfs_server_of(proxy)
    own = known.ip if known else None
    client = server.client(server.mounted_as(number, root.path))
    if client:
        return client if client != own else None
    tftp_root, kernel = proxy.config.tftp_root, names(number)[0]
    if (own and _is_file(os.path.join(tftp_root, own, kernel))) or not os.path.isdir(tftp_root):
        return None
    listed = _LISTED.get()
    if listed is None:
        return min((name for name in os.listdir(tftp_root) if _is_file(f"{tftp_root}/{name}/{kernel}")), default=None)
    if tftp_root not in listed:
        listed[tftp_root] = _folders(tftp_root)
    return listed[tftp_root].get(kernel)


@contextmanager
def listed_once() -> Iterator[None]:
    """List the folders of the TFTP root once for all boards that this thread looks at in the block.

    Their locks are held by now, so that no other verb serves them elsewhere meanwhile.
    """
    before = _LISTED.set({})
    try:
        yield
    finally:
        _LISTED.reset(before)


def _folders(tftp_root: str) -> dict[str, str]:
    """Return {file name of a kernel: the first folder by name where it lies}."""
    found: dict[str, str] = {}
    for folder in sorted(os.listdir(tftp_root), reverse=True):
        with suppress(OSError), os.scandir(os.path.join(tftp_root, folder)) as entries:
            for entry in entries:
                if KERNEL.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found[entry.name] = folder
    return found


def _kernels(proxy: Proxy, board: Board) -> Iterator[int]:
    """Yield the ids of the other boards whose kernels lie at a board's address."""
    folder = os.path.join(proxy.config.tftp_root, board.ip)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        kernel = KERNEL.fullmatch(name)
        if kernel and int(kernel[1]) != board.id and _is_file(os.path.join(folder, name)):
            yield int(kernel[1])


def _is_file(path: str) -> bool:
    """Return whether a board's own file lies there, and no link to one that was put into the TFTP root by hand."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def at_work(proxy: Proxy, number: int, power: str | None = None) -> str | None:
    """Return the instance that may be at work on a board, which is not at rest by the database, or by the claim's own
    record; None where none may be.

    :param power: see changed_address.
    """
    if power == "off":
        return None
    record, kept = proxy.store.record(number), None
    with suppress(HeteroError):
        kept = proxy.store.kept(number)
    if at_rest.is_at_rest(record, kept, power):
        return None
    claim = record.claim or (kept and kept.claim)
    return claim.instance if claim else None
