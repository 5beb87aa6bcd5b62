# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of one boot by what was seen of it. Whole boots are in test_lifecycle.py."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_progress
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    HTTP,
    KERNEL,
    NFS,
    OTHER_ADDRESS,
    OTHER_DHCP,
    SYSTEM,
    TFTP,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire


@pytest.fixture
def boot(tmp_path):
    """A boot of board 0, switched on at 100; `said` are the lines of it."""

    def make(flash=False, under_way=(), stage=boot_progress.BOOTING, console=None):
        driver = SimpleNamespace(
            files=lambda board: {"mboot.tgz": KERNEL},
            under_way=lambda board: under_way,
            roles=lambda *_: ["kernel"],
            flash=lambda *_: flash,
        )
        said = []
        work = SimpleNamespace(
            board=SimpleNamespace(id=0, name="board0"),
            driver=driver,
            phases={},
            proxy=SimpleNamespace(),
            say=lambda phase, text, seconds=None: said.append((phase, text, seconds)),
        )

        class Played(boot_progress.Boot):
            roles = property(lambda self: ["kernel"])
            console = property(lambda self: console)

        Played.flash = property(lambda self: flash)
        one = Played(work)
        one.stage, one.powered, one.lines = stage, 100.0, said
        return one

    return make


def test_a_boot_that_begins_knows_nothing(boot):
    one = boot()
    assert (one.outlet_now, one.probe, one.then, one.doomed, one.failed_step) == (None,) * 5
    assert (one.switch_seconds, one.cycled, one.tries, one.console_from, one.way) == (0.0, False, 0, 0, "off → on")
    assert (one.kinds, one.asked, one.strangers, one.said) == ({}, {}, {}, set())
    assert not one.has_power.is_set()


def test_phases_are_said_once_with_the_seconds_since_power(boot):
    """Lost: how far a boot is, which is all that somebody who waits can see."""
    one = boot()
    one.see(FIRMWARE, None, 101.0)
    one.see(TFTP, "unknown", 102.0)
    assert (one.lines, one.asked) == ([], {})
    one.see(TFTP, "mboot.tgz", 103.0)
    assert (one.lines, one.asked) == ([], {KERNEL: 103.0})
    one.see(SYSTEM, None, 110.0)
    one.see(SYSTEM, None, 120.0)
    assert one.lines == [("tftp", "kernel fetched", 10.0)]
    one.see(NFS, None, 130.0)
    one.see(NFS, None, 140.0)
    assert one.lines == [("tftp", "kernel fetched", 10.0), ("nfs", "root mounted", 30.0)]
    assert one.work.phases == {"tftp": 10.0, "nfs": 30.0}
    assert one.kinds == {FIRMWARE: 101.0, TFTP: 102.0, SYSTEM: 110.0, NFS: 130.0}


def test_a_root_that_is_mounted_shows_that_all_files_came(boot):
    one = boot()
    one.see(TFTP, "mboot.tgz", 103.0)
    one.see(NFS, None, 130.0)
    assert one.lines == [("tftp", "kernel fetched", 30.0), ("nfs", "root mounted", 30.0)]


def test_a_kernel_of_its_own_flash_is_told(boot):
    one = boot(flash=True)
    one.see(SYSTEM, None, 99.0)
    assert one.lines == [("flash", "the kernel of its own flash runs", 0.0)]
    assert one.asked == {}


def test_nothing_is_said_before_its_outlet_is_on(boot):
    one = boot(stage=boot_progress.SWITCHING)
    one.see(TFTP, "mboot.tgz", 103.0)
    one.see(NFS, None, 104.0)
    assert (one.lines, one.kinds, one.asked) == ([], {TFTP: 103.0, NFS: 104.0}, {KERNEL: 103.0})


@pytest.mark.parametrize(
    ("kind", "name", "anew"), [(FIRMWARE, None, True), (TFTP, "mboot.tgz", True), (TFTP, "nothing of ours", False)]
)
def test_a_board_that_boots_anew_is_nobodys_at_work(boot, kind, name, anew):
    """Lost: a boot that is followed to its end, for one that somebody seems to be at work on."""
    one = boot()
    one.taken_over = True
    one.see(kind, name, 102.0)
    assert one.taken_over is not anew


def test_strangers_are_kept_and_only_so_many(boot):
    """Lost: who stands in the proxy's place; or the proxy's memory to whoever feigns them."""
    one = boot()
    one.see(OTHER_DHCP, "10.0.0.9", 1.0)
    one.see(OTHER_DHCP, "10.0.0.9", 2.0)
    assert (one.strangers, one.kinds) == ({(OTHER_DHCP, "10.0.0.9"): 1.0}, {})
    for number in range(20):
        one.see(OTHER_ADDRESS, f"aa:{number}", 3.0)
    assert len(one.strangers) == 8


def test_a_new_try_knows_nothing_of_the_last(boot, tmp_path):
    log = tmp_path / "board0.log"
    log.write_text("of the last try\n")
    one = boot(console=str(log))
    one.see(TFTP, "mboot.tgz", 103.0)
    one.see(NFS, None, 104.0)
    one.see(OTHER_DHCP, "10.0.0.9", 1.0)
    one.failed_step = "its own"
    one.forget()
    assert (one.kinds, one.asked, one.said, one.strangers, one.failed_step) == ({}, {}, set(), {}, None)
    assert one.console_from == log.stat().st_size


@pytest.mark.parametrize(
    ("phases", "flash", "asked", "kinds", "said"),
    [
        ({"power"}, False, {}, {}, set()),
        ({"power", "tftp"}, False, {KERNEL: 90.0}, {TFTP: 90.0}, {"tftp"}),
        ({"power", "tftp", "nfs"}, False, {KERNEL: 90.0}, {TFTP: 90.0}, {"tftp", "nfs"}),
        ({"power", "flash"}, True, {}, {SYSTEM: 90.0}, {"flash"}),
    ],
)
def test_a_boot_that_another_process_began_goes_on(boot, monkeypatch, phases, flash, asked, kinds, said):
    """Lost: a board that is at its root's door is switched off again, for this process did not see it come there."""
    monkeypatch.setattr(boot_progress.console, "begins", lambda proxy, board: 17)
    one = boot(flash=flash, under_way=[NFS], stage=boot_progress.DECIDING)
    before = time.monotonic()
    one.take_up(phases, 90.0)
    assert (one.stage, one.powered, one.console_from) == (boot_progress.BOOTING, 90.0, 17)
    assert (one.asked, one.said) == (asked, said)
    assert before <= one.kinds.pop(NFS) <= time.monotonic()
    assert one.kinds == kinds


@pytest.mark.parametrize("wiring", [{}, {"console": "/var/log/board0.log"}])
def test_the_console_is_the_one_that_the_wiring_names(wiring):
    """Lost: the last lines of a board that stalls, with which its error says why."""
    one = boot_progress.Boot.__new__(boot_progress.Boot)
    one.board, one.work = "board0", SimpleNamespace(proxy=SimpleNamespace(wiring=lambda board: Wire(**wiring)))
    assert one.console == wiring.get("console")


def test_a_kernel_that_came_by_http_is_told_so(boot):
    """Lost: whether boards use the faster way, or went back to TFTP since nginx does not answer."""
    one = boot()
    one.see(FIRMWARE, None, 101.0)
    one.see(HTTP, "mboot.tgz", 103.0)
    one.see(SYSTEM, None, 110.0)
    assert one.lines == [("tftp", "kernel fetched by HTTP", 10.0)]
    assert one.kinds == {FIRMWARE: 101.0, TFTP: 103.0, SYSTEM: 110.0}
    assert one.was_served
    one.forget()
    one.see(TFTP, "mboot.tgz", 203.0)
    one.see(SYSTEM, None, 210.0)
    assert one.lines[-1] == ("tftp", "kernel fetched", 110.0)
