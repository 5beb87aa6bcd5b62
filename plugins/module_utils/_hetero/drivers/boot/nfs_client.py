# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an NFS server answers, asked as a board's kernel asks it: by NFSv3's call that does nothing, over TCP (RFC
5531, RFC 1813).

A port that is open is no answer: a server that has all the connections it may have takes one more and says nothing, or
closes it.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

from ...core.errors import HeteroError

if TYPE_CHECKING:
    from ...core.deadline import Deadline

NFS, VERSION, NULL = 100003, 3, 0
#: Id of the call, which the answer repeats; any number will do.
XID = 0x68657465
CALL, REPLY, RPC_VERSION = 0, 1, 2
#: Flag of the length before a record: it is the last one.
LAST = 0x80000000
#: Credentials and verifier of the call: none.
NOBODY = (0, 0, 0, 0)
REMEDY = "is the NFS server running, and who holds its connections (ss -tn 'sport = :2049')?"


def ask(server: str, port: int, deadline: Deadline) -> None:
    """Return after the server answered.

    :raises HeteroError: it did not answer by the deadline, or answered something else.
    """
    call = struct.pack("!10I", XID, CALL, RPC_VERSION, NFS, VERSION, NULL, *NOBODY)
    thing = f"NFS {server}"
    try:
        with socket.create_connection((server, port), timeout=max(0.01, deadline.left)) as asker:
            asker.sendall(struct.pack("!I", LAST | len(call)) + call)
            said = b""
            while len(said) < 12:
                asker.settimeout(max(0.01, deadline.left))
                part = asker.recv(64)
                if not part:
                    raise HeteroError(f"port {port} closes each connection", thing, REMEDY)
                said += part
    except OSError as error:
        raise HeteroError(f"port {port} does not answer ({error})", thing, REMEDY) from error
    if struct.unpack("!2I", said[4:12]) != (XID, REPLY):
        raise HeteroError(f"port {port} answers, and not as an NFS server does", thing, REMEDY)
