# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board opens connections to the proxy and says nothing by them, or speaks NFSv4: whoever runs on it.

Played by machines with the boards' addresses and MACs on the boards' bridge; another board asks NFS meanwhile, and the
controller logs in.
"""

from __future__ import annotations

import json
import subprocess
import textwrap
import time
from contextlib import contextmanager

import pytest
from bridge import board, machine
from knocking import KNOCK

#: A board that nobody has: its machine is off.
BOOTS = 8
#: More connections than the server has for all, and how many of them there were; an error where not even one is
#: answered, such as that nothing listens there.
FLOOD = """
import json, socket, sys
first = socket.create_connection(("10.0.2.254", int(sys.argv[1])), 20)
got, others = knock("", "10.0.2.254", int(sys.argv[1]), 1200, 3)
print(json.dumps(1 + len(got)), flush=True)
input()
"""
#: NFS's call that does nothing, of a version; the state of its answer, 0 where it was done, 2 for another version.
NULL = """
    import json, socket, struct, sys
    with socket.create_connection(("10.0.2.254", 2049), 5) as sock:
        sock.sendall(struct.pack("!11I", 0x80000028, 7, 0, 2, 100003, int(sys.argv[1]), 0, 0, 0, 0, 0))
        print(json.dumps(struct.unpack("!7I", sock.recv(28, socket.MSG_WAITALL))[-1]))
"""


def run(words, script, *arguments):
    argv = [*words, "/usr/bin/python3", "-c", textwrap.dedent(script), *map(str, arguments)]
    return json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout)


@contextmanager
def flood(words, port):
    """It has all the connections that it gets; yields how many."""
    argv = [*words, "/usr/bin/python3", "-c", KNOCK + FLOOD, str(port)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def played(lab, number, name):
    """A machine with a board's address and MAC."""
    there = board(lab, number)
    return machine(lab, name, there["ip"], there["mac"])


@pytest.mark.parametrize(("port", "most", "floods"), [(2049, 16, 5), (20048, 16, 6), (22, 2, 7)])
def test_a_board_that_opens_connections_and_is_silent(up, port, most, floods):
    """Lost: every other board's files, the boots of all, and the way in for whoever would end it."""
    with played(up, floods, f"f{port}") as words, played(up, BOOTS, f"b{port}") as others, flood(words, port) as opened:
        assert opened <= most, f"{opened} of 1201 connections to port {port}"
        start = time.monotonic()
        assert run(others, NULL, 3) == 0, "another board's NFS answers"
        assert up.on_proxy("echo in") == "in\n"
        print(f"{opened} of 1201 connections; NFS and a login took {time.monotonic() - start:.2f} s")


def test_nothing_but_nfs_3_is_spoken(up):
    """Lost: everybody's files, to a tenant whose opens by NFSv4 take all the server's descriptors."""
    with played(up, BOOTS, "speaks") as words:
        assert [run(words, NULL, version) for version in (3, 4)] == [0, 2]
