# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose processes stand still for some milliseconds, while what they hold is looked at.

Processes that run hand files to each other faster than anybody can look: one that forks and ends ten thousand times a
second was in no list of processes that was read. So the kernel freezes the container's cgroup. Where this process is
killed meanwhile another one of ours lets it go on. Where both are, it has a mark, and the next look lets it go on.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import ExitStack, contextmanager, suppress
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence, cast

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from . import mounts

#: Seconds until all stand still; one that waits for a device inside the kernel does not before it has it.
PATIENCE = 2.0
#: Of a cgroup that we froze.
MARK = "trusted.hetero.still"


class Freezer(NamedTuple):
    """Where a cgroup is frozen.

    :param folder: of the cgroup.
    :param version: mounts.V2 or mounts.FREEZER.
    :param cgroup: the cgroup's path, as /proc/PID/cgroup has it.
    :param own: file that says whether it was frozen itself ("1"), and not one above it.
    """

    folder: str
    version: str
    cgroup: str
    file: str
    own: str
    freeze: bytes
    thaw: bytes

    def holds(self, pid: int | str) -> bool:
        """Return whether a process is in this cgroup or below it; True for one that has ended."""
        try:
            theirs = mounts.cgroups(pid).get(self.version, "/")
        except HeteroError:
            return True
        return mounts.is_below(theirs, self.cgroup)

    def still_holds(self, pids: Iterable[int]) -> bool:
        """Return whether it is frozen now, and these processes are in it: another look, which ended, let it go on."""
        try:
            return self.is_set and all(map(self.holds, pids))
        except OSError:  # it is gone
            return False

    @property
    def is_set(self) -> bool:
        return self._read(self.own).strip() == b"1"

    @property
    def is_marked(self) -> bool:
        try:
            os.getxattr(self.folder, MARK)
        except OSError:
            return False
        return True

    def begin(self) -> None:
        """Mark it and have it freeze; await_still tells when it has.

        :raises OSError: it is gone, or takes no mark.
        """
        os.setxattr(self.folder, MARK, b"1")
        self._write(self.freeze)

    def end(self) -> None:
        """Let it go on; nothing where it is gone."""
        with suppress(OSError):
            self._write(self.thaw)
        with suppress(OSError):
            os.removexattr(self.folder, MARK)

    def await_still(self, deadline: Deadline) -> bool:
        """Return whether all processes stand still before the deadline."""
        name, word = ("cgroup.events", b"frozen 1") if self.version == mounts.V2 else (self.file, b"FROZEN")
        changes = select.poll()
        with open(os.path.join(self.folder, name), "rb", buffering=0) as file:
            changes.register(file, select.POLLPRI)
            while word not in os.pread(file.fileno(), 4096, 0):
                if deadline.passed:
                    return False
                if self.version == mounts.V2:
                    changes.poll(1000 * deadline.left)
                else:  # which tells nobody, and goes on with those that were late when it is asked
                    deadline.nap(0.001)
        return True

    def _read(self, name: str) -> bytes:
        with open(os.path.join(self.folder, name), "rb", buffering=0) as file:
            return file.read()

    def _write(self, word: bytes) -> None:
        with open(os.path.join(self.folder, self.file), "wb", buffering=0) as file:
            file.write(word)


@contextmanager
def still(directories: Sequence[str]) -> Iterator[Callable[[Iterable[int]], bool]]:
    """Freeze a container for the block; yield what tells of pids whether all of these stand still.

    :param directories: its folders in the hierarchies that limit devices. Nothing is frozen, and the answer is False,
        where it has none of its own or this process is in it.
    """
    freezer = _freezer(directories)
    with ExitStack() as stack:
        stands = freezer is not None and _stands(freezer, stack)
        yield lambda pids: stands and cast("Freezer", freezer).still_holds(pids)


def _stands(freezer: Freezer, stack: ExitStack) -> bool:
    """Freeze it until the end of the stack; return whether all stand still.

    What somebody else froze stays so: it is let go on by whom.
    """
    try:
        if freezer.is_marked or not freezer.is_set:
            stack.enter_context(_let_go_on(freezer))
            freezer.begin()
        return freezer.await_still(Deadline(PATIENCE))
    except OSError:  # the container has ended, or its cgroup takes no mark
        return False


@contextmanager
def _let_go_on(freezer: Freezer) -> Iterator[None]:
    """Have the cgroup go on after the block, also where this process is killed in it."""
    ours, its = socket.socketpair()
    with ours:
        with its:
            guardian = os.fork()
            if guardian == 0:
                try:
                    os.setsid()  # no signal for all of our processes
                    ours.close()
                    with suppress(OSError):
                        its.send(b"1")
                        its.recv(1)  # nothing, once nobody has the other end
                    freezer.end()
                finally:
                    os._exit(0)
        try:
            ours.recv(1)
            yield
        finally:
            freezer.end()
            ours.close()
            os.waitpid(guardian, 0)


def _freezer(directories: Sequence[str]) -> Freezer | None:
    """Return where a container is frozen: in version 2, else by version 1's freezer, which LXC gives the same names."""
    found = [(mounts.cgroup_at(path), path) for path in directories]
    named = {place[0]: (place[1], path) for place, path in found if place and place[1].strip("/.")}
    there: list[Freezer] = []
    if mounts.V2 in named:
        cgroup, folder = named[mounts.V2]
        there.append(Freezer(folder, mounts.V2, cgroup, "cgroup.freeze", "cgroup.freeze", b"1", b"0"))
    if mounts.V1 in named:
        cgroup = named[mounts.V1][0]
        folder = mounts.directories({mounts.FREEZER: cgroup})[mounts.FREEZER] or ""
        words = ("freezer.state", "freezer.self_freezing", b"FROZEN", b"THAWED")
        there.append(Freezer(folder, mounts.FREEZER, cgroup, *words))
    usable = (one for one in there if os.path.exists(os.path.join(one.folder, one.file)) and not one.holds("self"))
    return next(usable, None)
