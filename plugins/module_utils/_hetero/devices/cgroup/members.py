# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes are in a cgroup or below it, found by asking each process where it is.

The tree of cgroups is not walked: root in a container can make as many and as deep ones as it likes, but the number of
its processes is limited.
"""

from __future__ import annotations

import errno
import os
from typing import Iterable, Mapping, Sequence, Tuple

from ...core.errors import HeteroError
from ...core.kernel_text import status_of
from . import mounts

#: (version of a hierarchy, cgroup in it).
Top = Tuple[str, str]


def pids_below(directories: Iterable[str], proc: str = "/proc") -> list[int]:
    """Return the sorted pids, as this host numbers them, in these cgroups and all below them.

    :param directories: folders in the hierarchies that limit devices. A root, in which all processes are, counts only
        if it is the only folder.
    """
    tops = [found for found in (mounts.cgroup_at(path, proc) for path in directories) if found is not None]
    tops = [(version, top) for version, top in tops if top != "/"] or tops
    pids = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    return [pid for pid in pids if is_in(pid, tops, proc)]


def is_in(pid: int | str, tops: Sequence[Top], proc: str = "/proc") -> bool:
    """Return whether a process is in one of these cgroups or below it; False for one that is gone."""
    theirs = _cgroups(pid, tops, proc)
    if _below(theirs, tops):
        return True
    # For a first thread that has ended, the kernel says "/" in version 1; other threads may still run.
    return theirs.get(mounts.V1) == "/" and has_ended(pid, proc) and _a_thread_is_in(pid, tops, proc)


def _below(theirs: Mapping[str, str], tops: Sequence[Top]) -> bool:
    return any(f"{theirs[version]}/".startswith(f"{top.rstrip('/')}/") for version, top in tops if version in theirs)


def _cgroups(pid: int | str, tops: Sequence[Top], proc: str) -> dict[str, str]:
    """Return what mounts.cgroups does, or {} for a process that ended meanwhile."""
    try:
        return mounts.cgroups(pid, proc)
    except HeteroError as error:
        # Deeper than the kernel can say. Only a container would go there, so the process must be looked at.
        return dict(tops) if getattr(error.__cause__, "errno", None) == errno.ENAMETOOLONG else {}


def has_ended(pid: int | str, proc: str = "/proc") -> bool:
    """Return whether the first thread of a process has, whose end nobody waited for yet; others may still run."""
    try:
        return status_of(pid, "State", proc).startswith("Z")
    except (OSError, StopIteration):
        return False  # gone


def _a_thread_is_in(pid: int | str, tops: Sequence[Top], proc: str) -> bool:
    try:
        threads = os.listdir(os.path.join(proc, str(pid), "task"))
    except OSError:
        return False  # gone
    folder = os.path.join(str(pid), "task")
    return any(_below(_cgroups(os.path.join(folder, thread), tops, proc), tops) for thread in threads)
