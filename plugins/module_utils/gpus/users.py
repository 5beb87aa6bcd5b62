# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of one container that have a GPU open: a revoked right closes no file, so they are waited for, or ended.

Who has a device open at all is processes.py's to find.
"""

from __future__ import annotations

import fcntl
import os
import signal

from ..errors import Refused, TimedOut
from . import processes
from .paths import HERE

FAIL, WAIT, KILL = "fail", "wait", "kill"
#: ioctl(2) of a namespace that opens the one around it (linux/nsfs.h: NS_GET_PARENT).
NS_GET_PARENT = 0xB702
#: A pid namespace has at most so many around it (kernel/pid_namespace.c: MAX_PID_NS_LEVEL).
DEEPEST = 32


def users(pid, numbers, paths=HERE):
    """The processes of the container with this init that hold one of these devices.

    :param numbers: (kind, major, minor) of each.
    """
    inode = os.stat(f"/proc/{pid}/ns/pid").st_ino
    return [process for process in processes.holders_of(numbers, paths) if _is_inside(process.pid, inode)]


def _is_inside(pid, inode):
    """Whether a process is in the pid namespace with this inode, or in one further in."""
    try:
        file = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return False
    for _level in range(DEEPEST):
        try:
            if os.fstat(file).st_ino == inode:
                return True
            outer = fcntl.ioctl(file, NS_GET_PARENT)
        except PermissionError:  # our own is the outermost that is shown
            return False
        finally:
            os.close(file)
        file = outer
    os.close(file)
    return False


def refuse_users(container, pid, nodes, paths=HERE):
    """Refused where processes of the container have one of the nodes open; nothing was changed yet."""
    found = users(pid, [node.number for node in nodes], paths)
    if found:
        remedy = "end them, or say on_holders: wait or kill"
        raise Refused(f"has GPU nodes open: {told(found)}", container.thing, remedy, holders=listed(found))


def let_go(container, pid, nodes, how, deadline, paths=HERE):
    """Wait until no process of the container has one of the nodes open; those that were seen, as dicts.

    :param how: WAIT for them, or KILL them; with FAIL those that came meanwhile are an error.
    """
    seen = {}
    while True:
        found = users(pid, [node.number for node in nodes], paths)
        seen.update((process.pid, process) for process in found)
        if not found:
            return listed(seen.values())
        if how == FAIL:
            remedy = "end them, or say on_holders: wait or kill, and run this again"
            what = f"is denied its GPU, and still has it open: {told(found)}"
            raise Refused(what, container.thing, remedy, holders=listed(found))
        if how == KILL:
            for process in found:
                _kill(process.pid)
        if deadline.passed:
            remedy = "end them, or say on_holders: kill, and run this again"
            what = f"is denied its GPU, and still has it open after {deadline.seconds:g} s: {told(found)}"
            raise TimedOut(what, container.thing, remedy, holders=listed(found))
        deadline.nap()


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself


def told(found):
    """Processes in words."""
    return ", ".join(f"pid {process.pid} {process.command}" for process in found)


def listed(found):
    """Processes as results show them."""
    return [dict(pid=process.pid, command=process.command) for process in sorted(found, key=lambda one: one.pid)]
