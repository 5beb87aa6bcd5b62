# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a person who looks for the reason sees nothing, or has a terminal spoiled by what a board printed."""

from __future__ import annotations

import pytest


def test_the_end_of_the_log_as_plain_text(jackie):
    log = jackie.folder / "board0.log"
    text = "".join(f"line {number}\n" for number in range(3000))
    log.write_bytes(text.encode() + b"\x1b[2J\x1b[31mred\x07\x1b[0m\r\n\n\xff odd\n")
    jackie.wire(0, console=str(log))
    result = jackie.module("board_console", board=0, last=4)
    assert result["console"] == ["line 2998", "line 2999", "red", "\ufffd odd"]
    assert (result["file"], result["command"], result["instance"]) == (str(log), None, "jackie")
    assert result["lines"][0]["text"] == f"{log} ({log.stat().st_size} bytes)"
    assert len(jackie.module("board_console", board=0, last=2500)["console"]) == 2500
    assert len(jackie.module("board_console", board=0)["console"]) == 20


def test_a_live_console_is_named(site):
    site.wire(1, console_command="picocom /dev/ttyUSB1")
    result = site.module("board_console", board=1)
    assert (result["command"], result["file"], result["console"]) == ("picocom /dev/ttyUSB1", None, [])


@pytest.mark.parametrize(
    ("wiring", "given", "said"),
    [
        ({}, {}, "board0: has no console in the proxy's configuration: name its log"),
        ({"console": "/nowhere/board0.log"}, {}, "its log /nowhere/board0.log is not there"),
        ({"console": "/dev/null"}, {"last": 0}, "lines: is 0: give 1 to 10000"),
    ],
)
def test_why_there_is_nothing_to_see(site, wiring, given, said):
    site.wire(0, **wiring)
    assert said in site.module("board_console", board=0, **given)["msg"]
