# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver snmp's tables: each on a device that has its MIB's objects, asked by net-snmp's own commands. APC's are in
test_snmp.py.
"""

from __future__ import annotations

import contextlib
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import snmp_tables
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp import Snmp
from ansible_collections.hetero.compute.tests.unit.drivers.power.snmp_devices import (
    COMMUNITY,
    KINDS,
    NO_ACCESS,
    NOT_WRITABLE,
    TABLE,
    Device,
)


@pytest.fixture
def device():
    """A function that starts a device of a kind; all are closed at the end."""
    started = []

    def start(name, **options):
        started.append(Device(name, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@contextlib.contextmanager
def opened(one, folder, seconds=120.0, version="2c"):
    given = {"driver": "snmp", "host": "127.0.0.1", "port": one.port, "snmp_version": version}
    if one.kind is KINDS[snmp_tables.OWN]:
        given["snmp_table"] = TABLE
    deadline = Deadline(seconds)
    with power.session("pdu-t", given, {"community": COMMUNITY}, deadline, str(folder)) as session:
        yield session, deadline


def seen(results):
    return {outlet: (one["before"], one["after"]) for outlet, one in results.items()}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_read_and_switched(device, tmp_path, name):
    """Lost: a board that stays dark, or runs on, on a PDU whose numbers were read as another's."""
    one, kind = device(name), KINDS[name]
    first, second, other = [*kind.outlets][:2] + [[*kind.outlets][-1]]
    with opened(one, tmp_path) as (session, deadline):
        assert session.dialect == name
        assert session.status() == dict.fromkeys(kind.outlets, "off")
        results = power.set_outlets(session, {first: "on", other: "on", second: "off"}, deadline)
        assert seen(results) == {first: ("off", "on"), other: ("off", "on"), second: ("off", "off")}
        assert one.done == [("on", kind.outlets[first]), ("on", kind.outlets[other])]
        one.done.clear()
        assert seen(power.set_outlets(session, {first: "cycled", other: "off"}, deadline)) == {
            first: ("on", "on"),
            other: ("on", "off"),
        }
        assert sorted(one.done) == sorted(
            [("off", kind.outlets[first]), ("off", kind.outlets[other]), ("on", kind.outlets[first])]
        )
        assert session.status() == {**dict.fromkeys(kind.outlets, "off"), first: "on"}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_refused_what_lies_and_what_is_neither(device, tmp_path, name):
    """Lost: a board that runs on an outlet that was called off, because the PDU said yes or its number was guessed."""
    one, kind = device(name), KINDS[name]
    refused, stuck, *_others = kind.outlets
    neither = [*kind.outlets][-1]
    one.refused, one.stuck = {kind.outlets[refused]}, {kind.outlets[stuck]}
    one.states[kind.outlets[neither]] = kind.neither[0]
    with opened(one, tmp_path) as (session, deadline):
        assert session.status() == {**dict.fromkeys(kind.outlets, "off"), neither: kind.neither[1]}
        for error, word in ((NOT_WRITABLE, "notWritable"), (NO_ACCESS, "noAccess")):
            one.error = error
            with pytest.raises(power.OutletsFailed) as caught:
                power.set_outlets(session, {refused: "on", stuck: "on"}, deadline, window=0.1)
            assert set(caught.value.errors) == {refused, stuck}
            assert word in str(caught.value.errors[refused])
            assert f"outlet {stuck} of pdu-t: still off" in str(caught.value.errors[stuck])
        # what is neither on nor off is switched like one in the other state
        assert seen(power.set_outlets(session, {neither: "off"}, deadline)) == {neither: (kind.neither[1], "off")}
        one.states[kind.outlets[neither]] = kind.neither[0]
        assert seen(power.set_outlets(session, {neither: "on"}, deadline)) == {neither: (kind.neither[1], "on")}


@pytest.mark.parametrize("name", ["PoE", "Sentry3", "Gude"])
def test_a_device_of_another_kind_than_its_name_says(device, tmp_path, name):
    """Lost: a PDU under another maker's label; or one that is switched by a table that it has not."""
    other = "1.3.6.1.4.1.318.1.3.4.5" if name != "Sentry3" else "1.3.6.1.4.1.1718.4"
    with opened(device(name, object_id=other), tmp_path) as (session, _deadline):
        assert session.dialect == name
        assert set(session.status()) == set(KINDS[name].outlets)


def test_a_port_where_nothing_asks_for_power_is_no_board_that_is_on(device, tmp_path):
    """Lost: that the cable is elsewhere, to a board that is waited for; or what to look at."""
    one = device("PoE")
    one.stuck.add("1.2")
    one.states["1.2"] = 2
    with opened(one, tmp_path) as (session, deadline):
        assert session.window == 30.0
        with pytest.raises(power.OutletsFailed, match=r"outlet 2 of pdu-t: still searching .*asks for power") as caught:
            power.set_outlets(session, {"2": "on"}, deadline, window=0.1)
    assert set(caught.value.errors) == {"2"}
    assert one.done == [("on", "1.2")]


def test_an_outlet_that_is_not_listed_any_more_is_said(device, tmp_path, monkeypatch):
    """Lost: the work on all boards, in a KeyError, to one unit of linked PDUs that starts anew just then."""
    one = device("Vertiv")
    with opened(one, tmp_path) as (session, deadline):
        told = session.status

        def status():
            try:
                return told()
            finally:
                one.states.pop("2", None)

        monkeypatch.setattr(session, "status", status)
        with pytest.raises(power.OutletsFailed) as caught:
            power.set_outlets(session, {"1": "on", "2": "on"}, deadline)
    assert set(caught.value.results) == {"1"}
    said = "outlet 2 of pdu-t: is not listed any more: look at the PDU's own list of outlets"
    assert str(caught.value.errors["2"]) == said


def test_many_outlets(device, tmp_path):
    """Lost: the outlets behind the first answers of a walk."""
    indexes = [f"{unit}.{port}" for unit in (1, 2, 3) for port in range(1, 61)]
    one = device("Raritan", indexes=indexes)
    with opened(one, tmp_path) as (session, deadline):
        status = session.status()
        assert len(status) == 180
        assert [*status][:2] == ["1", "2"]
        assert [*status][-1] == "3:60"
        power.set_outlets(session, {"60": "on", "3:60": "on"}, deadline)
    assert [index for index, state in one.states.items() if state == 7] == ["1.60", "3.60"]


def test_one_that_hangs_ends_at_the_deadline(device, tmp_path):
    """Lost: a play, for as long as a switch is silent."""
    one = device("PoE")
    one.silent = True
    begun = time.monotonic()
    with pytest.raises(TimedOut, match="no answer by SNMP"), opened(one, tmp_path, seconds=1.0):
        pytest.fail("opened")
    assert time.monotonic() - begun < 60


def test_a_table_of_ones_own_that_is_another_devices(device, tmp_path):
    """Lost: which setting is to be corrected."""
    one = device("PoE")
    one.kind = KINDS[snmp_tables.OWN]
    one.states = {}
    said = r"no outlets at 1\.3\.6\.1\.4\.1\.32473\.1\.7: .*correct the state of its snmp_table"
    with pytest.raises(HeteroError, match=said), opened(one, tmp_path):
        pytest.fail("opened")


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("1.3.6.1.4.1.318.1.3.4.5", "rPDU"),
        ("1.3.6.1.4.1.318.1.3.4.6.1", "rPDU2"),
        ("1.3.6.1.4.1.318.1.3.4.60", "rPDU2"),
        ("1.3.6.1.4.1.318.9", "rPDU2"),
        ("1.3.6.1.4.1.1718.3", "Sentry3"),
        ("1.3.6.1.4.1.1718.4.7", "Sentry4"),
        ("1.3.6.1.4.1.13742.6", "Raritan"),
        ("1.3.6.1.4.1.534.6.6.7", "Eaton"),
        ("1.3.6.1.4.1.3808", "CyberPower ePDU2"),
        ("1.3.6.1.4.1.21239.42.1.53", "Vertiv"),
        ("1.3.6.1.4.1.28507.64", "Gude"),
        ("1.3.6.1.4.1.9.1.1208", "PoE"),
        ("", "PoE"),
    ],
)
def test_the_table_of_a_device_is_asked_first(kind, first):
    """Lost: a second of each play for each table that a PDU has not."""
    tables = snmp_tables.likely(kind)
    assert tables[0].name == first
    assert sorted(map(id, tables)) == sorted(map(id, snmp_tables.TABLES))


@pytest.mark.parametrize("table", snmp_tables.TABLES, ids=lambda table: table.state)
def test_no_number_is_on_and_off_or_orders_both(table):
    """Lost: a board that is called off while it runs."""
    assert not set(table.is_on) & set(table.is_off)
    assert table.on != table.off
    assert [*table.states.values()].count("on") == len(table.is_on)
    assert [*table.states.values()].count("off") == len(table.is_off)
    assert all(map(snmp_tables.OID.fullmatch, (table.state, table.on.column, table.off.column)))


@pytest.mark.parametrize(
    ("first", "index", "outlet"),
    [
        ("", "7", "7"),
        ("", "1.7", "1:7"),
        ("1", "1.12", "12"),
        ("1", "3.2", "3:2"),
        ("1", "7", "7"),
        ("1.1", "1.1.7", "7"),
        ("1.1", "2.1.7", "2:7"),
        ("1.1", "12.1.3", "12:3"),
        ("1.1", "1.2.7", "1.2:7"),
        ("1.1", "2.2.7", "2.2:7"),
        ("1.1", "1.7", "1:7"),
        ("0", "0.7", "7"),
        ("0", "10.7", "10:7"),
    ],
)
def test_an_outlet_has_one_name(first, index, outlet):
    """Lost: the outlets of the second PDU of a chain are those of the first."""
    table = snmp_tables.Table("t", "1.3", snmp_tables.Order("1.4", 1), snmp_tables.Order("1.4", 2), first=first)
    assert table.outlet(index) == outlet


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"state": None}, ["no column of states: give its OID"]),
        ({"state": "1.3.6.1.x"}, ["no column of states"]),
        ({"stat": 1}, ["unknown key stat: write state"]),
        ({True: TABLE["on"]}, ["has a key True: put on in quotes"]),
        (
            {"on": {"column": "here", "value": 1}},
            ['no on with the OID of a column: give "on": {column: 1.3.6.1.4.1.32473.1.6, value: 2}'],
        ),
        ({"off": 2}, ['no off with the OID of a column: give "off": {column: 1.3.6.1.4.1.32473.1.6, value: 1}']),
        ({"off": dict(TABLE["off"], value="2")}, [r"no off.value that is a whole number of 0 or more"]),
        ({"off": dict(TABLE["off"], value=-1)}, ["no off.value"]),
        ({"off": dict(TABLE["off"], value=True)}, ["no off.value"]),
        ({"off": dict(TABLE["off"], valeu=2)}, ["an unknown key off.valeu"]),
        ({"off": TABLE["on"]}, ["one order for on and for off"]),
        ({"is_on": 5}, ["no list for is_on: give the values of the state, such as is_on: [1]"]),
        ({"is_on": ["up"]}, ["an is_on with what is no whole number"]),
        ({"is_on": [6]}, ["has 6 for on and for off"]),
        ({"first": "A"}, ["a first that is no index"]),
    ],
)
def test_what_is_wrong_with_a_table_of_ones_own(change, said):
    """Lost: that it is wrong, to the first board that waits for its power."""
    found = [str(error) for _key, error in Snmp.wrong("pdu-t", {"host": "h", "snmp_table": {**TABLE, **change}})]
    assert len(found) == len(said), found
    for words, error in zip(said, found):
        assert words in error
