# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host on this machine: four GPUs that are stood in for, a bridge in a network of its own, and real
containers with a real sshd, made from an image by the code that people run.

Where the device cgroup lets it pass, open() of a GPU says ENXIO here, for there is no driver; else EPERM.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.claim_request import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    folders,
    open_trial,
    persistence,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.folders import in_use
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container, containers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.bridge import bridge_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.preflight import Plan
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR, bare, four
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import write_command
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.images.stores import filled

__all__ = ["bare", "four"]

ADDRESSES = [address for address, _device, _minor, _numa in FOUR]
MINORS = {address: minor for address, _device, minor, _numa in FOUR}
CG1 = {
    "name": "cg1.xlarge",
    "memory_mb": 16384,
    "vcpus": 8,
    "local_gb": 160,
    "extra_specs": {"hypervisor": "s== LXC", "gpus": "= 2", "gpu_arch": "s== fermi"},
}
#: Ends at once when it is asked to.
INIT = """#!/bin/sh
mkdir -p /run/sshd
/usr/sbin/sshd -o UsePAM=no
trap 'exit 0' PWR
while :; do sleep 3600 & wait; done
"""
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def pytest_collection_modifyitems(items):
    missing = [tool for tool in ("lxc-start", "sshd", "ssh") if not shutil.which(tool, path="/usr/sbin:/usr/bin")]
    why = "containers of the system need root: run as root" if os.geteuid() else None
    if missing:
        why = f"{', '.join(missing)} not installed: tools/setup test"
    for item in items if why else []:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """A folder with an image: busybox, and this machine's sshd with all that it loads."""
    folder = tmp_path_factory.mktemp("image")
    root = folder / "root"
    for name in ("bin", "dev", "etc/ssh", "proc", "root", "run", "sbin", "sys", "tmp", "usr/sbin", "var/empty"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for command in ("sh", "sleep", "mkdir", "ls", "cat", "id", "uname"):
        (root / "bin" / command).symlink_to("busybox")
    (root / "sbin" / "init").write_text(INIT)
    (root / "sbin" / "init").chmod(0o755)
    loaded = subprocess.run(["ldd", "/usr/sbin/sshd"], capture_output=True, text=True, check=True).stdout.split()
    for library in ["/usr/sbin/sshd", *(word for word in loaded if word.startswith("/"))]:
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n")
    (root / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc" / "ssh" / "sshd_config").write_text("PasswordAuthentication no\n")
    (folder / "image.json").write_text(json.dumps({"arch": platform.machine()}))
    return folder


@pytest.fixture
def network(monkeypatch):
    """A network of this process's own, with the bridge that containers are put on, for the length of a test."""
    before = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt")]
    assert libc.unshare(CLONE_NEWNS | CLONE_NEWNET) == 0
    try:
        # LXC looks for the bridge in sysfs, which shows the network of whoever mounted it.
        subprocess.run(
            "mount --make-rprivate / && mount -t tmpfs none /mnt && mount --rbind /sys/fs/cgroup /mnt"
            " && mount -t sysfs none /sys && mount --rbind /mnt /sys/fs/cgroup && ip link set lo up"
            " && ip link add hetero0 type bridge && ip address add 10.0.81.1/24 dev hetero0 && ip link set hetero0 up",
            shell=True,
            check=True,
        )
        plan = Plan(network="10.0.81.0/24", addresses=["10.0.81.10", "10.0.81.13"])
        pinning.load(bridge_of(plan, [], []))
        # containers of other tests are not seen from here
        with monkeypatch.context() as patch:
            patch.setattr(folders, "in_use", in_use)
            yield
    finally:
        deadline = Deadline(60.0)
        for space in before:
            # A thread that asked a container's monitor may be about to end.
            while libc.setns(space, 0) != 0:
                assert not deadline.passed, os.strerror(ctypes.get_errno())
                deadline.nap()
            os.close(space)


#: What the image is called in the store.
IMAGE = "box"


class Site:
    """The host's files, and the verbs as the module calls them; each call opens the host anew, as each task does."""

    def __init__(self, folder, machine, image):
        self.folder, self.machine, self.image = folder, machine, image
        self.config = folder / "host.json"
        self.lxcpath = folder / "lxc"
        self.settings = dict(
            name="gpu1", state_folder=str(folder / "state"), run_folder=str(folder / "run"), lxcpath=str(self.lxcpath),
            bridge="hetero0", gateway="10.0.81.1", addresses=["10.0.81.10", "10.0.81.13"], unprivileged=False,
            memory_mb=65536, vcpus=32, local_gb=640, default_image=IMAGE,
        )  # fmt: skip
        self.config.write_text(json.dumps(self.settings))
        places = {name: str(folder / name) for name in ("private", "disks")}
        self.here = persistence.Host(command=str(folder / "hetero"), **places)
        write_command(self.here)
        filled(f"{self.settings['state_folder']}/images", image, lambda: self.take_in(image, IMAGE))

    @property
    def database(self):
        """The path of its database."""
        return f"{self.settings['state_folder']}/host.db"

    def take_in(self, folder, name):
        """What an operator does before anybody asks for it; its name."""
        with self.host(create=False) as host:
            return host.images.import_image(str(folder), name, replace=True).name

    def host(self, create=True):
        return Host(str(self.config), "test", create, places=Places(self.machine.paths, self.here))

    def claim(self, instance="ml-8", owner="jo", flavor=None, key=KEY, check=False, image=None, **more):
        """What state `present` does; its result, with `changed`."""
        change = Change(check)
        with self.host(create=not check) as host:
            asked = ClaimRequest(instance, owner, flavor or CG1, image or self.settings["default_image"], key, **more)
            result = present(host, asked, change)
        return dict(result, changed=change.changed, diff=change.diff)

    def do(self, verb, instance="ml-8", check=False, **options):
        """What the other states do; the module's result."""
        with self.host(create=not check) as host:
            return verb(host, instance, lifecycle.Options(**{"timeout": 60.0, **options}), Change(check))

    def up(self, instance="ml-8", **options):
        return self.do(lifecycle.running, instance, **options)

    def info(self, **more):
        with self.host(create=False) as host:
            found = information(host, **more)
        # plays take nothing of a node whose answer they do not know
        assert checked(json.loads(json.dumps(found)), "host_info").get("msg") is None
        return found

    def container(self, name="ml-8"):
        return Container(name, str(self.lxcpath))

    def can_open(self, name="ml-8"):
        """Addresses of the GPUs that a process in it can open by number, whatever nodes it has."""
        said = open_trial.reaches(self.container(name), [("c", 195, minor) for minor in MINORS.values()])
        assert set(said.values()) <= {errno.ENXIO, errno.EPERM}
        return [address for address in ADDRESSES if said["c", 195, MINORS[address]] == errno.ENXIO]

    def nothing_is_left(self):
        seen = self.info()
        free = all(amount["free"] == amount["total"] for amount in seen["capacity"].values())
        left = set(os.listdir(self.lxcpath) if self.lxcpath.is_dir() else []) - {folders.MARK}
        return free and not seen["instances"] and not left and not any(gpu["holder"] for gpu in seen["gpus"])

    def end(self):
        for name in containers(str(self.lxcpath)):
            self.container(name).stop()


@pytest.fixture
def claims(tmp_path, four, image):
    """The host without a network, for what is only claimed."""
    return Site(tmp_path, four, image)


@pytest.fixture
def site(claims, network):
    yield claims
    claims.end()
