# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in a folder with PCI devices (tests/unit/devices/pci) and a libvirt whose virsh is virsh.py beside this."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.gpu_site import gpus_of_containers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.attachment import (
    Asked,
    attach,
    detach,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.domain import Libvirt
from ansible_collections.hetero.compute.tests.unit.devices.pci.conftest import host
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.virsh import program

__all__ = ["host"]

CARD = "0000:86:00.0"
OTHER = "0000:85:00.0"
DOMAIN = "<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid><devices/></domain>"
#: Of addresses that guests get, the beginning; each process of pytest has its own, as their sshd listens there.
NETWORK = f"127.{os.getpid() // 256 % 254 + 1}.{os.getpid() % 256}"
CAPABILITIES = """<capabilities><host><cpu><arch>x86_64</arch></cpu></host>
<guest><arch name='i686'><domain type='kvm'/></arch></guest>
<guest><arch name='x86_64'><domain type='qemu'/>{more}</arch></guest></capabilities>"""


class Virt:
    """The host's libvirt, looked at from outside."""

    def __init__(self, host):
        self.host = host
        self.root = host.root
        self.paths = host.paths
        self.calls = self.root / "virsh"
        self.capabilities()
        self.serve(os.getpid())

    def serve(self, tests):
        """Have guests end with that process at the latest."""
        played = self.root / "programs/virsh"
        played.write_text(program(self.root, tests))
        played.chmod(0o755)

    def capabilities(self, more=""):
        (self.root / "capabilities").write_text(CAPABILITIES.format(more=more))

    def add(self, address, driver, **more):
        """A device whose own driver is bochs-drm."""
        self.host.add(address, "10de:11bf", "bochs-drm", **more)
        native = self.root / "native"
        native.mkdir(exist_ok=True)
        (native / address).write_text("bochs-drm")
        if driver != "bochs-drm":
            (self.host.folder(address) / "driver").unlink()
            if driver:
                self.host.bind(address, driver)
                (self.host.folder(address) / "driver_override").write_text(f"{driver}\n")

    def define(self, name, uuid="11111111-1111-1111-1111-111111111111"):
        Libvirt(Deadline(120)).define(DOMAIN.format(name=name, uuid=uuid))
        return self.domain(name)

    def domain(self, name, timeout=120):
        return Libvirt(Deadline(timeout)).domain(name)

    def said(self):
        """The commands that change something, so far."""
        asking = ("list", "dominfo", "domstate", "dumpxml", "capabilities")
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if line.split()[0] not in asking]

    def fail(self, command, text=None):
        path = self.root / f"fail-{command}"
        if text is None:
            path.unlink()
        else:
            path.write_text(text)

    def store(self):
        return Store(self.paths.state_db)

    def attach(self, domain, *devices, check=False, **more):
        return self._do(attach, domain, devices, check, more)

    def detach(self, domain, *devices, check=False, **more):
        return self._do(detach, domain, devices, check, more)

    def _do(self, work, domain, devices, check, more):
        with self.store() as store:
            of_containers = [partial(gpus_of_containers, store, self.paths)] if work is attach else []
            return work(domain, Asked(devices, **more), store, Change(check), self.paths, *of_containers)

    def table(self):
        with self.store() as store:
            return {row.address: row.holder for row in store.allocations()}


@pytest.fixture
def virt(host, monkeypatch):
    """A libvirt with no domain, and two cards, of which one is parked and one is the host's."""
    os.makedirs(os.path.dirname(host.paths.state_db))
    made = Virt(host)
    made.add(OTHER, "bochs-drm", group=5)
    made.add(CARD, "pci-stub", group=6)
    yield made
    for pid in made.root.glob("guests/*/pid"):
        os.kill(int(pid.read_text()), signal.SIGKILL)
