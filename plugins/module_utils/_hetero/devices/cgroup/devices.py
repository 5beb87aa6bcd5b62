# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process, a container or a cgroup may do with devices, and changes of that, for cgroup v1 and v2 alike.

On a host with both, both must allow a device. The caller knows who may allow what in somebody else's cgroup.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterable, Mapping, NamedTuple, TypeVar

from ...core.errors import BadInput, HeteroError, Refused
from . import mounts
from .v1 import V1
from .v2 import V2
from .view import View

if TYPE_CHECKING:
    from .rules import Rule
    from .view import Side


AnySide = TypeVar("AnySide", V1, V2)


class DeviceCgroup(NamedTuple):
    """The cgroups that count for a process: one of each hierarchy, or None.

    :param name: its name for people, for errors.
    """

    name: str
    v1: V1 | None
    v2: V2 | None

    @property
    def version(self) -> str:
        """Return what decides about devices: "v1" (lists), "v2" (programs) or "hybrid" (both)."""
        return "hybrid" if self.v1 and self.v2 else "v1" if self.v1 else "v2"

    @property
    def folders(self) -> list[str]:
        return [side.path for side in (self.v1, self.v2) if side]

    def look(self) -> View:
        """Read all that counts for it now, to answer several questions about the same moment."""
        return View(self.name, self.v1, self.v1.rules if self.v1 else [], self.v2.effective if self.v2 else [])

    def may(self, kind: str, major: int, minor: int, access: str) -> bool:
        """Return whether a process in it may open the device (access r, w, rw) and make its node (m).

        The answer is exact: it comes from the v1 list and from all v2 programs of the cgroup and its ancestors.
        """
        return self.look().may(kind, major, minor, access)

    def verdict(self, rule: Rule) -> str:
        """Return how much of what a rule names is allowed: "allowed", "denied" or "partly" (View.verdict)."""
        return self.look().verdict(rule)

    def sides(self, rule: Rule) -> list[Side]:
        """Return what each list and each effective program says of a rule, as proof (View.sides)."""
        return self.look().sides(rule)

    def allows_everything(self) -> bool:
        """Return whether it may use all devices, so that only missing nodes keep it from one.

        A v1 list that allows all except some counts as that, because the kernel does not show exceptions (`may` asks
        it).
        """
        return self.look().allows_everything()

    def allow_v1(self, rule: Rule) -> None:
        self._side(self.v1, "v1").allow(rule)

    def forbid(self, rules: Iterable[Rule], name: str) -> int:
        """Add this collection's program that only denies these rules, on the v2 side; return its id.

        :param name: its owner (any text), by which it is found again.
        """
        side = self._side(self.v2, "v2")
        if not side.limitable:
            what = "is in the root of the unified hierarchy: a program there would count for the whole machine"
            raise Refused(what, self.name, "put it into a cgroup of its own")
        return side.forbid(rules, name)

    def unforbid(self, name: str) -> bool:
        """Remove that program; return whether there was one."""
        return self._side(self.v2, "v2").unforbid(name)

    def _side(self, side: AnySide | None, version: str) -> AnySide:
        if side is None:
            raise Refused(f"has no device cgroup of {version}", self.name, f"it is {self.version}")
        return side


def of_process(pid: int | str, proc: str = "/proc") -> DeviceCgroup:
    """Return the DeviceCgroup of a running process."""
    return _found(f"process {pid}", mounts.directories(mounts.cgroups(pid, proc), proc))


def of_container(pid: int, name: str, proc: str = "/proc") -> DeviceCgroup:
    """Return the DeviceCgroup of a whole LXC container, by its init's process id and its name."""
    return _found(f"container {name}", mounts.directories(mounts.container_cgroups(pid, name, proc), proc))


def of_path(path: str, proc: str = "/proc") -> DeviceCgroup:
    """Return the DeviceCgroup of a folder, or of a cgroup's name as LXC and systemd use it in both hierarchies.

    If the other hierarchy has a cgroup of the same name, that counts too.
    """
    there = mounts.cgroup_at(path, proc) if os.path.isabs(path) and os.path.isdir(path) else None
    cgroup = there[1] if there else os.path.normpath("/" + path)
    found = mounts.directories(dict.fromkeys(mounts.OF_DEVICES, cgroup), proc)
    if not any(found.values()):
        listed = mounts.mounts(proc)
        where = ", ".join(mount.point for version in mounts.OF_DEVICES for mount in listed[version]) or "none mounted"
        raise BadInput("is no device cgroup", f"cgroup {path}", f"name a directory below one of: {where}")
    return _found(f"cgroup {path}", found)


def _found(name: str, directories: Mapping[str, str | None]) -> DeviceCgroup:
    v1, v2 = (directories.get(version) for version in (mounts.V1, mounts.V2))
    if not v1 and not v2:
        raise HeteroError("is in no device cgroup that is mounted here", name, "mount the cgroup hierarchies")
    return DeviceCgroup(name, V1(v1) if v1 else None, V2(v2) if v2 else None)
