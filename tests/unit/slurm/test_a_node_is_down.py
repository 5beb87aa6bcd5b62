# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots, while a proxy node or host does not answer. If these fail, jobs wait for ResumeTimeout, and nobody is told
what for.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.test_power import OFF, RISING, Slurm

DOWN = "p2 cannot be reached: No route to host"


@pytest.fixture
def slurm(tmp_path):
    made = Slurm(tmp_path)
    made.nodes(RISING)
    made.provisioned(DOWN)
    # no play that asks all nodes says anything else
    made.text("rc-hetero.compute.status", "2")
    made.text("said-hetero.compute.status", f"{DOWN}\n")
    return made


def test_its_slots_go_back_with_what_the_playbook_said(slurm):
    """Lost: ten minutes of each job, whose node nobody brings; and why, where its user looks."""
    assert slurm.run("resume", "tp64-1,tp64-2") == (0, "")
    told = [line for line in slurm.read("told") if "state=down" in line]
    assert told == [f"update nodename=tp64-{number} state=down reason=hetero: {DOWN}" for number in (1, 2)]


def test_so_do_slots_whose_last_instance_cannot_be_ended(slurm):
    """Lost: the same, where the one before has left something on the node that is down."""
    slurm.record("had", "tp64-1")
    slurm.record("spent", "tp64-1", "tp64-2")
    slurm.text("rc-hetero.compute.terminate_instance", "2")
    assert slurm.run("resume", "tp64-1,tp64-2") == (0, "")
    told = [line for line in slurm.read("told") if "state=down" in line]
    assert [line.split()[1] for line in told] == ["nodename=tp64-1", "nodename=tp64-2"]
    assert all(DOWN in line for line in told), told
    # it is ended by who comes next
    assert "tp64-1.spent" in slurm.records()


def test_what_a_slot_was_closed_for_once_does_not_close_it_for_ever(slurm):
    """Lost: a slot after a job that ran, for what was said of it before."""
    slurm.run("resume", "tp64-1")
    assert "tp64-1.closed" in slurm.records()
    slurm.provisioned(tp64_1="board1")
    assert slurm.run("resume", "tp64-1") == (0, "")
    slurm.nodes(OFF)
    before = len(slurm.read("told"))
    assert slurm.run("suspend", "tp64-1") == (0, "")
    assert [line for line in slurm.read("told")[before:] if "drain" in line] == []
