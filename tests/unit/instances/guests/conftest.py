# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A KVM host in a folder: PCI devices and a libvirt that are stood in for at the wire, real disks, and guests that
answer ssh with the key that lies in their disk."""

from __future__ import annotations

import json
import os
import platform
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.claim_request import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import guests
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD, NETWORK, OTHER, host, virt
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.images.stores import filled

__all__ = ["host", "virt"]

KG1 = {
    "name": "kg1.large",
    "memory_mb": 512,
    "vcpus": 1,
    "local_gb": 0,
    "extra_specs": {"hypervisor": "s== kvm", "pci_passthrough:alias": "a1:1"},
}
ALIASES = {"a1": {"vendor_id": "10DE", "product_id": "11bf"}}


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """A folder with what boards boot; nothing of it is run."""
    folder = tmp_path_factory.mktemp("image")
    for name in ("etc/ssh", "root", "bin"):
        (folder / "root" / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "root/bin/busybox")
    (folder / "kernel").write_bytes(b"kernel")
    (folder / "initrd").write_bytes(b"initrd")
    (folder / "image.json").write_text(json.dumps({"arch": platform.machine(), "cmdline": "quiet"}))
    return folder


#: MiB that a disk has beside its contents: the product's, and what these tests give instead, who make hundreds of them,
#: copy them, and read them to see whose they are.
ROOM, LITTLE_ROOM = guests.ROOM, 16
#: What the image is called in the store.
IMAGE = "bootable"


class Site:
    """The host's files, and the verbs as the module calls them; each call opens the host anew, as each task does."""

    def __init__(self, virt, image):
        self.virt, self.image = virt, image
        self.folder = virt.root
        virt.paths = virt.paths._replace(guests=str(self.folder / "guests-files"))
        self.config = self.folder / "etc/host.json"
        self.config.parent.mkdir(exist_ok=True)
        self.configure()
        filled(str(self.folder / "var/lib/hetero/images"), image, self._take_in)

    def _take_in(self):
        with self.host(create=False) as host:
            host.images.import_image(str(self.image), IMAGE)

    def configure(self, **more):
        config = dict(
            name="kvm1",
            state_folder=str(self.folder / "var/lib/hetero"),
            run_folder=str(self.folder / "run/hetero"),
            lxcpath=str(self.folder / "lxc"),
            guests_folder=str(self.folder / "guests-files"),
            addresses=[f"{NETWORK}.10", f"{NETWORK}.12"],
            aliases=ALIASES,
            memory_mb=2048,
            vcpus=4,
            local_gb=10,
        )
        self.config.write_text(json.dumps({"kvm": dict(config, **more)}))

    def host(self, create=True):
        return Host(str(self.config), "tests", create=create, places=Places(pci=self.virt.paths))

    def request(self, instance, **more):
        fields = dict(owner="alice", flavor=KG1, image=IMAGE, ssh_public_key=KEY, kind="kvm")
        return ClaimRequest(instance, **dict(fields, **more))

    def provision(self, instance, check=False, timeout=60, user_data=None, **more):
        """What playbook provision_instance has done on this host."""
        with self.host(not check) as host:
            change = Change(check)
            claimed = present(host, self.request(instance, **more), change)
            if check and claimed["new"]:
                return dict(claimed, **change.result)
            options = lifecycle.Options(timeout=timeout, user_data=user_data)
            done = lifecycle.running(host, instance, options, change)
            return dict(done, new=claimed["new"], lines=claimed["lines"] + done["lines"])

    def do(self, verb, instance, check=False, timeout=60, **options):
        with self.host() as host:
            return getattr(lifecycle, verb)(
                host, instance, lifecycle.Options(timeout=timeout, **options), Change(check)
            )

    def info(self, **more):
        with self.host(False) as host:
            found = information(host, **more)
        # plays take nothing of a node whose answer they do not know
        assert checked(json.loads(json.dumps(found)), "host_info").get("msg") is None
        return found

    def drivers(self):
        return {address: self.virt.host.driver(address) for address in (OTHER, CARD)}

    def table(self):
        return self.virt.table()

    def files(self, instance):
        folder = self.folder / "guests-files" / instance
        return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.fixture
def site(virt, image, monkeypatch):
    monkeypatch.setattr(guests, "ROOM", LITTLE_ROOM)
    # the rules themselves are tried by tests/unit/hypervisors/pinning
    (virt.root / "programs/nft").write_text(f'#!/bin/sh\necho "$*" >> {virt.root}/nft\n[ ! -e {virt.root}/flushed ]\n')
    (virt.root / "programs/nft").chmod(0o755)
    return Site(virt, image)
