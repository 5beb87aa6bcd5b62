# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container without any GPU runs, and its folder was moved aside (or its configuration lies elsewhere, as of LXD's
and Incus's containers). If this fails, pci_driver and libvirt_hostdev refuse every GPU of the host that is on its
driver, saying that the container can open it, which it cannot; and gpu_reconcile, which they name, finds nothing.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.test_older_tables_and_containers_gpus import (
    GPU,
    bare,
    bound,
    boxes,
    four,
    kvm,
)
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import MINORS

__all__ = ["bare", "boxes", "four", "kvm"]


@pytest.fixture
def stray(boxes):
    """A function that makes a container that runs, and whose folder is no more in its place."""
    made = []

    def make(config=""):
        made.append(boxes.make(config, name="box"))
        os.rename(made[0].folder, f"{made[0].folder}.old")

    yield make
    for box in made:
        subprocess.run(["lxc-stop", "-k", "-P", box.lxcpath, "-n", box.name], check=False)


def test_a_gpu_that_it_cannot_open_is_bound(kvm, stray):
    stray()
    assert bound(kvm)["devices"][0]["after"] == "vfio-pci"


def test_a_gpu_that_it_cannot_open_goes_to_a_guest(kvm, stray):
    stray()
    kvm.attach(kvm.define("win"), GPU)
    assert kvm.table() == {GPU: "domain:win"}


def test_one_that_it_can_open_stays(kvm, stray):
    stray("\n".join(f"lxc.{key}.devices.allow = c 195:{MINORS[GPU]} rw" for key in ("cgroup", "cgroup2")))
    with pytest.raises(Refused, match=f"{GPU}: container box can open it"):
        bound(kvm)
