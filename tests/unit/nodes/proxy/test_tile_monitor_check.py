# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, the first that is heard of a missing tile-monitor is a boot that was refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.tile_monitor_check import missing
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import DEFAULTS

BOARDS = """\
0 10.0.2.1 00:1A:CA:00:57:90 10 16218 0 476 0 tilera_hv 1 {"vendor":"tilera","arch":"TILEPro64"}
1 10.0.2.2 00:1A:CA:00:58:98 10 16218 0 476 0 tilera_hv 1 {"vendor":"Tilera","arch":"TILEPro64"}
2 10.0.2.3 00:1A:CA:00:58:99 10 16218 0 476 0 qemu 1 {"vendor":"arm","arch":"aarch64"}
"""
CANNOT = "cannot boot by driver tilera"
BY_VENDOR = "(the vendor in cpu_info is tilera, and tftp_proxy_boards names no driver)"


def notes(drivers, path):
    """The notes on boot drivers, for boards that are wired with these."""
    wiring = {str(n): {"pdu": "a", "outlet": str(n + 1), **({"driver": d} if d else {})} for n, d in enumerate(drivers)}
    pdus = {"a": {"driver": "apc", "host": "10.0.100.1"}}
    plan = Plan(server="10.0.2.254", boards_text=BOARDS, pdus=pdus, credentials_for=["a"], wiring=wiring)
    plan.settings = {"tile_monitor": path}
    found = Findings()
    preflight.wiring(plan, preflight.boards_of(plan, found), found)
    assert found.defects == []
    return [str(note) for note in found.notes]


@pytest.mark.parametrize(
    ("drivers", "said"),
    [
        (["", "", ""], f"board0, board1: {CANNOT} {BY_VENDOR}: "),
        (["pxe", "", ""], f"board1: {CANNOT} {BY_VENDOR}: "),
        (["pxe", "uboot", "tilera"], f"board2: {CANNOT}: "),
        (["pxe", "pxe", ""], None),
    ],
)
def test_boards_without_tile_monitor_are_named_with_both_ways_out(tmp_path, drivers, said):
    path = str(tmp_path / "tile-monitor")
    ways = f"{path}: is missing: install Tilera's MDE on {THIS_NODE}, or correct tftp_proxy_tile_monitor"
    pxe = "or set driver: pxe in tftp_proxy_boards for boards that boot by PXE"
    assert notes(drivers, path) == ([f"{said}{ways}; {pxe}"] if said else [])


def test_a_tile_monitor_that_is_there_is_not_spoken_of(tmp_path):
    path = tmp_path / "tile-monitor"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert notes(["", "", ""], str(path)) == []
    path.chmod(0o644)
    assert "chmod +x it" in notes(["", "", ""], str(path))[0]


@pytest.mark.parametrize("path", ["relative/tile-monitor", 7])
def test_a_path_that_is_refused_anyway_is_not_looked_for(path):
    assert notes(["", "", ""], path) == []


def test_without_a_setting_the_program_is_looked_for_where_the_vendor_puts_it():
    """Lost: the note, to whoever leaves the path out, as most do; or one of many lines for boards that need none."""
    board = SimpleNamespace(id=7, name="board7", vendor="arm")
    found = Findings()
    missing(Plan(server="10.0.2.254"), [board], {"7": {"driver": "tilera"}}, found)
    (note,) = found.notes
    assert (note.thing, note.what) == ("board7", CANNOT)
    assert note.remedy.startswith(f"{DEFAULTS.tile_monitor}: is missing: ")
    missing(Plan(server="10.0.2.254"), [board], {"7": {"driver": "pxe"}}, found)
    missing(Plan(server="10.0.2.254"), [], {}, found)
    assert len(found.notes) == 1
