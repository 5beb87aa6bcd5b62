# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlets draw, as their device's meter tells it: watts, and kilowatt-hours since whenever its counter began.

A reading is a courtesy: it takes PATIENCE seconds at most, switches nothing, and fails for itself alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Protocol, Sequence

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Most seconds for all readings of a call, whatever its deadline. A PDU answers within 0.1 s, a BMC within a second.
PATIENCE = 3.0


class Drawn(NamedTuple):
    """What an outlet draws now, and its counter; None for what its device does not tell."""

    watts: float | None = None
    kwh: float | None = None


class Measuring(Protocol):
    """What is used here of a power driver."""

    measures: bool
    deadline: Deadline

    def drawn(self, outlets: list[str]) -> Mapping[str, Drawn]: ...


def measure(value: Any, factor: float = 1.0) -> float | None:
    """Return a reading as a number, or None where it is none: devices give -1 or words for what they do not measure.

    :param factor: watts or kilowatt-hours of one unit of the reading.
    """
    try:
        number = float(value) * factor
    except (TypeError, ValueError, OverflowError):
        return None
    return round(number, 6) if math.isfinite(number) and number >= 0 and not isinstance(value, bool) else None


def told(driver: Measuring, deadline: Deadline, outlets: Sequence[str]) -> dict[str, Drawn]:
    """Return {outlet: Drawn} of those outlets of which a driver that is logged in tells anything; {} where that fails.

    :param deadline: the session's, which the driver has afterwards as before.
    """
    if not (outlets and driver.measures):
        return {}
    driver.deadline = deadline.within(PATIENCE)
    try:
        found = driver.drawn(list(outlets))
        return {outlet: drawn for outlet, drawn in _sound(found).items() if outlet in outlets and any_of(drawn)}
    except Exception:  # noqa: BLE001 - whatever is wrong with a meter, or with a site's own driver, power goes on
        return {}
    finally:
        driver.deadline = deadline


def any_of(drawn: Drawn) -> bool:
    """Return whether anything was measured."""
    return drawn != Drawn()


def _sound(found: Mapping[str, Any]) -> dict[str, Drawn]:
    return {str(outlet): Drawn(*(measure(value) for value in drawn)) for outlet, drawn in found.items()}
