# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plugs and PDUs with an HTTP interface tell of the power that each outlet draws, by the name of their table in
http_apis.py.

Home Assistant has a meter as an entity of its own, under any name, and Digital Loggers' switches measure their buses:
neither tells what an outlet draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

from .drawn import Drawn, measure
from .http_apis import INDEX, NUMBER, Ask, found, named


@dataclass(frozen=True)
class Meter:
    """How a kind of device is asked what an outlet draws.

    :param read: the request.
    :param watts: JSON pointer of the watts in the answer; `counter` that of the counter.
    :param kwh: kilowatt-hours of one unit of the counter.
    :param alone: JSON pointer of what is in the answers of devices with a single outlet only, whose measures are at
        `watts_alone` and `counter_alone`.
    :param as_many: JSON pointers of two lists that are of the same length, unless one meter is for several outlets.
    """

    read: Ask
    watts: str
    counter: str
    kwh: float = 1e-3
    alone: str = ""
    watts_alone: str = ""
    counter_alone: str = ""
    as_many: Tuple[str, ...] = ()

    def drawn(self, answer: Any, outlet: str) -> Drawn:
        """Return what an outlet draws by an answer."""
        watts, counter = self.watts, self.counter
        if self.alone and _at(answer, self.alone) is not None:
            watts, counter = self.watts_alone, self.counter_alone
        lists = [_at(answer, pointer) for pointer in self.as_many]
        if lists and (not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1):
            return Drawn()
        if INDEX in watts and not NUMBER.fullmatch(outlet):
            return Drawn()
        at = [_at(answer, named(pointer, outlet)) for pointer in (watts, counter)]
        return Drawn(measure(at[0]), measure(at[1], self.kwh))


def _at(answer: Any, pointer: str) -> Any:
    try:
        return found(answer, pointer)
    except KeyError:
        return None


#: Sources: the vendors' pages of http_apis.py. Shelly Gen1: meters of /status, whose totals are watt-minutes, and begin
#: anew when it starts. Gen2: apower, and aenergy.total in watt-hours. Tasmota: Status 0, of which StatusSNS (Status 8)
#: has the meter and StatusSTS (Status 11) tells whether there is one relay; with several, measures by relay are lists.
#: NETIO: Load in watts, Energy in watt-hours.
METERS = {
    "shelly1": Meter(
        read=Ask("/status"),
        watts="/meters/{outlet}/power",
        counter="/meters/{outlet}/total",
        kwh=1 / 60000,
        as_many=("/meters", "/relays"),
    ),
    "shelly2": Meter(read=Ask("/rpc/Switch.GetStatus?id={outlet}"), watts="/apower", counter="/aenergy/total"),
    "tasmota": Meter(
        read=Ask("/cm?cmnd=Status%200"),
        watts="/StatusSNS/ENERGY/Power/{index}",
        counter="/StatusSNS/ENERGY/Total/{index}",
        kwh=1.0,
        alone="/StatusSTS/POWER",
        watts_alone="/StatusSNS/ENERGY/Power",
        counter_alone="/StatusSNS/ENERGY/Total",
    ),
    "netio": Meter(read=Ask("/netio.json"), watts="/Outputs/ID={outlet}/Load", counter="/Outputs/ID={outlet}/Energy"),
}
