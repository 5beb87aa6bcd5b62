# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving in from labgrid: what has a driver here is not said to have none.

Lost: hours of who reads that a Raritan, Sentry or Gude PDU, a Tasmota plug, a switch with PoE or a USB hub "has no
counterpart here", and writes a script or keeps labgrid, although drivers http, snmp and uhubctl switch all of them.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import moved

MODEL = "pi1:\n  NetworkPowerPort: {{model: {model}, host: 10.0.100.31, index: 1}}\n"
USB = "pi1:\n  USBPowerPort:\n    match: {ID_PATH: 'pci-0000:00:14.0-usb-0:2:1.0'}\n    index: 1\n"
TASMOTA = "pi1:\n  TasmotaPowerPort: {host: broker, power_topic: cmnd/t/POWER}\n"


def said(folder, text):
    path = folder / "exporter.yaml"
    path.write_text(text)
    return "\n".join(moved(folder, "labgrid", path, check=True)["lines"])


@pytest.mark.parametrize("model", ["raritan", "sentry", "eaton", "gude", "poe_mib", "netio"])
def test_no_model_is_said_to_have_no_driver(tmp_path, model):
    assert "has no counterpart here" not in said(tmp_path, MODEL.format(model=model))


@pytest.mark.parametrize(("text", "driver"), [(USB, "uhubctl"), (TASMOTA, "http with api tasmota")])
def test_no_kind_is_said_to_have_no_driver(tmp_path, text, driver):
    assert f"PowerPort: driver {driver} switches" in said(tmp_path, text)


def test_one_that_has_none_is(tmp_path):
    assert 'model "siglent" of labgrid has no counterpart here' in said(tmp_path, MODEL.format(model="siglent"))
