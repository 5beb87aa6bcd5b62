# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of one container that have a GPU open. A revoked right closes no file, so they are waited for or killed.

processes.py finds who has a device open, and hidden_files.py who hides files that may be a device. A process that only
may have a GPU is never killed.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any, Iterable, Protocol, Sequence

from ...core.deadline import LOOK_AGAIN, Deadline
from ...core.errors import Refused, TimedOut
from ..cgroup import members
from ..cgroup.stillness import still
from . import hidden_files, processes
from .hidden_files import Hiding
from .paths import HERE

if TYPE_CHECKING:
    from ..cgroup.devices import DeviceCgroup
    from ..cgroup.stillness import Stillness
    from .nodes import DeviceNode
    from .paths import Folders
    from .processes import Process

FAIL, WAIT, KILL = "fail", "wait", "kill"
#: Seconds in which a program reads what it was sent. A file that stays in a socket longer is hidden there.
MOMENT = 1.0
#: Looks at a container that somebody lets go on each time, or that has too much to look at while it stands still.
LOOKS = 3
MOVING = "see who else freezes it or lets it go on, and how many files its processes have open"
AGAIN = "the kernel does not say which files these are: end those processes, or stop the container, and run this again"


class Container(Protocol):
    """What errors need of a container."""

    @property
    def thing(self) -> str: ...


def users(pids: Iterable[int], nodes: Iterable[DeviceNode], paths: Folders = HERE) -> list[Process]:
    """Return those of these processes that hold one of these nodes."""
    held = processes.holders([node.number for node in nodes], paths, pids)
    found = {process.pid: process for holding in held.values() for process in holding}
    return [found[pid] for pid in sorted(found)]


def look(
    cgroup: DeviceCgroup, nodes: Sequence[DeviceNode], paths: Folders = HERE, kill: bool = False
) -> tuple[list[Process], list[Hiding]]:
    """Return (processes of a container that hold one of these nodes, [Hiding] that may hold one).

    The container stands still meanwhile. Who does not may hold one. Where no container can, it is looked at twice,
    because a file on its way from a process to a socket and back may be missed once.

    :param kill: whether those that hold one are killed, before they can go on.
    """
    folders = cgroup.folders if nodes else []
    moment, looks = Deadline(MOMENT), 0
    while True:
        with still(folders) as stillness:
            found, hiding = _seen(folders, nodes, paths, stillness)
            for process in found if kill else ():
                _kill(process.pid)
        looks += 1
        if stillness.is_lost and not found:
            if looks == LOOKS:
                raise TimedOut(f"went on {LOOKS} times while it was looked at", folders[0], MOVING)
            continue
        if found or not hiding or moment.passed:
            return found, hiding
        moment.nap()


def _seen(
    folders: Sequence[str], nodes: Sequence[DeviceNode], paths: Folders, stillness: Stillness
) -> tuple[list[Process], list[Hiding]]:
    """Return what look returns, of this moment."""
    for _time in range(2 if nodes else 0):
        pids = members.pids_below(folders)
        try:
            found = users(pids, nodes, paths)
            hiding = hidden_files.hiding(pids, paths) if not found else []
            if stillness.leaves_calls and not (found or hiding):
                hiding = hidden_files.receiving(pids, paths)
            if found or hiding or stillness.holds(pids) or stillness.is_lost:
                return found, hiding
            if stillness.is_possible:
                return [], hidden_files.moving(pids, paths)
        except TimedOut as error:  # of processes.look
            return [], [Hiding(error.facts["pid"], error.facts["command"], error.what)]
    return [], []


def refuse_users(
    container: Container, cgroup: DeviceCgroup, nodes: Sequence[DeviceNode], paths: Folders = HERE
) -> None:
    """Raise Refused if processes of the container have, or may have, a node open. Nothing was changed yet."""
    found, hiding = look(cgroup, nodes, paths)
    if found:
        remedy = "end them, or say on_holders: wait or kill"
        raise Refused(f"has GPU nodes open: {told(found)}", container.thing, remedy, holders=listed(found))
    if hiding:
        remedy = AGAIN
        raise Refused(f"may have GPU nodes open: {told(hiding)}", container.thing, remedy, holders=listed(hiding))


def let_go(
    container: Container,
    cgroup: DeviceCgroup,
    nodes: Sequence[DeviceNode],
    how: str,
    deadline: Deadline,
    paths: Folders = HERE,
) -> list[dict[str, Any]]:
    """Wait until no process of the container has, or may have, one of the nodes open; return those that had, as dicts.

    :param how: WAIT for them, or KILL those that have one. With FAIL those that came meanwhile are an error.
    """
    seen: dict[int, Process] = {}
    while True:
        begun = deadline.spent
        found, hiding = look(cgroup, nodes, paths, kill=how == KILL)
        seen.update((process.pid, process) for process in found)
        if not found and not hiding:
            return listed(seen.values())
        still = "still has it open" if found else "may still have it open"
        if how == FAIL:
            remedy = "end them, or say on_holders: wait or kill, and run this again" if found else AGAIN
            what = f"is denied its GPU, and {still}: {told(found or hiding)}"
            raise Refused(what, container.thing, remedy, holders=listed(found or hiding))
        if deadline.passed:
            remedy = "end them, or say on_holders: kill, and run this again" if found else AGAIN
            what = f"is denied its GPU, and {still} after {deadline.seconds:g} s: {told(found or hiding)}"
            raise TimedOut(what, container.thing, remedy, holders=listed(found or hiding))
        # so long at least as it stood still: its programs let nothing go meanwhile
        deadline.nap(max(LOOK_AGAIN, deadline.spent - begun))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it has ended


def told(found: Iterable[Process | Hiding]) -> str:
    """Return processes in words, with what each hides."""
    return ", ".join(
        f"pid {one.pid} {one.command}" + (f" ({one.hides})" if isinstance(one, Hiding) else "")
        for one in found
    )


def listed(found: Iterable[Process | Hiding]) -> list[dict[str, Any]]:
    """Return processes in the form of results."""
    return [
        dict(pid=process.pid, command=process.command) for process in sorted(found, key=lambda process: process.pid)
    ]
