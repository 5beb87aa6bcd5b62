# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container for the proof: the host's own programs and libraries, read-only, and no GPU; its init is inside.py.

Started and ended by the collection's own binding of LXC.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container

#: Parts of the host that programs need; what is a link on the host is the same link inside.
SHARED = ("usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "opt")
#: null, zero, full, random, urandom, tty, ptmx and pseudo-terminals: what LXC gives every container. No mknod.
RULES = ("c 1:3 rw", "c 1:5 rw", "c 1:7 rw", "c 1:8 rw", "c 1:9 rw", "c 5:0 rw", "c 5:2 rw", "c 136:* rw")
#: Seconds for its init to listen, and for an answer of it.
PATIENCE = 30
ANSWER = 150


class Proof:
    """The container in `folder`; a context manager that makes, starts and ends it."""

    def __init__(self, folder, name="hetero-gpu-proof"):
        self.folder = Path(folder)
        self.lxcpath = str(self.folder / "lxc")
        self.talk = self.folder / "talk"
        self.container = Container(name, self.lxcpath)

    def __enter__(self):
        root = self.folder / "lxc" / self.container.name / "rootfs"
        for path in ("dev", "proc", "sys", "tmp", "run", "proof", "talk"):
            (root / path).mkdir(parents=True)
        self.talk.mkdir()
        mounts = [f"{Path(__file__).parent} proof none bind,ro 0 0", f"{self.talk} talk none bind 0 0"]
        for name in SHARED:
            host = Path("/", name)
            if host.is_symlink():
                (root / name).symlink_to(os.readlink(host))
            elif host.is_dir():
                (root / name).mkdir()
                # what a GPU machine mounts below /usr is NVIDIA's libraries
                mounts.append(f"{host} {name} none rbind,ro 0 0")
        (self.folder / "mount").mkdir()
        lines = [
            f"lxc.uts.name = {self.container.name}",
            f"lxc.rootfs.path = dir:{root}",
            # where an unpacked LXC would look for it, there is nothing
            f"lxc.rootfs.mount = {self.folder}/mount",
            "lxc.init.cmd = /usr/bin/python3 /proof/inside.py /talk/socket",
            "lxc.mount.auto = proc:mixed sys:ro",
            "lxc.autodev = 1",
            "lxc.apparmor.profile = unconfined",
            "lxc.net.0.type = empty",
            *(f"lxc.mount.entry = {mount}" for mount in mounts),
        ]
        for key in ("lxc.cgroup.devices", "lxc.cgroup2.devices"):
            lines += [f"{key}.deny = a", *(f"{key}.allow = {rule}" for rule in RULES)]
        Path(self.container.config_file).write_text("\n".join([*lines, ""]))
        self.container.start(PATIENCE)
        return self

    def __exit__(self, *exc):
        if self.container.defined:
            self.container.stop()

    def run(self):
        """(whether the CUDA program succeeded inside, its last words)."""
        deadline = Deadline(PATIENCE)
        while not (self.talk / "socket").exists() and not deadline.passed:
            deadline.nap()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(ANSWER)
            peer.connect(str(self.talk / "socket"))
            answer = b"".join(iter(lambda: peer.recv(65536), b""))
        done = json.loads(answer)
        return done["code"] == 0, done["said"]
