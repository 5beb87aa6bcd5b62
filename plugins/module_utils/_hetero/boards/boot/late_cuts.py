# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a board once more directly before its power is cut, where what it is judged by was seen a while ago.

A PDU whose only session others have is waited for (power/pdu_loop.py), and a session without requests ends while a
board is looked at (power/pdu_line.py). What comes up meanwhile must not be cut. One look for each cut, in the session
that is to switch the outlet: so nothing is looked at for ever, and nobody gets in between.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Callable

from ...core.errors import HeteroError
from ..power import presence
from ..power.pdu_loop import PduLoop
from .boot_progress import BOOTING
from .used_root import may_be_used

if TYPE_CHECKING:
    from .boot_progress import Answer, Boot

#: Seconds for which what was seen of a board counts: a PDU that nobody else has is logged in to and read in less, also
#: one that takes 0.2 s for each screen.
FRESH = 5.0
#: The error of a board that is left as it is for that.
UNSEEN = "{board}: could not be looked at before its power was to be cut: {error}"
MOUNTED = "it did not answer in its time, and has mounted its root while its PDU was waited for"


class LateCuts(PduLoop):
    """A loop that cuts the power of boards by what it saw of them."""

    @abstractmethod
    def _on_answer(self, boot: Boot, answer: Answer, at: float) -> None:
        """Go on with a boot whose board proved its key, or did not."""

    @abstractmethod
    def _leave_on(self, boot: Boot, note: str) -> None:
        """Leave a board on where its tenant may be at work."""

    @abstractmethod
    def _found_in_use(self, boot: Boot, shown: str, used: bool) -> None:
        """Decide anew about a board that was found on, and shows more now than when it was to be cut."""

    @abstractmethod
    def _undo_note(self, boot: Boot) -> None:
        """Forget that a board was to be cut which was not."""

    def _last_look(self, boot: Boot) -> Callable[[], bool] | None:
        """Return a function that tells, in a session's thread, whether a board is still to be cut.

        None where the board is to be cut whatever it shows.
        """
        if boot.answered_at is None:
            return None
        return partial(self._is_still_to_be_cut, boot, boot.answered_at, boot.work.ran)

    def _is_still_to_be_cut(self, boot: Boot, judged_at: float, ran: bool) -> bool:
        if time.monotonic() - judged_at <= FRESH:
            return True
        try:
            if boot.tries:  # of this call's boot
                used = ran and boot.work.driver.has_root(boot.board)
            else:
                used = boot.root_at is not None and may_be_used(boot.work, *boot.since)
            shown = presence.shown(boot.work)
        except (HeteroError, OSError) as error:
            self._post(self._on_unseen, boot, error)
            return False
        if not self._spares(boot, shown, used):
            return True
        self._post(self._on_spared, boot, shown, used)
        return False

    def _spares(self, boot: Boot, shown: str, used: bool) -> bool:
        """Return whether a board is not to be cut by what is seen of it now.

        A board that this call has switched on had its time to boot: only its key, or signs of its tenant in its root,
        spare it now. What shows as little as when it was judged is not spared.
        """
        more = shown not in (presence.SILENT, boot.probe)
        return used or shown == presence.OWN_KEY or (not boot.tries and more)

    def _on_unseen(self, boot: Boot, error: HeteroError | OSError) -> None:
        """Leave a board as it is that could not be looked at."""
        if not boot.work.over:
            if not boot.tries:
                self._undo_note(boot)
            boot.work.fail(None, UNSEEN.format(board=boot.board.name, error=error))

    def _on_spared(self, boot: Boot, shown: str, used: bool) -> None:
        if boot.work.over:
            return
        boot.doomed = boot.then = None
        if not boot.tries:
            self._found_in_use(boot, shown, used)
        elif shown == presence.OWN_KEY:
            boot.stage = BOOTING
            self._on_answer(boot, True, time.monotonic())
        else:
            self._leave_on(boot, MOUNTED)
