# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a check measures a board, by a shell that answers what the test says. If these fail, a slow or failing part
passes for a sound one, or a sound board is kept from everybody.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import measures
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.measures import MIB, Limits
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import NoProgram, Shell


class Played(Shell):
    """Answers each script by what the test says of it, a text or a function of the script's words."""

    def __init__(self, **answers):
        self._answers = {getattr(measures, name): answer for name, answer in answers.items()}
        self.asked, self.patience, self.sent = [], [], []

    def run(self, argv, deadline, stdin=None):
        self.patience.append(deadline.seconds)
        script, words = argv[2], argv[4:]
        self.asked.append((script, *words))
        answer = self._answers.get(script, "")
        return answer(*words) if callable(answer) else answer

    def put(self, source, target, deadline, progress=None):
        self.sent.append(os.path.getsize(source))
        progress(1, 2)


def go_on():
    """Nothing ends the check."""


def test_each_place_of_the_memory_gets_each_pattern():
    """Lost: a bit that keeps ones and loses zeros, in a place that was tried with one pattern."""
    shell = Played(FREE="307200\n", KEEPS="kept\n")
    found = measures.memory(shell, Limits(memory_mb=256), go_on)
    filled = [words for script, *words in shell.asked if script == measures.FILL]
    sizes = {"0": "64", "1": "64", "2": "22"}  # half of what is free
    assert sorted(filled) == sorted([str(pattern), place, sizes[place]] for pattern in range(3) for place in sizes)
    assert (found.passed, found.figures["mb"], found.text) == (True, 150, "150 MB keep three patterns")
    assert shell.asked[-1] == (measures.CLEAR,)


def test_a_place_that_loses_once_counts_once():
    """Lost: which part of the memory to replace."""
    lost = Played(FREE="307200\n", KEEPS=lambda pattern, place, size: "other" if place == "2" else "kept")
    found = measures.memory(lost, Limits(memory_mb=128), go_on)
    assert (found.passed, found.text) == (True, "128 MB keep three patterns"), "there is no third place"
    found = measures.memory(lost, Limits(memory_mb=140), go_on)
    assert (found.passed, found.text) == (
        False,
        "of 140 MB, something in 12 MB is not kept: replace its memory",
    )


@pytest.mark.parametrize("free", ["1000\n", "\n"])
def test_memory_that_is_not_free_is_not_tested(free):
    """Lost: the RAM system itself, or the good name of a board that tells no number."""
    found = measures.memory(Played(FREE=free), Limits(), go_on)
    assert (found.passed, found.text) == (None, "not tested: 0 MB of memory are free")


def test_a_disk_is_as_fast_as_its_slowest_place():
    """Lost: a disk that is worn out at its end."""
    seconds = {"0": 1.0, "468": 2.0, "936": 4.0}
    shell = Played(SIZE=f"{1000 * MIB}\n", READ_DISK=lambda device, place, count: f"5.0\n{5.0 + seconds[place]}\n")
    found = measures.disks(shell, ["/dev/sda"], Limits(disk_mb_s=16.0), go_on)
    assert (found.passed, found.figures) == (True, {"/dev/sda": dict(mb_s=16.8, smart=None)})
    found = measures.disks(shell, ["/dev/sda"], Limits(disk_mb_s=17.0), go_on)
    assert (found.passed, found.text) == (False, "/dev/sda 16.8 MB/s, less than 17 MB/s")


def test_a_small_disk_is_read_once_and_whole():
    """Lost: the check of a board with a small flash, to a place before its begin."""
    shell = Played(SIZE=f"{10 * MIB}\n", READ_DISK="1.0\n1.0\n")
    assert measures.disks(shell, ["/dev/mmcblk0"], Limits(), go_on).passed
    assert [words for script, *words in shell.asked if script == measures.READ_DISK] == [["/dev/mmcblk0", "0", "10"]]


@pytest.mark.parametrize(("status", "smart"), [
    ("", None),  # no such program
    ("2", None),  # smartctl could not ask the disk
    ("64", "passed"),  # there are old errors in the disk's log
    ("0", "passed"),
    ("8", "failing"),
    ("12", "failing"),
])  # fmt: skip
def test_what_a_disk_says_of_itself(status, smart):
    """Lost: a failing disk; or a sound board, to a disk behind an adapter that cannot be asked."""
    shell = Played(SIZE=f"{10 * MIB}\n", READ_DISK="1.0\n2.0\n", SMART=status)
    found = measures.disks(shell, ["/dev/sda"], Limits(), go_on)
    assert (found.figures["/dev/sda"]["smart"], found.passed) == (smart, smart != "failing")
    assert ("replace it" in found.text) == (smart == "failing")


@pytest.mark.parametrize(("least", "passed"), [(0.001, True), (1e9, False)])
def test_the_network_is_as_fast_as_its_limit(least, passed):
    """Lost: a board behind a cable that carries a tenth."""
    shell, looks = Played(), []
    found = measures.network(shell, Limits(network_mb_s=least), lambda: looks.append(len(shell.sent)))
    assert (found.passed, found.figures["mb"]) == (passed, 16)
    assert shell.sent == [8 * MIB, 8 * MIB]
    assert looks == [0, 1, 1, 2], "whether the check is to end: before each file, and while it goes"
    assert ("see its cable and its switch" in found.text) is not passed


def test_a_board_that_does_not_answer_holds_its_check_for_two_minutes_a_piece():
    """Lost: an hour of who waits for the board, to a disk that hangs."""
    shell = Played(FREE="307200\n", KEEPS="kept\n", SIZE=f"{1000 * MIB}\n", READ_DISK="5.0\n6.0\n")
    for test in (measures.memory, measures.network):
        test(shell, Limits(), go_on)
    measures.disks(shell, ["/dev/sda"], Limits(), go_on)
    assert max(shell.patience) <= 120


def test_the_checks_end_is_asked_for_between_pieces():
    """Lost: minutes of who waits for the board, to a test that looks only at its end."""
    asked = []

    def ends():
        asked.append(1)
        if len(asked) == 3:
            raise Lost("a request wants it", "board0")

    with pytest.raises(Lost):
        measures.memory(Played(FREE="307200\n", KEEPS="kept"), Limits(memory_mb=256), ends)
    assert len(asked) == 3


def test_what_is_asked_for_comes_before_what_the_proxy_says():
    """Lost: an operator's limit, to the site's; or the site's, to the default."""
    usual = SimpleNamespace(memory_mb=64, disk_mb_s=None, network_mb_s=20.0, boot_seconds=None)
    assert Limits.of(usual, network_mb_s=0.5, boot_seconds=None) == Limits(64, 5.0, 0.5, 300.0)


@pytest.mark.parametrize(("error", "passed", "text"), [
    (NoProgram("a script ended with 127", "board0"), None, "not tested: the RAM image lacks a program (a script ended"),
    (HeteroError("/dev/sda cannot be read", "board0"), False, "/dev/sda cannot be read"),
    (ValueError("invalid literal"), False, "what it answers cannot be (invalid literal)"),
])  # fmt: skip
def test_a_test_that_breaks_off_is_a_finding(error, passed, text):
    """Lost: the other tests of the board."""

    def test():
        raise error

    found = measures.tried(test)
    assert found.passed is passed
    assert found.text.startswith(text)


@pytest.mark.parametrize("error", [Lost("gone"), TimedOut("gone"), HeteroError("wanted", "board0", ends=True)])
def test_a_board_that_went_away_ends_the_check(error):
    """Lost: which test brought it down, among those that are then tried in vain."""

    def test():
        raise error

    with pytest.raises(type(error)):
        measures.tried(test)
