# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where PDUs and switches have their outlets in SNMP, and what their numbers mean: one table for each kind of device.

A site's own device has such a table in the inventory, with the same keys (KEYS). snmp.py asks and sets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Tuple

from .driver import PowerDriver
from .own_tables import wrong_keys, wrong_states

ENTERPRISES = "1.3.6.1.4.1"
APC, CPS, EATON = f"{ENTERPRISES}.318", f"{ENTERPRISES}.3808", f"{ENTERPRISES}.534.6.6.7"
GEIST, GUDE, RARITAN = f"{ENTERPRISES}.21239", f"{ENTERPRISES}.28507", f"{ENTERPRISES}.13742.6"
SERVER_TECH = f"{ENTERPRISES}.1718"
POWER_ETHERNET = "1.3.6.1.2.1.105"
#: How many numbers of a sysObjectID name the maker: those of ENTERPRISES, and one.
MAKER = 7

#: An object's name of at most 128 numbers (RFC 2578, 3.5), and the index of an outlet's unit.
OID = re.compile(r"\.?[012](?:\.(?:0|[1-9][0-9]{0,9})){2,100}")
INDEX = re.compile(r"(?:0|[1-9][0-9]{0,9})(?:\.(?:0|[1-9][0-9]{0,9})){0,20}")
#: The largest number that INTEGER has.
MOST = 2**31 - 1


class Order(NamedTuple):
    """What is set to switch an outlet: its row in a column, to a number."""

    column: str
    value: int


@dataclass(frozen=True)
class Table:
    """How a kind of device is read and switched.

    :param state: the column of states, in which there is a row for each outlet.
    :param on: switches an outlet on; `off` switches it off. Their rows have the indexes of the states.
    :param is_on: numbers of the state that mean on; `is_off` those that mean off. All others are neither.
    :param first: what stands in an index before the number of an outlet of the first unit, which goes by that alone.
    :param others: words for numbers that are neither on nor off.
    :param kind: beginning of the sysObjectID of devices that have it, where a maker has several tables at once.
    :param window, stuck: as of PowerDriver.
    """

    name: str
    state: str
    on: Order
    off: Order
    is_on: Tuple[int, ...] = (1,)
    is_off: Tuple[int, ...] = (2,)
    first: str = ""
    others: Dict[int, str] = field(default_factory=dict)
    kind: str = ""
    window: float | None = None
    stuck: str = PowerDriver.stuck

    @property
    def states(self) -> dict[str, str]:
        """Return {number as text: state}."""
        words = {**self.others, **dict.fromkeys(self.is_on, "on"), **dict.fromkeys(self.is_off, "off")}
        return {str(number): word for number, word in words.items()}

    def outlet(self, index: str) -> str:
        """Return the only name of an outlet: its number in the first unit, UNIT:NUMBER in others.

        Of a unit's index, the end in which it is like the first one's is left out: SWITCH of SWITCH.1.
        """
        *unit, number = index.split(".")
        first = self.first.split(".") if self.first else []
        if not unit or unit == first:
            return number
        while len(unit) == len(first) and unit[-1] == first[-1]:
            unit, first = unit[:-1], first[:-1]
        return f"{'.'.join(unit)}:{number}"


#: Each from the MIB that is named, and compared with a second source, which is named behind it. Those for devices of
#: any maker come first, then newer ones before older ones.
TABLES = (
    # POWER-ETHERNET-MIB (RFC 3621); labgrid, pdudaemon. pethPsePortAdminEnable is the order, and
    # pethPsePortDetectionStatus what is: a port that is searching gives no power as long as nobody asks for it, and
    # gives it to the next who does, so that it is neither off nor on.
    Table(
        "PoE",
        f"{POWER_ETHERNET}.1.1.1.6",
        on=Order(f"{POWER_ETHERNET}.1.1.1.3", 1),
        off=Order(f"{POWER_ETHERNET}.1.1.1.3", 2),
        is_on=(3,),
        is_off=(1,),
        first="1",
        others={2: "searching", 4: "fault", 5: "test", 6: "other fault"},
        window=30.0,
        stuck="look at the switch's own list of ports; at one that is searching nothing asks for power",
    ),
    # PowerNet-MIB; pdudaemon, fence_apc_snmp. The states of rPDU2 are the reverse of its commands and of all other
    # tables.
    Table(
        "rPDU2",
        f"{APC}.1.1.26.9.2.3.1.5",
        on=Order(f"{APC}.1.1.26.9.2.4.1.5", 1),
        off=Order(f"{APC}.1.1.26.9.2.4.1.5", 2),
        is_on=(2,),
        is_off=(1,),
        kind=f"{APC}.1.3.4.6",
    ),
    Table(
        "rPDU",
        f"{APC}.1.1.12.3.5.1.1.4",
        on=Order(f"{APC}.1.1.12.3.3.1.1.4", 1),
        off=Order(f"{APC}.1.1.12.3.3.1.1.4", 2),
        kind=f"{APC}.1.3.4.5",
    ),
    Table(
        "MasterSwitch Plus",
        f"{APC}.1.1.6.7.1.1.5",
        on=Order(f"{APC}.1.1.6.5.1.1.5", 1),
        off=Order(f"{APC}.1.1.6.5.1.1.5", 3),
        first="1.1",
        kind=f"{APC}.1.3.4.4",
    ),
    Table(
        "MasterSwitch",
        f"{APC}.1.1.4.4.2.1.3",
        on=Order(f"{APC}.1.1.4.4.2.1.3", 1),
        off=Order(f"{APC}.1.1.4.4.2.1.3", 2),
    ),
    # PDU2-MIB of Raritan PX2 and PX3, and Server Technology PRO3X: outletSwitchingState, switchingOperation; NUT,
    # labgrid. The first PDU of a link is 1.
    Table(
        "Raritan",
        f"{RARITAN}.4.1.2.1.3",
        on=Order(f"{RARITAN}.4.1.2.1.2", 1),
        off=Order(f"{RARITAN}.4.1.2.1.2", 0),
        is_on=(7,),
        is_off=(8,),
        first="1",
    ),
    # Sentry4-MIB: st4OutletState, st4OutletControlAction; Xen's osstest. Indexes are UNIT.CORD.OUTLET.
    Table(
        "Sentry4",
        f"{SERVER_TECH}.4.1.8.3.1.1",
        on=Order(f"{SERVER_TECH}.4.1.8.5.1.2", 1),
        off=Order(f"{SERVER_TECH}.4.1.8.5.1.2", 2),
        first="1.1",
        kind=f"{SERVER_TECH}.4",
    ),
    # Sentry3-MIB: outletStatus, which is sensed where the PDU can, outletControlAction; SONiC's tests, labgrid. Indexes
    # are TOWER.INFEED.OUTLET.
    Table(
        "Sentry3",
        f"{SERVER_TECH}.3.2.3.1.5",
        on=Order(f"{SERVER_TECH}.3.2.3.1.11", 1),
        off=Order(f"{SERVER_TECH}.3.2.3.1.11", 2),
        is_off=(0,),
        first="1.1",
        others={
            2: "off wait",
            3: "on wait",
            4: "off error",
            5: "on error",
            6: "no communication",
            7: "reading",
            8: "off fuse",
            9: "on fuse",
        },
        kind=f"{SERVER_TECH}.3",
    ),
    # EATON-EPDU-MIB: outletControlStatus, outletControlOnCmd, outletControlOffCmd; NUT, labgrid. A command is set to
    # the seconds until then. The first unit of a strapped group is 0.
    Table(
        "Eaton",
        f"{EATON}.6.6.1.2",
        on=Order(f"{EATON}.6.6.1.4", 0),
        off=Order(f"{EATON}.6.6.1.3", 0),
        is_off=(0,),
        first="0",
        others={2: "pending off", 3: "pending on"},
    ),
    # CPS-MIB: ePDU2OutletSwitchedStatusState, ePDU2OutletSwitchedControlCommand; Centreon's plugins. Then
    # ePDUOutletStatusOutletState, ePDUOutletControlOutletCommand; pdudaemon, Centreon's plugins.
    Table(
        "CyberPower ePDU2",
        f"{CPS}.1.1.6.6.1.4.1.5",
        on=Order(f"{CPS}.1.1.6.6.1.5.1.5", 1),
        off=Order(f"{CPS}.1.1.6.6.1.5.1.5", 2),
    ),
    Table(
        "CyberPower ePDU",
        f"{CPS}.1.1.3.3.5.1.1.4",
        on=Order(f"{CPS}.1.1.3.3.3.1.1.4", 1),
        off=Order(f"{CPS}.1.1.3.3.3.1.1.4", 2),
    ),
    # GEIST-V5-MIB, later VERTIV-V5-MIB: pduOutletSwitchState, pduOutletSwitchControl; SONiC's tests.
    Table(
        "Vertiv",
        f"{GEIST}.5.2.3.5.1.4",
        on=Order(f"{GEIST}.5.2.3.5.1.6", 2),
        off=Order(f"{GEIST}.5.2.3.5.1.6", 4),
        others={3: "pending off", 4: "pending on", 5: "pending reboot", 6: "rebooting", 7: "unavailable"},
    ),
    # GUDEADS-EPC…-MIB: epc…PortState, which is read and set; the numbers are those of the Expert Power Controls 1202,
    # 1292, 8221, 8226, 8316, 1104 and 1105, each of which has a MIB of its own; Centreon's plugins.
    *(
        Table(
            "Gude",
            f"{GUDE}.{model}.1.3.1.2.1.3",
            on=Order(f"{GUDE}.{model}.1.3.1.2.1.3", 1),
            off=Order(f"{GUDE}.{model}.1.3.1.2.1.3", 0),
            is_off=(0,),
        )
        for model in (43, 50, 56, 58, 64, 68, 69)
    ),
)
#: Keys of a table in the inventory, and of an order in it.
KEYS, ORDER_KEYS, ORDERS = ("state", "on", "off", "is_on", "is_off", "first"), Order._fields, ("on", "off")
#: Values in the examples of orders that errors give.
EXAMPLES = {"on": 2, "off": 1}
OWN = "own table"
USUAL = {"is_on": Table.is_on, "is_off": Table.is_off}


def likely(kind: str) -> list[Table]:
    """Return TABLES, those of a sysObjectID first, then the others of its maker. If one is empty, the next is tried."""
    return sorted(
        TABLES,
        key=lambda table: (not f"{kind}.".startswith(f"{table.kind}."), _maker(table.state) != _maker(kind)),
    )


def _maker(oid: str) -> str:
    return ".".join(oid.split(".")[:MAKER])


def wrong_table(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, remedy) of each mistake in a table of the inventory."""
    yield from wrong_keys("snmp_table", table, KEYS)
    if not OID.fullmatch(str(table.get("state", ""))):
        yield "its snmp_table has no column of states", "give its OID, such as state: 1.3.6.1.4.1.32473.1.4"
    for key in ORDERS:
        yield from _wrong_order(key, table.get(key))
    if table.get("on") == table.get("off") and isinstance(table.get("on"), dict):
        yield "its snmp_table has one order for on and for off", "give the column and value of each"
    yield from wrong_states("snmp_table", table, USUAL)
    for key in USUAL:
        values = table.get(key)
        if isinstance(values, list) and not all(_is_number(value, -MOST) for value in values):
            yield f"its snmp_table has an {key} with what is no whole number", "give the numbers that are read"
    if "first" in table and not INDEX.fullmatch(str(table["first"])):
        yield "its snmp_table has a first that is no index", "give what stands before the outlet's number, such as '1'"


def _wrong_order(key: str, given: Any) -> Iterator[tuple[str, str]]:
    example = f'give "{key}": {{column: 1.3.6.1.4.1.32473.1.6, value: {EXAMPLES[key]}}}'
    if not isinstance(given, dict) or not OID.fullmatch(str(given.get("column", ""))):
        yield f"its snmp_table has no {key} with the OID of a column", example
        return
    for name in given:
        if name not in ORDER_KEYS:
            yield f"its snmp_table has an unknown key {key}.{name}", example
    if not _is_number(given.get("value"), 0):
        yield f"its snmp_table has no {key}.value that is a whole number of 0 or more", example


def _is_number(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST


def own(table: Mapping[str, Any], name: str = OWN) -> Table:
    """Return the Table of a table of the inventory in which wrong_table finds nothing."""
    on, off = (Order(_bare(table[key]["column"]), table[key]["value"]) for key in ORDERS)
    is_on, is_off = (tuple(table.get(key, USUAL[key])) for key in USUAL)
    return Table(name, _bare(table["state"]), on, off, is_on, is_off, str(table.get("first", "")))


def _bare(oid: Any) -> str:
    return str(oid).lstrip(".")
