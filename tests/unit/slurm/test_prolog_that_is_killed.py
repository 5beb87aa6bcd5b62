# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""roles/slurm/files/prolog, which slurmctld runs before a job begins, with a program in place of ours."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.conftest import PROGRAMS

PROGRAM = """import os, sys
assert sys.argv[1:] == ["prolog"]
{end}
"""


@pytest.mark.parametrize(
    ("end", "rc"), [("sys.exit(0)", 0), ("sys.exit(1)", 1), ("os.kill(os.getpid(), 9)", 1), ("os.abort()", 1)]
)
def test_one_that_is_killed_has_failed(tmp_path, end, rc):
    """Lost: a root that is no other job's. Slurm 22.05 begins a job whose prolog was killed, as by a kernel that has no
    memory left, and it is the prolog that refuses a root that was used, or that has another user's login.
    """
    shutil.copy(PROGRAMS.parent / "prolog", tmp_path)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "__main__.py").write_text(PROGRAM.format(end=end))
    assert subprocess.run(["sh", tmp_path / "prolog"], check=False, cwd="/", capture_output=True).returncode == rc
