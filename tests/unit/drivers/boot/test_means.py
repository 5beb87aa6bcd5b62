# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a board gets what it boots, by its driver and its wiring: by this a request for it is refused, or taken."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import DRIVERS, BootDrivers


def means(site, **wiring):
    """What is said of board 0 with this wiring."""
    site.config["boards"]["0"] = wiring
    site.config["ram_images"] = {"tilepro64": "ram-tile"}
    site.write()
    with site.proxy() as proxy:
        return BootDrivers(proxy).means(proxy.board(0))


@pytest.mark.parametrize(
    ("wiring", "said"),
    [
        ({}, dict(driver="tilera", arguments=False, flash=False, cmdline=False)),
        ({"kernel_source": "flash"}, dict(driver="tilera", arguments=False, flash=True, cmdline=False)),
        ({"cmdline": "quiet"}, dict(driver="tilera", arguments=False, flash=False, cmdline=True)),
        ({"driver": "pxe", "cmdline": "quiet"}, dict(driver="pxe", arguments=True, flash=False, cmdline=True)),
        ({"driver": "uboot", "cmdline": ""}, dict(driver="uboot", arguments=True, flash=False, cmdline=False)),
    ],
)
def test_what_decides_whether_a_board_can_boot_an_image(site, wiring, said):
    """Lost: words for a kernel that never hears of them, or a board that is refused for nothing."""
    assert means(site, **wiring) == dict(said, ram_image="ram-tile", ram_keys=said["driver"] != "tilera")


@pytest.mark.parametrize(
    "wiring", [{"driver": "uboat"}, {"kernel_source": "card"}, {"driver": "pxe", "kernel_source": "flash"}]
)
def test_of_a_wrong_wiring_nothing_is_said(site, wiring):
    """Lost: a whole table of boards, or a claim on another one, to one line that is wrong."""
    assert means(site, **wiring) is None


def test_only_tilera_boards_get_no_arguments():
    """Those of the others are in the boot entry."""
    assert [name for name, driver in DRIVERS.items() if not driver.passes_arguments] == ["tilera"]
