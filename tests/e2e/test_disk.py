# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts of boards with disks, from outside: in the upload, in phase 2, in the wipe; a rerun gets there.

A lab of its own: board 0 has a disk that discards, board 2 one that ignores discard and is overwritten, which takes a
while.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import FOLDER
from labs import Lab

pytestmark = pytest.mark.long

DISKS = [{"board": 0, "size_mb": 768}, {"board": 2, "size_mb": 3072, "discard": "ignore"}]
OUTLETS = {0: "5", 2: "7"}
MARKER = "TENANT-MARKER"


class DiskLab(Lab):
    """A lab with disks, and hands at its outlets."""

    def disk(self, board):
        return self.folder / "disks" / f"board{board}-0.img"

    def marked(self, board):
        """Whether a tenant's marker is anywhere in the bytes of a disk."""
        return subprocess.run(["grep", "-q", "--text", MARKER, self.disk(board)], check=False).returncode == 0

    def blank(self, board):
        """Whether a disk holds zeroes only."""
        argv = ["cmp", "-n", str(self.disk(board).stat().st_size), self.disk(board), "/dev/zero"]
        return subprocess.run(argv, check=False, stdout=subprocess.DEVNULL).returncode == 0

    def cut(self, board):
        """Somebody pulls the plug. The machine stands still at once, since a login to the PDU takes a while."""
        os.kill(self.machine(board), signal.SIGSTOP)
        argv = ["fence_apc", "-a", "10.0.100.1", "-l", "apc", "-p", "apc", "-n", OUTLETS[board], "-o", "off"]
        self.inside(*argv)
        assert self.machine(board) is None

    def until(self, pattern, name, limit=3000, **extra):
        """Start a play and return it, with what it printed, when a line matches."""
        process = self.start(name, **extra)
        end, said = time.monotonic() + limit, []
        for line in process.stdout:
            said.append(line)
            if re.search(pattern, line):
                return process, said
            assert time.monotonic() < end, "".join(said)
        pytest.fail(f"the play ended without {pattern}:\n{''.join(said)}")

    def uploads(self, board):
        """How often an archive was brought to a board."""
        query = f"SELECT count(*) FROM events WHERE board = {board} AND text LIKE 'root archive is there%'"
        program = f"import sqlite3; print(*sqlite3.connect('/var/lib/hetero/state.db').execute(\"{query}\").fetchone())"
        return int(self.on_proxy(f"python3 -c {json.dumps(program)}"))

    def state(self, board):
        found = self.module("board_info")["boards"]
        return next(one for one in found if one["id"] == board)["state"]


@pytest.fixture(scope="module")
def lab():
    lab = DiskLab(Path(FOLDER).with_name("e2e-disk"))
    lab.play("lab_down")
    try:
        up = [*lab.argv("lab_up"), "-e", json.dumps({"lab_disks": DISKS})]
        subprocess.run(up, cwd=Path(__file__).parents[2], env=lab.env, check=True, timeout=900)
        lab.play("proxy")
        yield lab
    finally:
        lab.play("lab_down")


def test_power_cut_during_the_upload(lab):
    """Lost: a board that has half a root, and that nobody but a person gets going again."""
    play, said = lab.until(r"upload +[1-9]\d* of \d+ MB", "provision_instance", **asked("jackie"))
    lab.cut(0)
    played = lab.end(play)
    assert played.rc != 0, played.output
    assert "run this again" in "".join(said) + played.output
    again = lab.play("provision_instance", **asked("jackie"))
    assert again.phases("jackie")["running"] == "ssh answers"
    assert lab.ssh("jackie", "findmnt -no SOURCE /").strip() == "/dev/sda1"
    lab.ssh("jackie", f"for n in $(seq 999); do echo {MARKER} $n; done > /root/data; sync")


def test_power_cut_in_phase_2(lab):
    """Lost: a root that is whole is unpacked anew, over what a tenant may have put there; or the board is given up."""
    before = lab.uploads(0)
    lab.module("tilera_boot", boards=[0], state="stopped")
    play, _said = lab.until(r"board0 +power .*off → on", "provision_instance", **asked("jackie"))
    os.killpg(play.pid, signal.SIGKILL)
    play.wait()
    lab.cut(0)
    again = lab.play("provision_instance", **asked("jackie"))
    # by this play, or by the job of the killed one, which goes on and was waited for
    assert "ssh answers" in again.phases("jackie")["running"]
    assert lab.ssh("jackie", "tail -n 1 /root/data").strip() == f"{MARKER} 999"
    assert lab.uploads(0) == before


def test_power_cut_during_the_wipe(lab):
    """Lost: a board that is half wiped is free, or is never free again."""
    lab.provision("anna", board=2)
    # At the end, which the zeroes reach last.
    write = f"yes {MARKER} | head -c 50000000 | dd of=/dev/sda bs=1M seek=3000 conv=fsync status=none"
    lab.ssh("anna", write, timeout=300)
    assert lab.marked(2)
    play, said = lab.until(r"writing zeroes", "terminate_instance", instance="anna", force="true")
    lab.cut(2)
    played = lab.end(play)
    assert played.rc != 0, "".join(said) + played.output
    assert lab.state(2) == "shutting down"
    assert lab.marked(2)
    again = lab.terminate("anna")
    assert "canaries gone" in again.output
    assert lab.state(2) == "power off"
    assert lab.blank(2)


def test_the_end(lab):
    """Lost: what a tenant wrote, to the next one."""
    assert lab.marked(0)
    lab.terminate("jackie")
    assert (lab.state(0), lab.blank(0)) == ("power off", True)


def test_repair_looks_at_the_board(lab):
    """Lost: what a person who looks after a board needs to know, and a board that is free again without being sound."""
    played = lab.play("repair", node="board0")
    assert re.search(r"board0 +ram +\d+ MB, 1 CPUs, /dev/sda 768 MB LAB0-0, eth0 up", played.output), played.output
    assert lab.state(0) == "power off"


def asked(instance):
    return dict(instance=instance, flavor="tp64.8x8", boot_source="disk", hetero_boot_timeout=120)
