# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log that is followed: all of it, once, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import followed_log
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.followed_log import FollowedLog


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "board0.log"
    path.write_text("theirs\nours\n")
    return path


def add(log, text):
    with log.open("ab") as file:
        file.write(text)


def test_each_line_is_shown_once(log):
    """Lost: lines, or a prompt that waits for an answer, for it has no end."""
    followed = FollowedLog(str(log), 7, None)
    assert followed.lines() == ["ours"]
    assert followed.lines() == []
    add(log, b"half")
    assert followed.lines() == []
    add(log, b" and half\r\nlogin: ")
    assert followed.lines() == ["half and half"]
    assert followed.lines() == ["login:"]
    assert followed.lines() == []
    followed.close()


def test_a_log_that_is_just_short_enough_is_shown_from_its_first_line(log):
    """Lost: what the board said first, where all that it said can just be shown."""
    log.write_text("ours\n" + "x" * (followed_log.BEFORE - len("ours\n\n")) + "\n")
    followed = FollowedLog(str(log), 0, None)
    assert followed.lines()[0] == "ours"
    followed.close()


@pytest.mark.parametrize("more", [1, 1000])
def test_a_log_that_was_begun_anew_is_shown_from_its_begin(log, more):
    """Lost: what the board said first, which is why it does not come up."""
    followed = FollowedLog(str(log), len("theirs\nours\n") + more, None)
    assert followed.lines() == ["theirs", "ours"]
    followed.close()


def test_a_board_does_not_command_the_terminal(log):
    """Lost: the terminal of who looks on, to a tenant who writes escape sequences; or the proxy's memory, to a line
    without an end.
    """
    followed = FollowedLog(str(log), 12, "10.0.2.254")
    add(log, b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\n[-- Console up -- Sun Nov 29 03:00:00 2026]\n\x9b\xff\n")
    assert followed.lines() == [r"\x1b]0;title\x07\x1b[2Jred", "\ufffd\ufffd"]
    add(log, b"Connection closed by 10.0.2.254 port 44282\n")
    assert followed.lines() == []
    add(log, b"x" * 1_000_000)
    seen = [followed.lines() for _look in range(16)]
    assert all(len(lines) == 1 and len(lines[0]) == 1000 for lines in seen)
    assert followed.lines() == []
    followed.close()


def test_a_board_writes_no_time_into_its_log(log):
    """Lost: what was when, to a board that writes over a line, or pauses within one, and goes on with a time."""
    time = b"[Sun Nov 29 03:00:00 2026]"
    followed = FollowedLog(str(log), 12, None)
    assert followed.lines() == []
    add(log, time + b"a\r" + time + b"no fault\n" + time + b"b")
    assert followed.lines() == [f"{time.decode()}a", rf"\x0d{time.decode()}no fault"]
    add(log, b"\r")
    assert followed.lines() == [f"{time.decode()}b"]
    add(log, time + b"no fault\n")
    assert followed.lines() == [rf"\x0d{time.decode()}no fault"]
    add(log, time + b"login: ")
    assert [followed.lines(), followed.lines()] == [[], [f"{time.decode()}login:"]]
    add(log, time + b"no fault\n" + time + b"c\n")
    assert followed.lines() == [rf"\x0d{time.decode()}no fault", f"{time.decode()}c"]
    followed.close()


@pytest.mark.parametrize("way", ["set aside", "made shorter", "made"])
def test_the_log_of_the_next_boot_goes_on(log, way):
    """Lost: all that is said from the board's next boot on."""
    if way == "made":
        log.unlink()
    followed = FollowedLog(str(log), 0, None)
    assert followed.lines() == ([] if way == "made" else ["theirs", "ours"])
    if way == "set aside":
        add(log, b"last\n")
        log.rename(f"{log}-1")
        log.write_text("new\n")
        assert followed.lines() == ["last"]
    else:
        log.write_text("new\n")
    assert followed.lines() == ["new"]
    followed.close()


def test_of_a_long_log_the_end_is_shown(log, monkeypatch):
    """Lost: the first screen, behind a year of words."""
    monkeypatch.setattr(followed_log, "BEFORE", 10)
    followed = FollowedLog(str(log), 0, None)
    assert followed.lines() == ["ours"]
    followed.close()
