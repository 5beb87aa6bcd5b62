# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four boards are systems of one Redfish service (a chassis), and one of these refuses an order. If these fail, boards
beside it, which would do or did what they were told, go to error with that one's words, and are kept out of use.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc, error
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.conftest import played

NAMES = ("jackie", "carol", "dave", "eve")


@pytest.fixture
def four(tmp_path, monkeypatch):
    """Four boards, systems 1 to 4 of one chassis, which are made ready, and off."""
    site = played(tmp_path, monkeypatch, 4)
    bmc = site.bmc = RedfishBmc({"1": "Off", "2": "Off", "3": "Off", "4": "Off"})
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"] = {"pdu-a": bmc.settings}
    path.write_text(json.dumps(config))
    (site.folder / "credentials.json").write_text(json.dumps({"pdu-a": bmc.secrets}))
    for board, name in enumerate(NAMES):
        request = dict(instance=name, owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
        assert not site.module("board_claim", **request).get("failed")
        ready = site.module("board_image", boards=[board], image="debian", ssh_public_key=KEY, instance=name)
        assert not ready.get("failed"), ready
    yield site
    bmc.close()
    site.tear_down()


def refuses(bmc):
    bmc.faults["POST", "/2/Actions/ComputerSystem.Reset"] = lambda _bmc: (400, error("blade 2 has no power budget"))


def told(site, result):
    return [
        (one["name"], one["failed"], one.get("error"), site.record(one["board"]).state, site.record(one["board"]).power)
        for one in result["boards"]
    ]


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_the_neighbours_of_a_blade_that_refuses(four, state):
    """Lost: boards 2 and 3, by the words of board 1."""
    if state == "stopped":
        assert not four.module("tilera_boot", boards=[0, 1, 2, 3], timeout=10).get("failed")
    refuses(four.bmc)
    result = four.module("tilera_boot", boards=[0, 1, 2, 3], state=state, timeout=10)
    said = told(four, result), four.bmc.power
    assert {name for name, failed, *_more in said[0] if failed} == {"board1"}, said
    assert [four.record(board).state == "error" for board in range(4)] == [False, True, False, False], said
