# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroups below a container's, which the container's root makes: ended with all processes in them, and removed.

There may be many, and deeper than a path can name. They are walked by two descriptors and in limited time.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Iterator, Mapping

from . import members, mounts

if TYPE_CHECKING:
    from ...core.deadline import Deadline

FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW
#: Version → (file, word) by which a frozen cgroup runs again.
THAWED = {mounts.FREEZER: ("freezer.state", b"THAWED"), mounts.V2: ("cgroup.freeze", b"0")}
#: Seconds for a container's monitor, which removes its cgroups too.
MONITOR_TIME = 5.0


def walk(top: str, deadline: Deadline) -> Iterator[tuple[int, str | None]]:
    """Yield (descriptor, None) of each cgroup from `top` down on entering it, and (its parent's, its name) on leaving
    it.

    It ends early at the deadline.
    """
    try:
        current = os.open(top, FOLDER)
    except OSError:
        return
    names, waiting = [], [_folders(current)]
    try:
        yield current, None
        while (names or waiting[-1]) and not deadline.passed:
            going = waiting[-1].pop() if waiting[-1] else None
            try:
                following = os.open(going or "..", FOLDER, dir_fd=current)
            except OSError:
                if going is None:
                    return
                continue  # removed meanwhile
            os.close(current)
            current = following
            if going:
                names.append(going)
                waiting.append(_folders(current))
                yield current, None
            else:
                waiting.pop()
                yield current, names.pop()
    finally:
        os.close(current)


def _folders(descriptor: int) -> list[str]:
    found = []
    with suppress(OSError), os.scandir(descriptor) as entries:  # removed meanwhile, if that fails
        found += [entry.name for entry in entries if entry.is_dir()]
    return found


def end_all(directories: Mapping[str, str], deadline: Deadline) -> None:
    """Kill all processes in a container's cgroups, also frozen ones.

    Version 1 withholds SIGKILL from frozen processes, and a container may freeze cgroups below its own. So all are
    killed first, which leaves nobody to freeze them again, and then thawed.

    :param directories: {version: folder} of cgroups in which only the container is.
    """
    _kill(directories)
    for version, (file, word) in THAWED.items():
        for descriptor, name in walk(directories[version], deadline) if directories.get(version) else ():
            if name is None:
                _write(file, word, descriptor)


def _kill(directories: Mapping[str, str]) -> None:
    if directories.get(mounts.V2) and _write(os.path.join(directories[mounts.V2], "cgroup.kill"), b"1"):
        return
    known = [directories[version] for version in mounts.OF_DEVICES if directories.get(version)]
    for pid in members.pids_below(known) if known else ():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it ended


def _write(file: str, word: bytes, folder: int | None = None) -> bool:
    """Write a word to a file; return whether it was taken. A missing file or cgroup takes nothing."""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY, dir_fd=folder), "wb", buffering=0) as opened:
            opened.write(word)
    except OSError:
        return False
    return True


def remove_left(name: str, deadline: Deadline, proc: str = "/proc") -> None:
    """Remove what is left of an ended container's cgroups, from below. LXC leaves cgroups that are too deep.

    A cgroup with a process in it belongs to another container, of this name or of one like NAME-1.
    """
    left = re.compile(rf"lxc\.payload\.(?P<rest>{re.escape(name)}(-\d+)?)")
    for mount, _versions in mounts.hierarchies(proc):
        for folder in _names(mount.point):
            found = left.fullmatch(folder)
            if found:
                _remove(mount.point, folder, f"lxc.monitor.{found.group('rest')}", deadline)


def _remove(point: str, folder: str, monitor: str, deadline: Deadline) -> None:
    top, soon = os.path.join(point, folder), deadline.within(MONITOR_TIME)
    if _is_inhabited(top, deadline):
        return
    while _is_inhabited(os.path.join(point, monitor), soon):  # its monitor is ending, or has just begun
        if soon.passed:
            return
        soon.nap()
    if _is_inhabited(top, deadline):
        return
    for descriptor, name in walk(top, deadline):
        if name is not None:
            _rmdir(name, descriptor)
    _rmdir(top)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _rmdir(path: str, folder: int | None = None) -> None:
    try:
        os.rmdir(path, dir_fd=folder)
    except OSError:
        return  # it is gone, or somebody is in it


def _is_inhabited(top: str, deadline: Deadline) -> bool:
    """Return whether a process is, or may be, in a cgroup or below it; False if there is no such cgroup."""
    try:
        with open(os.path.join(top, "cgroup.events"), encoding="ascii") as file:
            return "populated 0" not in file.read()
    except OSError:
        pass  # version 1 does not have this file
    for descriptor, name in walk(top, deadline):
        if name is None and _has_tasks(descriptor):
            return True
    return deadline.passed


def _has_tasks(folder: int) -> bool:
    try:
        with open("tasks", encoding="ascii", opener=partial(os.open, dir_fd=folder)) as file:
            return bool(file.readline())
    except OSError:
        return False  # of version 2, or removed meanwhile
