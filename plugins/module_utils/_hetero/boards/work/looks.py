# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile saw of a board, found out, and did about it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Collection, Iterable

from ...core.errors import HeteroError, Refused
from ...core.locks import BUSY, held_by
from ..power.presence import ALIVE, OTHER_KEY, OWN_KEY
from .board_work import BoardWork

if TYPE_CHECKING:
    from ..records.claim_records import Kept

PHASE = "reconcile"


class Seen(BoardWork):
    """A board that is looked at also where its root is another claim's than its record says.

    `contradiction` is what any other verb refuses it for.
    """

    contradiction: Refused | None = None

    def read(self) -> None:
        try:
            super().read()
        except Refused as error:
            self.contradiction = error


class Look:
    """One board: what was seen of it and what was found out and done.

    `kept` is the claim that another record gives it; it counts while the board is asked. Once `settled` nothing more
    is done here. `left`: whose it is, or what feeds it, contradicts itself, and stays so. `unseen`: it, or its outlet,
    could not be looked at.
    """

    def __init__(self, work: Seen) -> None:
        self.work = work
        self.kept: Kept | None = None
        self.settled = self.left = False
        self.recorded: str | None = None
        self.power: str | None = None
        self.ssh: str | None = None
        self.found: list[dict[str, str | None]] = []
        self.nobodys = False
        self.unseen = False

    def begin(self) -> None:
        """Note what is recorded of the board; its lock is held, or was not got."""
        self.recorded = self.work.state if self.work.is_read else None
        if self.work.over:
            self.unseen = True
            self.note(f"not looked at: {self.work.error}")
        elif self.work.change.check:
            self.yield_to_a_verb()

    def yield_to_a_verb(self) -> None:
        """A dry run takes no lock: what it sees of a board that a verb works on says nothing of the board."""
        who = held_by(self.work.proxy.config["run_folder"], self.work.board.name, self.work.instance)
        if who:
            self.found, self.work.over, self.work.changed = [], True, False
            self.note(BUSY.format(who=who))

    def note(self, found: str, done: str | None = None) -> None:
        """`done` says what was mended, or would be; None: it is only reported."""
        self.found.append(dict(found=found, done=done))

    def mend(self, found: str, done: str) -> None:
        """Note what is mended, with an event."""
        self.note(found, done)
        self.work.changed = True
        self.work.say(PHASE, f"{found}: {done}")

    @property
    def names(self) -> set[str | None]:
        """Whose it is by the database, and by the record of a claim."""
        names = {self.work.instance}
        with suppress(HeteroError):
            kept = self.work.proxy.store.kept(self.work.board.id)
            names.add(kept.claim.instance if kept else None)
        return names

    @property
    def lives_without_power(self) -> bool:
        """Whether another outlet feeds it than its wiring names."""
        return self.power == "off" and self.ssh in (OWN_KEY, OTHER_KEY, ALIVE)

    @property
    def result(self) -> dict[str, Any]:
        work = self.work
        return dict(
            board=work.board.id,
            name=work.board.name,
            instance=work.instance,
            recorded=self.recorded,
            state=work.state if work.is_read else None,
            power=self.power,
            ssh=self.ssh,
            found=self.found,
            changed=work.changed,
        )


def not_adopted(looks: Iterable[Look], names: Collection[str]) -> list[str]:
    """Those of the names for whom an operator gave his word in vain: their boards are not as he says, or not asked.

    One that nobody here has, by database or record, is not among them: it may be another node's.
    """
    left = [look for look in looks if look.left or look.work.over or look.power is None] if names else []
    return [name for name in names if any(name in look.names for look in left)]
