# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with four GPUs that are stood in for, and real containers of the real LXC; GPUs are given to them.

Where the device cgroup lets it pass, open() of a GPU says ENXIO here, for there is no driver; else EPERM.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import open_trial, persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    attachment,
    gpu_reconciliation,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR, bare, four
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import boxes, pure_v2, write_command

__all__ = ["bare", "boxes", "four", "pure_v2"]

ADDRESSES = [address for address, _device, _minor, _numa in FOUR]
MINORS = {address: minor for address, _device, minor, _numa in FOUR}
SHARED = ["/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]


class Host:
    """The host: its table, its GPUs, and its containers; verbs as the module calls them."""

    def __init__(self, folder, machine, made):
        self.folder = folder
        self.machine = machine
        self.boxes = made
        self.state_db = str(folder / "host.db")
        self.run_folder = str(folder / "run")
        self.here = persistence.Host(private=made.private, command=str(folder / "hetero"))
        write_command(self.here)

    def site(self, store):
        found = self.machine.find()
        return Site(store, found, (self.boxes.lxcpath,), self.run_folder, self.machine.paths, self.here)

    def attach(self, container, count=None, gpus=(), share=False, check=False, arch=None, seconds=60, **more):
        with Store(self.state_db, "test", create=not check, busy=60) as store:
            wanted = GpuRequest(count, arch, tuple(gpus), share)
            return attachment.attach(self.site(store), container, wanted, Change(check), Deadline(seconds), **more)

    def detach(self, container, *gpus, check=False, seconds=60, **more):
        with Store(self.state_db, "test", create=not check, busy=60) as store:
            return attachment.detach(self.site(store), container, gpus, Change(check), Deadline(seconds), **more)

    def reconcile(self, repair=False, check=False):
        with Store(self.state_db, "test", create=repair and not check) as store:
            return gpu_reconciliation.reconcile(self.site(store), repair, Change(check or not repair), Deadline(20))

    def found(self):
        """What an audit finds: {(kind, container, address)}."""
        done = self.reconcile()
        assert not done["changed"]
        assert not any(finding["done"] for finding in done["findings"])
        return {(finding["kind"], finding["container"], finding["address"]) for finding in done["findings"]}

    def uses(self, pid, address):
        """Have /proc say that this process has the GPU open, which no driver here opens."""
        folder = self.machine.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd" / "3").symlink_to(self.machine.root / "dev" / f"nvidia{MINORS[address]}")
        (folder / "maps").write_text("")
        (folder / "comm").write_text(Path(f"/proc/{pid}/comm").read_text())
        (folder / "cgroup").write_text(Path(f"/proc/{pid}/cgroup").read_text())

    def hides(self, pid, files):
        """Have /proc say that this process was sent so many files that it did not receive yet."""
        folder = self.machine.root / "proc" / str(pid)
        if not folder.exists():
            (folder / "fd").mkdir(parents=True)
            (folder / "fd" / "5").symlink_to("socket:[77]")
            (folder / "fdinfo").mkdir()
            (folder / "maps").write_text("")
            (folder / "comm").write_text(Path(f"/proc/{pid}/comm").read_text())
        (folder / "fdinfo" / "5").write_text(f"pos:\t0\nino:\t77\nscm_fds: {files}\n")

    def pull_out(self, address):
        """The GPU vanishes from the bus and the driver."""
        shutil.rmtree(self.machine.root / "sys/bus/pci/devices" / address)
        shutil.rmtree(self.machine.nvidia / "gpus" / address)

    def table(self):
        """{address: [name of the container]} as written down."""
        found = {}
        with Store(self.state_db, create=False) as store:
            for row in store.allocations():
                found.setdefault(row.address, []).append(os.path.basename(row.holder.partition("#")[0]))
        return found

    def can_open(self, container):
        """Addresses of the GPUs that a process in it can open by number, whatever nodes it has."""
        said = open_trial.reaches(container, [("c", 195, minor) for minor in MINORS.values()], base=self.boxes.private)
        assert set(said.values()) <= {errno.ENXIO, errno.EPERM}
        return [address for address in ADDRESSES if said["c", 195, MINORS[address]] == errno.ENXIO]

    def nodes(self, container):
        """Names of the NVIDIA nodes that are in it."""
        return sorted(name for name in os.listdir(f"/proc/{container.init_pid}/root/dev") if name.startswith("nvidia"))


@pytest.fixture
def host(tmp_path, four, boxes):
    return Host(tmp_path, four, boxes)
