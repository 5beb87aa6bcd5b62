# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine behind a BMC is on its way (PowerState PoweringOff, after `poweroff` in its system) for a few seconds when
a verb looks. If this fails, the verb says that the outlet is to be corrected in proxy.json, although it is right.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY


@pytest.fixture
def bmc(site):
    one = RedfishBmc({"1": "Off", "2": "Off"})
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"] = {"pdu-a": one.settings}
    path.write_text(json.dumps(config))
    (site.folder / "credentials.json").write_text(json.dumps({"pdu-a": one.secrets}))
    request = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert not site.module("board_claim", **request).get("failed")
    ready = site.module("board_image", boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not ready.get("failed"), ready
    assert not site.module("tilera_boot", boards=[0], timeout=10).get("failed")
    yield one
    one.close()


def test_what_is_said_of_a_machine_on_its_way_can_be_done(bmc, site):
    """Lost: the time that somebody spends with a right wiring, where a minute's patience is enough."""
    bmc.power["1"] = ("Off", time.monotonic() + 3600)
    boot = site.run_folder / "fake-boots" / "board0"
    boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))
    refused = site.module("tilera_boot", boards=[0], state="stopped", timeout=60)["msg"]
    assert "pdu-a outlet 1 cannot be read: unknown (PoweringOff): run this again in a minute" in refused
    bmc.power["1"] = "Off"
    again = site.module("tilera_boot", boards=[0], state="stopped", timeout=60)
    assert not again.get("failed"), again.get("msg")
