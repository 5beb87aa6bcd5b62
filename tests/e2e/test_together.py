# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays at the same time, and plays that die: one board each, nothing lost, nothing twice."""

from __future__ import annotations

import os
import re
import signal

import pytest


def test_two_plays_get_two_boards(lab):
    """Lost: two people with the same board."""
    plays = {name: lab.start("provision_instance", instance=name, flavor="tp64.8x8") for name in ("ann", "ben")}
    ended = {name: lab.end(play) for name, play in plays.items()}
    assert [play.rc for play in ended.values()] == [0, 0], ended
    assert len({play.board(name) for name, play in ended.items()}) == 2
    for name in ended:
        assert lab.ssh(name, "uname -n").strip() == name


@pytest.mark.long
def test_twelve_plays_on_ten_boards(lab):
    """Lost: a board given twice, or a refusal without a word, when a class of students starts at once."""
    names = [f"student-{number}" for number in range(12)]
    plays = {name: lab.start("provision_instance", instance=name, flavor="tp64.8x8") for name in names}
    ended = {name: lab.end(play) for name, play in plays.items()}
    served = {name: play.board(name) for name, play in ended.items() if play.rc == 0}
    if sorted(served.values()) != list(range(10)):
        pytest.fail("\n".join(play.output[-4000:] for name, play in ended.items() if name not in served))
    for name, play in ended.items():
        if name not in served:
            assert f"{name} wants tp64.8x8" in play.output
            assert "no node" in play.output
            assert re.search(r"student-\d+ since|10 boards: in use", play.output), play.output


def test_killed_play_is_finished_by_the_next(lab):
    """Lost: a board that nobody owns and that draws power, after somebody closed the lid of a laptop."""
    first = lab.start("provision_instance", instance="carol", flavor="tp64.8x8")
    for line in first.stdout:
        if re.match(r"carol +board\d+ +power", line):
            break
    else:
        raise AssertionError("the play ended before it switched a board on")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    again = lab.provision("carol")
    board = again.board("carol")
    assert lab.ssh("carol", "uname -n").strip() == "carol"
    info = lab.module("board_info", power=True)
    assert [claim["instance"] for claim in info["claims"]] == ["carol"]
    assert [entry["id"] for entry in info["boards"] if entry["power"] == "on"] == [board]
