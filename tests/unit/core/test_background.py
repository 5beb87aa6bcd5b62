# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of jobs in the background. If these fail, a play says that a node was restarted while its boards boot on."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import background, retention
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import outcome


def job(folder, name, age):
    path = folder / name
    path.write_text("")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_job_that_lives_keeps_its_file_whatever_the_clock_says(tmp_path):
    """Lost: the end of a boot that a play waits for, once the node's clock went a day forward and another verb came."""
    (tmp_path / "jobs").mkdir()
    lives, ended, fresh = (
        job(tmp_path / "jobs", name, age) for name, age in (("lives", 1e6), ("ended", 1e6), ("fresh", 0))
    )
    with lives.open() as worker:
        fcntl.flock(worker, fcntl.LOCK_EX)
        begun = background.detach(str(tmp_path))
        if begun is None:
            os._exit(0)
        os.waitpid(begun[1], 0)
    assert sorted(os.listdir(tmp_path / "jobs")) == sorted([lives.name, fresh.name, os.path.basename(begun[0])])


@pytest.fixture
def small(tmp_path):
    """A run folder of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("a file system of one's own needs root: run as root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)], check=True)
    return tmp_path


def fill(folder):
    with open(folder / "filler", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def test_work_is_not_begun_where_its_end_cannot_be_told(small):
    """Lost: what became of a play's boards, on a node whose run folder is full."""
    fill(small)
    with pytest.raises(HeteroError, match=r"/jobs: cannot be written .No space left on device.: free space"):
        background.detach(str(small))
    assert os.listdir(small / "jobs") == []


@pytest.mark.parametrize("said", ["", "a warning\n"])
def test_a_result_that_finds_no_room_is_said_to_be_lost(small, said):
    """The run folder filled up while the work went on: the play is to say so, and not that the node was restarted."""
    job = background.detach(str(small))
    if job is None:
        os.write(1, said.encode())
        fill(small)
        background.finish(dict(lines=["x" * 100000]))
    os.waitpid(job[1], 0)  # another test may have left a child of this process
    with open(job[0], encoding="utf-8") as file:
        result = outcome(file.read())
    assert result["failed"]
    assert result["msg"].startswith("what was done is done, and cannot be told: no room for it with the jobs (No space")


def test_a_result_is_told(small):
    job = background.detach(str(small))
    if job is None:
        background.finish(dict(lines=["x" * 10000]))
    os.waitpid(job[1], 0)  # another test may have left a child of this process
    with open(job[0], encoding="utf-8") as file:
        assert outcome(file.read()) == dict(lines=["x" * 10000])


def test_files_of_many_jobs_take_a_bounded_space(tmp_path, monkeypatch):
    """Lost: a node's memory (/run lies there), to a day's plays that were killed; the newest and what lives stay."""
    (tmp_path / "jobs").mkdir()
    monkeypatch.setattr(retention, "JOBS_BYTES", 3 * 8192)
    made = [job(tmp_path / "jobs", f"job-{age}", age) for age in (5000, 4000, 3000, 2000, 1000, 100)]
    for path in made:
        seen = path.stat()
        path.write_bytes(b"x" * 8192)
        os.utime(path, (seen.st_atime, seen.st_mtime))
    with made[0].open() as worker, made[2].open() as reader:
        fcntl.flock(worker, fcntl.LOCK_EX)
        begun = background.detach(str(tmp_path))
        if begun is None:
            os._exit(0)
        os.waitpid(begun[1], 0)
        assert reader.read() == "x" * 8192, "who reads one reads on"
    left = {path.name for path in made if path.exists()}
    assert left == {"job-5000", "job-2000", "job-1000", "job-100"}
    monkeypatch.setattr(retention, "JOBS_BYTES", 0)
    begun = background.detach(str(tmp_path))
    if begun is None:
        os._exit(0)
    os.waitpid(begun[1], 0)
    assert made[-1].exists(), "somebody may yet ask for it"
