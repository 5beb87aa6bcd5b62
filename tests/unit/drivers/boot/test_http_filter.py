# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reaches the proxy's HTTP, and by how many connections: the role's packet filter."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import NEEDS, inside, python, rendered

pytestmark = NEEDS

KEEPS = """
    import os, socket, sys
    os.setuid(int(sys.argv[1]))
    door, kept = socket.create_server(("10.0.2.254", 8080), backlog=200), []
    print("ready", flush=True)
    while True:
        kept.append(door.accept()[0])
"""
OPENS = """
    import json, socket, time
    kept = [socket.socket() for _number in range(40)]
    for sock in kept:
        sock.setblocking(False)
        sock.connect_ex(("10.0.2.254", 8080))
    time.sleep(0.8)
    def is_open(sock):
        try:
            sock.getpeername()
            return True
        except OSError:
            return False
    print(json.dumps(sum(map(is_open, kept))))
"""


ASKS = """
    import json, os, socket, struct, time
    os.setuid({uid})
    answered, until = 0, time.monotonic() + {seconds}
    for _number in range({times}):
        if time.monotonic() > until:
            break
        try:
            one = socket.create_connection(("10.0.2.254", 8080), 0.2)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is over at once
            one.close()
            answered += 1
        except OSError:
            pass
    print(json.dumps(answered))
"""


@contextmanager
def serving(proxy, uid=0):
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", textwrap.dedent(KEEPS), str(uid)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.kill()


HTTP = dict(tftp_proxy_boot_http=True, tftp_proxy_boot_http_port=8080)


def test_one_board_has_so_many_connections(board0, ruled):
    """Lost: other boards' boots, to one that holds all connections of the web server."""
    proxy, board = board0
    with serving(proxy):
        assert python(board, OPENS) == 40
        ruled(**HTTP)
        assert python(board, OPENS) == 16


def test_it_is_there_by_the_boards_interface_alone(board0, tmp_path):
    """Lost: boards' kernels, to whoever takes a board's address on another network of the proxy node."""
    proxy, board = board0
    rules = rendered("filter.nft.j2", **HTTP)
    try:
        with serving(proxy):
            (tmp_path / "rules").write_text(rules.replace('"eth0"', '"eth9"'))
            inside(proxy, "nft", "--file", tmp_path / "rules")
            assert python(board, OPENS) == 0
    finally:
        (tmp_path / "rules").write_text(rendered("filter.nft.j2"))
        inside(proxy, "nft", "--file", tmp_path / "rules")


def test_only_roots_server_speaks_to_boards_by_its_port(board0, ruled):
    """Lost: what a board boots, to a local account that has the port while the web server restarts."""
    proxy, board = board0
    ruled(**HTTP)
    with serving(proxy, uid=65534):
        assert python(board, OPENS) == 0


def test_who_is_no_board_opens_so_many_a_second(network, ruled):
    """Lost: the proxy's disk, to a board with a MAC of nobody that asks as fast as it can: each is a line of a log."""
    proxy, other = network
    with serving(proxy):
        ruled(**HTTP)
        assert 64 <= python(other, ASKS.format(uid=0, seconds=2, times=300)) <= 64 + 10 * 4


def test_an_account_of_the_proxy_has_none_of_its_connections(network, ruled):
    """Lost: boots by HTTP, to a local account that holds all connections: by the loopback they are not counted."""
    proxy, _other = network
    with serving(proxy):
        ruled(**HTTP)
        assert python(proxy, ASKS.format(uid=65534, seconds=9, times=2)) == 0
        assert python(proxy, ASKS.format(uid=0, seconds=9, times=2)) == 2, "the proxy's own test of itself"


@pytest.mark.parametrize("pinned", [True, False])
def test_without_it_the_filter_says_nothing_of_it(pinned):
    """Lost: a site's own web server on the proxy node, to a set-up that was never asked for HTTP."""
    text = rendered("filter.nft.j2", tftp_proxy_pinned=pinned)
    assert "http" not in text
    assert "dport 80 " not in text
    assert "http" not in rendered("boot.ipxe.j2")
    assert "nginx" not in rendered("tftp.map.j2")
