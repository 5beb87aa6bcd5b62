# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring that is about to be written against the records of claims: by which outlets boards in use have power.

It is written all the same, for no verb switches what is in doubt (boards/power/last_outlet.py); who wrote it is to read
so now.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...boards.power.pdu_names import address
from ...boards.power.recorded_feeds import RecordedFeeds
from ...boards.records.claim_records import FOLDER, ClaimRecords, Fed
from ...core.errors import HeteroError
from ...site.proxy_config import ProxyConfig, Wire, read_config

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim, Kept
    from ...core.findings import Findings
    from ...site.boards_file import Board
    from .setup_plan import Plan


class Planned:
    """A proxy as it is about to be, as far as power/last_outlet.py asks: its PDUs, its wiring, its records of claims.

    A record that cannot be read is reported once, and casts no doubt on the other boards' outlets.
    """

    def __init__(self, plan: Plan, boards: Sequence[Board]) -> None:
        self.boards = {board.id: board for board in boards}
        self.unreadable: dict[int, HeteroError] = {}  # by board id
        self.config = ProxyConfig(pdus=plan.pdus)
        self.store = self
        self._wiring, (self._before, self._pdus) = plan.wiring, _before(plan)
        self._records = ClaimRecords(os.path.join(plan.state_folder, FOLDER))

    def kept_boards(self) -> list[int]:
        return self._records.boards()

    def kept(self, board: int) -> Kept | None:
        """Return a board's record; one that names no outlet, and whose instance ran, gets that of the wiring here."""
        try:
            kept, wire = self._records.read(board), self._before.get(str(board), Wire())
        except HeteroError as error:
            self.unreadable[board] = error
            return None
        if kept and kept.ran and kept.fed is None and wire.fed:
            pdu, outlet = wire.fed
            fed = Fed(pdu, outlet, address(self._pdus.get(pdu, {})))
            kept = replace(kept, fed=fed)
        return kept and replace(kept, anew=False)

    def lost(self) -> list[Claim]:
        """Return no claim: the set-up knows none but by its record."""
        return []

    def outlet(self, board: Board) -> tuple[str, str]:
        wire = self._wiring[str(board.id)]
        return wire["pdu"], str(wire["outlet"])

    def is_wired(self, board: Board) -> bool:
        return "outlet" in self._wiring.get(str(board.id), {})


def contradictions(plan: Plan, boards: Sequence[Board], found: Findings) -> None:
    """Report a note for each board whose outlet is to be another than it has power by, or one by which another has."""
    try:
        planned = Planned(plan, boards)
        feeds = RecordedFeeds(planned)
    except HeteroError as error:
        found.note(error.thing, error.what, error.remedy)
        return
    for unread in planned.unreadable.values():
        found.note(unread.thing, unread.what, unread.remedy)
    for board in boards:
        kept = feeds.kept(board.id)
        if planned.is_wired(board):
            doubt = feeds.doubt(board, kept.claim if kept else None)
            if doubt:
                found.note(board.name, str(doubt), doubt.remedy)
        elif kept and kept.fed:
            what = f"no outlet feeds it any more, and {kept.claim.instance} had its power by {kept.fed.name} last"
            found.note(board.name, f"{what}: no verb can switch it", "name its pdu and outlet in tftp_proxy_boards")


def _before(plan: Plan) -> tuple[Mapping[str, Wire], Mapping[str, Mapping[str, Any]]]:
    """Return the wiring that is there, and its PDUs; none if the machine is set up for the first time or its file is
    wrong.
    """
    try:
        config = read_config(plan.config)
    except HeteroError:
        return {}, {}
    return config.boards, config.pdus
