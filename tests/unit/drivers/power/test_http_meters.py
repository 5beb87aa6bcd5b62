# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlets draw by HTTP, on devices that answer as their vendors' pages have it."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import drawn as meters
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.http_apis import APIS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.http_meters import METERS
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import USER, Device

#: (kind, outlets, what its meters say, what that is).
KINDS = [
    ("shelly1", "01", {"0": (41.2, 60000), "1": (0, 30)}, {"0": Drawn(41.2, 1.0), "1": Drawn(0.0, 0.0005)}),
    ("shelly1", "01", {"0": (41.2, 60000)}, {}),
    ("shelly1", "0", {}, {}),
    ("shelly2", "01", {"0": (41.2, 310250.5), "1": (1, None)}, {"0": Drawn(41.2, 310.2505), "1": Drawn(1.0)}),
    ("tasmota", "1", {"1": (41, 310.25)}, {"1": Drawn(41.0, 310.25)}),
    ("tasmota", "12", {"1": (41, 310.25), "2": (0, 1.5)}, {"1": Drawn(41.0, 310.25), "2": Drawn(0.0, 1.5)}),
    ("tasmota", "12", {"1": (41, 310.25)}, {}),
    ("tasmota", "1", {}, {}),
    ("netio", "12", {"1": (41, 310250), "2": (0, 12)}, {"1": Drawn(41.0, 310.25), "2": Drawn(0.0, 0.012)}),
    ("netio", "1", {}, {}),
    ("dli", "1", {}, {}),
    ("home_assistant", ["switch.lab"], {}, {}),
]


def asked(device, folder, outlets, deadline):
    given = {"driver": "http", "api": device.kind, "host": "127.0.0.1", "port": device.port, "outlets": list(outlets)}
    secrets = {"username": USER, "password": device.password}
    with power.session("plugs", given, secrets, deadline, str(folder)) as session:
        states = session.status()
        found = session.drawn(list(outlets))
        assert session.status() == states
    return found


@pytest.mark.parametrize(("kind", "outlets", "said", "told"), KINDS)
def test_what_each_kind_tells(tmp_path, monkeypatch, kind, outlets, said, told):
    """Lost: energy; or the energy of several boards behind one meter, which each of them would be charged with."""
    monkeypatch.setattr(meters, "PATIENCE", 60.0)
    device = Device(kind, dict.fromkeys(outlets, True))
    device.meters = said
    try:
        assert asked(device, tmp_path, outlets, Deadline(120)) == told
        assert device.outlets == dict.fromkeys(outlets, True), "a reading switches nothing"
    finally:
        device.close()


@pytest.mark.parametrize("relays", [[{}, {}], {}, None])
def test_a_meter_of_several_relays_is_none_of_theirs(relays):
    """Lost: `status`, to a plug that tells something else than its vendor's page has."""
    answer = {"meters": [{"power": 41.2, "total": 60000}], "relays": relays}
    assert METERS["shelly1"].drawn(answer, "0") == Drawn()
    assert METERS["shelly1"].drawn(dict(answer, relays=[{}]), "0") == Drawn(41.2, 1.0)


def test_a_device_that_answers_its_meter_with_an_error(tmp_path, monkeypatch):
    """Lost: the outlets of a plug, to a meter that is out of order, or an answer that is none."""
    device, deadline = Device("shelly2", {"0": True, "1": True}), Deadline(120)
    given = {"driver": "http", "api": "shelly2", "host": "127.0.0.1", "port": device.port, "outlets": ["0", "1"]}
    try:
        with power.session("plugs", given, {"password": device.password}, deadline, str(tmp_path)) as session:
            for fault in ({"status": 500}, {"body": "no JSON"}, {"body": "[]"}, {"body": "[" * 100000}):
                device.faults = fault
                assert session.drawn(["0", "1"]) == {}
            monkeypatch.setattr(meters, "PATIENCE", 0.5)
            device.faults = {"trickle": True}
            assert session.drawn(["0", "1"]) == {}
            device.faults = {}
            assert session.status() == {"0": "on", "1": "on"}
    finally:
        device.close()


def test_each_meter_is_of_a_kind():
    """Lost: a meter, to a kind of device that was renamed."""
    assert set(METERS) <= set(APIS)
    assert set(APIS) - set(METERS) == {"dli", "home_assistant"}
