# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name the boards that were last fed by the outlet that a wiring names: those that certainly were, or, where there are
none, those that may have been. last_outlet.py decides what follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping

from . import pdu_names

if TYPE_CHECKING:
    from ..records.claim_records import Fed, Kept
    from .board_views import WiredNode

HELD = ", by which {names} had power last"
MAY_HOLD = ", by which {names} may have had power last: {why}"
NO_ADDRESS = "{hosts} {has} no address just now"
MAY_BE = "{outlets} may be the same outlet"
RESOLVE = (
    "nothing is switched: have {hosts} resolved on the proxy node, by its name server or a line in /etc/hosts, and run "
    "this again"
)
#: Most boards of unknown outlets that a text names.
MOST_NAMED = 3


class Holding:
    """The boards that had their power last by an outlet.

    :param new: the outlet that a wiring names.
    :param holders: {board id: Kept} (recorded_feeds.py).
    """

    def __init__(self, proxy: WiredNode, new: Fed, holders: Mapping[int, Kept]) -> None:
        self.holders = holders
        self._feds = {board: kept.fed for board, kept in holders.items() if kept.fed}
        #: {id of a board that may be fed by it: host names that have no address just now}.
        self._guessed = {
            board: pdu_names.unresolved(proxy.config.pdus, fed, new.pdu, new.outlet)
            for board, fed in self._feds.items()
            if not pdu_names.is_at(proxy.config.pdus, fed, new.pdu, new.outlet)
        }

    @property
    def is_unresolved(self) -> bool:
        """Return whether all of them are uncertain only because host names have no address just now."""
        return bool(self.holders) and all(self._guessed.get(board) for board in self.holders)

    @property
    def remedy(self) -> str:
        """Return what a person does where is_unresolved is true."""
        return RESOLVE.format(hosts=" and ".join(self._hosts))

    @property
    def _hosts(self) -> list[str]:
        return sorted({host for hosts in self._guessed.values() for host in hosts})

    def __str__(self) -> str:
        sure = [board for board in self.holders if board not in self._guessed]
        text = HELD.format(names=self._names(sure)) if sure else ""
        if self._guessed:
            text += MAY_HOLD.format(names=self._names(self._guessed), why=self._why)
        return text

    @property
    def _why(self) -> str:
        hosts, has = self._hosts, "has" if len(self._hosts) == 1 else "have"
        others = [self._feds[board].name for board, found in self._guessed.items() if not found]
        texts = [NO_ADDRESS.format(hosts=" and ".join(hosts), has=has)] if hosts else []
        return ", and ".join(texts + ([MAY_BE.format(outlets=" and ".join(others))] if others else []))

    def _names(self, boards: Iterable[int]) -> str:
        return " and ".join(f"{self.holders[board].claim.instance} on board{board}" for board in boards)


def named(boards: Mapping[int, str | None]) -> str:
    """Return the names of the first few boards and their instances, for people."""
    names = [f"{name} on board{board}" if name else f"board{board}" for board, name in boards.items()]
    return " and ".join(names[:MOST_NAMED] + ([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []))
