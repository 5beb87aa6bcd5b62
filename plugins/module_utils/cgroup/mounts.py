# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the cgroup hierarchies are mounted, and which cgroup of each a process is in.

Only the two that limit devices: cgroup v1's controller `devices`, and the unified one.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from typing import NamedTuple

from ..errors import HeteroError, naming

V1, V2 = "v1", "v2"
CLONE_NEWCGROUP = 0x02000000  # linux/sched.h


class Mount(NamedTuple):
    """A hierarchy: what of it is mounted (a cgroup's path), and where."""

    root: str
    point: str

    def directory(self, cgroup):
        """The directory of a cgroup, or None where this mount does not show it."""
        below = os.path.relpath(cgroup, self.root)
        if below == ".":
            return self.point
        return None if below.split("/")[0] == ".." else os.path.join(self.point, below)


def _plain(text):
    """mountinfo writes blanks and backslashes as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def mounts(proc="/proc"):
    """{"v1": [Mount], "v2": [Mount]}, the topmost first."""
    found = {V1: [], V2: []}
    path = os.path.join(proc, "self", "mountinfo")
    with naming(path), open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            fields, _dash, more = line.rstrip("\n").partition(" - ")
            if not more.startswith("cgroup"):
                continue
            root, point = fields.split(" ")[3:5]
            kind, _source, options = more.split(" ")[:3]
            version = V2 if kind == "cgroup2" else V1 if kind == "cgroup" and "devices" in options.split(",") else None
            if version:
                found[version].insert(0, Mount(_plain(root), _plain(point)))
    return found


def cgroups(pid, proc="/proc"):
    """{"v1": path, "v2": path} of a process, as its /proc file says; one that it is not in is left out."""
    path, found = os.path.join(proc, str(pid), "cgroup"), {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                number, controllers, cgroup = line.rstrip("\n").split(":", 2)
                if number == "0" and not controllers:
                    found[V2] = cgroup
                elif "devices" in controllers.split(","):
                    found[V1] = cgroup
    except OSError as error:
        what = f"has no cgroup to read ({error.strerror})"
        raise HeteroError(what, f"process {pid}", "see whether it runs") from error
    return found


def container_cgroups(pid, name, proc="/proc"):
    """The cgroups of a whole container by its init, which may have moved itself into one below (systemd does).

    They are what LXC names lxc.payload.NAME, or, where its configuration names them otherwise (lxc.cgroup.dir), the
    root of init's cgroup namespace.
    """
    found = cgroups(pid, proc)
    pattern = re.compile(rf"(?P<top>.*/lxc\.payload\.{re.escape(name)}(-\d+)?)(/|\Z)")
    theirs = {}
    for version, cgroup in found.items():
        named = pattern.match(cgroup)
        if named:
            found[version] = named.group("top")
            continue
        theirs = theirs or _seen_inside(pid, proc)
        below = theirs[version].rstrip("/")
        if cgroup != theirs[version] and cgroup.endswith(below):
            found[version] = cgroup[: len(cgroup) - len(below)]
    return found


def _seen_inside(pid, proc):
    """`cgroups` of a process as it is told itself: the file is written for its reader's namespace, a thread's own."""
    space = os.path.join(proc, str(pid), "ns", "cgroup")
    with naming(space):
        if os.path.samefile(space, os.path.join(proc, "self", "ns", "cgroup")):
            return cgroups(pid, proc)
        fd = os.open(space, os.O_RDONLY)
    answers = []

    def read():
        # the thread ends with its namespace, so nothing has to be put back
        if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWCGROUP) != 0:
            answers.append(os.strerror(ctypes.get_errno()))
            return
        try:
            answers.append(cgroups(pid, proc))
        except HeteroError as error:
            answers.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    os.close(fd)
    if not isinstance(answers[0], dict):
        raise HeteroError(f"its cgroup namespace cannot be entered ({answers[0]})", f"process {pid}", "run as root")
    return answers[0]


def directories(cgroups, proc="/proc"):
    """{version: directory} of cgroups {version: path}; None where no hierarchy is mounted that shows it."""
    there = mounts(proc)
    return {version: _directory(there[version], cgroup) for version, cgroup in cgroups.items()}


def _directory(mounted, cgroup):
    for mount in mounted:
        found = mount.directory(cgroup)
        if found is not None and os.path.isdir(found):
            return found
    return None


def cgroup_at(path, proc="/proc"):
    """(version, cgroup) of a directory, or None for one that is in neither hierarchy."""
    real = os.path.realpath(path)
    best = None
    for version, all_mounts in mounts(proc).items():
        for mount in all_mounts:
            below = os.path.relpath(real, mount.point)
            if below.split("/")[0] != ".." and (best is None or len(mount.point) > best[0]):
                best = (len(mount.point), version, os.path.normpath(os.path.join(mount.root, below)))
    return best and best[1:]
