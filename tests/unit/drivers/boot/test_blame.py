# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose fault a boot that stalled is, and what it shows of its console. Lost: the one line that says why.

Tests drivers/boot/driver.py.
"""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import blame
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    ENTRY,
    INITRD,
    KERNEL,
    NFS,
    NFS_ROOT,
    SYSTEM,
    TFTP,
)


@pytest.mark.parametrize(
    ("faults", "strangers", "wrong_key", "asked", "kinds", "whose"),
    [
        (["nfsd is down"], ["10.0.0.9"], True, [KERNEL], [NFS], "proxy"),
        ([], ["10.0.0.9"], True, [KERNEL], [NFS], "network"),
        ([], [], True, [KERNEL], [NFS], "board"),
        ([], [], False, [KERNEL], [], "image"),
        # its kernel came from its own flash
        ([], [], False, [], [NFS], "image"),
        ([], [], False, [ENTRY], [TFTP], "board"),
        ([], [], False, [], [], "board"),
    ],
)
def test_whose_fault_it_is(faults, strangers, wrong_key, asked, kinds, whose):
    """Lost: the tenant's image is blamed for a proxy without room, or a board goes out of use for an image."""
    assert blame.verdict(faults, asked, wrong_key, kinds, strangers) == whose


def test_the_names_that_plays_and_people_look_for():
    """`blame` of a result: a play that asks for it by name must find it."""
    assert (blame.PROXY, blame.NETWORK, blame.IMAGE, blame.BOARD) == ("proxy", "network", "image", "board")
    assert (blame.INSTANCE, blame.MONITOR) == ("instance", "monitor")


@pytest.mark.parametrize(
    ("asked", "kinds", "flash", "root", "phase"),
    [
        ([], [], False, NFS_ROOT, "tftp"),
        ([], [], True, NFS_ROOT, "flash"),
        ([ENTRY], [TFTP], False, NFS_ROOT, "tftp"),
        ([KERNEL], [TFTP], False, NFS_ROOT, "nfs"),
        ([KERNEL], [TFTP], False, "disk", "running"),
        ([], [SYSTEM], True, NFS_ROOT, "nfs"),
        ([], [SYSTEM], False, NFS_ROOT, "tftp"),
        ([KERNEL], [TFTP, NFS], False, NFS_ROOT, "running"),
        ([], [NFS], True, NFS_ROOT, "running"),
    ],
)
def test_what_a_boot_waits_for(asked, kinds, flash, root, phase):
    assert blame.awaited(asked, kinds, flash, root) == phase
    console = "/var/log/board4.log"
    text = blame.stalled(asked, [*kinds, "dhcp"], 40.6, 1, console, flash, root)
    assert text.startswith(f"stalled at {phase} after 41 s")
    assert text.endswith("; console: board4.log")


@pytest.mark.parametrize(
    ("asked", "kinds", "tries", "text"),
    [
        ([], [], 1, "no boot request within 41 s"),
        ([], [], 2, "no boot request within 41 s, twice"),
        ([], [], 3, "no boot request within 41 s, 3 times"),
        ([], ["dhcp"], 1, "stalled at tftp after 41 s (asked for an address only)"),
        ([], [TFTP], 1, "stalled at tftp after 41 s"),
        ([ENTRY], [TFTP], 2, "stalled at tftp after 41 s, twice (boot entry fetched, kernel not asked for)"),
        ([ENTRY, KERNEL], [TFTP], 1, "stalled at nfs after 41 s"),
        ([INITRD], ["dhcp"], 1, "stalled at tftp after 41 s"),
    ],
)
def test_how_far_it_came_is_said(asked, kinds, tries, text):
    """Lost: where to look: at the cable, at the boot entry, or at the image."""
    assert blame.stalled(asked, kinds, 41.2, tries) == text


def test_a_step_that_failed_says_how_often():
    """Lost: what the board's own program said; or a step is blamed that nothing had begun."""
    error = StepFailed("image", "mboot says: no space", "board0", "make room")
    assert blame.failed_step(None, [NFS], 1) is None
    assert blame.failed_step(error, [], 1) == "mboot says: no space (make room)"
    assert blame.failed_step(error, [], 2) == "mboot says: no space, twice (make room)"
    assert blame.failed_step(error, [], 5) == "mboot says: no space, 5 times (make room)"
    first = StepFailed("monitor", "nothing answers", "board0", "look")
    assert blame.failed_step(first, [TFTP], 1) is None
    assert blame.failed_step(first, [NFS], 1) == "nothing answers (look)"


def test_the_end_of_a_console_is_shown_as_it_can_be_printed(tmp_path):
    """Lost: the last lines, or a terminal to what a board sends."""
    log = tmp_path / "board0.log"
    log.write_bytes(b"old\n" + b"\x1b[31mred\x1b[0m\rover\n\n  a\tb \x07\n" + b"\xff\n")
    assert blame.console_tail(str(log), 4) == ["red", "over", "  a     b \\x07", "\ufffd"]
    assert blame.console_tail(str(log), 4, most=1) == ["\ufffd"]
    assert blame.console_tail(None, 0) == []
    (said,) = blame.console_tail(str(tmp_path / "none"), 0)
    assert said.endswith("none: No such file or directory")
    assert [blame.console_size(path) for path in (str(log), None, str(tmp_path / "none"))] == [log.stat().st_size, 0, 0]
    log.write_text("".join(f"{number}\n" for number in range(100)))
    assert blame.console_tail(str(log), 0) == [str(number) for number in range(80, 100)]


@pytest.mark.parametrize("time", ["[Sun Nov 29 03:00:00 2026]", "2026-11-29T02:30:11+0000 "])
def test_a_board_writes_no_time_into_its_log(tmp_path, time):
    """Lost: what was when, to a board that writes over its line what looks as if the log's writer had put it there."""
    log = tmp_path / "board0.log"
    text = f"{time}10 %\r20 %\r{time}no fault\r\r\n{time}x\r \x1b[32m{time}no fault\x1b[0m\r\n\r\n"
    log.write_bytes(text.encode())
    assert blame.console_tail(str(log), 0, asked_by="10.0.2.254") == [
        f"{time}10 %", "20 %", f"\\x0d{time}no fault", f"{time}x", f"\\x0d {time}no fault",
    ]  # fmt: skip


def test_no_number_of_colours_hides_that_a_time_is_the_boards(tmp_path):
    """Lost: what was when, to a board that writes more colours before its own time than a line has letters."""
    log = tmp_path / "board0.log"
    time, colours = "[Sun Nov 29 03:00:00 2026]", "\x1b[0m" * blame.CONSOLE_WIDTH
    log.write_bytes(f"{time}x\r{colours}{time}no fault\n".encode())
    assert blame.console_tail(str(log), 0) == [f"{time}x", f"\\x0d{time}no fault"]


def test_only_what_is_longer_than_a_line_is_cut(tmp_path):
    """Lost: the last letter of a line that fits, or a terminal, to a line of a megabyte."""
    log = tmp_path / "board0.log"
    fits, longer = "a" * blame.CONSOLE_WIDTH, "b" * (blame.CONSOLE_WIDTH + 1)
    log.write_text(f"before\n{fits}\n{longer}\n")
    assert blame.console_tail(str(log), len("before\n")) == [fits, "b" * (blame.CONSOLE_WIDTH - 1) + "…"]


@pytest.mark.parametrize("filled", ["x", " ", "\t"])
@pytest.mark.parametrize("asked_by", [None, "10.0.0.1"])
def test_a_line_without_end_hides_no_line_before_it(tmp_path, filled, asked_by):
    """Lost: the panic that somebody looks for, to one line of dots, or of blanks, that came after it."""
    log = tmp_path / "board0.log"
    log.write_text(f"kernel panic\n{filled * 100_000}")
    first, *others = blame.console_tail(str(log), 0, 20, asked_by)
    assert first == "kernel panic"
    assert others == (["x" * (blame.CONSOLE_WIDTH - 1) + "…"] if filled == "x" else [])


@pytest.mark.parametrize(
    "before",
    [
        "",
        "sshd[12]: ",
        "2026-11-28T03:52:57.420+00:00 ",
        "[Sat Nov 28 03:52:57 2026]",
        "[Sat Nov 28 03:52:57 UTC 2026] ",
        "Nov  8 03:52:57 ",
        "Nov 28 03:52:57 board0 sshd[12]: ",
    ],
)
def test_a_time_before_each_line_hides_no_question_of_the_proxy(tmp_path, before):
    """Lost: three lines of what the board said, behind those of who asked whether it is alive."""
    log = tmp_path / "board0.log"
    own = ["panic: at 03:52:57 it was Connection closed by 10.0.0.1 port 4", "Connection closed by 10.0.0.7 port 4"]
    asked = [
        "Connection closed by authenticating user root 10.0.0.1 port 40 [preauth]",
        "kex_exchange_identification: Connection closed by remote host",
        "Connection closed by 10.0.0.1 port 40",
    ]
    log.write_text("".join(f"{before}{line}\n" for line in [*own, *asked]))
    assert blame.console_tail(str(log), 0, asked_by="10.0.0.1") == [f"{before}{line}" for line in own]


def test_a_log_that_was_rotated_is_shown_from_its_first_letter(tmp_path):
    """Lost: how the one line of a board that says nothing else begins."""
    log = tmp_path / "board0.log"
    log.write_text("panic\n")
    assert blame.console_tail(str(log), 4096) == ["panic"]


def test_what_was_there_before_a_boot_is_not_its_own(tmp_path):
    """Lost: the panic of an earlier boot is shown as that of this one, which has said nothing yet."""
    log = tmp_path / "board0.log"
    log.write_text("panic\n")
    assert blame.console_tail(str(log), log.stat().st_size) == []
    assert blame.console_tail(str(log), log.stat().st_size - 1) == []


@pytest.mark.parametrize(("most", "fewest"), [(20, 20), (499, 70), (500, 140), (1000, 210)])
def test_of_a_large_log_only_the_end_is_read(tmp_path, most, fewest):
    """Lost: the memory of a node, to a console of years; or the lines that somebody asked for."""
    log = tmp_path / "board0.log"
    log.write_text("".join(f"{number:07} {'x' * 899}\n" for number in range(1000)))
    lines = blame.console_tail(str(log), 0, most=most)
    assert fewest <= len(lines) <= fewest + 10
    assert lines[-1].startswith("0000999 ")


def test_how_long_a_shown_line_may_be():
    """Lost: the end of what a wide terminal shows, or the screen, to a line of a megabyte."""
    assert 250 <= blame.CONSOLE_WIDTH <= 4096


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "[    1.02] Kernel panic - not syncing: VFS: no root\n---[ end Kernel panic - not syncing: VFS ]---\n",
            "; its console says: Kernel panic - not syncing: VFS: no root",
        ),
        (
            "2026-11-29T02:30:11+0000 PXE-E51: No DHCP or proxyDHCP offers were received.\r\nPXE-M0F: Exiting.\r\n",
            "; its console says: PXE-E51: No DHCP or proxyDHCP offers were received.",
        ),
        (
            "[Sun Nov 29 02:30:11 2026] No configuration methods succeeded (https://ipxe.org/040ee119)\n",
            "; its console says: No configuration methods succeeded (https://ipxe.org/040ee119)",
        ),
        (
            # of a screen of 80 columns, which a PC's firmware redirects
            "[Sun Nov 29 11:47:21 2026]tftp://10.0.2.254/boot.ipxe.................. Connection timed out (http://ipxe.\r\n"
            "[Sun Nov 29 11:47:22 2026]org/4c126035)\r\n",
            "; its console says: tftp://10.0.2.254/boot.ipxe.................. Connection timed out (http://ipxe.org/4c126035)",
        ),
        (
            "No more network devices (https://ipxe.org/2f18e07\x1bc\x1b[?7l\x1b[2JSeaBIOS (version 1.16.2)\r\n",
            "; its console says: No more network devices (https://ipxe.org/2f18e07",
        ),
        (
            "TFTP error: 'File not found' (1)\nStarting again\n=> ",
            "; its console says: TFTP error: 'File not found' (1)",
        ),
        ("Hit any key to stop autoboot:  0\n=> ", "; U-Boot waits at its prompt (its console)"),
        ("Debian GNU/Linux 12 board0 ttyS0\n\nboard0 login: ", "; its system asks who logs in (its console)"),
        ("02:30:11 (initramfs) ", "; its initrd waits at a prompt (its console)"),
        ("board0 login: root\nnothing to see\n", ""),
        ("a table => \nmore =>\n", ""),
        ("", ""),
    ],
)
def test_what_a_console_says_of_a_boot_that_went_wrong_is_said(tmp_path, log, said):
    """Lost: the reason, to who reads one line of an error and no log; and a line of the boot before is no reason."""
    file = tmp_path / "board0.log"
    file.write_text(f"Kernel panic - not syncing: of the boot before\n{log}")
    assert blame.with_sign("stalled", str(file), file.read_text().index("\n") + 1) == f"stalled{said}"
    assert blame.with_sign("stalled", None, 0) == "stalled"


def test_a_sign_of_any_length_is_one_short_line(tmp_path):
    """Lost: an error that can be read, to a tenant's system that writes a panic of a megabyte."""
    file = tmp_path / "board0.log"
    file.write_text(f"Kernel panic - not syncing: \x1b[2J{'x' * 5000}\n")
    said = blame.with_sign("stalled", str(file), 0)
    assert (len(said) < 250, "\x1b" in said) == (True, False)


@pytest.mark.parametrize(
    ("log", "since", "spoken"),
    [
        ("0123456789", 10, False),
        ("0123456789\nmore\n", 10, True),
        ("0123456789\n[-- Console down -- Sun Nov 29 03:00:00 2026]\n[Sun Nov 29 03:00:00 2026]\n\n", 10, False),
        # set aside since
        ("new", 10, True),
        ("", 10, False),
        ("[-- Console up -- Sun Nov 29 03:00:00 2026]\n", 100, False),
    ],
)
def test_whether_a_board_has_spoken(tmp_path, log, since, spoken):
    """Lost: a board that is at work counts as silent, or what conserver notes by itself counts as life."""
    path = tmp_path / "board0.log"
    path.write_text(log)
    assert blame.has_spoken(str(path), since) is spoken
    assert not blame.has_spoken(None, since)
    assert not blame.has_spoken(str(tmp_path / "none"), since)


@pytest.mark.parametrize("line", ["[-- " + " -- " * 15000, "[" + "11:11:11" * 7000])
def test_no_line_takes_long_to_be_read(tmp_path, line):
    """Lost: minutes of the proxy's processor, and with them its boots, to a board that says such a line."""
    path = tmp_path / "board0.log"
    path.write_text(line)
    began = time.process_time()
    assert blame.has_spoken(str(path), 0)
    assert len(blame.console_tail(str(path), 0)) == 1
    assert time.process_time() - began < 0.4


ASKED = "10.0.2.254 port "


@pytest.mark.parametrize(
    "line",
    [
        "(" * 999,
        "(http://ipxe.org/ " * 55,
        "sshd" * 249,
        ("sshd" * 96) + ASKED,
        "[" + "00:00:00" * 124,
        "[" + "00:00:00" * 47 + ASKED,
        ("00:00:00" * 47) + ASKED,
        "[-- " + " -- " * 90 + "]x",
        "[00:00:00" * 44,
        # what a screen of 80 columns would have broken
        "(" * 80,
        f"[{'00:00:00' * 9}(((((((",
    ],
)
def test_no_number_of_lines_takes_long_to_be_read(tmp_path, line):
    """Lost: the boots of all boards of a call, which one loop follows, to one that says the same line over and over:
    seconds of the processor for each look at its log; and as many for who asks for its console.
    """
    path = tmp_path / "board0.log"
    path.write_text(f"{line}\n" * 4000)
    began = time.process_time()
    assert blame.with_sign("stalled", str(path), 0) == "stalled"
    assert len(blame.console_tail(str(path), 0, 4000, "10.0.2.254")) > 600
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "line",
    [
        "[-- Console up -- Sun Nov 29 03:00:00 2026]",
        "[Sun Nov 29 03:00:00 2026][-- Console down -- Sun Nov 29 03:00:00 2026]",
        "[Sun Nov 29 03:00:00 2026]",
    ],
)
def test_what_conserver_writes_is_left_out(tmp_path, line):
    """Lost: what a board said, among what conserver says of itself; or words of the board that look like that."""
    path = tmp_path / "board0.log"
    own = [f"{line} ", f" {line}", f"x{line}", "[-- Console up --]", "[-- up-- 03:00:00", "[x]", "[Sun 03:00:00]y[z]"]
    path.write_text("".join(f"{one}.\n" for one in own) + f"{line}\n")
    assert blame.console_tail(str(path), 0) == [f"{one}." for one in own]
