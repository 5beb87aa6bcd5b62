# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of one container that have a GPU open: a revoked right closes no file, so they are waited for, or ended.

Who has a device open at all is processes.py's to find.
"""

from __future__ import annotations

import os
import signal

from ..cgroup import members
from ..errors import Refused, TimedOut
from . import processes
from .paths import HERE

FAIL, WAIT, KILL = "fail", "wait", "kill"


def users(cgroup, nodes, paths=HERE):
    """The processes of a container that hold one of these nodes; all that are in its cgroup, and those below it."""
    return _by_pid(processes.holders([node.number for node in nodes], paths, pids_in(cgroup)))


def _by_pid(held):
    found = {process.pid: process for holding in held.values() for process in holding}
    return [found[pid] for pid in sorted(found)]


def pids_in(cgroup):
    """Pids, as this host numbers them, in a DeviceCgroup and all cgroups below it."""
    return members.pids_below([side.path for side in (cgroup.v1, cgroup.v2) if side])


def refuse_users(container, cgroup, nodes, paths=HERE):
    """Refused where processes of the container have one of the nodes open; nothing was changed yet."""
    found = users(cgroup, nodes, paths)
    if found:
        remedy = "end them, or say on_holders: wait or kill"
        raise Refused(f"has GPU nodes open: {told(found)}", container.thing, remedy, holders=listed(found))


def let_go(container, cgroup, nodes, how, deadline, paths=HERE):
    """Wait until no process of the container has one of the nodes open; those that were seen, as dicts.

    :param how: WAIT for them, or KILL them; with FAIL those that came meanwhile are an error.
    """
    seen = {}
    while True:
        found = users(cgroup, nodes, paths)
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
