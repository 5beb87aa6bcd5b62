# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that programs in a container serve (FUSE), at the container's end.

A process that has a file of one open waits, as it ends, for the program's answer, and no signal ends that. Where the
program is such a process itself, neither ends ever, and the container keeps its GPUs: so the kernel is told that the
program answers nothing any more (Documentation/filesystems/fuse: abort).
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Mapping, Protocol, Sequence

from ...core.child import in_child
from ...core.errors import HeteroError
from ...core.kernel_text import lines_of, status_of
from ...devices.cgroup import members
from . import kernel

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Where the kernel shows the FUSEs, each a folder that belongs to the user who mounted it (fusectl).
CONNECTIONS = "/sys/fs/fuse/connections"
#: A flag of a thread that is ending, or has ended (linux/sched.h, PF_EXITING), and where /proc/PID/stat has the flags
#: behind the name.
ENDING, FLAGS = 0x4, 6


class Ids(Protocol):
    """What is used here of liblxc.IdMap."""

    @property
    def kind(self) -> str: ...
    @property
    def outside(self) -> int: ...
    @property
    def count(self) -> int: ...


def end_all(id_map: Sequence[Ids], directories: Mapping[str, str], deadline: Deadline) -> None:
    """End the FUSEs of a container's users, if nobody else has its user ids.

    :param directories: {version: folder} of cgroups in which only the container is.
    """
    own = [range(line.outside, line.outside + line.count) for line in id_map if line.kind == "u"]
    if own and os.path.isdir(CONNECTIONS) and not _has_others(own, directories):
        with suppress(HeteroError):  # whoever waits for the container's end says that it has not ended
            in_child(lambda: _abort(own), deadline, CONNECTIONS, "see dmesg", closes=True)


def _has_others(own: Sequence[range], directories: Mapping[str, str]) -> bool:
    """Return whether a process outside of a container has one of its user ids, as containers of earlier releases do."""
    inside = set(members.pids_below(directories.values())) if directories else set()
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):  # it has ended
            # real, effective and saved; not that for files alone, by which we make what a container is to own
            ids = map(int, status_of(pid, "Uid").split()[:3]) if pid not in inside else ()
            if any(number in one for number in ids for one in own) and not _is_over(pid):
                return True
    return False


def _is_over(pid: int) -> bool:
    """Return whether a process is ending, or has ended. In cgroup v1 it is in no container any more, also where it
    waits for a file system of its own.
    """
    return all(_is_ending(f"/proc/{pid}/task/{thread}/stat") for thread in os.listdir(f"/proc/{pid}/task"))


def _is_ending(stat: str) -> bool:
    behind = "\n".join(lines_of(stat)).rpartition(")")[2].split()
    return bool(int(behind[FLAGS]) & ENDING)


def _abort(own: Sequence[range]) -> None:
    """End the FUSEs of these users, by a mount of fusectl that only this process sees."""
    kernel.see_alone("fusectl", CONNECTIONS)
    for name in os.listdir(CONNECTIONS):
        with suppress(OSError):  # it is gone
            # kept open: another one's may have its number as soon as it is gone
            folder = os.open(os.path.join(CONNECTIONS, name), os.O_RDONLY | os.O_DIRECTORY)
            try:
                if any(os.fstat(folder).st_uid in one for one in own):
                    with open("abort", "w", encoding="ascii", opener=partial(os.open, dir_fd=folder)) as file:
                        file.write("1")
            finally:
                os.close(folder)
