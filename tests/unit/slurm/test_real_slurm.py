# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's slurmctld, slurmd and munge, set up by role slurm, with boards that are played. If these fail, a site's jobs
get no boards, or boards that another job has used.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import changed
from ansible_collections.hetero.compute.tests.unit.slurm.machines import Slurm

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root"),
    pytest.mark.skipif(not shutil.which("slurmctld"), reason="needs Debian's slurmctld: tools/setup test"),
    pytest.mark.long,
]

PARTITIONS = {"boards": {"flavors": ["tp64.8x8"], "default": True}}


@pytest.fixture
def slurm(tmp_path):
    made = Slurm(tmp_path)
    try:
        rc, output = made.set_up(slurm_partitions=PARTITIONS)
        assert rc == 0, output
        assert "3 slots" in output
        made.up()
        yield made
    finally:
        made.down()


def a_gang_gets_boards_that_boot_for_it_and_end_with_it(slurm):
    """Lost: `srun -N2`, and with it all of Slurm; or boards that stay on, or have a root that was used."""
    rc, output = slurm.run("srun", "-N2", "-C", "tp64.8x8", "hostname", timeout=900)
    assert (rc, sorted(output.split())) == (0, ["tp64-1", "tp64-2"]), slurm.words()
    slurm.until(lambda: all("POWERED_DOWN" in slurm.node(f"tp64-{number}") for number in (1, 2)), 900)
    slurm.until(lambda: not any(board.process for board in slurm.boards) and not slurm.programs(), 900)
    log = slurm.machine.path("var/log/hetero-slurm/hetero-slurm.log").read_text()
    assert "provision_instance instance=tp64 numbers=1,2 flavor=tp64.8x8: 0" in log
    assert "terminate_instance instance=tp64 numbers=1,2: 0" in log


def a_slot_without_a_node_says_why_and_comes_back(slurm):
    """Lost: why a job does not begin, in the only place where its user looks."""
    path = slurm.proxy.folder / "tftpboot" / "tilera_boards"
    before = path.read_text()
    path.write_text(before.replace("TILEPro64", "aarch64"))
    job = slurm.submit("hostname")
    slurm.until(lambda: "Reason=hetero: " in slurm.node("tp64-1") and "DRAIN" in slurm.node("tp64-1"), 900)
    said = slurm.node("tp64-1")
    assert "no node. 3 boards: cpu_arch aarch64 is not tilepro64" in said, slurm.words()
    slurm.until(lambda: "JobState=PENDING" in slurm.run("scontrol", "-o", "show", "job", job)[1], 60)
    slurm.run("scancel", job)
    path.write_text(before)
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    # Slurm opens a slot as it switches it off
    assert "DRAIN" in slurm.node("tp64-1"), slurm.words()
    assert "Reason=hetero: tp64 wants" in slurm.node("tp64-1"), slurm.words()
    assert slurm.sync()[0] == 0, slurm.words()
    assert "DRAIN" not in slurm.node("tp64-1"), slurm.words()


def what_a_job_has_is_neither_ended_nor_taken_away(slurm):
    """Lost: a job, for a suspend that comes too late, or for a playbook that is run again."""
    job = slurm.submit("sleep 3000")
    slurm.until(lambda: "JobState=RUNNING" in slurm.run("scontrol", "-o", "show", "job", job)[1], 900)
    (board,) = [one for one in slurm.boards if one.process]
    assert "POWER_DOWN" in slurm.node("tp64-1"), slurm.words()
    assert slurm.run("/usr/local/lib/hetero-slurm/suspend", "tp64-1", user="slurm")[0] == 0, slurm.words()
    rc, output = slurm.set_up(slurm_partitions=PARTITIONS)
    assert (rc, changed(output)) == (0, 0), output
    rc, output = slurm.set_up(slurm_partitions=PARTITIONS, slurm_slots={"tp64.8x8": {"count": 0}})
    assert rc == 2, output
    assert "tp64-[1-3] would be taken from Slurm" in " ".join(output.split())
    assert "tp64-1 may have jobs" in " ".join(output.split()), output[-1500:]
    assert board.process.poll() is None
    assert "JobState=RUNNING" in slurm.run("scontrol", "-o", "show", "job", job)[1], slurm.words()
    slurm.run("scancel", job)
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    assert board.process is None, slurm.words()


def what_was_killed_is_begun_again(slurm):
    """Lost: a job that waits for ever, for a program that a restart of the controller's machine has ended."""
    job = slurm.submit("hostname")
    slurm.until(lambda: any("provision_instance" in words for words in slurm.programs().values()), 300)
    slurm.saved(jobid=job, nodename="tp64-3")
    slurm.kill_all()
    slurm.start_controller()
    slurm.until(lambda: "POWERING_UP" in slurm.node("tp64-1"), 60)
    assert slurm.sync()[0] == 0, slurm.words()
    slurm.until(lambda: "JobState=COMPLETED" in slurm.run("scontrol", "-o", "show", "job", job)[1], 300)
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    assert not any(board.process for board in slurm.boards), slurm.words()


def an_end_that_was_killed_is_begun_again(slurm):
    """Lost: boards that stay on for nobody, and their roots, which the next job would find."""
    slurm.submit("hostname")
    slurm.until(lambda: any("terminate_instance" in words for words in slurm.programs().values()), 900)
    slurm.saved(nodename="tp64-3")
    slurm.kill_all()
    slurm.start_controller()
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1"), 60)
    assert slurm.sync()[0] == 0, slurm.words()
    assert not any(board.process for board in slurm.boards), slurm.words()
    assert not list(slurm.machine.root.glob("var/lib/hetero-slurm/slots/*.had")), slurm.words()


def a_job_whose_prolog_is_killed_begins_elsewhere(slurm):
    """Lost: a root that is no other job's, where the kernel has no memory for the program that sees to it."""
    job = slurm.submit("hostname")
    slurm.until(lambda: any("provision_instance" in words for words in slurm.programs().values()), 300)
    os.kill(next(pid for pid, words in slurm.programs().items() if "programs prolog" in words), signal.SIGKILL)
    slurm.until(lambda: "JobState=PENDING" in slurm.run("scontrol", "-o", "show", "job", job)[1], 60)
    slurm.run("scancel", job)
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)


def a_job_whose_end_slurm_forgot_gives_its_board_back_when_it_is_cancelled(slurm):
    """Lost: a board, for ever, for a job that has ended; or a job's board, by a guess that it has."""
    job = slurm.submit("sleep 10")
    slurm.until(lambda: "JobState=RUNNING" in slurm.run("scontrol", "-o", "show", "job", job)[1], 900)
    slurm.saved(jobid=job, nodename="tp64-1")
    state, kept = slurm.machine.path("var/lib/slurm/slurmctld"), slurm.folder / "kept"
    subprocess.run(["cp", "-a", state, kept], check=True)
    slurm.until(lambda: "JobState=COMPLETED" in slurm.run("scontrol", "-o", "show", "job", job)[1], 120)
    slurm.controller.kill()
    slurm.controller.wait()
    subprocess.run(["cp", "-a", f"{kept}/.", state], check=True)
    slurm.start_controller()
    assert slurm.sync()[0] == 0, slurm.words()
    assert "JobState=RUNNING" in slurm.run("scontrol", "-o", "show", "job", job)[1]
    assert any(board.process for board in slurm.boards), slurm.words()
    assert slurm.run("scancel", job)[0] == 0
    slurm.until(lambda: "POWERED_DOWN" in slurm.node("tp64-1") and not slurm.programs(), 900)
    assert not any(board.process for board in slurm.boards), slurm.words()


def test_a_site_that_slurm_runs(slurm):
    """Lost: what these say. They share a controller, whose set-up takes as long as each of them."""
    a_gang_gets_boards_that_boot_for_it_and_end_with_it(slurm)
    a_slot_without_a_node_says_why_and_comes_back(slurm)
    what_a_job_has_is_neither_ended_nor_taken_away(slurm)
    what_was_killed_is_begun_again(slurm)
    an_end_that_was_killed_is_begun_again(slurm)
    a_job_whose_prolog_is_killed_begins_elsewhere(slurm)
    a_job_whose_end_slurm_forgot_gives_its_board_back_when_it_is_cancelled(slurm)
