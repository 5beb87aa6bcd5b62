# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the cgroup hierarchies are mounted, and which cgroup of each a process or a container is in.

Only three matter: cgroup v1's controllers `devices` and `freezer`, and the unified hierarchy.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Iterable, Mapping, NamedTuple, Sequence

from ...core.errors import HeteroError, naming
from ...core.kernel_text import lines_of, mount_table, status_of

V1, V2, FREEZER = "v1", "v2", "freezer"
#: Hierarchies that decide which devices may be opened.
OF_DEVICES = (V1, V2)
#: The controllers of version 1 that are used.
CONTROLLERS = {"devices": V1, "freezer": FREEZER}
#: LXC's cgroups of a container's monitor, and of the container itself: lxc.payload.NAME, or lxc/NAME before LXC 4. If
#: the name was taken, -1, -2, … follows.
MONITOR = r"(?P<base>.*)/lxc\.monitor[./]{}(-\d+)?\Z"
PAYLOAD = r"/(lxc\.payload[./]|lxc/){}(-\d+)?(?=/|\Z)"


class Mount(NamedTuple):
    """A mounted hierarchy: the cgroup whose tree is mounted, and the mount point."""

    root: str
    point: str

    def directory(self, cgroup: str) -> str | None:
        """Return the folder of a cgroup, or None if this mount does not show it."""
        root, names = _names(self.root), _names(cgroup)
        below = names[len(root) :]
        if names[: len(root)] != root or below[:1] == [".."]:
            return None
        return os.path.join(self.point, *below)


def _names(cgroup: str) -> list[str]:
    """Return a cgroup's names from the top, with ".." for each step out of this process's cgroup namespace."""
    return [name for name in cgroup.split("/") if name]


def hierarchies(proc: str = "/proc") -> list[tuple[Mount, Sequence[str]]]:
    """Return [(Mount, versions)] of all mounted cgroup hierarchies, the topmost first.

    Most have none of the versions.
    """
    found = []
    path = os.path.join(proc, "self", "mountinfo")
    with naming(path):
        for line in mount_table(proc):
            if line.kind in ("cgroup", "cgroup2"):
                versions = (V2,) if line.kind == "cgroup2" else _versions(",".join(line.options))
                found.insert(0, (Mount(line.root, line.point), versions))
    return found


@functools.lru_cache(maxsize=None)
def _versions(controllers: str) -> tuple[str, ...]:
    return tuple(CONTROLLERS[name] for name in controllers.split(",") if name in CONTROLLERS)


def mounts(proc: str = "/proc") -> dict[str, list[Mount]]:
    """Return {version: [Mount]}, the topmost first."""
    found = {version: [] for version in (V1, V2, FREEZER)}
    for mount, versions in hierarchies(proc):
        for version in versions:
            found[version].append(mount)
    return found


def cgroups(pid: int | str, proc: str = "/proc") -> dict[str, str]:
    """Return {version: path} of a process's cgroups, as its /proc file says, without hierarchies that it is not in."""
    path, found = os.path.join(proc, str(pid), "cgroup"), {}
    try:
        lines = lines_of(path)
    except OSError as error:
        what = f"has no cgroup to read ({error.strerror})"
        raise HeteroError(what, f"process {pid}", "see whether it runs") from error
    for line in lines:
        number, controllers, cgroup = line.split(":", 2)
        for version in (V2,) if number == "0" else _versions(controllers):
            found[version] = cgroup
    return found


def container_cgroups(pid: int, name: str, proc: str = "/proc") -> dict[str, str]:
    """Return the cgroups of a whole container by its init, which may have moved to a cgroup below (as systemd does).

    The container's monitor, a process of the host, tells them: it has their folders open. Otherwise they are the
    outermost ones that have LXC's name (PAYLOAD). Names below those are the container's own and mean nothing.

    :raises HeteroError: neither tells.
    """
    monitor = _parent(pid, proc)
    theirs = cgroups(monitor, proc) if monitor else {}
    found = _held(monitor, theirs, proc) if monitor else {}
    if theirs and set(theirs) <= set(found):
        return found
    for version, cgroup in cgroups(pid, proc).items():
        if version not in found:
            found.update(_named(version, cgroup, theirs.get(version, ""), name))
    return found


def alone_in(pid: int, name: str, proc: str = "/proc") -> dict[str, str]:
    """Return {version: folder} of the cgroups in which only a container is; {} if that cannot be told."""
    monitor = _parent(pid, proc)
    if monitor is None:
        return {}
    theirs = cgroups(monitor, proc)
    found = container_cgroups(pid, name, proc)
    alone = {version: cgroup for version, cgroup in found.items() if not is_below(theirs.get(version, "/"), cgroup)}
    return {version: path for version, path in directories(alone, proc).items() if path is not None}


def is_below(cgroup: str, top: str) -> bool:
    """Return whether a cgroup is `top` or below it."""
    return f"{cgroup.rstrip('/')}/".startswith(f"{top.rstrip('/')}/")


def _named(version: str, cgroup: str, monitors: str, name: str) -> dict[str, str]:
    """Return {version: the container's cgroup}, told by the names of its init's and its monitor's cgroups."""
    base = re.match(MONITOR.format(re.escape(name)), monitors)
    pattern = re.compile(PAYLOAD.format(re.escape(name)))
    named = pattern.match(cgroup, len(base.group("base"))) if base else pattern.search(cgroup)
    if named and cgroup.startswith(base.group("base") if base else ""):
        return {version: cgroup[: named.end()]}
    if cgroup in (monitors, "/"):
        return {version: cgroup}  # it has none of its own
    if version not in OF_DEVICES:
        return {}
    what = f"cannot tell which cgroup is the whole container's: its init is in {cgroup}, and LXC names it otherwise"
    raise HeteroError(what, f"container {name}", "take lxc.cgroup.dir.* out of its configuration, and restart it")


def _parent(pid: int, proc: str) -> int | None:
    """Return the process that started an init (its monitor), or None if that is not visible."""
    try:
        return int(status_of(pid, "PPid", proc)) or None
    except OSError:
        return None


def _held(monitor: int, theirs: Mapping[str, str], proc: str) -> dict[str, str]:
    """Return the outermost cgroup of each hierarchy that a monitor has open and is not in itself.

    :param theirs: the monitor's own cgroups.
    """
    folder, found = os.path.join(proc, str(monitor), "fd"), {}
    try:
        descriptors = os.listdir(folder)
    except OSError:
        return found
    there = hierarchies(proc)
    for descriptor in descriptors:
        path = os.path.join(folder, descriptor)
        try:
            link = os.readlink(path)
            if not os.path.isdir(link) or not os.path.samefile(link, path):
                continue  # no folder, or of another mount namespace
        except OSError:
            continue  # closed meanwhile
        for version, cgroup in _at(link, there):
            if not is_below(theirs.get(version, "/"), cgroup):
                found[version] = min(cgroup, found.get(version, cgroup), key=len)
    return found


def directories(cgroups: Mapping[str, str], proc: str = "/proc") -> dict[str, str | None]:
    """Return {version: folder} of cgroups {version: path}; None if no mounted hierarchy shows the cgroup."""
    there = mounts(proc)
    return {version: _directory(there[version], cgroup) for version, cgroup in cgroups.items()}


def _directory(mounted: Iterable[Mount], cgroup: str) -> str | None:
    for mount in mounted:
        found = mount.directory(cgroup)
        if found is not None and os.path.isdir(found):
            return found
    return None


def cgroup_at(path: str, proc: str = "/proc") -> tuple[str, str] | None:
    """Return (version, cgroup) of a folder, or None if it is in no hierarchy that limits devices."""
    return next((one for one in _at(os.path.realpath(path), hierarchies(proc)) if one[0] in OF_DEVICES), None)


def _at(real: str, there: Iterable[tuple[Mount, Sequence[str]]]) -> list[tuple[str, str]]:
    """Return [(version, cgroup)] of a folder, as the innermost and topmost mount that it is in shows it."""
    found = []
    for mount, versions in there:
        if is_below(real, mount.point):
            below = real[len(mount.point.rstrip("/")) :].strip("/")
            # not os.path.normpath: a root outside of this process's cgroup namespace is "/.."
            cgroup = os.path.join(mount.root, below) if below else mount.root
            found.append((mount.point, [(version, cgroup) for version in versions]))
    return max(found, key=lambda one: len(one[0]), default=(None, []))[1]
