# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that cannot run slurmd, by Debian's Slurm and ssh. If this fails, who has such boards has no Slurm."""

from __future__ import annotations

import os
import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.machines import Slurm

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root"),
    pytest.mark.skipif(not shutil.which("slurmctld"), reason="needs Debian's slurmctld: tools/setup test"),
    pytest.mark.long,
]


@pytest.fixture
def slurm(tmp_path):
    made = Slurm(tmp_path, boards=1)
    try:
        rc, output = made.set_up(slurm_slots={"tp64.8x8": {"slurmd": False}}, slurm_keys="/etc/hetero/keys")
        assert rc == 0, output
        made.up()
        yield made
    finally:
        made.down()


def test_salloc_gives_an_ssh_login_to_who_has_the_job_and_nobody_else(slurm):
    """Lost: TILEPro boards, which have no slurmd; or a board that another user may use, too."""
    slurm.person("ann", slurm.machine.folder / "etc" / "hetero" / "keys")
    words = ["salloc", "-C", "tp64.8x8", "sh", "-c"]
    # and none of its programs runs as the user of the slurmd that stands in, who is root on all nodes
    script = "srun id && exit 9; HOME=/home/ann slurm-board $SLURM_JOB_NODELIST hostname"
    rc, output = slurm.run(*words, script, user="ann", timeout=900)
    assert rc == 0, output + slurm.words()
    assert "tp64-1" in output.splitlines()
    assert "Invalid job credential" in output
    assert "uid=" not in output
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    assert slurm.boards[0].process is None, slurm.words()
    assert not slurm.run("pgrep", "-f", "slurmd -D -b -N [t]p64-1")[1], slurm.words()
    # the next one has no key
    slurm.person("bob")
    rc, output = slurm.run(*words, "HOME=/home/bob slurm-board $SLURM_JOB_NODELIST hostname", user="bob", timeout=900)
    assert rc == 1, output + slurm.words()
    assert "bob has no key: put it into /etc/hetero/keys/bob.pub on the controller" in output
    a_board_that_came_up_for_nobody_is_the_next_users(slurm)


def a_board_that_came_up_for_nobody_is_the_next_users(slurm):
    """Lost: a job's time on a board that its user cannot reach, for one that was cancelled as the board came up."""
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    slurmd = slurm.machine.path("usr/local/sbin/slurmd")
    slurmd.write_text('#!/bin/sh\nwhile [ ! -e /tmp/slurmd-may ]; do sleep 0.2; done\nexec /usr/sbin/slurmd "$@"\n')
    slurmd.chmod(0o755)
    slurm.start("salloc", "-C", "tp64.8x8", "true", user="bob")
    slurm.until(lambda: any("provision_instance" in words for words in slurm.programs().values()), 300)
    rc, output = slurm.run("scancel", "-u", "bob")
    assert rc == 0, output
    slurm.until(lambda: "nobody's job" in slurm.node("tp64-1"), 300)
    words = ["salloc", "-C", "tp64.8x8", "sh", "-c", "HOME=/home/ann slurm-board $SLURM_JOB_NODELIST hostname"]
    job = slurm.start(*words, user="ann")
    slurm.until(lambda: " ann " in slurm.run("squeue", "-h", "-o", "%i %u %T", "-t", "CF")[1], 300)
    slurm.machine.path("tmp/slurmd-may").write_text("")
    assert job.wait(300) == 0, slurm.words()
    assert "tp64-1\n" in (slurm.folder / "salloc.log").read_text()
