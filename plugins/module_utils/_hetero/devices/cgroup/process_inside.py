# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process inside a device cgroup of cgroup v1 asks the kernel what it may do. The cgroup's list does not show that if
it allows all devices with exceptions.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from typing import NamedTuple, Sequence, Tuple

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import HeteroError, naming
from . import mounts
from .rules import ACCESS, questions
from .v2 import V2

#: Kind (b or c), major, minor, and the letters of an access.
Device = Tuple[str, int, int, str]
#: Seconds for which the kernel is asked: it takes milliseconds, or keeps who enters waiting for what does not come.
PATIENCE = 10.0


def inside(path: str, devices: Sequence[Device]) -> list[bool]:
    """Return for each device whether a process in this cgroup may use it.

    The kernel is asked by access(2) for reading and writing, by mknod(2) for m.
    Nothing is opened. The process is a child of this one, one for all devices, as the kernel takes a millisecond to let
    it in, and is in none of the container's other cgroups and namespaces. It stays in this process's cgroup of v2.

    :raises HeteroError: the process could not enter; or this process's cgroup of v2 denies a device, too.
    """
    if not devices:
        return []
    asked = [(number, device, bits) for number, device in enumerate(devices) for bits in questions(device[3])]
    folder = tempfile.mkdtemp(prefix="hetero-cgroup-")
    try:
        nodes = [_Node(f"{folder}/{name}", device, bits) for name, (_number, device, bits) in enumerate(asked)]
        said = _said_inside(path, nodes)
    finally:
        shutil.rmtree(folder)
    closed = {number for (number, _device, _bits), letter in zip(asked, said) if letter == "n"}
    ours = mounts.directories(mounts.cgroups("self")).get(mounts.V2) if closed else None
    for kind, major, minor, access in [devices[number] for number in sorted(closed)]:
        if ours and not V2(ours).may(kind, major, minor, access):
            what = f"cannot tell whether it may {access} {kind} {major}:{minor}: programs on our own cgroup deny it"
            raise HeteroError(what, path, f"run it outside of {ours}")
    return [number not in closed for number in range(len(devices))]


class _Node(NamedTuple):
    """A question to the kernel: may a device, by a node of its own, be opened with these bits, or be made."""

    path: str
    device: Device
    bits: int

    @property
    def is_made_inside(self) -> bool:
        """Whether making the node is what is asked."""
        return bool(self.bits & ACCESS["m"])

    def make(self) -> None:
        kind, major, minor, _access = self.device
        os.mknod(self.path, {"b": stat.S_IFBLK, "c": stat.S_IFCHR}[kind] | 0o600, os.makedev(major, minor))

    def is_open(self) -> bool:
        """Return what the kernel tells this process.

        :raises OSError: something else than a refusal.
        """
        if self.is_made_inside:
            try:
                self.make()
            except PermissionError:
                return False
            return True
        wanted = bool(self.bits & ACCESS["r"]) * os.R_OK | bool(self.bits & ACCESS["w"]) * os.W_OK
        return os.access(self.path, wanted)


def _said_inside(path: str, nodes: Sequence[_Node]) -> str:
    """Return a letter for each node, y or n, from a child in the cgroup.

    :raises HeteroError: it could not enter, or ended, or was kept waiting, such as by a freezer in the same hierarchy.
    """
    for node in nodes:
        with naming(node.path):
            if not node.is_made_inside:
                node.make()
    try:
        said = in_child(lambda: _answers(path, nodes), Deadline(PATIENCE), path, "")
    except (HeteroError, OSError) as error:  # OSError: as many processes as there may be
        said = error.what if isinstance(error, HeteroError) else str(error)
    if len(said) != len(nodes) or set(said) - set("yn"):
        raise HeteroError(f"cannot be entered ({said})", path, "see whether its container still runs, unfrozen")
    return said


def _answers(path: str, nodes: Sequence[_Node]) -> str:
    try:
        with open(os.path.join(path, "tasks"), "w", encoding="ascii") as processes:
            processes.write("0")
        return "".join("y" if node.is_open() else "n" for node in nodes)
    except OSError as error:
        return str(error)
