# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a root a node of Slurm, on a board whose clock is wrong: munge takes nothing from another time. If this
fails, boards without a battery never answer Slurm, and each of their jobs waits ten minutes for nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: A date that tells this time, and notes which one it is set to.
DATE = """#!/bin/sh
case $1 in +%s) echo {now} ;; *) echo "$*" >> {folder}/set; exit {rc} ;; esac
"""
DAY, YEAR = 86400, 365 * 86400


@pytest.mark.parametrize(
    ("off", "rc", "told"),
    [
        (-30 * YEAR, 0, True),
        (-1, 0, True),
        (40, 0, False),
        # a board that takes long to boot is right
        (3600, 0, False),
        (20 * YEAR, 0, True),
        # a container may not set its host's
        (-30 * YEAR, 1, True),
    ],
)
def test_it_is_set_by_what_came_into_the_root(tmp_path, off, rc, told):
    """Lost: Slurm on boards that forget the time, as they are switched off after each job."""
    template = (ROOT / "roles" / "slurm" / "templates" / "node.sh.j2").read_text()
    (script,) = re.findall(r"^came=.*?^fi$", template, re.M | re.S)
    seed = tmp_path / "user-data"
    seed.write_text("")
    came = int(time.time()) - 10
    os.utime(seed, (came, came))
    (tmp_path / "date").write_text(DATE.format(now=came + off, folder=tmp_path, rc=rc))
    (tmp_path / "date").chmod(0o755)
    env = dict(PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert "/var/lib/cloud/seed/nocloud/user-data" in script
    argv = ["sh", "-euc", script.replace("/var/lib/cloud/seed/nocloud/user-data", str(seed))]
    done = subprocess.run(argv, check=False, env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "set"
    assert (path.read_text() if path.exists() else "") == (f"-s @{came}\n" if told else "")
    assert ("the clock is wrong by" in done.stderr) == (rc == 1)
    seed.unlink()
    path.unlink(missing_ok=True)
    assert subprocess.run(argv, check=False, env=env).returncode == 0
    assert not path.exists()  # what came some other way says nothing
