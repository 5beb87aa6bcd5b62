# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board speaks by addresses that the boards file does not have, of IPv6 or IPv4, and says that it is a router.

Played by machines with the boards' MACs on the boards' bridge. A board can have any number of addresses, and has one
MAC.
"""

from __future__ import annotations

import json
import subprocess
import textwrap
from contextlib import contextmanager

from bridge import board, machine
from knocking import KNOCK

#: Boards that nobody has: their machines are off.
SSH, NFS, BOOTS, ROUTER = 5, 6, 8, 9
#: Of the prefix that the proxy announces (role tftp_proxy's default), and one that a router of the attacker's does.
OURS, EVIL = "fd00:1ab::", "fd00:bad::"
#: Seconds in which connections come that are given: on a busy machine the kernel may have to ask for one again.
GIVEN = 30
#: Opens connections, [(own address, the proxy's, port, how many, [seconds])]; says how many it got of each kind, and
#: keeps them.
OPENS = """
import json, sys
kept, counts = [], []
for own, target, port, number, *limit in json.loads(sys.argv[1]):
    got, others = knock(own, target, port, number, *(limit or [0.5]))
    kept += got + others
    counts.append(len(got))
print(json.dumps(counts), flush=True)
input()
"""
#: A router that gives everyone a default route and addresses, for 30 and 20 seconds (RFC 4861, 4.2 and 4.6.2); it is
#: done once the proxy answered an echo that was asked for behind it.
ROUTES = """
    import socket, struct, sys
    wire = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    link = socket.if_nametoindex(sys.argv[1])
    wire.bind(("fe80::bad", 0, 0, link))
    prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 20, 20, 0) + socket.inet_pton(socket.AF_INET6, sys.argv[2])
    for _number in range(3):
        wire.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 30, 0, 0) + prefix, ("ff02::1", 0, 0, link))
    asks = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    asks.settimeout(60)
    asks.sendto(struct.pack("!BBHHH", 128, 0, 0, 7, 7), (sys.argv[3], 0))
    while asks.recv(2048)[0] != 129:
        pass
    print("done")
"""


@contextmanager
def played(lab, number, name, more=()):
    """A machine with a board's address and MAC, and more addresses."""
    there = board(lab, number)
    with machine(lab, name, there["ip"], there["mac"]) as words:
        for address in more:
            width, last = (64, ["nodad"]) if ":" in address else (24, [])
            argv = [*words, "ip", "addr", "add", f"{address}/{width}", "dev", f"{name}1", *last]
            subprocess.run(argv, check=True)
        yield words


@contextmanager
def opened(words, *asked):
    argv = [*words, "/usr/bin/python3", "-c", KNOCK + OPENS, json.dumps(asked)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def asked_by_all(lab, number, port, each):
    """Connections of a board by its own address, by another one of IPv4, and by four of IPv6."""
    own = [board(lab, number)["ip"], f"10.0.2.{200 + number}"]
    others = [f"{OURS}{number}:{last}" for last in range(4)]
    asked = [(address, "10.0.2.254", port, each) for address in own]
    return [*own[1:], *others], asked + [(address, f"{OURS}1", port, each) for address in others]


def test_ssh_by_as_many_addresses_as_one_likes(up):
    """Lost: all connections that boards have to the proxy's ssh, to one of them."""
    more, asked = asked_by_all(up, SSH, 22, 4)
    with played(up, SSH, "many", more) as words, opened(words, *asked) as counts:
        assert up.on_proxy("echo in") == "in\n"
        one = (board(up, BOOTS)["ip"], "10.0.2.254", 22, 2, GIVEN)
        with played(up, BOOTS, "next") as others, opened(others, one) as left:
            assert (sum(counts), left) == (2, [2]), counts


def test_nfs_by_as_many_addresses_as_one_likes(up):
    """Lost: the connections of those whom nobody knows, to a board that has its own; and it has nothing to do there."""
    for port in (2049, 20048):
        more, asked = asked_by_all(up, NFS, port, 4)
        name = f"many{port}"
        asks = [(*asked[0], GIVEN), *asked[2:], *[asked[1]] * 5]
        with played(up, NFS, name, more) as words, opened(words, *asks) as counts:
            assert counts[0] == 4
            assert sum(counts[1:-5]) == 0, f"by IPv6 boards mount nothing: {counts}"
            assert sum(counts) <= 16, counts


def test_a_board_that_says_it_is_a_router(up):
    """Lost: whatever the proxy sends by IPv6, to a tenant who leads it to itself."""
    heard = up.on_proxy("cat /proc/sys/net/ipv6/conf/eth0/accept_ra /proc/sys/net/ipv6/conf/eth0/forwarding")
    assert heard.split() == ["1", "0"], "the proxy's kernel itself believes routers"
    before = up.on_proxy("systemctl show --property After --value network-pre.target")
    assert "hetero-filter.service" in before.split(), "what is said while the proxy starts is not heard either"
    with played(up, ROUTER, "router", [f"{OURS}9:1", "fe80::bad"]) as words:
        argv = [*words, "/usr/bin/python3", "-c", textwrap.dedent(ROUTES), "router1", EVIL, f"{OURS}1"]
        said = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
        assert said == "done\n"
        routes = up.on_proxy("ip -6 route show; ip -6 address show dev eth0")
    assert "fe80::bad" not in routes, routes
    assert EVIL.rstrip(":") not in routes, routes
