# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from the records of all claims which outlet fed each board last, and of which boards that is not known.

The records are read once and no database is used, so that a wiring that is yet to be written can be checked, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable

from ...core.errors import HeteroError
from ..records.claim_records import Fed
from . import pdu_names
from .doubt import Doubt

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.claim_records import Claim, Kept
    from .board_views import WiredNode


class RecordedFeeds:
    """What the records of a node's claims say of outlets.

    :raises HeteroError: none of them can be looked at.
    """

    _remembered: pdu_names.Remembered | None = None

    def __init__(self, proxy: WiredNode) -> None:
        self.proxy = proxy
        self._kept: dict[int, Kept | None] = {}
        #: {outlet: ids of the boards that it fed last, at whatever PDU}; under None those whose outlet is an address.
        self._fed_by: dict[str | None, set[int]] = {}
        #: Ids of boards whose records are lost, or belied, which any outlet may feed.
        self._lost = self._gone()
        self._read(proxy.store.kept_boards())

    def _gone(self) -> set[int]:
        return {claim.board for claim in self.proxy.store.lost()}

    def _read(self, boards: Iterable[int]) -> None:
        gone: set[int] | None = None  # found out only where it matters, as all records are looked at for that
        for board in boards:
            try:
                kept = self.proxy.store.kept(board)
                if kept and self._is_of_before(kept.claim):
                    kept, lost = None, True
                elif kept:
                    lost = kept.anew or bool(kept.fed and kept.fed.belied)
                else:
                    gone = self._gone() if gone is None else gone
                    lost = board in gone
            except HeteroError as error:
                kept, lost = None, not self._is_stray(board, error)
            self._keep(board, kept)
            (self._lost.add if lost else self._lost.discard)(board)

    def _keep(self, board: int, kept: Kept | None) -> None:
        before = self._kept.get(board)
        if before and before.fed:
            self._fed_by[self._plug(before.fed)].discard(board)
        self._kept[board] = kept
        if kept and kept.fed:
            self._fed_by.setdefault(self._plug(kept.fed), set()).add(board)

    def _plug(self, fed: Fed) -> str | None:
        return pdu_names.plug(fed.outlet) if pdu_names.has_outlets_by_number(self._pdus, fed) else None

    @property
    def _pdus(self) -> pdu_names.Remembered:
        if self._remembered is None:
            self._remembered = pdu_names.Remembered(self.proxy.config.pdus)
        return self._remembered

    def _is_of_before(self, claim: Claim) -> bool:
        """Return whether the record in a board's place is of an earlier claim, and that of the present one is lost."""
        return False

    def _is_stray(self, board: int, error: HeteroError) -> bool:
        """Return whether the unreadable record in a board's place replaced no record of that board."""
        return False

    def kept(self, board_id: int) -> Kept | None:
        """Return a board's record of its claim, or None where there is none, or none that can be read."""
        return self._kept.get(board_id)

    def of(self, board: Board, claim: Claim | None) -> Fed | None:
        """Return the outlet that last fed a board of this claim, or None where that is not known."""
        kept = self._kept.get(board.id)
        return kept.fed if kept and kept.claim.is_same(claim) else None

    def holders(self, board: Board | None, pdu: str, outlet: str) -> dict[int, Kept]:
        """Return {board id: Kept} of boards, of other ones than `board`, that this outlet fed last."""
        fed_by = self._fed_by
        if pdu_names.has_outlets_by_number(self._pdus, Fed(pdu, outlet)):
            candidates = fed_by.get(pdu_names.plug(outlet), set()) | fed_by.get(None, set())
        else:
            candidates = set().union(*fed_by.values())
        found: dict[int, Kept] = {}
        for other in sorted(candidates - ({board.id} if board else set())):
            kept = self._kept[other]
            if kept and kept.fed and not kept.fed.taken and self.may_be_at(kept.fed, pdu, outlet):
                found[other] = kept
        return found

    def unknown(self, board: Board | None = None) -> dict[int, str | None]:
        """Return {board id: its instance, None where that is not known} of other boards that any outlet may feed."""
        return dict.fromkeys(sorted(self._lost - ({board.id} if board else set())))

    def is_unknown(self, board: Board) -> bool:
        """Return whether any outlet may feed a board."""
        return board.id in self._lost

    def is_at(self, fed: Fed, pdu: str, outlet: str) -> bool:
        """Return whether a noted outlet is this one, whatever its PDU is called now."""
        return pdu_names.is_at(self._pdus, fed, pdu, outlet)

    def may_be_at(self, fed: Fed, pdu: str, outlet: str) -> bool:
        """Return whether a noted outlet may be this one.

        Where only one of two settings of one host names a port, that is not certain.
        """
        return pdu_names.may_be_at(self._pdus, fed, pdu, outlet)

    def names(self, fed: Fed) -> list[str]:
        """Return the names that an outlet's PDU has now, its own first; none where it is gone."""
        return pdu_names.now(self._pdus, fed)

    def doubt(self, board: Board, claim: Claim | None) -> Doubt | None:
        """Return the Doubt of a board; None where its wiring names the known outlet, or nothing speaks against it."""
        pdu, outlet = self.proxy.outlet(board)
        known, holders = self.of(board, claim), self.holders(board, pdu, outlet)
        is_good = known is not None and not (known.taken or known.belied)
        proven = known is not None and is_good and self.is_at(known, pdu, outlet)
        unknown = {} if proven else self.unknown(board)
        as_known = proven or known is None
        if as_known and not holders and not unknown:
            return None
        return Doubt(self, board, claim, Fed(pdu, outlet), None if as_known else known, holders, unknown)
