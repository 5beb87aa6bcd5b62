# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile saw of a board, what it found out, and what it did about it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Iterable, Iterator

from ...core.errors import HeteroError, Refused
from ...core.locks import BUSY, held_by
from ...drivers.boot.own_drivers import fault_of
from ...drivers.boot.registry import BootDrivers
from ..evidence.changed_addresses import served_elsewhere
from ..power import power_proof
from ..power.presence import ALIVE, OTHER_KEY, OWN_KEY
from .board_work import BoardWork

if TYPE_CHECKING:
    from ..records.claim_records import Kept
    from ..records.proxy import Proxy

PHASE = "reconcile"


class Seen(BoardWork):
    """The work on a board that is looked at although its root may be another claim's.

    `contradiction` is the error with which any other verb refuses such a board. Its address is
    judged once it was asked.
    """

    contradiction: Refused | None = None
    keeps_address = False

    def read(self) -> None:
        try:
            super().read()
        except Refused as error:
            self.contradiction = error


class Look:
    """One board: what was seen of it, found out and done.

    `kept` is the claim that the board's own record has; it counts while the board is asked. `settled`: nothing more is
    done with the board. `left`: there is a contradiction about whose it is, or what feeds it, that stays. `unseen`: the
    board or its outlet could not be looked at. `cut_off`: its boot was cut off, and is taken up once all was looked at.
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
        self.unseen = self.cut_off = False

    def begin(self) -> None:
        """Note the board's record; its lock is held, or could not be taken."""
        self.recorded = self.work.state if self.work.is_read else None
        if self.work.over:
            self.unseen = True
            self.note(f"not looked at: {self.work.error}")
        elif self.work.change.check:
            self.yield_to_a_verb()

    def yield_to_a_verb(self) -> None:
        """In a dry run, which takes no lock, skip a board that a verb works on: what is seen of it means nothing."""
        who = held_by(self.work.proxy.config.run_folder, self.work.board.name, self.work.instance)
        if who:
            self.found, self.work.over, self.work.changed = [], True, False
            self.note(BUSY.format(who=who))

    def note(self, found: str, done: str | None = None) -> None:
        """Report what was found.

        :param done: what was mended, or would be in check mode; None where it is only reported.
        """
        self.found.append(dict(found=found, done=done))

    def mend(self, found: str, done: str) -> None:
        """Report what was found and mended, also by an event."""
        self.note(found, done)
        self.work.changed = True
        self.work.say(PHASE, f"{found}: {done}")

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Make what the block mends one transaction; where that is not committed, nothing of it is told as done."""
        work = self.work
        found, lines, changed, record = len(self.found), len(work.lines), work.changed, work.record
        contradiction = work.contradiction
        try:
            with work.change.all_or_nothing(), work.proxy.store.transaction():
                yield
        except HeteroError:
            del self.found[found:], work.lines[lines:]
            work.changed, work.record, work.contradiction = changed, record, contradiction
            raise

    def settle_broken(self) -> None:
        """Leave a board as it is whose boot driver, a site's own, cannot be loaded, or made a mistake on it."""
        fault = fault_of(self.work.driver, self.work.board)
        if fault and not self.settled:
            self.note(f"left as it is: {fault}")
            self.settled = self.left = True

    @property
    def names(self) -> set[str | None]:
        """Return the instances that have the board by the database and by the record of a claim."""
        names = {self.work.instance}
        with suppress(HeteroError):
            kept = self.work.proxy.store.kept(self.work.board.id)
            names.add(kept.claim.instance if kept else None)
        return names

    @property
    def lives_without_power(self) -> bool:
        """Return whether the board lives while its outlet is off, so that another outlet feeds it."""
        return self.power == "off" and self.ssh in (OWN_KEY, OTHER_KEY, ALIVE)

    @property
    def power_where_served(self) -> str | None:
        """Return the state of its outlet as changed_address takes it: None for an "off" that proves no rest.

        Where the outlet was off before, with the board at work, another one feeds it; so it does where the board lives
        at the address at which it is served.
        """
        work = self.work
        if self.power != "off":
            return self.power
        old = served_elsewhere(work.proxy, work.board.id) if work.found and work.found.power == "on" else None
        return "off" if old and not power_proof.lives(work.driver, replace(work.board, ip=old)) else None

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


def name_drivers(proxy: Proxy, looks: Iterable[Look]) -> None:
    """Name the boot driver of each board; a board whose driver cannot be loaded is left as it is."""
    drivers = BootDrivers(proxy)
    for look in looks:
        look.work.driver = drivers.to_look(look.work.board)
        look.settle_broken()


def not_adopted(looks: Iterable[Look], names: Collection[str]) -> list[str]:
    """Return the names that an operator gave in vain: their boards are not as he says, or were not looked at.

    A name that no board here has, by database or record, is left out: it may be another node's.
    """
    left = [look for look in looks if look.left or look.work.over or look.power is None] if names else []
    return [name for name in names if any(name in look.names for look in left)]
