# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in a kernel's log, and how it is read. What is made of them is in test_discovery.py."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import health
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.paths import Paths

FALLEN = "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("number", "counts"),
    [
        *((number, False) for number in (13, 31, 43, 45, 68, 109)),
        *((number, True) for number in (14, 48, 79, 110, 1090)),
    ],
)
def test_faults_of_programs_take_no_gpu_out_of_use(number, counts):
    """Lost: a GPU for all, by one tenant's crash; or the next tenant's work, on one that is broken."""
    found = health.faults(f"NVRM: Xid (PCI:0000:05:00): {number}, pid=1")
    assert found == ({"0000:05:00": (number, f"NVRM: Xid (PCI:0000:05:00): {number}, pid=1")} if counts else {})


def test_what_came_after_the_driver_was_loaded_counts():
    """Lost: a fault of today, for the driver was loaded anew before; the last one of a GPU is told, by any spelling."""
    other = "nvrm: xid (0000:0A:00.0): 48, DBE"
    text = f"a\n{FALLEN}\n[1.2] NVRM: loading NVIDIA UNIX\nb\n[3.4] {other} \n{FALLEN.replace('79', '62')}\n{FALLEN}\n"
    assert health.faults(text) == {"0000:0a:00": (48, other), "0000:05:00": (79, FALLEN)}


class Log:
    """/dev/kmsg: one answer a read."""

    def __init__(self, monkeypatch, *answers):
        self.answers, self.sizes = list(answers), []
        monkeypatch.setattr(health.os, "read", self.read)

    def read(self, _file, size):
        self.sizes.append(size)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([b"a\n", b"b\n", BlockingIOError()], "a\nb\n"),
        # the oldest record was overwritten, and the next read goes on
        ([BrokenPipeError(), b"a\n", BrokenPipeError(), b"b\n", BlockingIOError()], "a\nb\n"),
        ([b"a\n", b""], "a\n"),
        ([b"\xff\n", BlockingIOError()], "�\n"),
    ],
)
def test_a_log_is_read_to_its_end_and_no_further(monkeypatch, answers, text):
    """Lost: the faults behind a record that was overwritten, or that holds odd bytes; or a look that never ends."""
    log = Log(monkeypatch, *answers)
    assert health._records(5) == text
    assert log.answers == []
    assert min(log.sizes) >= 8192, "a record that is longer than a read is an error"


def test_no_log_is_longer_than_its_buffer():
    """Lost: a look that ends, where somebody writes into the log as fast as it is read."""
    assert health.RECORDS * 64 == 64 << 20


def test_what_is_opened_is_closed(tmp_path):
    """Lost: a service that looks at GPUs every minute, when it has no files left."""
    paths = Paths.below(str(tmp_path))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").write_text("a\n")
    before = len(os.listdir("/proc/self/fd"))
    assert [health.kernel_log(paths) for _time in range(3)] == ["a\n"] * 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_log_that_is_odd_is_said(tmp_path):
    """Lost: that faults are not seen at all: a host that is broken is one without faults."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").symlink_to("kmsg")
    with pytest.raises((HeteroError, OSError), match="kmsg"):
        health.kernel_log(Paths.below(str(tmp_path)))


@pytest.mark.parametrize(("code", "text"), [(0, FALLEN), (1, "")])
def test_a_journal_is_asked_for_the_kernels_lines_of_this_boot(monkeypatch, tmp_path, code, text):
    """Lost: faults, among the lines of all programs; or a GPU for a fault of before the last boot."""
    asked = []
    monkeypatch.setattr(
        health, "ended", lambda argv, what: asked.append(argv) or SimpleNamespace(stdout=FALLEN, returncode=code)
    )
    paths = Paths.below(str(tmp_path))
    assert (health.kernel_log(paths), asked) == ("", [])
    (tmp_path / "run" / "systemd" / "system").mkdir(parents=True)
    assert health.kernel_log(paths) == text
    ((program, *options),) = asked
    assert program == "journalctl"
    assert set(options) == {"--quiet", "--dmesg", "--boot", "--lines=50000", "--output=cat", "--no-pager"}
