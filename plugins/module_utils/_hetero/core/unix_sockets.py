# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sockets listen by an abstract name, and who made them, as the kernel tells by sock_diag(7); and whether
somebody waits to be accepted.

/proc/net/unix has names as they are, and a line feed in one begins a line that any account words as it likes. To look
for who has a socket open is to ask every process, and one of any account can keep who asks waiting for ever.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
from typing import Iterator

#: sock_diag(7): linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP = 0x001, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
UDIAG_SHOW_NAME, UNIX_DIAG_NAME = 0x01, 0
#: Since Linux 5.3.
UDIAG_SHOW_UID, UNIX_DIAG_UID = 0x40, 7
#: net/tcp_states.h, as unix sockets use it.
TCP_LISTEN = 10
HEAD = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBHIII2I")
ANSWER = struct.Struct("=BBBBI2I")
ATTRIBUTE = struct.Struct("=HH")
#: Bytes of a datagram of answers; the kernel makes them of 32 KiB at most.
MOST = 1 << 16
#: Seconds for the kernel's next datagram.
ANSWER_TIME = 10.0
#: System calls, the same on every architecture, of Linux 5.3 and 5.6.
PIDFD_OPEN, PIDFD_GETFD = 434, 438
_libc = ctypes.CDLL(None, use_errno=True)


def listening(name: bytes) -> dict[int, int | None]:
    """Return {inode: user id of who made it, or None} of the sockets that listen by an abstract name in this network
    namespace: one, or none.

    :param name: without the zero byte before it.
    :raises OSError: this kernel has no unix_diag.
    """
    return {inode: uid for inode, uid, its in _all() if its == b"\0" + name}


def has_callers(pid: int, descriptor: int) -> bool:
    """Return whether a process's socket listens, and connections wait there until they are accepted.

    :raises OSError: the process, or the descriptor, is gone; or this cannot be asked of it, such as of a second thread.
    """
    process = _call(PIDFD_OPEN, pid, 0)
    try:
        # of this kind also where it is another: nothing depends on that
        copy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, _call(PIDFD_GETFD, process, descriptor, 0))
    finally:
        os.close(process)
    with copy:
        waiting = select.poll()
        waiting.register(copy, select.POLLIN)
        return bool(copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and waiting.poll(0))


def _call(number: int, *arguments: int) -> int:
    made = int(_libc.syscall(*map(ctypes.c_long, (number, *arguments))))
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made


def _all() -> Iterator[tuple[int, int | None, bytes]]:
    """Yield (inode, user id, name) of all listening sockets; one may be lacking while others come and go."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_TIME)
        shown = UDIAG_SHOW_NAME | UDIAG_SHOW_UID
        wanted = REQUEST.pack(socket.AF_UNIX, 0, 0, 1 << TCP_LISTEN, 0, shown, 0xFFFFFFFF, 0xFFFFFFFF)
        flags = NLM_F_REQUEST | NLM_F_DUMP
        kernel.sendto(HEAD.pack(HEAD.size + len(wanted), SOCK_DIAG_BY_FAMILY, flags, 1, 0) + wanted, (0, 0))
        while True:
            data = kernel.recv(MOST)
            while data:
                size, kind, _flags, _turn, _port = HEAD.unpack_from(data)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", data, HEAD.size)[0]
                    raise OSError(number, os.strerror(number), "sock_diag")
                yield _socket(data[HEAD.size : size])
                data = data[_aligned(size) :]


def _socket(message: bytes) -> tuple[int, int | None, bytes]:
    inode, rest, name, uid = ANSWER.unpack_from(message)[4], message[ANSWER.size :], b"", None
    while len(rest) >= ATTRIBUTE.size:
        size, kind = ATTRIBUTE.unpack_from(rest)
        if kind == UNIX_DIAG_NAME:
            name = rest[ATTRIBUTE.size : size]
        elif kind == UNIX_DIAG_UID:
            uid = struct.unpack_from("=I", rest, ATTRIBUTE.size)[0]
        rest = rest[_aligned(size) :]
    return inode, uid, name


def _aligned(size: int) -> int:
    return size + 3 & ~3
