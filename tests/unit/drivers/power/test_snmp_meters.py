# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlets draw by SNMP: each table on a device that has its MIB's objects, asked by net-snmp's own commands."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp_meters import METERS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp_tables import TABLES
from ansible_collections.hetero.compute.tests.unit.drivers.power.snmp_devices import COMMUNITY, KINDS, Agent, Device

#: {table: (watts, counter) as its device has them, and as they are}, of two outlets; None where it measures no such
#: thing. Literal, and not by snmp_meters.py, which they are to hold: of the MIBs that it names.
WIRE = {
    "PoE": ({"1.3.6.1.4.1.9.9.402.1.2.1.9.1.1": 6400, "1.3.6.1.4.1.9.9.402.1.2.1.9.1.2": 0}, Drawn(6.4), Drawn(0.0)),
    "Raritan": (
        {
            "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.1.5": 412,
            "1.3.6.1.4.1.13742.6.3.5.4.1.7.1.1.5": 1,
            "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.1.8": 310250,
            "1.3.6.1.4.1.13742.6.3.5.4.1.7.1.1.8": 0,
            "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.1.6": 999,
            "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.2.5": 7,
        },
        Drawn(41.2, 310.25),
        Drawn(7.0),
    ),
    "Sentry4": (
        {
            "1.3.6.1.4.1.1718.4.1.8.3.1.7.1.1.1": 41,
            "1.3.6.1.4.1.1718.4.1.8.3.1.14.1.1.1": 310250,
            "1.3.6.1.4.1.1718.4.1.8.3.1.7.1.1.2": -1,
            "1.3.6.1.4.1.1718.4.1.8.3.1.14.1.1.2": 12,
        },
        Drawn(41.0, 310.25),
        Drawn(None, 0.012),
    ),
    "Sentry3": (
        {"1.3.6.1.4.1.1718.3.2.3.1.14.1.1.1": 41, "1.3.6.1.4.1.1718.3.2.3.1.18.1.1.1": 310250},
        Drawn(41.0, 310.25),
        None,
    ),
    "Eaton": (
        {"1.3.6.1.4.1.534.6.6.7.6.5.1.3.0.1": 41, "1.3.6.1.4.1.534.6.6.7.6.5.1.4.0.1": 310250},
        Drawn(41.0, 310.25),
        None,
    ),
    "CyberPower ePDU2": (
        {"1.3.6.1.4.1.3808.1.1.6.6.2.4.1.7.1": 41, "1.3.6.1.4.1.3808.1.1.6.6.2.4.1.11.1": 3102},
        Drawn(41.0, 310.2),
        None,
    ),
    "CyberPower ePDU": (
        {"1.3.6.1.4.1.3808.1.1.3.3.5.1.1.8.1": 41, "1.3.6.1.4.1.3808.1.1.3.3.5.1.1.13.1": 3102},
        Drawn(41.0, 310.2),
        None,
    ),
    "Vertiv": (
        {"1.3.6.1.4.1.21239.5.2.3.6.1.12.1": 41, "1.3.6.1.4.1.21239.5.2.3.6.1.15.1": 310250},
        Drawn(41.0, 310.25),
        None,
    ),
    "rPDU2": (
        {"1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.1": 41, "1.3.6.1.4.1.318.1.1.26.9.4.3.1.11.1": 3102},
        Drawn(41.0, 310.2),
        None,
    ),
}
#: Other makers' switches that have RFC 3621's table.
POE = {"HP": "1.3.6.1.4.1.11.2.14.11.1.9.1.1.1.8.1.1", "Aruba": "1.3.6.1.4.1.47196.4.1.1.3.8.1.1.1.7.1.1"}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A function: what a device of a kind with these measures tells of its outlets 1 and 2."""
    rpdu2 = KINDS["CyberPower ePDU2"]._replace(
        object_id="1.3.6.1.4.1.318.1.3.4.6", state="1.3.6.1.4.1.318.1.1.26.9.2.3.1.5", on=2, off=1
    )
    monkeypatch.setitem(KINDS, "rPDU2", rpdu2)

    def ask(name, measures, version, indexes=None):
        one = Device(name, indexes=indexes)
        one.measures = measures
        given = {"driver": "snmp", "host": "127.0.0.1", "port": one.port, "snmp_version": version}
        try:
            with power.session("pdu-t", given, {"community": COMMUNITY}, Deadline(120), str(tmp_path)) as opened:
                assert opened.dialect == name
                states = opened.status()
                found = opened.drawn([*states] if indexes else ["1", "2"])
                assert opened.status() == states
            assert one.done == [], "a reading switches nothing"
            return found
        finally:
            one.close()

    return ask


@pytest.fixture
def patient(monkeypatch):
    """Time for the readings on a machine that is busy with other tests."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn

    monkeypatch.setattr(drawn, "PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", WIRE)
def test_each_kind_tells_what_its_outlets_draw(asked, name):
    """Lost: energy, of a PDU whose units or indexes were taken for another's."""
    measures, first, second = WIRE[name]
    told = {outlet: drawn for outlet, drawn in (("1", first), ("2", second)) if drawn}
    assert asked(name, measures, "2c") == told


@pytest.mark.usefixtures("patient")
def test_one_outlet_without_a_meter_hides_no_other(asked):
    """Lost: energy of all outlets, in version 1, where one answer has all that was asked for or an error."""
    assert asked("Vertiv", WIRE["Vertiv"][0], "1") == {"1": Drawn(41.0, 310.25)}
    assert asked("Vertiv", {}, "1") == {}
    assert asked("Gude", {}, "1") == {}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", ["Raritan", "Sentry4"])
def test_what_many_outlets_draw_fits_into_the_packets_of_every_agent(asked, monkeypatch, name):
    """Lost: energy of a PDU with many outlets, whose agent answers `tooBig`, or not at all, to a longer question."""
    reply, sizes = Agent._reply, []

    async def noted(agent, data):
        answer = await reply(agent, data)
        sizes.extend([len(data), len(answer)])
        return answer

    monkeypatch.setattr(Agent, "_reply", noted)
    first, indexes = next(iter(KINDS[name].outlets.values())).rpartition(".")[0], range(1, 41)
    meter, counter = METERS[name].watts[0], METERS[name].kwh[0]
    numbers = [f"{first}.{outlet}" for outlet in indexes]
    measures = {column.row(number): 310250000 for number in numbers for column in (meter, counter)}
    found = asked(name, measures, "2c", numbers)
    assert ([*found], found["40"].kwh) == ([str(outlet) for outlet in indexes], 310250.0)
    assert max(sizes) <= 484, "RFC 3417, 3.2.1"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("digits", [2_000_000_000, 11, -1])
def test_digits_that_no_number_has_are_no_measure(asked, digits):
    """Lost: the node's processor and memory for an hour, to an agent that says so: ten to the power of it."""
    measures = {**WIRE["Raritan"][0], "1.3.6.1.4.1.13742.6.3.5.4.1.7.1.1.5": digits}
    assert asked("Raritan", measures, "2c") == {"1": Drawn(None, 310.25), "2": Drawn(7.0)}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("maker", POE)
def test_switches_of_other_makers(asked, maker):
    """Lost: what a board on a PoE port draws, which RFC 3621 itself does not tell."""
    assert asked("PoE", {POE[maker]: 6400}, "2c") == {"1": Drawn(6.4)}


def test_each_meter_is_of_a_table_and_tried():
    """Lost: a meter, to a table that was renamed."""
    assert set(METERS) == set(WIRE)
    assert set(METERS) <= {table.name for table in TABLES}
