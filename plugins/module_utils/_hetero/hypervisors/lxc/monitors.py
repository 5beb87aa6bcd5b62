# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LXC's monitors on this host, by their sockets: which containers run, and who answers for one.

The names of these sockets are abstract, and any account may take one first; liblxc's client does not check who answers,
and waits for ever. So only root is asked here, and what others say does not count.
"""

from __future__ import annotations

import glob
import os
import re
import socket
import struct
from contextlib import contextmanager, suppress
from typing import Collection, Iterator

from ...core import kernel_tables, unix_sockets
from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import TimedOut

#: The table of sockets of this network namespace.
SOCKETS = "/proc/thread-self/net/unix"
#: A line with a monitor's socket: <lxcpath>/<name>/command, or a shortened name.
NAMED = re.compile(r" @(?P<address>/.*/[^/]+/command|lxc/[0-9a-f]{16}/command)$")
#: Bytes of the longest name that is not shortened (liblxc, commands_utils.c, lxc_make_abstract_socket_name).
LONGEST = 105
#: Constants of the shortened name's hash: FNV-1a of 64 bits (liblxc, string_utils.c).
BASIS, PRIME = 0xCBF29CE484222325, 0x100000001B3
#: Questions (liblxc, commands.h, lxc_cmd_t), and the head of a question or answer: a number, the number of bytes that
#: follow, and a pointer, which means something to others only where it is a process id (struct lxc_cmd_req, struct
#: lxc_cmd_rsp).
GET_INIT_PID, GET_NAME, GET_LXCPATH = 4, 8, 9
HEAD = struct.Struct("@iiP")
#: The process at the other end (unix(7), SO_PEERCRED): pid, uid, gid.
PEER = struct.Struct("@3i")
#: Seconds for a monitor's answer. It takes under 1 ms, but never comes from a monitor that is stopped or still in a
#: hook of its start.
ANSWER_TIME = 10.0
#: Seconds after which a monitor that accepts no call, or hangs up, is called again; and so long it may hang up.
RETRY, HUNG_UP = 0.02, 1.0
#: Flags of a listening socket (linux/net.h, __SO_ACCEPTCON).
LISTENS = "00010000"


def address_of(name: str, lxcpath: str) -> str:
    """Return the name of the socket of a container's monitor."""
    plain, number = f"{lxcpath}/{name}/command", BASIS
    if len(os.fsencode(plain)) <= LONGEST:
        return plain
    for byte in os.fsencode(f"{lxcpath}/{name}"):
        number = (number ^ byte) * PRIME % (1 << 64)
    return f"lxc/{number:016x}/command"


def owner(name: str, lxcpath: str) -> int | None:
    """Return the user id of who answers in place of a container's monitor, or None."""
    with _connected(address_of(name, lxcpath)) as (_client, uid):
        return uid


def init_of(name: str, lxcpath: str) -> int | None:
    """Return the process id of a container's init by its monitor, also where its configuration is gone; None if no
    monitor of root's answers.
    """
    said = _said(address_of(name, lxcpath), GET_INIT_PID)
    return said[1] if said and said[1] > 0 else None


def of_root() -> set[tuple[str, str]]:
    """Return {(lxcpath, name)} of the containers for which a monitor of root answers.

    :raises TimedOut: a monitor does not say which container it has.
    """
    lines = {line for table in kernel_tables.reads(SOCKETS) for line in table}
    addresses = {found["address"] for found in map(NAMED.search, lines) if found}
    return set(filter(None, map(_container, addresses)))


def _container(address: str) -> tuple[str, str] | None:
    """Return (lxcpath, name) of the container whose monitor has this socket; None if it is not root's, or has ended."""
    if not address.startswith("/"):
        path, called = (_said(address, question) for question in (GET_LXCPATH, GET_NAME))
        return (path[0], called[0]) if path and path[0] and called and called[0] else None
    with _connected(address) as (_client, uid):
        lxcpath, name = os.path.split(address.rpartition("/")[0])
        return (lxcpath, name) if uid == 0 else None


def _said(address: str, question: int) -> tuple[str, int] | None:
    """Return a monitor's answer about its container, as text and number; None if it is not root's, or has ended.

    One that hangs up and goes on listening is asked again.
    """
    hung_up = Deadline(HUNG_UP)
    while True:
        with _connected(address) as (client, uid):
            if uid != 0:
                return None
            try:
                client.sendall(HEAD.pack(question, 0, 0))
                wrong, size, number = HEAD.unpack(_received(client, HEAD.size))
                return (os.fsdecode(_received(client, size).rstrip(b"\0")), number) if wrong == 0 else None
            except socket.timeout as error:
                what = f"this monitor of a container did not answer within {ANSWER_TIME:g} s"
                remedy = f"see who has it (ss -xlp), and whether it is stopped (ps): @{address}"
                raise TimedOut(what, address, remedy) from error
            except (ConnectionError, EOFError):
                if hung_up.passed:
                    return None
        hung_up.nap(RETRY)


def _received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = client.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


@contextmanager
def _connected(address: str) -> Iterator[tuple[socket.socket, int | None]]:
    """Yield (socket, uid of who listens there), or (socket, None) if nobody does.

    :raises TimedOut: root's program there has more callers than it accepts. Any account may call.
    """
    deadline = Deadline(ANSWER_TIME)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client:
        client.settimeout(ANSWER_TIME)
        yield client, _call(client, address, deadline)


def _call(client: socket.socket, address: str, deadline: Deadline) -> int | None:
    while True:
        try:
            client.connect(b"\0" + os.fsencode(address))
            return PEER.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))[1]
        except BlockingIOError as error:
            makers = _makers(address)
            if 0 not in makers:
                return next(iter(makers), None)
            if deadline.passed:
                what = f"takes no call within {ANSWER_TIME:g} s, for so many call it"
                raise TimedOut(what, f"socket @{address}", "end who floods it: ss -xp") from error
            deadline.nap(RETRY)
        except OSError:
            return None


def _makers(address: str) -> set[int]:
    """Return the user ids of those who made the listening sockets of this name."""
    made = _listening(address)
    known = {uid for uid in made.values() if uid is not None}
    sockets = {f"socket:[{inode}]" for inode, uid in made.items() if uid is None}
    if not sockets:
        return known
    try:
        deadline = Deadline(ANSWER_TIME)
        return known.union(in_child(lambda: _of_holders(sockets), deadline, address, "see ps", closes=True))
    except TimedOut:  # a process keeps who asks about it waiting
        return {0}


def _of_holders(sockets: Collection[str]) -> list[int]:
    """Return the user ids of those who made sockets, by the processes that have them; for kernels before 5.3."""
    makers = set()
    for path in glob.iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):  # it was closed meanwhile
            if os.readlink(path) in sockets:
                makers.add(os.stat(path).st_uid)
    return list(makers)


def _listening(address: str) -> dict[int, int | None]:
    """Return {inode: user id of who made it, or None} of the listening sockets of this name."""
    found: dict[int, int | None] = {}
    try:
        for _turn in range(kernel_tables.READS):
            found.update(unix_sockets.listening(os.fsencode(address)))
        return found
    except OSError:  # a kernel without it; there an account may add lines, by which root's monitor takes no call
        pattern = re.compile(rf"^(?:\S+ +){{3}}{LISTENS} \S+ \S+ +(\d+) @{re.escape(address)}$")
        lines = {line for table in kernel_tables.reads(SOCKETS) for line in table}
        return {int(line[1]): None for line in map(pattern.match, lines) if line}
