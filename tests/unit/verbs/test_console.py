# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a person who looks for the reason sees nothing, or has a terminal spoiled by what a board printed."""

from __future__ import annotations

import pytest


def test_the_end_of_the_log_as_text_that_no_terminal_obeys(jackie):
    log = jackie.folder / "board0.log"
    text = "".join(f"line {number}\n" for number in range(3000))
    log.write_bytes(text.encode() + b"\x1b[2J\x1b[31mred\x07\x1b[0m\r\n\n\xff\todd\xe2\x80\xae\n" + b"x" * 5000 + b"\n")
    jackie.wire(0, console=str(log))
    result = jackie.module("board_console_info", board=0, last=4, all=True)
    cut = "x" * 999 + "…"
    assert result["console"] == ["line 2999", r"\x1b[2Jred\x07", "\ufffd       odd\\u202e", cut]
    assert (result["file"], result["command"], result["instance"]) == (str(log), None, "jackie")
    assert result["lines"][0]["text"] == f"{log} ({log.stat().st_size} bytes)"
    assert len(jackie.module("board_console_info", board=0, last=2500, all=True)["console"]) == 2500
    assert len(jackie.module("board_console_info", board=0, all=True)["console"]) == 20


@pytest.fixture
def log(site):
    """Board 0's log, with what it said to those who had it before."""
    path = site.folder / "board0.log"
    path.write_text("the last tenant's secret\n")
    site.wire(0, console=str(path))
    return path


def say(log, text):
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def test_a_claim_sees_its_own_part_only(site, log):
    """Lost: what a board printed for its last tenant, passwords too, is read by the next one."""
    assert not any(result.get("failed") for result in site.provision())
    say(log, "ours")
    result = site.module("board_console_info", board=0)
    assert result["console"] == ["ours"]
    assert result["lines"][0]["text"] == f"{log} (30 bytes, its own from byte 25)"
    assert site.module("board_console_info", board=0, all=True)["console"] == ["the last tenant's secret", "ours"]
    site.module("tilera_boot", boards=[0], state="rebooted", how="hard")
    say(log, "after a reboot")
    assert site.module("board_console_info", board=0)["console"] == ["ours", "after a reboot"]


#: What sshd of OpenSSH 9.2 said (-D -e) of a proof of its key, and of connections that ended before and while it said
#: its version.
ASKED = """\
Connection closed by authenticating user root 10.0.2.254 port 44270 [preauth]
kex_exchange_identification: Connection closed by remote host
Connection closed by 10.0.2.254 port 44282
kex_exchange_identification: read: Connection reset by peer
Connection reset by 10.0.2.254 port 44286
"""


@pytest.mark.parametrize("times", [1, 1000])
def test_the_proxys_own_questions_are_not_the_boards_words(site, log, times):
    """Lost: the lines that the board said, behind those of who asked whether it is alive."""
    assert not any(result.get("failed") for result in site.provision())
    say(log, "one\ntwo\nthree\nConnection closed by 10.0.2.7 port 4 [preauth]\nkex_exchange_identification: x\nfour")
    say(log, ASKED.strip() + "\n" + ASKED * (times - 1))
    theirs = ["Connection closed by 10.0.2.7 port 4 [preauth]", "kex_exchange_identification: x", "four"]
    assert site.module("board_console_info", board=0, last=3)["console"] == theirs
    assert site.module("board_console_info", board=0, last=6)["console"] == ["one", "two", "three", *theirs]
    everything = site.module("board_console_info", board=0, last=2, all=True)["console"]
    assert everything == ASKED.splitlines()[-2:]


@pytest.mark.parametrize("way", ["renamed", "truncated"])
def test_a_log_that_was_rotated_is_the_claims(site, log, way):
    """Lost: a user's own console, each time the site rotates its logs; or, the last tenant's with it."""
    assert not any(result.get("failed") for result in site.provision())
    if way == "renamed":
        log.rename(f"{log}.1")
    else:
        log.write_text("")
    say(log, "new")
    assert site.module("board_console_info", board=0)["console"] == ["new"]


def test_nobodys_board_and_anothers_are_an_operators(site, log):
    """Lost: the console of an instance that was terminated, to whoever names its board."""
    result = site.module("board_console_info", board=0)
    assert "nobody has it, and what it said is of those who had it: an operator reads all of the log" in result["msg"]
    assert site.module("board_console_info", board=0, all=True)["console"] == ["the last tenant's secret"]
    assert not any(result.get("failed") for result in site.provision())
    assert "is jackie's, of" in site.module("board_console_info", board=0, owner="mallory")["msg"]
    assert "is not mallory's any more" in site.module("board_console_info", board=0, instance="mallory")["msg"]


def test_a_claim_whose_part_nobody_wrote_down(jackie, log):
    """Lost: an instance of before this part was kept reads its forerunner's console."""
    result = jackie.module("board_console_info", board=0)
    assert result["console"] == []
    assert "its part of the log begins when the board gets power for it the next time" in result["lines"][-1]


def test_a_live_console_is_named(site):
    site.wire(1, console_command="picocom /dev/ttyUSB1")
    result = site.module("board_console_info", board=1)
    assert (result["command"], result["file"], result["console"]) == ("picocom /dev/ttyUSB1", None, [])


@pytest.mark.parametrize(
    ("wiring", "given", "said"),
    [
        ({}, {}, "board0: has no console in the proxy's configuration: name where it comes from (console_from)"),
        ({"console": "/nowhere/board0.log"}, {}, "its log /nowhere/board0.log is not there"),
        ({"console": "/dev/null"}, {"last": 0}, "lines: is 0: give 1 to 10000"),
    ],
)
def test_why_there_is_nothing_to_see(site, wiring, given, said):
    site.wire(0, **wiring)
    assert said in site.module("board_console_info", board=0, **given)["msg"]
