# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a set-up takes arguments for kernels that no kernel will get, and the first to hear of it are tenants
whose requests are refused.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.arguments_check import undelivered
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, image_tar

BOARDS = """\
0 10.0.2.1 00:1A:CA:00:57:90 10 16218 0 476 0 tilera_hv 1 {"vendor":"tilera","arch":"TILEPro64"}
1 10.0.2.2 00:1A:CA:00:58:98 10 16218 0 476 0 tilera_hv 1 {"vendor":"Tilera","arch":"TILEPro64"}
"""
NO_ROOT = {name: None for name in MEMBERS if name.split("/")[0] == "root"}


def looked(state, ram_image="ram", **wire):
    """(defects, notes on arguments) where board 0 is wired so, and board 1 boots by PXE with all there is."""
    one = dict(pdu="a", outlet="2", driver="pxe", disk="/dev/sda", cmdline="console=ttyS0")
    wiring = {"0": dict(dict(pdu="a", outlet="1"), **wire), "1": one}
    plan = Plan(server="10.0.2.254", boards_text=BOARDS, credentials_for=["a"], wiring=wiring, state_folder=str(state))
    plan.pdus, plan.ram_images = {"a": {"driver": "apc", "host": "10.0.100.1"}}, {"tilepro64": ram_image}
    found = Findings()
    preflight.wiring(plan, preflight.boards_of(plan, found), found)
    return [str(one) for one in found.defects], [str(note) for note in found.notes if "cmdline" in str(note)]


@pytest.mark.parametrize("driver", [{}, {"driver": "tilera"}])
def test_arguments_in_the_wiring_of_a_board_that_gets_none_are_refused(tmp_path, driver):
    defects, _notes = looked(tmp_path, cmdline="quiet", **driver)
    what = "tftp_proxy_boards, board 0: has cmdline, and boot driver tilera passes no arguments to the kernel"
    assert defects == [f"{what}: build them into a kernel of its own (kernel.d/N in its image), and take cmdline out"]
    assert looked(tmp_path, **driver) == ([], [])
    for other in ("pxe", "uboot"):
        assert looked(tmp_path, cmdline="quiet", driver=other) == ([], [])


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ({"disk": "/dev/sda"}, True),
        ({}, False),
        ({"disk": "none"}, False),
        ({"disk": "/dev/sda", "driver": "pxe"}, False),
    ],
)
def test_a_ram_image_whose_arguments_a_board_does_not_get_is_named(tmp_path, wire, said):
    about = json.dumps({"arch": "tilepro64", "ram": True, "cmdline": "libata.ignore_hpa=1"})
    source = image_tar(tmp_path / "ram.tar", **{"image.json": about, **NO_ROOT})
    ImageStore(str(tmp_path / "images")).import_image(source, "ram")
    what = "tftp_proxy_ram_images: ram has arguments for the kernel (cmdline), which no driver passes to "
    way = "board0 (tilera): build them into its kernel, and take cmdline out of its image.json"
    assert looked(tmp_path, **wire) == ([], [what + way] if said else [])


@pytest.mark.parametrize("name", ["not-there", 7])
def test_a_ram_image_that_is_not_there_is_named_elsewhere(tmp_path, name):
    assert looked(tmp_path, ram_image=name, disk="/dev/sda") == ([], [])


def test_a_driver_of_a_sites_own_is_judged_by_what_it_says_of_itself(tmp_path):
    """Lost: the arguments of its boards, of which the first to hear are tenants; or a set-up, to a driver that passes
    them, or that settings_check.py has refused by then.
    """
    boards = [SimpleNamespace(id=number, name=f"board{number}", arch="arm", vendor="arm") for number in range(3)]
    drivers = {name: SimpleNamespace(name=name, passes_arguments=name == "passes") for name in ("passes", "drops")}
    wires = {str(board.id): dict(cmdline="quiet", driver=name) for board, name in zip(boards, (*drivers, "unknown"))}
    found = Findings()
    undelivered(Plan(server="10.0.2.254", state_folder=str(tmp_path)), boards, wires, found, drivers)
    (defect,) = found.defects
    assert (defect.thing, found.notes) == ("tftp_proxy_boards, board 1", [])
    assert defect.what == "has cmdline, and boot driver drops passes no arguments to the kernel"
