# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What adoption uses of a board that reconcile looks at; work/looks.py does the looking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Protocol

from ..power.board_views import Sight

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.errors import Refused
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim, Kept


class LookedWork(Protocol):
    """A board, its record, and the error that contradicts its claim."""

    record: Record
    contradiction: Refused | None

    @property
    def board(self) -> Board: ...
    @property
    def change(self) -> Change: ...
    @property
    def claim(self) -> Claim | None: ...

    def read(self) -> None:
        """Read the board's record."""

    def note(self, thing: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Note a change; True if it is to be done now."""


class LookedBoard(Sight, Protocol):
    """What was seen of a board, and what follows from it."""

    kept: Kept | None
    settled: bool

    @property
    def work(self) -> LookedWork: ...
