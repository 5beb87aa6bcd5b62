# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes have a device node open or mapped, by the device numbers of what each holds, whatever its path.

A revoked permission closes no file, so a GPU is given back only when no process is found here.

A tenant's process may have millions of files; and while one goes from one program to the next the kernel keeps whoever
asks about it waiting, for ever where a file system of its own answers nothing. So a child looks, for a limited time,
and what it did not see is said.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Optional, Sequence, Tuple, cast

from ...core import known_status
from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import HeteroError, TimedOut
from ...core.kernel_text import lines_of
from ...core.known_status import Device
from .paths import HERE, names_in, text_of

if TYPE_CHECKING:
    from .paths import Folders

#: LXC's cgroup of a container: lxc.payload.NAME (LXC 4 and later, followed by -1, -2, … if the name was taken), or
#: lxc/NAME before.
PAYLOAD = re.compile(r"(?:^|/)lxc(?:\.payload\.|/)([^/]+)")
#: libvirt's scope of a domain under systemd: machine-qemu\x2d3\x2dNAME.scope (systemd writes - as \x2d).
DOMAIN = re.compile(r"/machine-(?:qemu|lxc)\\x2d\d+\\x2d([^/]+)\.scope")
#: Where systemd has an account make cgroups, by any names; root's own sessions are no account's.
ACCOUNTS = re.compile(r"\d+:[^:]*:/user\.slice/user-(?!0\.slice)")
#: Number of kcmp(2) on 64-bit machines, which compares two threads, and what it compares (linux/kcmp.h).
KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
KCMP_FILES = 2
_libc = ctypes.CDLL(None)
#: A line of /proc/PID/maps for a mapped file: range, device and inode.
MAPPED = re.compile(r"([0-9a-f]+-[0-9a-f]+) \S+ \S+ (\S+) ([1-9]\d*)")
#: Seconds for a look at what a container's processes hold, while they stand still (a million files), and at all
#: processes of this machine.
LOOK_TIME, LOOK_AT_ALL = 8.0, 30.0
PID = struct.Struct("=Q")
#: Tells which process is looked at next.
Next = Callable[[int], None]


#: The number of a device node: kind, major, minor. A driver that is not loaded has no major.
Number = Tuple[str, Optional[int], int]
#: {(device, inode): what it is} of mapped files seen so far.
Known = Dict[Tuple[str, str], Device]


@dataclass(frozen=True)
class Process:
    """A process and its container (by its LXC name) or libvirt domain, if it is in one.

    :param command: the name of its program. Its arguments may hold secrets and are not read.
    """

    pid: int
    command: str
    container: str | None = None
    domain: str | None = None


def holders(
    numbers: Iterable[Number], paths: Folders = HERE, pids: Iterable[int] | None = None
) -> dict[Number, list[Process]]:
    """Return {(kind, major, minor): processes that hold it, by pid}. One look at all processes serves all devices.

    :param pids: look only at these (a container's cgroup.procs). A look at all takes 0.1 ms for each.
    :raises TimedOut: as look.
    """
    # a driver that is not loaded has no major, and nobody has its devices open
    known = list(dict.fromkeys(number for number in numbers if number[1] is not None))
    seconds = LOOK_AT_ALL if pids is None else LOOK_TIME
    seen = look(lambda begin: _shown(_holders(known, paths, pids, begin)), paths, seconds) if known else ()
    return {number: [Process(*one) for one in held] for number, held in zip(known, seen)}


def look(work: Callable[[Next], Any], paths: Folders = HERE, seconds: float | None = None) -> Any:
    """Return what `work` finds, of JSON's types, in a child.

    :param seconds: for it; LOOK_TIME for None.
    :raises TimedOut: it took too long. The error names the process at which it was, and has its `pid` and `command`.
    """
    seconds = LOOK_TIME if seconds is None else seconds
    with mmap.mmap(-1, PID.size) as place:

        def begin(pid: int) -> None:
            place[:] = PID.pack(pid)

        try:
            return in_child(lambda: work(begin), Deadline(seconds), "", "run this again", closes=True)
        except TimedOut as error:
            pid = PID.unpack(place[:])[0]
            command = text_of(paths.proc, str(pid), "comm") or "?"
            what = f"its open files could not be looked at within {seconds:g} s"
            remedy = "end it, or its container, and run this again"
            raise TimedOut(what, f"process {pid} ({command})", remedy, pid=pid, command=command) from error


def _shown(found: dict[Number, list[Process]]) -> list[list[tuple[Any, ...]]]:
    return [[astuple(process) for process in held] for held in found.values()]


def _holders(
    numbers: Sequence[Number], paths: Folders, pids: Iterable[int] | None, begin: Next
) -> dict[Number, list[Process]]:
    """Return what holders does."""
    found: dict[Number, list[Process]] = {number: [] for number in numbers}
    wanted: dict[Device, Number] = {
        (kind, os.makedev(cast("int", major), minor)): (kind, major, minor) for kind, major, minor in found
    }
    known: Known = {}
    own = _payloads(text_of(paths.proc, "self", "cgroup") or "")
    for pid in (name for name in names_in(paths.proc) if name.isdigit()) if pids is None else map(str, pids):
        folder = os.path.join(paths.proc, pid)
        begin(int(pid))
        try:
            numbers_held = {wanted[device] for device in _seen(pid, folder, own, known) if device in wanted}
            if numbers_held:
                process = _process(pid, folder, own)
                for number in numbers_held:
                    found[number].append(process)
        except (FileNotFoundError, ProcessLookupError):
            # it ended while it was looked at, and holds nothing any more
            continue
    for held in found.values():
        held.sort(key=lambda process: process.pid)
    return found


def _seen(pid: str, folder: str, own: Sequence[str], known: Known) -> set[Device]:
    """Return what a process holds.

    A process of no container or domain that hides it even from root, such as a guarded init, counts as holding nothing.
    """
    try:
        return _held_by_all(folder, known)
    except PermissionError as error:
        process = _process(pid, folder, own)
        if os.geteuid() == 0 and not (process.container or process.domain):
            return set()
        who = f"process {pid} ({process.command})"
        raise HeteroError("its open files cannot be looked at", who, "run this as root of the host") from error


def _held_by_all(folder: str, known: Known) -> set[Device]:
    """Return the devices that any thread of a process holds.

    A thread may have files of its own, and outlive the first.
    """
    held: set[Device] = set()
    for one in [folder, *apart(folder)]:
        try:
            held |= _held(one, known)
        except (FileNotFoundError, ProcessLookupError):
            continue  # this thread ended; others may still run
    return held


def apart(folder: str) -> list[str]:
    """Return the folders in /proc of a process's threads that do not share the files of its first thread."""
    proc, pid = os.path.split(folder)
    try:
        threads = [thread for thread in os.listdir(os.path.join(folder, "task")) if thread != pid]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [os.path.join(proc, thread) for thread in threads if not _share_files(int(pid), int(thread))]


def _share_files(one: int, other: int) -> bool:
    """Return whether two threads share their files (kcmp(2)); False if this machine cannot tell."""
    number = KCMP.get(os.uname().machine)
    if number is None:
        return False
    arguments = [ctypes.c_long(value) for value in (number, one, other, KCMP_FILES, 0, 0)]
    return _libc.syscall(*arguments) == 0


def _held(folder: str, known: Known) -> set[Device]:
    """Return the devices that a thread holds open or mapped.

    :param known: {(device, inode): what it is} of mapped files seen so far; most are libraries of all processes.
    """
    held: set[Device] = set()
    for name in os.listdir(os.path.join(folder, "fd")):
        try:
            held.add(known_status.device(os.path.join(folder, "fd", name)))
        except FileNotFoundError:
            # closed meanwhile
            continue
    for match in filter(None, map(MAPPED.match, lines_of(os.path.join(folder, "maps")))):
        file = (match[2], match[3])
        if file not in known:
            known[file] = _mapping(os.path.join(folder, "map_files", match[1]))
        held.add(known[file])
    return held


def _mapping(path: str) -> Device:
    try:
        return known_status.device(path)
    except FileNotFoundError:
        # unmapped meanwhile
        return None


def _process(pid: str, folder: str, own: Sequence[str]) -> Process:
    cgroups = text_of(folder, "cgroup")
    if cgroups is None:
        raise ProcessLookupError(f"process {pid} has ended")
    cgroups = "\n".join(line for line in cgroups.split("\n") if not ACCOUNTS.match(line))
    payloads = _payloads(cgroups)
    # this machine may be a container itself: the names that its own cgroup has too are skipped
    payloads = payloads[len(own) :] if payloads[: len(own)] == own else payloads
    domain = None if payloads else DOMAIN.search(cgroups)  # below a container's names are its root's
    return Process(
        int(pid),
        text_of(folder, "comm") or "?",
        payloads[0] if payloads else None,
        domain[1].replace("\\x2d", "-") if domain else None,
    )


def _payloads(cgroups: str) -> list[str]:
    """Return the names of the LXC containers around a process, the outermost first. All hierarchies say the same."""
    return max((PAYLOAD.findall(line) for line in cgroups.split("\n")), key=len, default=[])
