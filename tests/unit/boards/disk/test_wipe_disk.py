# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One disk wiped pass by pass, and what is written down of it. Real disks are in tests/unit/boards/disk."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import wipe_disk
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipes import WipeRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError

MIB = 1 << 20


class Disk:
    """A board with one disk. `fate` is what its canaries are found as after each pass, `left` what is read back."""

    name = "board0"

    def __init__(self, monkeypatch, *fate, discards="done", left="zero"):
        self.fate, self.discards, self.left, self.ran, self.put = list(fate), discards, left, [], []
        disk = self

        class Canaries:
            blocks = (0, 7)

            def __init__(self, shell, device, size, samples):
                assert (shell, device, size) == (disk, "/dev/sda", 4 * MIB)
                disk.put.append(samples)

            def write(self, deadline):
                disk.ran.append("canaries")

            def read(self, deadline):
                return disk.fate.pop(0)

        monkeypatch.setattr(wipe_disk, "Canaries", Canaries)

    def run(self, argv, deadline):
        script = argv[2]
        assert [*argv[:2], argv[3]] == ["sh", "-c", "sh"]
        said = {
            wipe_disk.LOOK: ("look", f"{4 * MIB}\nAtom\n7\n"),
            wipe_disk.CAN_READ: ("can", "yes"),
            wipe_disk.DISCARD_ALL: ("discard", self.discards),
            wipe_disk.ERASE: ("erase", "done"),
            wipe_disk.ZERO_PIECE: ("zero", ""),
            wipe_disk.READ_PIECE: ("read", self.left),
        }[script]
        self.ran.append(said[0])
        return said[1]


def wiped(disk, **request):
    said = []
    begun = time.monotonic()
    record = wipe_disk.wipe_disk(disk, "/dev/sda", WipeRequest(**request), Deadline(999), said.append)
    assert 0 <= record.pop("seconds") <= time.monotonic() - begun + 0.01
    return record, said


GONE, KEPT, NOISE = ["zero", "zero"], ["zero", "canary"], ["other", "zero"]


def test_all_that_is_written_down_of_a_wipe(monkeypatch):
    """Lost: what a proof is looked up by, years after."""
    disk = Disk(monkeypatch, GONE)
    assert wiped(disk, samples=9) == (
        dict(
            device="/dev/sda",
            serial="7",
            model="Atom",
            bytes=4 * MIB,
            method="discard",
            passes=[dict(method="discard", done=True, canaries=2, gone=2)],
            proven=True,
            verify="sample",
            canaries=dict(block=4096, blocks=(0, 7)),
            seen_from=wipe_disk.seen_from(4 * MIB, 9),
        ),
        [],
    )
    assert (disk.ran, disk.put) == (["look", "canaries", "discard"], [9])


def test_a_disk_that_keeps_something_is_written_over(monkeypatch):
    """Lost: what a tenant wrote to a disk that only says that it discards."""
    for fate, gone in ((KEPT, 1), (NOISE, 1)):
        disk = Disk(monkeypatch, fate, GONE)
        record, said = wiped(disk)
        assert record["passes"] == [
            dict(method="discard", done=True, canaries=2, gone=gone),
            dict(method="zero", done=True, canaries=2, gone=2),
        ]
        assert disk.ran == ["look", "canaries", "discard", "canaries", "zero"]
        assert said[0] == "/dev/sda: ignores discard (1 of 2 blocks are still there); writing zeroes"
    disk = Disk(monkeypatch, GONE, discards="unsupported by it")
    record, said = wiped(disk)
    assert [(one["done"], one["canaries"]) for one in record["passes"]] == [(False, 0), (True, 2)]
    assert (record["method"], said[0]) == ("zero", "/dev/sda: cannot discard; writing zeroes")


def test_noise_after_a_secure_erase_is_no_trace(monkeypatch):
    """Lost: a method that leaves what its disk likes; but never what was there before."""
    record, _said = wiped(Disk(monkeypatch, NOISE), method="secure_erase")
    assert (record["method"], record["passes"][0]["gone"]) == ("secure_erase", 2)
    for method in ("secure_erase", "zero"):
        with pytest.raises(
            HeteroError, match=f"board0 /dev/sda: 1 of 2 blocks are still there after {method}: replace"
        ):
            wiped(Disk(monkeypatch, KEPT), method=method)


def test_a_proof_by_all_of_the_disk(monkeypatch):
    disk = Disk(monkeypatch, GONE)
    record, said = wiped(disk, verify="full")
    assert (record["verify"], record["seen_from"], record["passes"][0]["left"]) == ("full", 1, None)
    assert disk.ran == ["can", "look", "canaries", "discard", "read"]
    assert said == ["/dev/sda: read back, 100 % of 4 MB"]
    # a sample that finds something says enough
    assert wiped(Disk(monkeypatch, KEPT, GONE), verify="full")[0]["passes"][0].get("left") is None
    with pytest.raises(HeteroError, match="something from 0 MB on is still there, or cannot be read after zero"):
        wiped(Disk(monkeypatch, GONE, left="other"), verify="full", method="zero")


def test_no_proof_where_none_is_asked_for(monkeypatch):
    """Lost: that nobody looked, to whoever frees the board."""
    disk = Disk(monkeypatch)
    record, _said = wiped(disk, verify="none")
    assert [record[name] for name in ("proven", "canaries", "seen_from", "verify")] == [False, None, None, "none"]
    assert (disk.put, disk.ran) == ([], ["look", "discard"])
    assert record["passes"] == [dict(method="discard", done=True, canaries=0, gone=0)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(proven=False), "not proven"),
        (dict(verify="full"), "all read back as zeroes"),
        ({}, None),
        (dict(seen_from=1), None),
    ],
)
def test_a_wipe_in_words(given, words):
    """Lost: what a proof is worth, to an operator who reads it."""
    disk = dict(device="/dev/sda", serial="7", bytes=200 * MIB, method="zero", proven=True, verify="sample")
    disk.update(seen_from=5 * MIB, passes=[{"canaries": 1}, {"canaries": 72}])
    disk.update(given)
    rest = "1 MB (0.0 %)" if disk["seen_from"] == 1 else "5 MB (2.5 %)"
    words = words or f"72 canaries gone: a rest of {rest} or more would be seen with 95 %"
    assert wipe_disk.in_words(disk) == f"/dev/sda 7: 200 MB by zero, {words}"
    assert wipe_disk.in_words(dict(disk, serial="")).startswith("/dev/sda: 200 MB by zero")


def test_pieces_grow_with_the_disks_speed(monkeypatch):
    """Lost: progress, or a lost board that is not noticed for hours; or a disk that takes days in small pieces."""
    clock, pieces, told, speed = [0.0], [], [], [50.0]
    monkeypatch.setattr(wipe_disk, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def act(unit, at, count):
        pieces.append((unit, at, count))
        clock[0] += count / speed[0]

    starts = list(wipe_disk._pieces(1000 * MIB + 1024, act, told.append))
    assert pieces == [(MIB, 0, 16), *[(MIB, at, min(200, 1000 - at)) for at in range(16, 1000, 200)], (512, 2048000, 2)]
    assert starts == [unit * at for unit, at, _count in pieces]
    assert told == [1, 21, 41, 61, 81, 100]
    for speed[0], size in ((1, 16), (100000, 4096)):
        pieces.clear()
        list(wipe_disk._pieces(10000 * MIB, act, lambda part: None))
        assert pieces[1][2] == size
    # a disk that takes no time at all
    pieces.clear()
    speed[0] = float("inf")
    list(wipe_disk._pieces(10000 * MIB, act, lambda part: None))
    assert [count for _unit, _at, count in pieces] == [16, 4096, 4096, 10000 - 2 * 4096 - 16]
