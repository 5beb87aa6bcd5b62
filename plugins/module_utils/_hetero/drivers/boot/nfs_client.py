# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an NFS server answers, asked as a board's kernel asks it: NFSv3's call that does nothing, by TCP.

RFC 5531, RFC 1813. A server with all the connections that it may have takes one more and says nothing, or closes it:
that its port is open tells nothing of it.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

from ...core.errors import HeteroError

if TYPE_CHECKING:
    from ...core.deadline import Deadline

NFS, VERSION, NULL = 100003, 3, 0
#: Any number; the answer repeats it.
XID = 0x68657465
CALL, REPLY, RPC_VERSION = 0, 1, 2
#: Before a record: its length, and that it is the last one.
LAST = 0x80000000
#: Who asks, and its proof: nobody, none.
NOBODY = (0, 0, 0, 0)
REMEDY = "is the NFS server running, and who holds its connections (ss -tn 'sport = :2049')?"


def ask(server: str, port: int, deadline: Deadline) -> None:
    """Return when it answered.

    :raises HeteroError: it did not by the deadline, or with something else.
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
