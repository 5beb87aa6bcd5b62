# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Canaries as they are brought to a board and read there. Real disks are in tests/unit/boards/disk."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import canaries
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.canaries import Canaries, canary_blocks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline as deadlines
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

PATH = "/tmp/hetero-canaries-sda"


class Board:
    """A shell that says of each block what it is told to."""

    name = "board0"

    def __init__(self, *words):
        self.words, self.ran, self.noise = words, [], None

    def put(self, source, target, deadline):
        with open(source, "rb") as file:
            self.noise = file.read()
        self.ran.append((target, deadline.seconds))

    def run(self, argv, deadline):
        self.ran.append((argv, deadline.seconds))
        return "\n".join(self.words)


def test_noise_is_brought_written_and_read():
    """Lost: the proof of a wipe: blocks that are zero by themselves, or that never were on the disk."""
    shell = Board(*["canary"] * 8)
    one = Canaries(shell, "/dev/sda", 8 * 4096, 64)
    one.write(Deadline(2000))
    blocks = [str(number) for number in range(8)]
    assert shell.ran == [
        (PATH, 900.0),
        (["sh", "-c", canaries.WRITE, "sh", "/dev/sda", PATH, *blocks], pytest.approx(900, abs=200)),
        (["sh", "-c", canaries.READ, "sh", "/dev/sda", PATH, *blocks], pytest.approx(900, abs=200)),
    ]
    assert len(shell.noise) == 8 * 4096
    assert 0 not in shell.noise
    assert len(set(shell.noise)) > 200
    assert one.read(Deadline(1000)) == ["canary"] * 8


def test_a_board_that_takes_minutes_to_write_has_as_long_to_read(monkeypatch):
    """Lost: the wipe of a board that is slow beside other load: it was blamed for a script that did not end."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=lambda: clock.now))
    shell = Board("canary")

    def run(argv, deadline):
        clock.now += 800
        shell.ran.append((argv[2], deadline.left))
        return "canary"

    monkeypatch.setattr(shell, "run", run)
    Canaries(shell, "/dev/sda", 4096, 1).write(Deadline(86400))
    assert shell.ran[1:] == [(canaries.WRITE, 100.0), (canaries.READ, 100.0)]


def test_no_byte_of_noise_is_zero_and_all_others_stay(monkeypatch):
    """Lost: a canary that looks wiped from the first, or noise that a disk could foresee."""
    monkeypatch.setattr(canaries.os, "urandom", lambda size: bytes([0, 1, 2, 255]) * (size // 4))
    shell = Board("canary")
    Canaries(shell, "/dev/sda", 4096, 1).write(Deadline(1000))
    assert shell.noise == bytes([1, 1, 2, 255]) * 1024


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["canary", "zero", "other"], "2 of 3 blocks do not keep what is written to them"),
        (["zero"] * 3, "3 of 3 blocks do not keep what is written to them"),
        (["canary"] * 2, "2 of 3 blocks could be read"),
        (["canary"] * 4, "4 of 3 blocks could be read"),
    ],
)
def test_a_disk_that_loses_them_proves_nothing(words, what):
    with pytest.raises(HeteroError, match=f"board0 /dev/sda: {what}: replace the disk"):
        Canaries(Board(*words), "/dev/sda", 3 * 4096, 64).write(Deadline(9))


def test_as_many_canaries_as_are_usual():
    assert len(canary_blocks(1 << 30)) == 72


@pytest.mark.parametrize("seed", range(3))
def test_each_block_of_the_edges_may_be_one(seed):
    """Lost: places near a disk's ends that are known beforehand never to be looked at."""
    asked = []

    def sample(these, count):
        asked.append((these, count))
        return random.Random(seed).sample(these, count)

    blocks = canary_blocks(1000 * 4096, 64, SimpleNamespace(sample=sample))
    assert asked == [(range(1, 256), 3), (range(744, 999), 3), (range(256, 744), 64)]
    assert {0, 999} < set(blocks)
