# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A console by IPMI's serial over LAN: a real conserver, ipmitool, and a BMC of others (OpenIPMI's ipmi_sim)."""

from __future__ import annotations

import os
import pty
import tty

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import SimulatedBmc
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.played_consoles import Conserver, eventually


@pytest.fixture
def line():
    """(what is at the serial line's end, the device that the BMC has) of a machine without power."""
    machine, device = pty.openpty()
    tty.setraw(device)
    yield machine, os.ttyname(device)
    os.close(machine)
    os.close(device)


@pytest.fixture
def served(site, line, tmp_path):
    """conserver that serves board0 by a socket, and board1 by the BMC that feeds it."""
    folder = tmp_path / "bmc"
    folder.mkdir()
    bmc = SimulatedBmc(folder, line=line[1])
    made = Conserver(site, {"1": {"pdu": "bmc1", "outlet": "1", "console_from": {"type": "ipmi"}}}, bmc)
    yield made
    made.end()
    bmc.stop()


def test_a_servers_console_is_there_before_its_power(served, line):
    """Lost: all that servers say, for there is no session of the BMC that could be ended before the first."""
    log = served.log.with_name("board1.log")
    os.write(line[0], b"BIOS of board1\r\n")
    text = eventually(log.read_text, lambda text: "BIOS of board1" in text, seconds=60)
    assert "Console down" not in text
