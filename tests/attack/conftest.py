# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks: each promise of the security guide, tried by whom it is made against, on a lab of this run's own.

An attacker is root on a board or in a container, a neighbour on the boards' network (the lab's namespace is on it), a
local user of a host, or a user of AWX who may launch templates. A test plays the attack as the attacker would, and says
what somebody would lose if it worked. One lab for all of these tests; each test ends with no instance left.
"""

from __future__ import annotations

import pytest
from labs import ROOT, Lab
from turns import DAY

FOLDER = ROOT / "build" / "lab" / "attack"
GPU_HOST = "gpu1"
#: They live as long as the lab.
TENANTS = ("mallory", "victim")
#: A flavor with a small root, which can be filled in seconds.
SMALL = {"small": {"memory_mb": 128, "vcpus": 1, "local_gb": 1}}


def pytest_report_header():
    return f"HETERO_DAY={DAY} runs the cases again whose day it is"


@pytest.fixture(scope="session")
def up():
    """A proxy node with ten boards, and a host whose containers are unprivileged; both set up."""
    lab = Lab(FOLDER)
    lab.play("lab_down")
    try:
        # With a disk there is a RAM image, too.
        disks = [{"board": 9, "size_mb": 64}]
        # Where this machine's controllers are those of version 1, only such a host can limit memory and processes.
        lab.play("lab_up", lab_gpu_hosts=[{"name": GPU_HOST, "cgroup": "hybrid"}], lab_disks=disks)
        lab.play("proxy")
        lab.play("gpu_host")
        yield lab
    finally:
        lab.play("lab_down")


@pytest.fixture
def lab(up):
    """The lab with all boards free; frees what a test left claimed."""
    yield up
    for claim in up.module("board_info")["claims"]:
        if claim["instance"] not in TENANTS:
            up.terminate(claim["instance"])


@pytest.fixture(scope="session")
def two(up):
    """Two tenants who know nothing of each other: mallory, who attacks, on board 0, and victim on board 1.

    mallory's root is small: 1 GB.
    """
    up.play("provision_instance", instance="mallory", flavor="small", hetero_extra_instance_types=SMALL, board=0)
    up.provision("victim", board=1)
    return up


@pytest.fixture(scope="session")
def neighbours(up):
    """Two tenants with a container each on one host: alice, who attacks, and bob."""
    for name in ("alice", "bob"):
        up.play("provision_instance", instance=name, flavor="cg1.xlarge")
    return up
