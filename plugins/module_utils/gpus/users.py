# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of one container that have a GPU open: a revoked right closes no file, so they are waited for, or ended.

Who has a device open at all is processes.py's to find, and who hides files that may be one hidden.py's. Of those nobody
is ended on a guess.
"""

from __future__ import annotations

import os
import signal

from ..cgroup import members
from ..deadline import Deadline
from ..errors import Refused, TimedOut
from . import hidden, processes
from .paths import HERE

FAIL, WAIT, KILL = "fail", "wait", "kill"
#: Seconds in which a program reads what it is sent; what is in a socket for longer is hidden there.
MOMENT = 1.0
AGAIN = "the kernel does not say which files these are: end those processes, or stop the container, and run this again"


def users(cgroup, nodes, paths=HERE):
    """The processes of a container that hold one of these nodes; all that are in its cgroup, and those below it."""
    return _by_pid(processes.holders([node.number for node in nodes], paths, pids_in(cgroup)))


def _by_pid(held):
    found = {process.pid: process for holding in held.values() for process in holding}
    return [found[pid] for pid in sorted(found)]


def pids_in(cgroup):
    """Pids, as this host numbers them, in a DeviceCgroup and all cgroups below it."""
    return members.pids_below([side.path for side in (cgroup.v1, cgroup.v2) if side])


def look(cgroup, nodes, paths=HERE):
    """(processes of a container that hold one of these nodes, [Hiding] that may hold one).

    It is looked twice: what goes from a process to a socket and back may be in neither place once.
    """
    moment = Deadline(MOMENT)
    while True:
        for _time in range(2):
            found = users(cgroup, nodes, paths)
            hiding = hidden.hiding(pids_in(cgroup), paths) if nodes and not found else []
            if found or hiding:
                break
        if found or not hiding or moment.passed:
            return found, hiding
        moment.nap()


def refuse_users(container, cgroup, nodes, paths=HERE):
    """Refused where processes of the container have one of the nodes open, or may; nothing was changed yet."""
    found, hiding = look(cgroup, nodes, paths)
    if found:
        remedy = "end them, or say on_holders: wait or kill"
        raise Refused(f"has GPU nodes open: {told(found)}", container.thing, remedy, holders=listed(found))
    if hiding:
        remedy = AGAIN
        raise Refused(f"may have GPU nodes open: {told(hiding)}", container.thing, remedy, holders=listed(hiding))


def let_go(container, cgroup, nodes, how, deadline, paths=HERE):
    """Wait until no process of the container has one of the nodes open, nor may; those that were seen, as dicts.

    :param how: WAIT for them, or KILL those that have one; with FAIL those that came meanwhile are an error.
    """
    seen = {}
    while True:
        found, hiding = look(cgroup, nodes, paths)
        seen.update((process.pid, process) for process in found)
        if not found and not hiding:
            return listed(seen.values())
        still = "still has it open" if found else "may still have it open"
        if how == FAIL:
            remedy = "end them, or say on_holders: wait or kill, and run this again" if found else AGAIN
            what = f"is denied its GPU, and {still}: {told(found or hiding)}"
            raise Refused(what, container.thing, remedy, holders=listed(found or hiding))
        if how == KILL:
            for process in found:
                _kill(process.pid)
        if deadline.passed:
            remedy = "end them, or say on_holders: kill, and run this again" if found else AGAIN
            what = f"is denied its GPU, and {still} after {deadline.seconds:g} s: {told(found or hiding)}"
            raise TimedOut(what, container.thing, remedy, holders=listed(found or hiding))
        deadline.nap()


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself


def told(found):
    """Processes in words, with what those hide that do."""
    return ", ".join(
        f"pid {one.pid} {one.command}" + (f" ({one.hides})" if isinstance(one, hidden.Hiding) else "") for one in found
    )


def listed(found):
    """Processes as results show them."""
    return [
        dict(pid=process.pid, command=process.command) for process in sorted(found, key=lambda process: process.pid)
    ]
