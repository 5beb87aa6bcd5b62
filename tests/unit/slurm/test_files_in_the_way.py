# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots whose controller cannot write a file. If these fail, their jobs wait for Slurm's own limit, each anew, and
nobody is told why.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.slurm.test_power import RISING, Slurm


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path)


def test_no_room_for_an_outcome_is_the_reason(slurm):
    """Lost: ten minutes of each job of a flavor, as the disk is full, for a word of why."""
    slurm.nodes(RISING)
    path = slurm.folder / "outcomes"
    path.write_text("in the way of the folder, as a full disk is")
    assert slurm.run("resume", "tp64-2") == (0, "")
    why = f"{path}: File exists: no playbook can be run without a folder there"
    assert slurm.read("told")[0] == f"update nodename=tp64-2 state=down reason=hetero: {why}"


def test_no_room_for_a_reason_keeps_no_job_waiting(slurm):
    """Lost: the same, where a play has failed, and its reason cannot be noted."""
    slurm.nodes(RISING)
    (slurm.folder / "slots").mkdir()
    (slurm.folder / "slots" / "tp64-2.closed").symlink_to("/nowhere/at/all")
    slurm.text("said-hetero.compute.provision_instance", "ERROR! no inventory\n")
    slurm.text("rc-hetero.compute.provision_instance", "1")
    slurm.claims()
    assert slurm.run("resume", "tp64-2") == (0, "")
    assert slurm.read("told")[0] == "update nodename=tp64-2 state=down reason=hetero: ERROR! no inventory"


def test_a_lock_that_cannot_be_opened_keeps_no_other_slot(slurm):
    """Lost: all slots of a site, which nobody compared with its nodes, or a gang's, for one file of one of them."""
    (slurm.folder / "slots").mkdir()
    (slurm.folder / "slots" / "tp64-2.lock").symlink_to("/nowhere/at/all")
    slurm.nodes(RISING)
    slurm.provisioned(tp64_1="board0")
    assert slurm.run("resume", "tp64-1,tp64-2") == (0, "")
    told = slurm.read("told")
    assert any("nodename=tp64-1 comment=tp64-1 is on board0" in line for line in told), told
    assert [line for line in told if "nodename=tp64-2 state=down reason=hetero: another program" in line], told
    assert "tp64-2: nobody can work on this slot: [Errno 2]" in (slurm.folder / "log").read_text()
