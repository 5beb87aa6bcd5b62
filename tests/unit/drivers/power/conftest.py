# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emulated PDUs and BMCs that end with their test; what these are, is in emulated_pdu.py and simulated_bmc.py."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import EmulatedPdu
from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import SimulatedBmc


@pytest.fixture
def emulated(tmp_path):
    """A function that starts an emulated PDU; all are stopped at the end of the test."""
    started = []

    def start(**settings):
        folder = tmp_path / f"pdu{len(started)}"
        folder.mkdir()
        started.append(EmulatedPdu(folder, **settings))
        return started[-1]

    yield start
    for pdu in started:
        pdu.stop()


@pytest.fixture
def bmc(tmp_path):
    """A function that starts a BMC; all are stopped at the end of the test."""
    started = []

    def start(**options):
        folder = tmp_path / f"bmc{len(started)}"
        folder.mkdir()
        started.append(SimulatedBmc(folder, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def node(emulated, tmp_path):
    """An emulated PDU and a proxy node's configuration that names it pdu-t; returns (pdu, arguments)."""

    def build(**settings):
        pdu = emulated(**settings)
        credentials = tmp_path / "credentials.json"
        credentials.write_text(json.dumps({"pdu-t": pdu.secrets}))
        proxy = {"pdus": {"pdu-t": pdu.settings}, "credentials": str(credentials), "run_folder": str(tmp_path / "run")}
        config = tmp_path / "proxy.json"
        config.write_text(json.dumps(proxy))
        return pdu, {"pdu": "pdu-t", "config": str(config), "timeout": 60}

    return build
