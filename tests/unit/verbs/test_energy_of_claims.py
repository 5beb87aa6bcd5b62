# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a claim's board draws, from its first power on to its end, by the verbs that switch and look at it."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.energy import ENERGY_PHASE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake


@pytest.fixture
def meter(site):
    """A function that sets the meter of board 0's outlet; None takes it away."""

    def show(kwh=None, watts=None, faults=None):
        path = site.folder / "pdu-a.json"
        data = json.loads(path.read_text())
        meters = {} if (kwh, watts) == (None, None) else {"1": {"watts": watts, "kwh": kwh}}
        path.write_text(json.dumps(dict(data, meters=meters, faults=faults or {})))

    return show


def info(site, **given):
    (board,) = site.module("board_info", boards=[0], **given)["boards"]
    return board["watts"], board["energy_kwh"]


def energy_of(site):
    with site.proxy() as proxy:
        return proxy.store.energy_of(next(iter(proxy.store.claims()), None))


def test_from_power_on_to_the_end(site, meter):
    """Lost: what an instance has drawn: in status, in the results, in the events of its board."""
    meter(310.0, 41.5)
    *_before, booted = site.provision()
    assert {key: booted["boards"][0][key] for key in ("watts", "energy_kwh")} == dict(watts=41.5, energy_kwh=0.0)
    meter(310.2, 40.0)
    assert info(site) == (41.5, 0.0)
    assert info(site, power=True) == (40.0, pytest.approx(0.2))
    assert energy_of(site).kwh == 0.0, "who only looks writes nothing"
    site.module("board_reconcile", timeout=10)
    assert (energy_of(site).watts, energy_of(site).kwh) == (40.0, pytest.approx(0.2))
    meter(0.05, 40.0)  # somebody reset the counter
    site.module("board_reconcile", timeout=10, check=True)
    assert energy_of(site).kwh == pytest.approx(0.2)
    result = site.module("instance", kind="board", instance="jackie", owner="jackie", state="absent", timeout=10)
    assert not result.get("failed"), result
    assert result["instances"][0]["energy_kwh"] == pytest.approx(0.25)
    assert any(line["text"].endswith("given back; it drew 0.250 kWh") for line in result["lines"]), result["lines"]
    assert [event.text for event in site.events(0, ENERGY_PHASE)] == ["jackie drew 0.250 kWh"]
    assert info(site) == (None, None)


def test_a_pdu_without_meters_is_told_as_before(jackie):
    """Lost: nothing is shown where nothing is measured."""
    assert info(jackie) == info(jackie, power=True) == (None, None)
    (booted,) = jackie.reboot()
    assert "energy_kwh" not in booted["boards"][0]
    assert jackie.terminate()[-1]["boards"][0].keys().isdisjoint({"watts", "energy_kwh"})
    assert jackie.events(0, ENERGY_PHASE) == []


def test_a_meter_that_fails_keeps_no_verb(site, meter, monkeypatch):
    """Lost: boards, to a meter that hangs or tells nonsense, each time that one is switched."""
    monkeypatch.setattr(drawn, "PATIENCE", 0.2)

    def hangs(driver, _outlets):
        while not driver.deadline.passed:
            driver.deadline.nap()
        raise RuntimeError("no such meter")

    monkeypatch.setattr(Fake, "drawn", hangs)
    meter(310.0, 41.5)
    assert not any(result.get("failed") for result in site.provision())
    began = time.monotonic()
    assert not site.module("board_reconcile", timeout=10).get("failed")
    assert not any(result.get("failed") for result in site.terminate())
    assert time.monotonic() - began < 120
    assert info(site) == (None, None)


def test_a_slow_meter_is_not_read_again_while_boards_are_switched(monkeypatch):
    """Lost: the pace at which a rack is switched on, to a meter of three seconds after each outlet."""
    monkeypatch.setattr(pdu_line, "SLOW", -1.0)
    asked, told = [], []
    one = pdu_line.PduLine(None, "pdu-a", 60.0, pdu_line.Listener(*[print] * 5, told.append))

    class Pdu:
        def drawn(self, outlets):
            asked.append(outlets)
            return {outlet: drawn.Drawn(1.0) for outlet in outlets}

    for outlets in ({"2", "1"}, {"3"}):
        one._unmeasured = outlets
        one._measure(Pdu())
    assert asked == [["1", "2"]]
    assert told == [{"1": drawn.Drawn(1.0), "2": drawn.Drawn(1.0)}]
