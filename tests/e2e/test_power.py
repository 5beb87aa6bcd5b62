# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's PDU as other people's tools see it: its outlets really start and stop machines."""

from __future__ import annotations

import os

import pytest

MENU = ("10.0.100.1", "5", 0)
COMMAND_LINE = ("10.0.100.2", "5", 5)


def fence(lab, pdu, outlet, action):
    argv = ["fence_apc", "-a", pdu, "-l", "apc", "-p", "apc", "-n", outlet, "-o", action]
    return lab.inside(*argv, check=False)


@pytest.mark.parametrize(("pdu", "outlet", "board"), [MENU, COMMAND_LINE], ids=["menu", "command line"])
def test_fence_apc_starts_and_stops_the_machine(lab, pdu, outlet, board):
    """Lost: the lab's claim to stand for real PDUs."""
    assert fence(lab, pdu, outlet, "status").returncode == 2  # off, says fence_apc
    assert lab.machine(board) is None
    assert fence(lab, pdu, outlet, "on").returncode == 0
    machine = lab.machine(board)
    with open(f"/proc/{machine}/comm", encoding="ascii") as file:
        assert file.read().startswith("qemu-system")
    assert fence(lab, pdu, outlet, "status").returncode == 0
    assert f"{outlet},board{board}" in fence(lab, pdu, outlet, "list").stdout.splitlines()
    assert fence(lab, pdu, outlet, "off").returncode == 0
    assert lab.machine(board) is None
    with pytest.raises(ProcessLookupError):
        os.kill(machine, 0)
