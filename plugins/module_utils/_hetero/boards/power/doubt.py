# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board whose wiring names an outlet that may feed another tenant's board: what proves that it does not, and the
error where nothing proves it. last_outlet.py asks the PDUs and decides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Mapping, Protocol, Tuple

from ...core.plays import play
from .outlet_holder import Holding, named

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.claim_records import Claim, Fed, Kept
    from .board_views import WiredNode

#: {PDU name: (its outlets and their states, why it did not answer)}, as outlet_power.statuses returns it.
Answers = Mapping[str, Tuple[Mapping[str, str], object]]

#: Of a wiring that names the outlet which was belied; {name} is the instance.
LIVED_ON = ", and {name} lived on while that was off"
REPLUG = (
    "nothing is switched: look at its plug, and have it where the wiring says, or correct tftp_proxy_boards and run "
    f"{play('proxy')} ({play('cabling')} says what the outlets of free boards feed); then "
    f"{play('reconcile', adopt='{name}')} takes the wiring's word"
)
PROVED_WRONG = "{name} lived on while {outlet} was off"
LAST_BY = ", and {name} had its power by {old} last{state}"
MAY_FEED = ", which may feed {names}: the record of what feeds {that} is lost, cannot be read or proved wrong"
REWIRED = "rewired: was {old}, is {new}"
CORRECT = (
    f"nothing is switched: correct tftp_proxy_boards and run {play('proxy')} ({play('cabling')} says what the outlets "
    "of free boards feed)"
)
WORD = (
    f"; where it was plugged elsewhere, {play('reconcile')} notes that once the board runs and its old outlet is off, "
    f"and {play('reconcile', adopt='{name}')} takes the wiring's word"
)
PLUGGED = (
    "; where {names} had the plug moved, name the outlet there of {names}, too: "
    f"{play('reconcile', adopt='{adopt}')} takes the wiring's word for that"
)
BELIED = "; {names} answers while the outlet of its wiring is off, so no word is taken for that wiring"
ANEW = (
    f"nothing is switched: once it is known that the wiring is right ({play('cabling')} says what the outlets of free "
    f"boards feed), {play('reconcile', adopt='{names}')} takes its word; where a record cannot be read, it is written "
    "anew first: run it twice"
)
GONE = (
    "; board{board} is not in the boards file: add it, or, where it is gone for good, "
    f"{play('reconcile', forget='{name}')} lets go of it"
)
NOBODYS = "; remove the record of {boards} once it is known that nobody has {boards}"


class FeedNames(Protocol):
    """What this file uses of a RecordedFeeds: the node, and the names that an outlet's PDU has now."""

    @property
    def proxy(self) -> WiredNode: ...
    def names(self, fed: Fed) -> list[str]: ...


class Doubt:
    """The doubt about a board whose wiring names an outlet that may feed another tenant's board.

    :param new: the outlet that the board's wiring names.
    :param old: the outlet that fed the board last, where that is another one; else None.
    :param holders: {board id: Kept} of boards that the new outlet fed last.
    :param unknown: {board id: instance} of boards that any outlet may feed.
    """

    def __init__(
        self,
        feeds: FeedNames,
        board: Board,
        claim: Claim | None,
        new: Fed,
        old: Fed | None,
        holders: Mapping[int, Kept],
        unknown: Mapping[int, str | None],
    ) -> None:
        self.board, self.claim, self.new, self.old, self.holders = board, claim, new, old, holders
        self.unknown, self._boards = unknown, feeds.proxy.boards
        #: Ids of those boards in doubt that answer although the outlet of their wiring is off.
        self.alive: list[int] = []
        self._holding = Holding(feeds.proxy, new, holders)
        self._old_pdu = next(iter(feeds.names(old)), None) if old else None
        self._new_power: str | None = None
        self._old_power: str | None = None

    @property
    def pdus(self) -> set[str]:
        """Return the names of the PDUs that must be asked."""
        return {self.new.pdu, self._old_pdu or self.new.pdu}

    def see(self, answers: Answers) -> None:
        """Record what the PDUs answered."""
        self._new_power = answers[self.new.pdu][0].get(self.new.outlet)
        if self.old and self._old_pdu:
            self._old_power = answers[self._old_pdu][0].get(self.old.outlet)

    @property
    def _is_belied(self) -> bool:
        """Return whether the outlet that the wiring names is the one that the board was seen not to need."""
        return bool(self.old and self.old.belied and self._old_place == (self.new.pdu, self.new.outlet))

    @property
    def _old_place(self) -> tuple[str, str] | None:
        return (self._old_pdu or self.old.pdu, self.old.outlet) if self.old else None

    @property
    def _is_elsewhere(self) -> bool:
        """Return whether its old outlet is known to feed another board, or not this one, whatever its state."""
        return self.old is not None and (bool(self.old.taken) or (self.old.belied and not self._is_belied))

    @property
    def _old_is_dead(self) -> bool:
        """Return whether the board has no power by its old outlet."""
        return self.old is not None and (self._is_elsewhere or self._old_power == "off")

    @property
    def is_off(self) -> bool:
        """Return whether all outlets that may feed the board are off, so that it can be switched on without harm."""
        return self.is_off_by_wiring and (self._old_is_dead or self._old_pdu is None)

    @property
    def is_off_by_wiring(self) -> bool:
        """Return whether the outlet that the board's wiring names was seen off."""
        return self._new_power == "off"

    @property
    def key_proves(self) -> bool:
        """Return whether the board's own key, shown now, proves the new outlet."""
        return self._new_power == "on" and self._old_is_dead and not self.holders and not self.unknown

    @property
    def rewired(self) -> str:
        """Return the text that the new outlet is known to feed the board."""
        if self._is_belied:
            return PROVED_WRONG.format(name=self._who, outlet=self.new.name)
        return REWIRED.format(old=self._old_name, new=self.new.name)

    def __str__(self) -> str:
        text = f"its wiring names {self.new.name}{f' ({self._new_power})' if self._new_power else ''}"
        text += str(self._holding)
        if self.unknown:
            text += MAY_FEED.format(names=named(self.unknown), that="it" if len(self.unknown) == 1 else "them")
        if self._is_belied:
            text += LIVED_ON.format(name=self._who)
        elif self.old:
            text += LAST_BY.format(name=self._who, old=self._old_name, state=self._state_of(self.old))
        return text

    @property
    def _who(self) -> str:
        """Return the board's instance, or the board's name where nobody has it."""
        return self.claim.instance if self.claim else self.board.name

    @property
    def _old_name(self) -> str:
        """Return the outlet that fed the board last, by the name that its PDU has now."""
        return replace(self.old, pdu=self._old_pdu or self.old.pdu).name if self.old else "not known"

    def _state_of(self, old: Fed) -> str:
        if old.taken:
            return f" (feeds {old.taken} since)"
        if old.belied:
            return " (and lived on while that was off)"
        if self._old_pdu is None:
            return " (not in the configuration any more)"
        return f" ({self._old_power})" if self._old_power else ""

    @property
    def remedy(self) -> str:
        """Return what a person does about the doubt."""
        if self._holding.is_unresolved and not self.unknown and not self.old:
            return self._holding.remedy
        others = {**self.unknown, **{board: kept.claim.instance for board, kept in self.holders.items()}}
        gone = {board: name for board, name in others.items() if name and board not in self._boards}
        nobodys = [f"board{board}" for board, name in self.unknown.items() if name is None]
        if self._is_belied and not self.alive:
            words = REPLUG.format(name=self._who)
        elif not self.unknown or self.holders or self.old:
            words = CORRECT
            if self.alive:
                words += BELIED.format(names=" and ".join(f"board{board}" for board in self.alive))
            elif self.old:
                words += WORD.format(name=self._who)
            elif self.holders:
                names = [kept.claim.instance for kept in self.holders.values()]
                words += PLUGGED.format(names=" and ".join(names), adopt=",".join(names))
        else:
            names = [self.claim.instance] if self.claim else [name for name in self.unknown.values() if name]
            words = ANEW.format(names=",".join(names)) if names else CORRECT
        words += "".join(GONE.format(board=board, name=name) for board, name in gone.items())
        return words + (NOBODYS.format(boards=" and ".join(nobodys)) if nobodys else "")
