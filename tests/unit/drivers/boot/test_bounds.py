# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one board, or a stranger, may have of the proxy's services, and take of its routes: the role's packet filter."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.tests.knocking import KNOCK
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import (
    BOARDS,
    EVIL,
    NEEDS,
    inside,
    python,
    rendered,
)

pytestmark = NEEDS

KEEPS = """
    import selectors, socket
    doors, kept = selectors.DefaultSelector(), []
    for port in (22, 111, 2049, 20048):
        family = dict(family=socket.AF_INET6, dualstack_ipv6=True)
        doors.register(socket.create_server(("::", port), backlog=200, **family), selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _mask in doors.select():
            kept.append(key.fileobj.accept()[0])
"""
#: Somebody who opens connections and keeps them, [(own MAC, own address, port, how many)] in turn.
OPENS = f"""{KNOCK}
import json, subprocess
kept, counts = [], []
for mac, address, port, number in {{asked!r}}:
    subprocess.run(["ip", "link", "set", "eth0", "address", mac], check=True)
    got, others = knock(address, "fd00:1ab::1" if ":" in address else "10.0.2.254", port, number, 0.8)
    kept += got
    for sock in others:
        sock.close()
    counts.append(len(got))
print(json.dumps(counts))
"""


@contextmanager
def services(proxy):
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", textwrap.dedent(KEEPS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.kill()


STRANGE, STRANGE_TOO, OWN, ANOTHERS, THIRD = "10.0.2.66", "10.0.2.67", "10.0.2.1", "10.0.2.2", "10.0.2.3"
#: A board may have any number of the last kind.
IPV6, IPV6_TOO = "fd00:1ab::66", "fd00:1ab::67"
MAC, ANOTHERS_MAC, THIRD_MAC = (board["mac"] for board in BOARDS)


@pytest.fixture
def crowd(board0):
    """The other end, by any MAC and all of these addresses."""
    proxy, other = board0
    more = [f"{address}/24" for address in (STRANGE_TOO, ANOTHERS, THIRD)] + [f"{IPV6}/64", f"{IPV6_TOO}/64"]
    inside(proxy, "ip", "address", "add", "fd00:1ab::1/64", "dev", "eth0", "nodad")
    for address in more:
        inside(other, "ip", "address", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else []))
    yield proxy, other
    for address in more:
        inside(other, "ip", "address", "del", address, "dev", "eth0")
    inside(proxy, "ip", "address", "del", "fd00:1ab::1/64", "dev", "eth0")


@pytest.mark.parametrize(
    ("asked", "opened"),
    [
        # one board, by one port or all; then another one
        ([(MAC, OWN, 2049, 30), (ANOTHERS_MAC, ANOTHERS, 2049, 2)], [16, 2]),
        (
            [(MAC, OWN, 20048, 10), (MAC, OWN, 111, 4), (MAC, OWN, 2049, 9), (ANOTHERS_MAC, ANOTHERS, 20048, 2)],
            [10, 4, 2, 2],
        ),
        # by addresses that are not its own it has no more, and takes nothing from those whom nobody knows
        ([(MAC, OWN, 2049, 9), (MAC, STRANGE, 2049, 9), (MAC, STRANGE_TOO, 2049, 9)], [9, 7, 0]),
        ([(MAC, STRANGE, 2049, 20), (EVIL, STRANGE_TOO, 2049, 20), (ANOTHERS_MAC, ANOTHERS, 2049, 2)], [16, 16, 2]),
        # nobody mounts by IPv6; somebody whom nobody knows logs in by it
        (
            [(MAC, IPV6, 2049, 3), (MAC, IPV6, 20048, 3), (EVIL, IPV6_TOO, 111, 3), (EVIL, IPV6_TOO, 22, 12)],
            [0, 0, 0, 12],
        ),
        # all who are no boards, by which address ever; then a board
        ([(EVIL, STRANGE, 2049, 20), (EVIL, STRANGE_TOO, 2049, 9), (MAC, OWN, 2049, 2)], [16, 0, 2]),
        # the controller's door: a board by its address, and by any other address with its MAC
        ([(MAC, OWN, 22, 9), (ANOTHERS_MAC, ANOTHERS, 22, 1)], [2, 1]),
        (
            [(MAC, IPV6, 22, 9), (MAC, IPV6_TOO, 22, 4), (MAC, STRANGE, 22, 4), (ANOTHERS_MAC, ANOTHERS, 22, 4)],
            [2, 0, 0, 2],
        ),
    ],
)
def test_connections_are_bounded(crowd, ruled, asked, opened):
    """Lost: every board's NFS, and the controller's login, to a board with a thousand silent connections."""
    proxy, other = crowd
    ruled()
    with services(proxy):
        assert python(other, OPENS.format(asked=asked)) == opened


@pytest.mark.parametrize(
    ("asked", "opened"),
    [
        ([(EVIL, OWN, 2049, 20), (EVIL, ANOTHERS, 2049, 2), (EVIL, STRANGE, 2049, 20)], [16, 2, 16]),
        ([(EVIL, OWN, 22, 9), (EVIL, ANOTHERS, 22, 1), (EVIL, STRANGE, 22, 20)], [2, 1, 20]),
    ],
)
def test_boards_behind_a_router_are_known_by_their_addresses(crowd, ruled, asked, opened):
    """Lost: the NFS of all boards there, where the router's one MAC were counted as one board's."""
    proxy, other = crowd
    ruled(boards=[dict(board, near=False) for board in BOARDS])
    with services(proxy):
        assert python(other, OPENS.format(asked=asked)) == opened


def test_boards_share_a_number_of_connections_to_ssh(crowd, ruled):
    """Lost: everybody's login, to boards that are many, those of the network and those behind a router together."""
    proxy, other = crowd
    ruled(_tftp_proxy_ssh_connections=4, tftp_proxy_pinned=False)
    asked = [(MAC, IPV6, 22, 5), (ANOTHERS_MAC, ANOTHERS, 22, 3), (EVIL, THIRD, 22, 3), (EVIL, STRANGE, 22, 9)]
    with services(proxy):
        assert python(other, OPENS.format(asked=asked)) == [4, 3, 1, 9]


def test_connections_have_a_rate(crowd, ruled):
    """Lost: the proxy's time, to a board that goes on from one address to the next."""
    proxy, other = crowd
    ruled(_tftp_proxy_ssh_connections=1000, _tftp_proxy_ssh_connections_all=1000)
    asked = [(MAC, address, 22, 50) for address in (IPV6, IPV6_TOO, OWN, STRANGE)]
    with services(proxy):
        # the burst, and ten a second as long as they were opened
        assert 64 <= sum(python(other, OPENS.format(asked=asked))) < 110


def test_ssh_by_the_boards_interface_can_be_closed(network, ruled):
    """Lost: the controller's login by another interface, to a board that takes a MAC and an address of nobody."""
    proxy, other = network
    ruled(tftp_proxy_boards_interface_ssh=False)
    with services(proxy):
        assert python(other, OPENS.format(asked=[(EVIL, STRANGE, 22, 9), (EVIL, STRANGE, 2049, 2)])) == [0, 2]


#: Sends one question from each of 200 ports to a port of the proxy's, from these addresses in turn.
QUESTIONS = """
    import socket
    for number in range(200):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(({addresses!r}[number % len({addresses!r})], 0))
            sock.sendto(b"who", ("10.0.2.254", {port}))
    print("0")
"""
#: How many of them a socket of the proxy's got, of what comes within half a second of the one before.
GETS = """
    import socket
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("10.0.2.254", {port}))
        print("ready", flush=True)
        sock.settimeout(60)
        got = 0
        try:
            while sock.recv(99):
                got += 1
                sock.settimeout(0.5)
        except TimeoutError:
            print(got)
"""


@pytest.mark.parametrize("addresses", [(OWN,), (OWN, STRANGE), (STRANGE, STRANGE_TOO)])
@pytest.mark.parametrize("port", [69, 111, 2049])
def test_questions_by_udp_are_bounded(crowd, ruled, port, addresses):
    """Lost: connections of others, once the kernel's table of them is full of one board's questions to rpcbind."""
    proxy, other = crowd
    ruled()
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", textwrap.dedent(GETS.format(port=port))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        python(other, QUESTIONS.format(port=port, addresses=addresses))
        got = int(server.communicate(timeout=600)[0])
    # the burst, and ten a second as long as they were sent
    assert 64 <= got < 110


#: Sends 200 router solicitations, by these MACs in turn.
SOLICITS = """
    import socket, subprocess, time
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind(("eth0", 0))
    for number in range(200):
        mac = bytes.fromhex({macs!r}[number % len({macs!r})].replace(":", ""))
        body = bytes([133, 0, 0, 0, 0, 0, 0, 0])
        ends = socket.inet_pton(socket.AF_INET6, "fe80::66") + socket.inet_pton(socket.AF_INET6, "ff02::2")
        summed = ends + bytes([0, 0, 0, 8, 0, 0, 0, 58]) + body
        total = sum(int.from_bytes(summed[at : at + 2], "big") for at in range(0, 48, 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        body = body[:2] + (0xFFFF - total).to_bytes(2, "big") + body[4:]
        head = bytes([0x60, 0, 0, 0, 0, 8, 58, 255]) + ends
        wire.send(bytes.fromhex("333300000002") + mac + b"\\x86\\xdd" + head + body)
    print("0")
"""
#: How many of them come as far as dnsmasq's socket, of what comes within half a second of the one before.
IS_SOLICITED = """
    import socket
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        link = socket.if_nametoindex("eth0").to_bytes(4, "little")
        group = socket.inet_pton(socket.AF_INET6, "ff02::2") + link
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        print("ready", flush=True)
        sock.settimeout(60)
        got = 0
        try:
            while True:
                got += sock.recv(99)[0] == 133
                sock.settimeout(0.5)
        except TimeoutError:
            print(got)
"""


@pytest.mark.parametrize("macs", [(MAC,), (EVIL, THIRD_MAC[:-1] + "f")])
def test_questions_for_a_router_are_bounded(crowd, ruled, macs):
    """Lost: the log of the proxy, to a board that has two lines written into it by each packet."""
    proxy, other = crowd
    ruled()
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", textwrap.dedent(IS_SOLICITED)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        python(other, SOLICITS.format(macs=macs))
        got = int(server.communicate(timeout=600)[0])
    # the burst, and one a second as long as they were sent
    assert 10 <= got < 20


#: At the address of a stranger, and one of IPv6; one that is known by its name is not in the filter.
ODD = ("fe80::1%eth0", "10.0.0.5:23", "300.1.1.1", "1.2.3", "a:b")
PDUS = {
    "pdu-a": dict(driver="apc", host=STRANGE),
    "pdu-b": dict(driver="apc", host=IPV6, transport="ssh"),
    "pdu-c": dict(driver="apc", host=STRANGE, port=2323),
    "pdu-d": dict(driver="apc", host="pdu-d.example"),
    "pdu-e": dict(driver="snmp", host=STRANGE_TOO),
    **{f"pdu-{odd}": dict(driver="apc", host=odd) for odd in ODD},
}
#: What an account of the proxy's gets of these ports.
ASKS_PDUS = """
    import json, os, socket
    os.setgid({account})
    os.setuid({account})
    got = []
    for end in {ends!r}:
        try:
            socket.create_connection(end, 1).close()
            got.append("connected")
        except ConnectionRefusedError:
            got.append("refused")
        except TimeoutError:
            got.append("nothing")
    print(json.dumps(got))
"""


@pytest.mark.parametrize(("account", "got"), [(0, "refused"), (65534, "nothing")])
def test_an_account_of_the_proxy_takes_no_session_of_a_pdu(crowd, ruled, account, got):
    """Lost: the power of all boards, to an account that holds a PDU's only session, for which it needs no password."""
    proxy, _other = crowd
    ruled(tftp_proxy_pdus=PDUS)
    ends = [(STRANGE, 23), (IPV6, 22), (STRANGE, 2323), (STRANGE, 80), (STRANGE, 81), (STRANGE_TOO, 23)]
    assert python(proxy, ASKS_PDUS.format(account=account, ends=ends)) == [got] * 4 + ["refused"] * 2


def test_the_controllers_logins_are_not_counted(network):
    """Lost: the way in, where a bound that is meant for boards takes the controller for one."""
    proxy, other = network
    with services(proxy):
        assert python(other, OPENS.format(asked=[(EVIL, STRANGE, 22, 80)])) == [80]


@pytest.mark.parametrize(
    ("boards", "changes"),
    [
        ([], {}),
        ([dict(board, near=False) for board in BOARDS], {}),
        (BOARDS, dict(tftp_proxy_pinned=False)),
        (BOARDS, dict(tftp_proxy_dhcp=False)),
        (BOARDS, dict(nfs_server="nfsd")),
        (BOARDS, dict(tftp_proxy_boards_interface_ssh=False)),
        (BOARDS, dict(tftp_proxy_pdus=PDUS)),
    ],
)
def test_the_filter_is_taken_whatever_the_site_has(network, tmp_path, boards, changes):
    """A proxy without boards, or without DHCP, could not be set up at all."""
    (tmp_path / "rules").write_text(rendered("filter.nft.j2", boards, **changes))
    inside(network[1], "nft", "--check", "--file", tmp_path / "rules")


#: Of root's sockets, as in.tftpd's, [address]: which of 20 datagrams to each leave, from as many ports.
SENDS = """
    import json, socket
    counts = []
    for address in {addresses!r}:
        sent = 0
        for number in range(20):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(("10.0.2.254", 29000 + len(counts) * 20 + number))
                try:
                    sock.sendto(b"data", (address, 5000))
                    sent += 1
                except PermissionError:
                    pass
        counts.append(sent)
    print(json.dumps(counts))
"""


def test_files_are_sent_to_so_many(crowd, ruled):
    """Lost: all of TFTP's ports, to a board that asks from one address after the other."""
    ruled(_tftp_proxy_tftp_transfers=8)
    addresses = [OWN, ANOTHERS, STRANGE, STRANGE_TOO]
    assert python(crowd[0], SENDS.format(addresses=addresses)) == [8, 8, 8, 0]


#: A neighbour says that it is a router, and that there is a better way, by both families (RFC 4861, 4.2 and 4.5; RFC
#: 792); it is done once an echo that was asked for behind that was answered.
ROUTES = """
    import socket, struct
    def icmp(family, own, target, body, link=0):
        protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
        with socket.socket(family, socket.SOCK_RAW, protocol) as wire:
            if family == socket.AF_INET6:
                for option in (socket.IPV6_MULTICAST_HOPS, socket.IPV6_UNICAST_HOPS):
                    wire.setsockopt(socket.IPPROTO_IPV6, option, 255)
                wire.bind((own, 0, 0, link))
                wire.sendto(body, (target, 0, 0, link))
                return
            total = sum(struct.unpack(f"!{{len(body) // 2}}H", body))
            total = (total & 0xffff) + (total >> 16)
            wire.sendto(body[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + body[4:], (target, 0))
    link = socket.if_nametoindex("eth0")
    def address(text):
        return socket.inet_pton(socket.AF_INET6, text)
    icmp(socket.AF_INET6, "fe80::bad", "ff02::1", struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 30, 0, 0), link)
    better = struct.pack("!BBHI", 137, 0, 0, 0) + address("fe80::bae") + address("fd00:99::1")
    icmp(socket.AF_INET6, "fe80::bad", {link_local!r}, better, link)
    # an echo that the proxy answered, it is said, had a better way
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 1, 0)
    ends = socket.inet_aton("10.0.2.254") + socket.inet_aton("10.99.0.1")
    answered = head + ends + struct.pack("!BBHHH", 0, 0, 0, 1, 1)
    icmp(socket.AF_INET, "", "10.0.2.254", struct.pack("!BBH", 5, 1, 0) + socket.inet_aton("10.0.2.67") + answered)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as asks:
        asks.settimeout(60)
        asks.sendto(struct.pack("!BBHHH", 8, 0, 0xf7fd, 1, 1), ("10.0.2.254", 0))
        while asks.recv(2048)[20] != 0:
            pass
    print("0")
"""


@pytest.mark.parametrize(
    ("filtered", "believed"),
    [(None, [True, True, True]), ({}, [False] * 3), ({"tftp_proxy_boards_interface_ra": True}, [True, False, False])],
)
def test_a_neighbour_is_no_router(network, ruled, filtered, believed):
    """Lost: what the proxy sends elsewhere, to a tenant who says that the way there leads by its board."""
    proxy, other = network

    def said(*words):
        return inside(proxy, "ip", *words, stdout=subprocess.PIPE, text=True).stdout

    routes = [
        ["-6", "route", "add", "fd00:99::/64", "via", "fe80::bad", "dev", "eth0"],
        ["route", "add", "10.99.0.0/24", "via", "10.0.2.66", "dev", "eth0"],
    ]
    inside(other, "ip", "address", "add", "fe80::bad/64", "dev", "eth0", "nodad")
    inside(proxy, "ip", "address", "add", "fe80::1/64", "dev", "eth0", "nodad")
    ruled(**filtered or {})
    if filtered is None:
        inside(proxy, "nft", "delete", "table", "inet", "hetero")
    try:
        for route in routes:
            inside(proxy, "ip", *route)
        # Linux takes no way by a machine that it does not know yet
        inside(proxy, "ip", "neigh", "replace", "10.0.2.67", "lladdr", EVIL, "dev", "eth0", "nud", "permanent")
        python(other, ROUTES.format(link_local="fe80::1"))
        ways = [
            said("-6", "route", "show", "default"),
            said("-6", "route", "get", "fd00:99::1"),
            said("route", "get", "10.99.0.1"),
        ]
        assert [way in text for way, text in zip(("fe80::bad", "fe80::bae", "10.0.2.67"), ways)] == believed, ways
    finally:
        for route in routes:
            inside(proxy, "ip", *["del" if word == "add" else word for word in route])
        inside(proxy, "ip", "neigh", "del", "10.0.2.67", "dev", "eth0")
        inside(proxy, "ip", "-6", "route", "flush", "proto", "ra")
        inside(proxy, "ip", "address", "del", "fe80::1/64", "dev", "eth0")
        inside(other, "ip", "address", "del", "fe80::bad/64", "dev", "eth0")
