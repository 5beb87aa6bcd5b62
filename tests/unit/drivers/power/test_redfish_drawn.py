# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systems draw by Redfish: their chassis' EnvironmentMetrics, or the older Power, and never another's power."""

from __future__ import annotations

import contextlib

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn as meters
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc, error


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A function: what a BMC tells of the power of its systems."""
    monkeypatch.setattr(meters, "PATIENCE", 60.0)

    def ask(prepare, systems=("Self",)):
        with contextlib.ExitStack() as stack:
            bmc = RedfishBmc(dict.fromkeys(systems, "On"))
            stack.callback(bmc.close)
            prepare(bmc)
            deadline = Deadline(120)
            opened = power.session("bmc-a", bmc.settings, bmc.secrets, deadline, str(tmp_path))
            with opened as session:
                found = session.drawn(list(systems))
                assert session.status() == dict.fromkeys(systems, "on")
            assert (bmc.resets, bmc.sessions) == ([], {}), "a reading switches nothing, and its session is closed"
            return found

    return ask


def test_metrics_of_its_chassis(asked):
    """Lost: watts and kilowatt-hours of a BMC as DSP2046 has them today."""

    def newer(bmc):
        bmc.chassis = {"Self": ["1U"]}
        bmc.metrics = {"1U": {"PowerWatts": {"Reading": 374.5}, "EnergykWh": {"Reading": 310.25}}}
        bmc.consumed = {"1U": 1}

    assert asked(newer) == {"Self": Drawn(374.5, 310.25)}


def test_an_older_bmc_that_has_power_alone(asked):
    """Lost: the watts of most servers that are in racks."""

    def older(bmc):
        bmc.chassis, bmc.consumed = {"Self": ["1U"]}, {"1U": 344}

    def half(bmc):
        older(bmc)
        bmc.metrics = {"1U": {"PowerWatts": {"Reading": None}, "EnergykWh": {"Reading": 310.25}}}

    def broken(bmc):
        half(bmc)
        bmc.faults = {("GET", "EnvironmentMetrics"): lambda _bmc: (500, error("out of order"))}

    assert asked(older) == {"Self": Drawn(344.0)}
    assert asked(half) == {"Self": Drawn(344.0, 310.25)}
    assert asked(broken) == {"Self": Drawn(344.0)}


def test_what_is_others_power_too_is_nobodys(asked):
    """Lost: to a claim, the energy of all blades of one chassis, or of the half of a machine that has two."""

    def shared(bmc):
        bmc.chassis, bmc.consumed = {"A": ["blades"], "B": ["blades"]}, {"blades": 2000}

    def two(bmc):
        bmc.chassis, bmc.consumed = {"A": ["1U", "drawer"], "B": ["2U"]}, {"1U": 300, "drawer": 90, "2U": 150}

    assert asked(shared, ("A", "B")) == {}
    assert asked(two, ("A", "B")) == {"B": Drawn(150.0)}


@pytest.mark.parametrize(
    "fault",
    [
        lambda _bmc: (500, error("out of order")),
        lambda _bmc: (401, error("no")),
        lambda _bmc: (404, error("no such thing")),
        lambda _bmc: (200, "no JSON"),
        lambda _bmc: (200, {"Links": 7}),
        lambda _bmc: (200, {"PowerControl": []}),
        lambda _bmc: (200, {"PowerControl": [{"PowerConsumedWatts": None}]}),
    ],
)
@pytest.mark.parametrize("where", ["Chassis/1U", "Power"])
def test_one_that_does_not_tell_is_a_machine_all_the_same(asked, where, fault):
    """Lost: the machine, to its meter."""

    def broken(bmc):
        bmc.chassis, bmc.consumed = {"Self": ["1U"]}, {"1U": 344}
        bmc.faults = {("GET", where): fault}

    assert asked(broken) == {}
    assert asked(lambda _bmc: None) == {}
