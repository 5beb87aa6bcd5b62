# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of jobs in the background. If these fail, a play says that a node was restarted while its boards boot on."""

from __future__ import annotations

import fcntl
import os
import time

from ansible_collections.hetero.compute.plugins.module_utils import background


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
        os.wait()
    assert sorted(os.listdir(tmp_path / "jobs")) == sorted([lives.name, fresh.name, os.path.basename(begun)])
