# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which board an instance may move to: one that its flavor fits, that its image boots on, and that is free.

verbs/migration.py moves it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Collection, Mapping

from ...core.errors import HeteroError, NoneFree, Refused
from ...core.plays import play
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT
from ...drivers.boot.registry import BootDrivers
from ...images.choice import check_arch, check_delivery, image_of
from ...roots.moved_root import must_be_renamable
from ...roots.ownership import why_not_of
from ...roots.recorded_boards import is_recorded
from ...scheduling.fit import describe, rejections, summary
from ...site import board_states
from ..evidence.free_boards import somebodys
from ..power.last_outlet import Feeds
from ..records.board_health import FULL
from ..records.disk_records import used
from ..records.store import why_not_free
from ..records.suspect_boards import is_suspect
from .board_fit import ClaimRequest
from .board_queue import BoardQueue

if TYPE_CHECKING:
    from ...images.store import Image
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

ON_ITS_DISK = "{name} has its root on {board}'s own disk, which stays with the board, so it cannot move"
WROTE = "{name} may have written to {board}'s own disk {disks}, and that would stay with the board, so it cannot move"
COPY = (
    "ask for another instance ({ask}), copy there what is needed (rsync over ssh), then end this one "
    f"({play('terminate_instance', instance='{name}')})"
)
NONE_FREE = "{name} is to move to {board} that fits {fits}: none is free. It stays where it is."
NO_ROOT = "{name} has no root yet, so there is nothing that could move"
ASK_ANEW = f"terminate it ({play('terminate_instance', instance='{name}')}), and ask for it with -e board=N"


def must_be_movable(proxy: Proxy, claim: Claim, board: Board, check: bool) -> None:
    """Raise Refused where what an instance has cannot move to another board: only a root on the proxy can.

    :param board: its board, with its root.
    """
    name = claim.instance
    ask = play("provision_instance", instance="OTHER", flavor=claim.flavor.get("name"))
    copy = COPY.format(ask=ask, name=name)
    if claim.boot_source == DISK_ROOT:
        raise Refused(ON_ITS_DISK.format(name=name, board=board.name), name, copy)
    if not claim.image_hash:
        raise Refused(NO_ROOT.format(name=name), name, ASK_ANEW.format(name=name))
    if used(proxy, board):
        disks = " and ".join(proxy.disks(board)) or "that was named for it"
        raise Refused(WROTE.format(name=name, board=board.name, disks=disks), name, copy)
    why = why_not_of(proxy, board, claim, check)
    if why:
        raise Refused(f"{name} cannot move: {why}", board.name, play("reconcile"))
    must_be_renamable(proxy, board)


def target_of(proxy: Proxy, claim: Claim, wanted: int | None = None) -> Board:
    """Return the board that an instance may move to; of several the one that failed least.

    One that is kept for it already, by a move that was killed, comes first.

    :param wanted: the id of the one board that is wanted; None for any.
    :raises NoneFree: there is none; the text says why each was refused.
    """
    pool = [proxy.board(wanted)] if wanted is not None else [proxy.boards[id] for id in sorted(proxy.boards)]
    pool = [board for board in pool if board.id != claim.board]
    image, records = image_of(proxy, claim), proxy.store.records([board.id for board in pool])
    rejected = {board.name: _unfit(proxy, claim, board, image) for board in pool}
    fit = [board for board in pool if not rejected[board.name]]
    kept = {one.id for one in fit if is_kept(records[one.id], claim.instance) and not is_recorded(proxy, one.id)}
    feeds = Feeds(proxy)
    busy = {board.name: None if board.id in kept else why_taken(feeds, board, records[board.id]) for board in fit}
    busy.update(Others(proxy, claim).held(busy, {board.name for board in fit if board.id in kept}))
    rejected.update({name: [why] for name, why in busy.items() if why})
    scores = proxy.store.scores()
    free = [board for board in fit if not rejected[board.name]]
    if not free:
        lines = summary(rejected) or ["the boards file names no other board"]
        board = f"board{wanted}" if wanted is not None else "another board"
        fits = describe(str(claim.flavor.get("name")), claim.flavor)
        none = NONE_FREE.format(name=claim.instance, board=board, fits=fits)
        text = "\n".join([none, *(f"  {line}" for line in lines)])
        raise NoneFree(text, rejected=rejected, rejected_lines=lines)
    return min(free, key=lambda board: (board.id not in kept, -scores.get(board.id, FULL), board.id))


def is_kept(record: Record, name: str) -> bool:
    """Return whether a board is kept for an instance that moves."""
    return record.claim is None and board_states.is_kept_for(record.state, record.note, name)


def why_taken(feeds: Feeds, board: Board, record: Record) -> str | None:
    """Return why a board is not free for an instance that moves, in words; None for one that is."""
    why = why_not_free(record, time.time()) or somebodys(feeds.proxy, board, record)
    if why:
        return why
    try:
        return feeds.feeds_another(board)
    except HeteroError as error:
        return str(error)


def _unfit(proxy: Proxy, claim: Claim, board: Board, image: Image) -> list[str]:
    why = rejections(claim.flavor, board)
    try:
        check_arch(board, image)
        check_delivery(proxy, board, image, BootDrivers(proxy).means(board), NFS_ROOT)
    except HeteroError as error:
        why = why or [error.what]
    return why


class Others:
    """What others are to get who wait, or have reserved it, beside an instance that moves.

    Its look at what they want is made here, before a transaction keeps others waiting.
    """

    def __init__(self, proxy: Proxy, claim: Claim) -> None:
        self._proxy, self._claim = proxy, claim
        self._queue = _Queue(proxy, claim.instance)
        self._queue.look()

    def held(self, busy: Mapping[str, str | None], kept: Collection[str] = ()) -> dict[str, str]:
        """Return {board name: why} of free boards that others are to get.

        An instance whose board failed goes before all who wait.

        :param busy: {board name: why it is not free, None for a free one}.
        :param kept: boards that are kept for the instance already, which are its own.
        """
        claim, queue = self._claim, self._queue
        terms = (claim.instance, claim.owner, claim.flavor, claim.image, claim.ssh_public_key)
        failed = is_suspect(self._proxy.store.record(claim.board))
        held = queue.held(ClaimRequest(*terms, move=failed), busy)[0]
        free = [name for name, why in busy.items() if why is None and name not in held and name not in kept]
        return {**held, **queue.kept_from(claim.owner, claim.expires, free)}


class _Queue(BoardQueue):
    """Those who wait beside an instance that moves, which counts as one that lacks a board, although it has one."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        super().__init__(proxy)
        self._name = name

    def _missing(self, request: ClaimRequest) -> Collection[str]:
        return request.instances if request.request == self._name else super()._missing(request)
