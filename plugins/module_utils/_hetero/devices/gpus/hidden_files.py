# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that hold files without a descriptor: sent to a unix socket and not received yet, or registered with
io_uring; and those that hold a device's memory without the device, as a dma-buf.

The kernel says how many there are and not which devices, so any of them may be a GPU. On a host some socket holds files
at any moment; so only processes of the container that gives a GPU back are looked at.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable, Iterator, Sequence

from ...core import unix_sockets
from ...core.kernel_text import lines_of, status_of
from . import processes
from .paths import HERE, names_in, text_of

if TYPE_CHECKING:
    from .paths import Folders

#: How the links in /proc/PID/fd begin.
SOCKET, RING = "socket:[", "anon_inode:[io_uring]"
#: So begins what a driver exported: by it a program has a GPU's memory also once it has closed the GPU.
MEMORY = "/dmabuf:"
#: Lines of /proc/PID/fdinfo/FD. The first match counts: a file's name, which comes later, may look like one.
IN_FLIGHT = re.compile(r"^scm_fds:\s*(\d+)$", re.M)  # Linux 5.9
REGISTERED = re.compile(r"^UserFiles:\s*(\d+)$", re.M)
#: The first kernel whose rings say what is registered. A busy ring says nothing; then it is not known.
RINGS_TELL = (5, 6)
#: The first kernel of which a listening socket says what was sent to it by connections that are not accepted yet.
LISTENERS_TELL = (6, 2)
#: A line of /proc/PID/maps for a mapped ring, with its inode. The name of a file begins with a slash.
MAPPED_RING = re.compile(rf"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+) +{re.escape(RING)}$")
MAPPED_MEMORY = re.compile(rf"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ +{MEMORY}")
#: Where a thread is in the kernel that a freezer of version 1 or 2 stopped (/proc/PID/wchan).
FROZEN = ("__refrigerator", "do_freezer_trap")
#: Where a thread waits for a message; version 1's freezer leaves it there.
RECEIVES = "unix_stream"
WAITS = "waits inside the kernel, and may have a file there"
RUNS = "its container did not stand still to be looked at"


@dataclass(frozen=True)
class Hiding:
    """A process, and in words what it holds that cannot be looked at."""

    pid: int
    command: str
    hides: str


def hiding(pids: Iterable[int], paths: Folders = HERE) -> list[Hiding]:
    """Return a Hiding for each of these processes that hides files, by pid.

    :param pids: all processes of a container, because one may have mapped a ring that another has open.
    :raises TimedOut: as processes.look.
    """
    return [Hiding(*one) for one in processes.look(lambda begin: _shown(_hiding(pids, paths, begin)), paths)]


def moving(pids: Iterable[int], paths: Folders = HERE) -> list[Hiding]:
    """Return those of a container's processes that do not stand still, one at least.

    A call that waits for a device, or for a file system of the tenant's, has the files that it was given, also where no
    descriptor names them any more: a message that is being sent reaches another process, once what waits goes on.

    :raises TimedOut: as processes.look.
    """
    return [Hiding(*one) for one in processes.look(lambda begin: _shown(_moving(sorted(pids), paths, begin)), paths)]


def receiving(pids: Iterable[int], paths: Folders = HERE) -> list[Hiding]:
    """Return those of a container's processes, frozen by version 1's freezer, that wait for a message.

    Nobody can tell whether a descriptor still names the socket by which they do: a thread that has ended may have
    closed it. What is sent to it is seen nowhere, and is theirs as soon as they go on.

    :raises TimedOut: as processes.look.
    """
    return [Hiding(*one) for one in processes.look(lambda begin: _shown(_receiving(sorted(pids), paths, begin)), paths)]


def _shown(found: Iterable[Hiding]) -> list[tuple[int, str, str]]:
    return [(one.pid, one.command, one.hides) for one in found]


def _moving(pids: Sequence[int], paths: Folders, begin: processes.Next) -> Iterator[Hiding]:
    late = []
    for pid in pids:
        begin(pid)
        late += [pid] if _moves(os.path.join(paths.proc, str(pid), "task")) else []
    said = WAITS if late else RUNS
    for pid in late or pids[:1]:
        yield Hiding(pid, text_of(paths.proc, str(pid), "comm") or "?", said)


def _moves(tasks: str) -> bool:
    """Return whether a thread is in the kernel, and not because it was frozen there."""
    for thread in names_in(tasks):
        with suppress(OSError, StopIteration):  # it has ended
            if status_of(thread, "State", tasks)[0] in "DR" and text_of(tasks, thread, "wchan") not in FROZEN:
                return True
    return False


def _receiving(pids: Sequence[int], paths: Folders, begin: processes.Next) -> Iterator[Hiding]:
    for pid in pids:
        begin(pid)
        folder = os.path.join(paths.proc, str(pid))
        threads = names_in(folder, "task")
        if any((text_of(folder, "task", thread, "wchan") or "").startswith(RECEIVES) for thread in threads):
            yield Hiding(pid, text_of(folder, "comm") or "?", WAITS)


def _hiding(pids: Iterable[int], paths: Folders, begin: processes.Next) -> list[Hiding]:
    found: dict[int, list[str]] = {}
    mapped: dict[int, int] = {}
    rings: set[int] = set()
    for pid in sorted(pids):
        folder = os.path.join(paths.proc, str(pid))
        begin(pid)
        said = found.setdefault(pid, [])
        for one in [folder, *processes.apart(folder)]:
            try:
                said += _by_descriptors(one, rings)
                lines = lines_of(os.path.join(one, "maps"))
                mapped.update((int(match[1]), pid) for match in map(MAPPED_RING.match, lines) if match)
                said += ["a device's memory, mapped"] if any(map(MAPPED_MEMORY.match, lines)) else []
            except (FileNotFoundError, ProcessLookupError):
                continue  # this thread ended; others may still run
            except PermissionError:
                said.append("files that cannot be looked at")
    for inode, pid in mapped.items():
        if inode not in rings:
            found[pid].append("an io_uring without a descriptor")
    return [
        Hiding(pid, text_of(paths.proc, str(pid), "comm") or "?", ", ".join(dict.fromkeys(said)))
        for pid, said in found.items()
        if said
    ]


def _by_descriptors(folder: str, rings: set[int]) -> list[str]:
    """Return in words what a thread's sockets, rings and dma-bufs hold; add the inodes of its rings to `rings`."""
    said: list[str] = []
    for name in os.listdir(os.path.join(folder, "fd")):
        path = os.path.join(folder, "fd", name)
        try:
            link = os.readlink(path)
            if link == RING:
                rings.add(os.stat(path).st_ino)
        except FileNotFoundError:
            continue  # closed meanwhile
        if link.startswith(MEMORY):
            said.append(f"a device's memory, by descriptor {name}")
        if link == RING or link.startswith(SOCKET):
            told = text_of(folder, "fdinfo", name)
            if told is not None:
                said += _of_ring(name, told) if link == RING else _of_socket(name, told, folder)
    return said


def _of_socket(name: str, told: str, folder: str) -> list[str]:
    sent = _count(IN_FLIGHT, told)
    if sent:
        return [f"{_files(sent)} sent to its socket {name}"]
    if sent is None or _tells(LISTENERS_TELL):
        return []
    try:
        has_callers = unix_sockets.has_callers(int(os.path.basename(folder)), int(name))
    except OSError as error:
        is_gone = error.errno in (errno.EBADF, errno.ENOTSOCK, errno.ESRCH)
        return [] if is_gone else [f"socket {name}, which may have what was sent to it"]
    return [f"connections to its socket {name} that are not accepted"] if has_callers else []


def _of_ring(name: str, told: str) -> list[str]:
    registered = _count(REGISTERED, told)
    if registered is None:
        return [f"io_uring {name}, which does not say what it has"] if _tells(RINGS_TELL) else []
    return [f"{_files(registered)} registered with its io_uring {name}"] if registered else []


def _count(line: re.Pattern[str], told: str) -> int | None:
    match = line.search(told)
    return int(match[1]) if match else None


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _tells(first: tuple[int, int]) -> bool:
    """Return whether this kernel is that one or a later one."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is None or (int(release[1]), int(release[2])) >= first
