# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each claim's board has drawn, by the energy counter of its outlet, whose readings are added up in the database.

power/pdu_line.py and power/outlet_power.py have the counters read. Nobody's right to anything depends on these records.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...claims.record_files import sound
from ...drivers.power.drawn import measure
from .board_records import Recorded

if TYPE_CHECKING:
    from ...drivers.power.drawn import Drawn
    from .claim_records import Claim

#: Phase of the event that says what a claim has drawn, when it ends.
ENERGY_PHASE = "energy"
#: Largest rise of a counter between two readings that is believed: no outlet gives more kilowatts (63 A at 400 V on
#: three phases are 44), and a counter may have steps of a tenth of a kWh, or be late by some of them. A counter that
#: rises more is another outlet's.
MOST_KW, STEP_KWH = 50.0, 0.5


@dataclass(frozen=True)
class Energy:
    """What a claim's board has drawn since the first reading for the claim; None for what its device does not tell.

    :param outlet: which one was read, with its PDU.
    :param kwh: added up; `counter` is what the device's counter showed last.
    :param watts: of the last reading, at the unix time `seen`.
    """

    outlet: str
    kwh: float | None = None
    counter: float | None = None
    watts: float | None = None
    seen: float = 0.0

    def after(self, outlet: str, drawn: Drawn, now: float) -> Energy:
        """Return it after another reading. A counter that went back was reset, and what it shows came since.

        Between the counters of two outlets nothing can be added up, nor where more is shown than can be.
        """
        watts = drawn.watts if drawn.watts is None or drawn.watts <= MOST_KW * 1000 else None
        told = replace(self, outlet=outlet, watts=watts, seen=now)
        if drawn.kwh is None:
            return told if outlet == self.outlet else replace(told, counter=None)
        added = 0.0
        if self.counter is not None and outlet == self.outlet:
            added = drawn.kwh - self.counter if drawn.kwh >= self.counter else drawn.kwh
            most = MOST_KW * max(0.0, now - self.seen) / 3600 + STEP_KWH
            added = added if added <= most else 0.0
        return replace(told, kwh=round((self.kwh or 0.0) + added, 6), counter=drawn.kwh)

    @property
    def fields(self) -> dict[str, float | None]:
        """Return what the modules tell of it."""
        return {"watts": self.watts, "energy_kwh": self.kwh}

    @property
    def told(self) -> dict[str, float]:
        """Return those fields of which the device tells."""
        return {name: value for name, value in self.fields.items() if value is not None}


#: In place of one that nobody has measured.
NOT_MEASURED = Energy("")


class MeteredClaims(Recorded):
    """The part of a proxy's database (store.py) that knows what its claims have drawn."""

    def energies(self) -> dict[str, Energy]:
        """Return {instance: Energy} of the claims that were measured."""
        return self._energies("1", ())

    def energy_of(self, claim: Claim | None) -> Energy:
        """Return what a claim has drawn; NOT_MEASURED where that is not known."""
        where = "energy.instance = ? AND energy.created = ?"
        found = self._energies(where, (claim.instance, claim.created)) if claim else {}
        return found[claim.instance] if claim and found else NOT_MEASURED

    def drew(self, claim: Claim, outlet: str, drawn: Drawn) -> None:
        """Add a reading of the outlet of a claim's board; none where the claim was ended or moved meanwhile."""
        with self._db.transaction():
            if not claim.is_same(self.record(claim.board).claim):
                return
            # of claims that ended where nobody could add up
            self._db.write("DELETE FROM energy WHERE instance NOT IN (SELECT instance FROM claims)")
            energy = self.energy_of(claim).after(outlet, drawn, time.time())
            row = dict(vars(energy), instance=claim.instance, created=claim.created)
            places = ", ".join("?" for column in row)
            self._db.write(f"REPLACE INTO energy ({', '.join(row)}) VALUES ({places})", tuple(row.values()))

    def _energies(self, where: str, values: tuple[Any, ...]) -> dict[str, Energy]:
        columns = ", ".join(f"energy.{column}" for column in vars(NOT_MEASURED))
        rows = self._db.rows(
            f"SELECT energy.instance AS whose, {columns} FROM energy JOIN claims "
            f"ON claims.instance = energy.instance AND claims.created = energy.created WHERE {where}",
            values,
        )
        return {row["whose"]: _of_row(row["outlet"], *tuple(row)[2:]) for row in rows}

    def _account(self, claim: Claim) -> None:
        """Say in an event what a claim that ends has drawn."""
        kwh = self.energy_of(claim).kwh
        if kwh is not None:
            text = f"{claim.instance} drew {kwh:.3f} kWh"
            self.event(claim.board, ENERGY_PHASE, text, instance=claim.instance)
        self._db.write("DELETE FROM energy WHERE instance = ?", (claim.instance,))


def _of_row(outlet: object, *numbers: object) -> Energy:
    """Return the Energy of a row. A value of a damaged row that is no number, or too large, counts as not known."""
    kwh, counter, watts, seen = (sound(measure(number)) for number in numbers)
    return Energy(outlet if isinstance(outlet, str) else "", kwh, counter if seen else None, watts, seen or 0.0)
