# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where PDUs and switches have what each outlet draws in SNMP, by the name of their table in snmp_tables.py.

A device without meters has these objects not at all, or tells -1. Readings that a MIB does not give for each outlet are
left out: RFC 3621 has the power of a whole switch alone (pethMainPseConsumptionPower), rPDU, MasterSwitch and most of
Gude's devices measure banks or inlets, and the MIB of Gude's 8226 counts its ports' meters in two ways that contradict
each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Tuple

from .snmp_tables import APC, CPS, EATON, ENTERPRISES, GEIST, RARITAN, SERVER_TECH

CISCO, HP, ARUBA = f"{ENTERPRISES}.9", f"{ENTERPRISES}.11", f"{ENTERPRISES}.47196"
#: How many digits behind the decimal point a number of 32 bits can have. A power of ten of more takes hours.
MOST_DIGITS = tuple(map(str, range(11)))


class Column(NamedTuple):
    """Where a measure is: a row for each outlet, with the index of its state.

    :param factor: watts or kilowatt-hours of one unit.
    :param sensor: what stands behind an outlet's index, where a row is one of several sensors.
    :param digits: the column that has how many of the last digits are behind the decimal point.
    """

    oid: str
    factor: float = 1.0
    sensor: str = ""
    digits: str = ""

    def unit(self, digits: str) -> float:
        """Return the factor of a value with so many digits behind the decimal point; NaN where there can be none."""
        return self.factor / 10 ** int(digits) if digits in MOST_DIGITS else math.nan

    def row(self, index: str, column: str = "") -> str:
        """Return the OID of an outlet's row in this column, or in `column`."""
        return f"{column or self.oid}.{index}{self.sensor and f'.{self.sensor}'}"


class Meter(NamedTuple):
    """The columns of watts and of kilowatt-hours; the first one of each that has a value counts."""

    watts: Tuple[Column, ...] = ()
    kwh: Tuple[Column, ...] = ()


#: Each from the MIB that is named, and compared with a second source, which is named behind it.
METERS = {
    # RFC 3621 has nothing by port, but makers have tables with the same indexes (AUGMENTS pethPsePortEntry), all in
    # milliwatts. CISCO-POWER-ETHERNET-EXT-MIB: cpeExtPsePortPwrConsumption; LibreNMS, Cisco's YANG models.
    # HP-ICF-POE-MIB: hpicfPoePethPsePortActualPower; its compiled form for PySNMP. ARUBAWIRED-POE-MIB:
    # arubaWiredPoePethPsePortPowerDrawn; its compiled form for PySNMP.
    "PoE": Meter(
        watts=(
            Column(f"{CISCO}.9.402.1.2.1.9", 1e-3),
            Column(f"{HP}.2.14.11.1.9.1.1.1.8", 1e-3),
            Column(f"{ARUBA}.4.1.1.3.8.1.1.1.7", 1e-3),
        ),
    ),
    # PowerNet-MIB: rPDU2OutletMeteredStatusPower, in watts, rPDU2OutletMeteredStatusEnergy, in tenths of a
    # kilowatt-hour; Observium, LibreNMS.
    "rPDU2": Meter((Column(f"{APC}.1.1.26.9.4.3.1.7"),), (Column(f"{APC}.1.1.26.9.4.3.1.11", 0.1),)),
    # PDU2-MIB: measurementsOutletSensorValue of the sensors activePower(5), in watts, and activeEnergy(8), in
    # watt-hours; outletSensorDecimalDigits; NUT, Centreon's plugins.
    "Raritan": Meter(
        (Column(f"{RARITAN}.5.4.3.1.4", 1.0, "5", f"{RARITAN}.3.5.4.1.7"),),
        (Column(f"{RARITAN}.5.4.3.1.4", 1e-3, "8", f"{RARITAN}.3.5.4.1.7"),),
    ),
    # Sentry4-MIB: st4OutletActivePower, st4OutletEnergy in watt-hours; Checkmk's plugins.
    "Sentry4": Meter((Column(f"{SERVER_TECH}.4.1.8.3.1.7"),), (Column(f"{SERVER_TECH}.4.1.8.3.1.14", 1e-3),)),
    # Sentry3-MIB: outletPower, outletEnergy in watt-hours; a collector of power readings for data centres.
    "Sentry3": Meter((Column(f"{SERVER_TECH}.3.2.3.1.14"),), (Column(f"{SERVER_TECH}.3.2.3.1.18", 1e-3),)),
    # EATON-EPDU-MIB: outletWatts, outletWh; NUT, Centreon's plugins.
    "Eaton": Meter((Column(f"{EATON}.6.5.1.3"),), (Column(f"{EATON}.6.5.1.4", 1e-3),)),
    # CPS-MIB: ePDU2OutletMeteredStatusActivePower, ePDU2OutletMeteredStatusEnergy in tenths of a kilowatt-hour;
    # Centreon's plugins. Then ePDUOutletStatusActivePower, ePDUOutletStatusEnergy in the same; Datadog's integration.
    "CyberPower ePDU2": Meter((Column(f"{CPS}.1.1.6.6.2.4.1.7"),), (Column(f"{CPS}.1.1.6.6.2.4.1.11", 0.1),)),
    "CyberPower ePDU": Meter((Column(f"{CPS}.1.1.3.3.5.1.1.8"),), (Column(f"{CPS}.1.1.3.3.5.1.1.13", 0.1),)),
    # VERTIV-V5-MIB: pduOutletMeterRealPower, pduOutletMeterEnergy in watt-hours; its compiled form for PySNMP.
    "Vertiv": Meter((Column(f"{GEIST}.5.2.3.6.1.12"),), (Column(f"{GEIST}.5.2.3.6.1.15", 1e-3),)),
}
