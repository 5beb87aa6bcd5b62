# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Redfish service with several systems (a chassis, a multi-host BMC), of which one refuses an order. If these fail,
the error of that one is said of all outlets of the batch: boards that obeyed count as ones whose outlet does not, and
go to error (boards/power/pdu_line.py: on_refused), and those after it are not asked at all.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc, error


@pytest.fixture
def chassis():
    one = RedfishBmc({"1": "Off", "2": "Off", "3": "Off"})
    yield one
    one.close()


REFUSALS = {
    "forbidden": (403, error("Insufficient privilege for blade 2")),
    "bad request": (400, error("blade 2 is not present", "Base.1.8.ActionNotSupported")),
    "no such action": (404, error("no such action")),
}


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("state", ["on", "off"])
def test_one_that_refuses_is_none_of_the_others_fault(chassis, tmp_path, why, state):
    """Lost: boards 1 and 3, by the error of board 2."""
    for name in chassis.power:
        chassis.power[name] = "Off" if state == "on" else "On"
    chassis.faults["POST", "/2/Actions/ComputerSystem.Reset"] = lambda _bmc: REFUSALS[why]
    deadline = Deadline(60)
    with power.session("bmc", chassis.settings, chassis.secrets, deadline, str(tmp_path)) as session:
        try:
            done, errors = power.set_outlets(session, dict.fromkeys("123", state), deadline), {}
        except power.OutletsFailed as failed:
            done, errors = failed.results, failed.errors
    said = {outlet: str(one) for outlet, one in errors.items()}, chassis.resets, chassis.power
    assert set(errors) == {"2"}, said
    assert set(done) == {"1", "3"}, said


def test_one_that_cannot_be_switched_off_hard(tmp_path):
    """The same where the BMC allows one of its systems no ForceOff."""
    bmc = RedfishBmc({"1": "On", "2": "On", "3": "On"})
    try:
        whole = bmc.system

        def system(name):
            told = whole(name)
            if name == "2":
                told["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["On"]
            return told

        bmc.system = system
        deadline = Deadline(60)
        opened = power.session("bmc", bmc.settings, bmc.secrets, deadline, str(tmp_path))
        with opened as session, pytest.raises(power.OutletsFailed) as failed:
            power.set_outlets(session, dict.fromkeys("123", "off"), deadline)
        said = {outlet: str(one) for outlet, one in failed.value.errors.items()}, bmc.power
        assert set(failed.value.errors) == {"2"}, said
    finally:
        bmc.close()
