# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container whose processes stand still for some milliseconds, while what they hold is looked at.

Processes that run hand files to each other faster than anybody can look: one that forks and ends ten thousand times a
second was in no list of processes that was read. So the kernel freezes the container's cgroup, for one look at a time:
its mark is the lock. Where this process is killed or held up meanwhile, another one of ours lets the container go on.
Where both are killed, the mark tells whoever works on the container next.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import Iterable, Iterator, NamedTuple, NoReturn, Sequence, cast

from ...core.deadline import Deadline
from ...core.errors import EXHAUSTED, TimedOut
from . import members, mounts

#: Seconds until all stand still; one that waits for a device inside the kernel does not before it has it.
PATIENCE = 2.0
#: Seconds after which a container goes on, whatever holds up who looks at it.
LONGEST = 20.0
#: Seconds to wait for the process that would let it go on: it ends at once.
END_TIME = 1.0
#: Of a cgroup that we look at: since when, in seconds since the host's start, and FROZE once we freeze it, and nobody
#: else did. It ends with the cgroup.
MARK = "trusted.hetero.still"
FROZE = b"!"


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
        return members.is_in(pid, [(self.version, self.cgroup)]) or not os.path.exists(f"/proc/{pid}")

    @property
    def is_set(self) -> bool:
        return self._read(self.own).strip() == b"1"

    @property
    def mark(self) -> bytes | None:
        try:
            return os.getxattr(self.folder, MARK)
        except OSError as error:
            if error.errno in EXHAUSTED:
                raise
            return None

    def take_mark(self) -> bytes:
        """Mark it as ours, once no other process looks at it; return the mark.

        :raises OSError: it is gone, or takes no mark.
        """
        deadline = Deadline(2 * LONGEST)
        while True:
            mark = repr(time.monotonic()).encode()
            try:
                os.setxattr(self.folder, MARK, mark, os.XATTR_CREATE)
            except FileExistsError:
                theirs = self.mark
                if _is_over(theirs):
                    self.end(theirs)
                elif deadline.passed:
                    raise TimedOut("is looked at by others all the time", self.folder, "run this again") from None
                else:
                    deadline.nap(0.005)
            else:
                return mark

    def end(self, mark: bytes | None, file: int | None = None) -> None:
        """Let it go on, if it has this mark still; nothing where it is gone.

        :param file: descriptor of where it is frozen, if that is open already.
        """
        if mark is None or self.mark != mark:
            return
        if not mark.endswith(FROZE):
            self.unmark(mark)
            return
        with suppress(FileNotFoundError):
            opened = self.open() if file is None else file
            try:
                self.write(opened, self.thaw)
            finally:
                if file is None:
                    os.close(opened)
        self.unmark(mark)

    def unmark(self, mark: bytes) -> None:
        if self.mark == mark:
            with suppress(OSError):  # it is gone
                os.removexattr(self.folder, MARK)

    def open(self) -> int:
        return os.open(os.path.join(self.folder, self.file), os.O_WRONLY | os.O_CLOEXEC)

    def write(self, file: int, word: bytes) -> None:
        try:
            os.write(file, word)
        except OSError as error:
            if error.errno != errno.ENODEV:  # it is gone
                raise

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


def _is_over(mark: bytes | None) -> bool:
    """Return whether a mark is that of a look that has ended, or nothing that a look writes."""
    try:
        return mark is not None and not 0 <= time.monotonic() - float(mark.rstrip(FROZE)) < LONGEST
    except ValueError:
        return True


class Stillness:
    """What is known of a container in the block of `still`.

    :ivar is_lost: whether it stood still and went on before the block's end: that took too long, or somebody did it.
    """

    def __init__(self, freezer: Freezer | None = None) -> None:
        self._freezer = freezer
        self._mark: bytes | None = None
        self._stands = self.is_lost = False

    @property
    def is_possible(self) -> bool:
        """Return whether the container has a cgroup of its own that can be frozen."""
        return self._freezer is not None

    @property
    def leaves_calls(self) -> bool:
        """Return whether some that stand still do so in a call, and go on with what it was given (version 1)."""
        return self._freezer is not None and self._freezer.version == mounts.FREEZER

    def begin(self, stack: ExitStack) -> None:
        """Freeze the container until the end of the stack."""
        if self._freezer is None:
            return
        try:
            self._mark = stack.enter_context(_frozen(self._freezer))
            self._stands = self._freezer.await_still(Deadline(PATIENCE))
        except OSError as error:  # the container has ended, or its cgroup takes no mark
            if error.errno in EXHAUSTED:
                raise

    def holds(self, pids: Iterable[int]) -> bool:
        """Return whether all these processes have stood still since the block was entered."""
        if not self._stands:
            return False
        freezer = cast("Freezer", self._freezer)
        try:
            self.is_lost = not (freezer.is_set and freezer.mark == self._mark)
        except FileNotFoundError:  # it is gone
            return False
        return not self.is_lost and all(map(freezer.holds, pids))


@contextmanager
def still(directories: Sequence[str]) -> Iterator[Stillness]:
    """Freeze a container for the block; yield what tells of pids whether all of these stand still.

    :param directories: its folders in the hierarchies that limit devices. Nothing is frozen, and none stands still,
        where it has none of its own or this process is in it.
    :raises OSError: this machine has no process, file or memory left for that.
    """
    stillness = Stillness(_freezer(directories))
    with ExitStack() as stack:
        stillness.begin(stack)
        yield stillness


def is_left(directories: Sequence[str]) -> bool:
    """Return whether a look left a container frozen: it was killed, and with it what was to let the container go on."""
    freezer = _freezer(directories)
    try:
        mark = freezer.mark if freezer else None
        return freezer is not None and _is_over(mark) and (mark or b"").endswith(FROZE) and freezer.is_set
    except FileNotFoundError:  # it has ended
        return False


def let_go_on(directories: Sequence[str]) -> None:
    """Let a container go on that a look left frozen."""
    freezer = _freezer(directories)
    mark = freezer.mark if freezer else None
    if freezer is not None and _is_over(mark):
        freezer.end(mark)


@contextmanager
def _frozen(freezer: Freezer) -> Iterator[bytes | None]:
    """Freeze a cgroup for the block, and let it go on also where this process is killed or held up in it.

    What somebody else froze is left so, without a mark: it is let go on by whom.

    :returns: the mark that it has.
    """
    with ExitStack() as stack:
        mark = freezer.take_mark()
        stack.callback(freezer.unmark, mark)
        is_theirs = freezer.is_set
        if is_theirs:
            stack.close()
        else:
            file = freezer.open()
            stack.callback(os.close, file)
            stack.enter_context(_guarded(freezer, mark, file))
            os.setxattr(freezer.folder, MARK, mark + FROZE, os.XATTR_REPLACE)
            mark += FROZE
            stack.callback(freezer.end, mark, file)
            freezer.write(file, freezer.freeze)
        yield None if is_theirs else mark


@contextmanager
def _guarded(freezer: Freezer, mark: bytes, file: int) -> Iterator[None]:
    """Have another process let the cgroup go on, once this one ends or LONGEST is over."""
    ours, its = socket.socketpair()
    with ours, its:
        # what ends all of our processes at once, such as a service's stop, leaves that one
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            guardian = os.fork()
            if guardian == 0:
                _guard(freezer, mark, file, ours, its)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            its.close()
            ours.settimeout(LONGEST)
            if not ours.recv(1):
                raise OSError(errno.EAGAIN, "a process ended as it began")
            yield
        finally:
            ours.close()
            _end(guardian, freezer, mark)


def _guard(freezer: Freezer, mark: bytes, file: int, ours: socket.socket, its: socket.socket) -> NoReturn:
    try:
        os.setsid()
        ours.close()
        its.settimeout(LONGEST)
        with suppress(OSError):
            its.send(b"1")
            its.recv(1)  # nothing, once nobody has the other end
        freezer.end(mark + FROZE, file)
        freezer.unmark(mark)
    finally:
        os._exit(0)


def _end(guardian: int, freezer: Freezer, mark: bytes) -> None:
    deadline = Deadline(END_TIME)
    while os.waitpid(guardian, os.WNOHANG)[0] == 0:
        if deadline.passed:  # it was stopped
            freezer.end(mark + FROZE)
            os.kill(guardian, signal.SIGKILL)
        deadline.nap(0.0005)


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
