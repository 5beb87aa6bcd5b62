# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says of GPUs and running containers: which container can open which GPU now, and by what right.

Only looks. What that means for a request is allocation.py's, what is done about it reconciling.py's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..cgroup import devices
from ..lxc import device_nodes, identity, liblxc

#: The device cgroup lets it read or write the GPU, and it has a node for it, may make one, or was given the rule.
OPEN = "open"
#: The device cgroup would let it; only that it has no node and cannot make one keeps it out.
NODE_ONLY = "node-only"
CLOSED = "closed"
#: What the bounding set of a process in /proc/PID/status shows CAP_MKNOD as (linux/capability.h).
CAP_MKNOD = 27


@dataclass(frozen=True)
class Reach:
    """How far one running container gets with one GPU; `why` for people."""

    holder: str
    container: str
    address: str
    state: str
    why: str


@dataclass(frozen=True)
class Live:
    """What all running containers of a host can open, as (holder, address) → Reach."""

    reaches: tuple

    def open(self, address):
        """Reaches of the containers that can open this GPU."""
        return [reach for reach in self.reaches if reach.address == address and reach.state == OPEN]

    def of(self, holder):
        """{address: Reach} of one container."""
        return {reach.address: reach for reach in self.reaches if reach.holder == holder}

    def is_there(self, holder):
        """Whether a holder lives: the container with this id. What is no container others must judge."""
        if any(reach.holder == holder for reach in self.reaches):
            return True
        if not holder.startswith("/"):
            return not holder.startswith("instance:")
        folder, name = os.path.split(holder.rpartition("#")[0])
        if not os.path.isdir(folder):
            return True  # perhaps a file system that is not mounted yet
        container = liblxc.Container(name, folder)
        return container.defined and identity.key_of(container) == holder


def look(lxcpaths, gpus):
    """What the running containers under these folders can do with these GPUs."""
    reaches = []
    for lxcpath in lxcpaths:
        for name in liblxc.running(lxcpath):
            reaches.extend(reach_of(liblxc.Container(name, lxcpath), gpus))
    return Live(tuple(reaches))


def reach_of(container, gpus):
    """One Reach for each GPU; none for a container that is not running (any more)."""
    pid = container.init_pid
    if not pid:
        return []
    cgroup = devices.of_process(pid)
    holder = key_or_path(container)
    return [_reach(container, pid, holder, cgroup, gpu) for gpu in gpus]


def key_or_path(container):
    """The container's key; for one that never was given an id its folder, which no allocation names."""
    return identity.key_of(container) or f"{container.lxcpath}/{container.name}"


def _reach(container, pid, holder, cgroup, gpu):
    state, why = CLOSED, "its device cgroup denies it"
    for node in gpu.nodes:
        if not may_open(cgroup, node):
            continue
        state, why = NODE_ONLY, f"its device cgroup allows {rule_of(node)}, it has no node and cannot make one"
        if device_nodes.look(container, node.path) == (node.kind, node.major, node.minor):
            state, why = OPEN, f"its device cgroup allows {rule_of(node)} and {node.path} is in it"
        elif not cgroup.allows_everything():
            state, why = OPEN, f"its device cgroup allows {rule_of(node)}"
        elif cgroup.may(node.kind, node.major, node.minor, "m") and can_mknod(pid):
            state, why = OPEN, "its device cgroup allows every device, and it may make nodes"
        if state == OPEN:
            break
    return Reach(holder, container.name, gpu.address, state, why)


def may_open(cgroup, node):
    """Whether reading or writing is allowed, one will do: both give ioctl(2), which is all that a GPU needs."""
    return any(cgroup.may(node.kind, node.major, node.minor, access) for access in "rw")


def rule_of(node, access=""):
    """A node as cgroup rules write it."""
    return f"{node.kind} {node.major}:{node.minor} {access}".strip()


def can_mknod(pid):
    """Whether a process of the container could make a node: root of the host's own user namespace with CAP_MKNOD."""
    with open(f"/proc/{pid}/uid_map", encoding="ascii") as file:
        inside, outside, count = file.readline().split()
    if (inside, outside) != ("0", "0") or int(count) != 2**32 - 1:
        return False
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        bounding = next(line.split()[1] for line in file if line.startswith("CapBnd:"))
    return bool(int(bounding, 16) >> CAP_MKNOD & 1)
