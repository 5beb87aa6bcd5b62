# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An NFS server that is asked as a kernel asks it. If these fail, a board is said to fail where the NFS server does, or
the other way round.
"""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.nfs_client import (
    LAST,
    REPLY,
    XID,
    ask,
)


@pytest.fixture
def server():
    """A function that begins a server with an answer to its one caller; returns (port, what the caller said)."""
    begun = []

    def serve(*parts):
        heard, listening = [], socket.create_server(("127.0.0.1", 0))

        def one():
            caller, _address = listening.accept()
            with caller:
                heard.append(caller.recv(4096))
                for part in parts:
                    caller.sendall(part)
                if not parts:
                    caller.settimeout(5)
                    heard.append(caller.recv(1))  # the caller's end

        thread = threading.Thread(target=one)
        thread.start()
        begun.append((listening, thread))
        return listening.getsockname()[1], heard

    yield serve
    for listening, thread in begun:
        thread.join(10)
        listening.close()
        assert not thread.is_alive()


def reply(xid=XID, kind=REPLY):
    return struct.pack("!7I", LAST | 24, xid, kind, 0, 0, 0, 0)


def test_a_server_that_answers(server):
    """Lost: the whole selftest, to a call that no server understands (RFC 5531, a call of procedure 0 of NFS 3)."""
    port, heard = server(reply()[:5], reply()[5:])
    ask("127.0.0.1", port, Deadline(5.0))
    assert struct.unpack("!11I", heard[0]) == (LAST | 40, XID, 0, 2, 100003, 3, 0, 0, 0, 0, 0)


def test_a_server_that_says_nothing(server):
    """Lost: the verb, which waits for ever; or the reason, where the port alone is open."""
    port, _heard = server()
    with pytest.raises(
        HeteroError, match=rf"NFS 127\.0\.0\.1: port {port} does not answer .*who holds its connections"
    ):
        ask("127.0.0.1", port, Deadline(0.2))


def test_a_server_that_closes_each_connection(server):
    """Lost: the same, where it has all the connections that it may have."""
    port, _heard = server(b"")
    with pytest.raises(HeteroError, match="closes each connection"):
        ask("127.0.0.1", port, Deadline(5.0))


@pytest.mark.parametrize("said", [reply(xid=XID + 1), reply(kind=0), b"HTTP/1.1 400 Bad Request\r\n"])
def test_another_server_on_the_port(server, said):
    """Lost: the truth, to whatever program answers there."""
    port, _heard = server(said)
    with pytest.raises(HeteroError, match="not as an NFS server does"):
        ask("127.0.0.1", port, Deadline(5.0))


def test_nobody_on_the_port():
    """Lost: the reason."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(HeteroError, match=r"does not answer .*refused"):
        ask("127.0.0.1", port, Deadline(5.0))
