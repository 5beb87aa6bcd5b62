# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real containers of the real LXC: busybox in a folder, no network, each with a name of its own, ended by the test.

The devices are 195:N, whose driver this machine does not have: where the cgroup allows it, open() says ENXIO.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import hooks, persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import gpu_start
from ansible_collections.hetero.compute.tests.unit.conftest import COLLECTIONS
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

BUSYBOX = "/bin/busybox"
COMMANDS = "sh sleep mknod ls ln rm mkdir mv cat chmod mount umount reboot stat touch dd true"
#: Ends at once when it is asked to, and reaps what lxc-attach leaves behind.
INIT = 'trap "exit 0" PWR INT\nwhile :; do sleep 3600 & wait; done\n'
RULES = """
lxc.{key}.devices.deny = a
lxc.{key}.devices.allow = c *:* m
lxc.{key}.devices.allow = c 1:3 rwm
lxc.{key}.devices.allow = c 1:5 rwm
lxc.{key}.devices.allow = c 5:2 rwm
lxc.{key}.devices.allow = c 136:* rwm
"""
#: The command of a host, as LXC's hooks start it, for the test's own host.
COMMAND = f"""\
#!{sys.executable} -B
import sys
sys.path.insert(0, {str(COLLECTIONS)!r})
from {hooks.__name__} import started
from {persistence.__name__} import Host
from {gpu_start.__name__} import VERB, main
started.__defaults__ = (Host(**{{places!r}}),)
assert sys.argv[1] == VERB
sys.exit(main(sys.argv[2:]))
"""
CLONE_NEWNS = 0x20000
libc = ctypes.CDLL(None, use_errno=True)


def write_command(host):
    """Write the command of a host. It says errors as a real one does: of what a hook says LXC reads ten pieces, and of
    a traceback Python writes each line by itself.
    """
    Path(host.command).write_text(COMMAND.format(places=asdict(host)))
    os.chmod(host.command, 0o755)


@dataclass(frozen=True)
class Node:
    """What discovery says of a device node."""

    path: str
    major: int
    minor: int
    kind: str = "c"
    mode: int = 0o666
    uid: int = 0
    gid: int = 0
    present: bool = True

    @property
    def number(self):
        return self.kind, self.major, self.minor


GPU0, GPU1 = Node("/dev/nvidia0", 195, 0), Node("/dev/nvidia1", 195, 1)
CTL, UVM = Node("/dev/nvidiactl", 195, 255), Node("/dev/nvidia-uvm", 238, 0)
CAPS = Node("/dev/nvidia-caps/nvidia-cap1", 239, 1)
FIVE = (GPU0, GPU1, CTL, UVM, CAPS)


class Boxes:
    """Makes containers in a folder of its own.

    Not in pytest's, through which an unprivileged container's root could not walk: each run of pytest closes it again.
    """

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="hetero-test-", dir="/var/tmp")
        os.chmod(self.top, 0o711)
        self.lxcpath = f"{self.top}/lxc"
        self.private = f"{self.top}/private"
        self.made = []

    def make(self, config="", unprivileged=False, rules=True, name=None, start=True):
        name = name or f"hetero-test-{uuid.uuid4().hex[:8]}"
        top = Path(self.lxcpath, name)
        root = top / "rootfs"
        for folder in ("bin", "dev", "proc", "sys", "tmp", "etc"):
            (root / folder).mkdir(parents=True)
        shutil.copy(BUSYBOX, root / "bin/busybox")
        for command in COMMANDS.split():
            (root / "bin" / command).symlink_to("busybox")
        (root / "init.sh").write_text(INIT)
        lines = [
            f"lxc.rootfs.path = dir:{root}",
            f"lxc.uts.name = {name}",
            "lxc.net.0.type = empty",
            "lxc.apparmor.profile = unconfined",
            "lxc.init.cmd = /bin/sh /init.sh",
            "lxc.mount.auto = proc:mixed",
            "lxc.autodev = 1",
            "lxc.pty.max = 8",
        ]
        if unprivileged:
            lines += ["lxc.idmap = u 0 200000 65536", "lxc.idmap = g 0 200000 65536"]
            subprocess.run(["chown", "-hR", "200000:200000", root], check=True)
            top.chmod(0o755)
        if rules:
            lines += [RULES.format(key=key) for key in ("cgroup", "cgroup2")]
        (top / "config").write_text("\n".join(lines) + f"\n{config}\n")
        container = Container(name, self.lxcpath)
        self.made.append(container)
        if start:
            container.start(30)
        return container

    def end(self):
        for container in self.made:
            if container.defined:
                Container(container.name, container.lxcpath).stop()
        shutil.rmtree(self.top)


@pytest.fixture
def boxes():
    """In a network of the test's own: monitors of containers that others run are seen in theirs (/proc/net/unix), and
    one that waits in a hook of its start answers nobody.
    """
    with own_network():
        made = Boxes()
        yield made
        made.end()


@pytest.fixture
def box(boxes):
    """A running container with device rules."""
    return boxes.make()


@pytest.fixture
def pure_v2():
    """cgroup v2 alone, as this process and those that it starts see it, for the length of a test."""
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    assert libc.unshare(CLONE_NEWNS) == 0
    try:
        subprocess.run(
            "mount --make-rprivate / && umount -lR /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup",
            shell=True,
            check=True,
        )
        yield
    finally:
        # EINVAL while a thread of liblxc's calls is just ending, which shares our root folder
        deadline = time.monotonic() + 60
        while libc.setns(before, CLONE_NEWNS) != 0:
            assert time.monotonic() < deadline, os.strerror(ctypes.get_errno())
            time.sleep(0.01)
        os.close(before)


def attach(container, *argv):
    """Run a command inside, as its root; its exit code."""
    line = ["lxc-attach", "-P", container.lxcpath, "-n", container.name, "--clear-env", "--", *argv]
    return subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False).returncode
