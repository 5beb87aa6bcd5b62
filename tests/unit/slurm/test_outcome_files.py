# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where plays write how they ended, for the programs that Slurm calls."""

from __future__ import annotations

import os
import signal

from ansible_collections.hetero.compute.tests.unit.slurm.test_power import RISING, Slurm, hanging


def test_what_a_killed_program_has_left_goes(tmp_path, monkeypatch):
    """Lost: room on the controller, a little more with each restart of it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    slurm = Slurm(tmp_path)
    slurm.nodes(RISING)
    slurm.provisioned(tp64_1="board1")
    killed = hanging(slurm, "resume", "tp64-1")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    # its play may go on, and writes there yet
    assert slurm.run("resume", "tp64-1") == (0, "")
    (left,) = slurm.folder.glob("outcomes/*")
    os.utime(left, (1, 1))
    assert slurm.run("resume", "tp64-1") == (0, "")
    assert [*temporary.iterdir(), *slurm.folder.glob("outcomes/*")] == []
