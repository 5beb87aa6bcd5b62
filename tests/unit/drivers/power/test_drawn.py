# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlets draw: readings that are numbers, and meters that fail for themselves alone."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn as meters
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.named_pdu import tell
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session


@pytest.fixture
def fake(tmp_path):
    """A function: the settings of a fake PDU with these meters and faults."""

    def make(measures, **faults):
        file = tmp_path / "fake.json"
        file.write_text(json.dumps({"outlets": {"1": "on", "2": "off"}, "meters": measures, "faults": faults}))
        return {"driver": "fake", "path": str(file)}

    return make


@pytest.mark.parametrize(
    ("value", "number"),
    [(41, 41.0), ("41.5", 41.5), (0, 0.0), (-1, None), ("-1", None), ("nan", None), ("inf", None), (None, None)]
    + [("12 W", None), (True, None), ([1], None), ({}, None), ("9" * 400, None)],
)
def test_what_is_no_measure_is_none(value, number):
    """Lost: energy, to a device that says -1 of what it does not measure."""
    assert meters.measure(value) == number
    assert meters.measure(value, 0.5) == (None if number is None else number / 2)


def test_a_pdu_tells_what_its_outlets_draw(fake, tmp_path):
    """Lost: watts and kilowatt-hours of pdu_info, or that of an outlet without a meter nothing is said."""
    given = fake({"1": {"watts": 41.2, "kwh": 310.25}, "2": {"watts": 0}, "9": {"watts": 1}})
    with session("pdu-t", given, {}, Deadline(60), str(tmp_path)) as opened:
        told = tell(opened, None)
    assert told == {
        "1": dict(before="on", after="on", seconds=0.0, watts=41.2, kwh=310.25),
        "2": dict(before="off", after="off", seconds=0.0, watts=0.0),
    }


@pytest.mark.parametrize("measures", [{"1": {"watts": "much"}}, {"1": {"volts": 230}}, {"1": None}, ["1"], "none"])
def test_what_a_meter_says_wrongly_is_left_out(fake, tmp_path, measures):
    """Lost: the states of a whole PDU, to one odd reading."""
    with session("pdu-t", fake(measures), {}, Deadline(60), str(tmp_path)) as opened:
        assert tell(opened, ["1"]) == {"1": dict(before="on", after="on", seconds=0.0)}


def test_a_meter_that_hangs_takes_its_few_seconds_and_no_more(fake, tmp_path, monkeypatch):
    """Lost: a verb, which would wait for the energy counter of a PDU until its own deadline."""
    monkeypatch.setattr(meters, "PATIENCE", 0.3)
    deadline, given = Deadline(600), fake({"1": {"watts": 1}})
    with session("pdu-t", given, {}, deadline, str(tmp_path)) as opened:
        given["path"] = fake({"1": {"watts": 1}}, hang=True)["path"]
        assert opened.drawn(["1"]) == {}
        assert opened._driver.deadline is deadline
        given["path"] = fake({"1": {"watts": 1}})["path"]
        assert opened.status() == {"1": "on", "2": "off"}
    assert deadline.spent < 60


@pytest.mark.parametrize("error", [Lost("is away", "pdu-t", "look"), KeyError("power"), ZeroDivisionError()])
def test_a_sites_own_driver_may_fail_at_its_meter(fake, tmp_path, monkeypatch, error):
    """Lost: power, to an error in a few lines that were only to read a meter."""

    def drawn(_self, _outlets):
        raise error

    monkeypatch.setattr(Fake, "drawn", drawn)
    with session("pdu-t", fake({}), {}, Deadline(60), str(tmp_path)) as opened:
        assert opened.drawn(["1"]) == {}


def test_a_driver_without_a_meter_needs_no_change():
    """Lost: each driver that was written before there were meters."""
    driver = Apc("pdu-t", {"host": "127.0.0.1"}, {}, Deadline(1))
    assert driver.drawn(["1"]) == {}
    assert meters.told(driver, driver.deadline, ["1"]) == {}
    assert not meters.any_of(Drawn())
