# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that the wiring names. If these fail, the next tenant of a board reads what the last one left on its disk."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import disks_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_preflight import BOARDS, GOOD, said

DISKS = {number: {**wire, "disk": "/dev/sda"} for number, wire in GOOD.wiring.items()}


def test_a_missing_ram_image_is_said_once_of_all_boards_that_need_it():
    """Lost: the other mistakes of a rack, below a line for each of its boards that says the same."""
    plan = dict(boards_text=BOARDS, wiring=DISKS, ram_images={"aarch64": "ram"})
    missing = "there is no RAM image for TILEPro64 to wipe disks from: name one in tftp_proxy_ram_images, as "
    (defect,), _notes = said(**plan)
    assert defect.startswith(f"tftp_proxy_boards, boards 0, 1: {missing}{{TILEPro64: NAME}}; ")
    (defect,), _notes = said(**{**plan, "wiring": {"0": DISKS["0"], "1": GOOD.wiring["1"]}})
    assert defect.startswith(f"tftp_proxy_boards, board 0: {missing}")
    both, _notes = said(**{**plan, "boards_text": BOARDS.replace("TILEPro64", "tile-gx", 1)})
    assert [one.split(": ")[0] for one in both] == ["tftp_proxy_boards, board 0", "tftp_proxy_boards, board 1"]
    assert said(**{**plan, "ram_images": {"tilepro64": "ram"}})[0] == []


@pytest.mark.parametrize(
    ("wire", "arch", "said_of_it", "without"),
    [
        ({"disk": "/dev/sda"}, "TILEPro64", None, "TILEPro64"),
        ({"disk": ["/dev/sda", "/dev/nvme0n1"]}, "AArch64", None, None),
        ({"disk": "/dev/sda"}, None, None, None),
        ({"disk": "none"}, "TILEPro64", None, None),
        ({}, "TILEPro64", None, None),
        ({"disk": "sda"}, "TILEPro64", "disk is no device name: sda", None),
        ({"disk": "/dev/sda", "kernel_source": "flash"}, "TILEPro64", "has a disk, and its kernel in flash: ", None),
    ],
)
def test_what_is_wrong_with_a_boards_disk(wire, arch, said_of_it, without):
    """Lost: which boards' disks nobody wipes; or a set-up, to a board without a disk."""
    found = Findings()
    plan = Plan(server="10.0.2.254", ram_images={"aarch64": "ram"})
    assert disks_check.disks(plan, "board 0", wire, arch, found) == without
    assert [str(defect).startswith(f"board 0: {said_of_it}") for defect in found.defects] == [True] * bool(said_of_it)
