# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wipe makes of what the board's own programs say. Real disks are wiped in tests/unit/boards/disk."""

from __future__ import annotations

import random
import shlex
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ram_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import canaries, wipe_disk
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import discard
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError

MIB = 1 << 20


def shell(*answers, name="board0"):
    """One that says these, one after the other; `asked` is what was run."""
    said, asked = list(answers), []

    def run(argv, deadline):
        asked.append(argv)
        return said.pop(0)

    return SimpleNamespace(run=run, name=name, asked=asked)


@pytest.mark.parametrize("size", [2 * MIB + 64 * 4096, 3 * MIB, 100 * MIB, 1 << 40])
def test_canaries_are_at_both_ends_and_between(size):
    """Lost: what lies at the edges of a disk (partition tables, labels of RAID), or between, looks wiped."""
    for seed in range(20):
        blocks, last = canaries.canary_blocks(size, 64, random.Random(seed)), size // 4096 - 1
        assert len(blocks) == len(set(blocks)) == 72
        assert blocks == sorted(blocks)
        assert (blocks[0], blocks[-1]) == (0, last)
        assert sum(block < 256 for block in blocks) == sum(block > last - 256 for block in blocks) == 4


@pytest.mark.parametrize(("size", "count"), [(4096, 1), (4096 * 72, 72), (4096 * 73, 72), (2 * MIB + 63 * 4096, 72)])
def test_a_small_disk_has_canaries_anywhere(size, count):
    blocks = canaries.canary_blocks(size, 64)
    assert len(set(blocks)) == count
    assert set(blocks) <= set(range(size // 4096))


def test_what_a_proof_would_see():
    """Lost: how much of a tenant's data a proof may have overlooked."""
    assert canaries.seen_from(1000, 1) == 950
    assert canaries.seen_from(1 << 30, 64) == pytest.approx((1 << 30) * (1 - 0.05 ** (1 / 64)), abs=1)
    assert [canaries.shell_name(one) for one in (shell(), object())] == ["board0", "board"]


@pytest.mark.parametrize(("said", "seen"), [("4096\nAtom\n7\n", (4096, "Atom", "7")), ("8192\n", (8192, "", ""))])
def test_what_a_disk_says_of_itself(said, seen):
    assert wipe_disk._look(shell(said), "/dev/sda", Deadline(9)) == seen


@pytest.mark.parametrize(("said", "bytes_"), [("4095\nx\ny\n", "4095"), ("0\n", "0"), ("", "no"), ("-1\n", "-1")])
def test_a_disk_that_has_nothing_is_no_disk_that_was_wiped(said, bytes_):
    with pytest.raises(HeteroError, match=f"board0 /dev/sda: says that it has {bytes_} bytes: look at the disk"):
        wipe_disk._look(shell(said), "/dev/sda", Deadline(9))


@pytest.mark.parametrize(
    ("method", "said", "script", "done"),
    [
        ("discard", "done\n", wipe_disk.DISCARD_ALL, True),
        ("discard", "unsupported by it\n", wipe_disk.DISCARD_ALL, False),
        ("secure_erase", " done\n", wipe_disk.ERASE, True),
    ],
)
def test_an_erase_that_the_disk_does_itself(method, said, script, done):
    """Lost: a disk that cannot discard is called wiped, or one that can is written over for hours."""
    one = shell(said)
    assert method in wipe_disk.METHODS
    assert wipe_disk._erase(one, "/dev/sda", method, 4096, Deadline(9), None) is done
    assert one.asked == [["sh", "-c", script, "sh", "/dev/sda"]]


@pytest.mark.parametrize(
    ("method", "said", "why"),
    [
        ("secure_erase", "unsupported frozen by the firmware\n", "frozen by the firmware"),
        ("secure_erase", "unsupported\n", "the disk did not say why"),
        ("discard", "odd\n", "the disk did not say why"),
    ],
)
def test_an_erase_that_did_not_happen_is_an_error(method, said, why):
    with pytest.raises(BadInput, match=f"board0 /dev/sda: secure erase is not supported: {why}: use method discard or"):
        wipe_disk._erase(shell(said), "/dev/sda", method, 4096, Deadline(9), None)


def test_zeroes_are_written_from_end_to_end():
    """Lost: the end of a disk, which keeps what it had."""
    one, said = shell(*[""] * 1000), []
    assert wipe_disk._erase(one, "/dev/sda", "zero", 100 * MIB + 4096, Deadline(9), said.append) is True
    pieces = [map(int, argv[-3:]) for argv in one.asked]
    spans = [(unit * at, unit * (at + count)) for unit, at, count in pieces]
    assert spans[0][0] == 0
    assert spans[-1][1] == 100 * MIB + 4096
    assert all(end == begin for (_first, end), (begin, _last) in zip(spans, spans[1:]))
    assert said[-1].startswith("/dev/sda: zeroes, ")
    assert said[-1].endswith(" % of 100 MB")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (["zero\n"] * 1000, None),
        (["other\n"] * 1000, "something from 0 MB on is still there, or cannot be read"),
        ([""] * 1000, "something from 0 MB on is still there, or cannot be read"),
    ],
)
def test_what_is_left_is_found(said, left):
    assert wipe_disk._left(shell(*said), "/dev/sda", 100 * MIB, Deadline(9), lambda text: None) == left


def test_the_most_canaries_that_can_be_asked_for_fit_one_command():
    """Lost: the proof of a wipe. A command that the board's kernel refuses for its length (128 KiB) says nothing."""
    blocks = canaries.canary_blocks(1 << 44, canaries.MOST)
    argv = ["sh", "-c", canaries.READ, "sh", "/dev/sda", "/tmp/canaries", *map(str, blocks)]
    # as sshd runs it; -n: read, not carried out
    subprocess.run(["sh", "-n", "-c", shlex.join(argv)], check=True)


def test_what_only_the_ram_systems_cmp_can_tell():
    with pytest.raises(BadInput, match="board0: what a secure erase leaves"):
        wipe_disk._can_read_back(shell("yes"), "secure_erase", Deadline(9))
    with pytest.raises(BadInput, match="board0: the RAM image's cmp knows no -n"):
        wipe_disk._can_read_back(shell("no\n"), "zero", Deadline(9))
    wipe_disk._can_read_back(shell("yes\n"), "zero", Deadline(9))


@pytest.mark.parametrize(
    ("ram_keys", "console_key", "asked", "who"),
    [
        (True, None, [], None),
        (True, None, ["10.0.0.4"], None),
        (True, "said", ["10.0.0.4", "10.0.0.9"], None),
        (True, None, ["10.0.0.9", "10.0.0.4"], r"2 times \(10.0.0.4, 10.0.0.9\)"),
        (False, None, ["10.0.0.9", "10.0.0.4"], None),  # none was handed out
    ],
)
def test_a_key_that_two_have_asked_for_proves_no_board(ram_keys, console_key, asked, who):
    """Lost: the board's disks, which another machine at its address answers for."""
    ram = ram_boot.RamWork.__new__(ram_boot.RamWork)
    ram._system, ram._asked = SimpleNamespace(console_key=console_key), set(asked)
    ram.board, ram.driver = SimpleNamespace(name="board0"), SimpleNamespace(ram_keys=ram_keys)
    if who is None:
        ram.must_be_the_board()
    else:
        with pytest.raises(
            HeteroError, match=f"^board0: the host key of its RAM system was asked for {who}: it may not"
        ):
            ram.must_be_the_board()


def test_a_record_that_cannot_be_read_is_no_ended_claims():
    """Lost: the root of somebody whose record of a claim is damaged."""

    def kept(board):
        if board == 3:
            raise HeteroError("is damaged", "board3.json", "mend it")
        return None if board == 2 else SimpleNamespace(claim=SimpleNamespace(instance="eve"))

    proxy = SimpleNamespace(store=SimpleNamespace(kept=kept))
    assert [discard._is_ended(proxy, board, {"eve"}) for board in (1, 2, 3)] == [True, False, False]
    assert discard._is_ended(proxy, 1, {"bob"}) is False
