# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant sends to addresses that a bridge does not forward, and what the host keeps of a tenant's connections.

Lost without: the host takes its way to the world, or its neighbours, from a tenant, and a tenant fills the table of
connections of all.

Tests hypervisors/pinning.py.
"""

from __future__ import annotations

import re
import subprocess
import sys

import frames
import pytest
from frames import ARP, BROADCAST, IPV4, IPV6, MARK

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT
from ansible_collections.hetero.compute.tests.unit.hypervisors.pinning.conftest import (
    ALICE,
    BOB,
    GATEWAY,
    LAST,
    OTHER,
    WORLD,
)

OURS, PORT = pinning.mac(ALICE), pinning.port("lxc", ALICE)
#: Of 01-80-C2-00-00-0X, those that Linux' bridge hands to the host as from the port (br_input.c, br_handle_frame).
PAST = [f"01:80:c2:00:00:{last}" for last in ("02", "03", "0e")]
#: An address of the host on another network, and of nobody.
HOST6, NOBODY6 = "2001:db8:9::1", "2001:db8:9::77"
HOST4, NOBODY4 = "192.0.2.1", "10.0.81.77"
#: What somebody hears at a UDP port until LAST comes, by its sender and what it says.
LISTEN = """
import socket, sys
heard = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
heard.bind(("::", int(sys.argv[1])))
heard.settimeout(120)
print("ready", flush=True)
said = b""
while said != sys.argv[2].encode():
    said, whence = heard.recvfrom(2048)
    print(whence[0].replace("::ffff:", ""), said.decode(), flush=True)
"""
SAY = """
import socket, sys
says = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
says.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for word in sys.argv[3:]:
    says.sendto(word.encode(), (sys.argv[1], int(sys.argv[2])))
"""
#: Connections that are closed at both ends.
CLOSE = """
import socket, sys
for _time in range(10):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as door:
        door.recv(1)
"""


@pytest.fixture
def net(net):
    net.run("host", "sh", "-c", "for each in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $each; done")
    net.ip("host", f"-6 addr replace {HOST6}/64 dev up0 nodad")
    yield net
    net.ip("host", f"-6 route flush dev {PORT} proto ra", f"neigh flush dev {PORT}", "neigh flush dev hetero0")


def send(net, *sent):
    """By alice; what the host does of it is done when it has answered her ping, which she sends next."""
    net.run("alice", sys.executable, frames.__file__, "send", "eth0", *(each.hex() for each in sent))
    net.run("alice", "busybox", "ping", "-c1", "-W30", GATEWAY)


def heard(net, name, say, port=OTHER):
    """Lines that somebody hears at a port while `say()` runs, which ends with LAST."""
    words = ["nsenter", f"--net=/proc/{net.kept[name].pid}/ns/net", sys.executable, "-c", LISTEN]
    with subprocess.Popen([*words, str(port), LAST.decode()], stdout=subprocess.PIPE, text=True) as ear:
        assert ear.stdout.readline() == "ready\n"
        say()
        return ear.stdout.read().splitlines()


def say(net, address, *words, port=OTHER):
    net.run("alice", sys.executable, "-c", SAY, address, str(port), *words)


def remembered(net):
    """How many connections the host remembers."""
    return int(net.run("host", "cat", "/proc/sys/net/netfilter/nf_conntrack_count").stdout)


@pytest.mark.parametrize("mac", PAST)
def test_the_host_takes_no_way_to_the_world_of_a_tenant(net, mac):
    advertisement = frames.frame(mac, OURS, IPV6, frames.router_advertisement())

    def is_taken():
        send(net, advertisement)
        return "proto ra" in net.run("host", "ip", "-6", "route", "show", "default", "dev", PORT).stdout

    deadline = Deadline(120)  # until its own address there is known to be nobody else's
    while not is_taken():
        assert not deadline.passed, "this test sends what is not taken anyhow"
    net.ip("host", f"-6 route flush dev {PORT} proto ra")
    net.load()
    assert not is_taken()


@pytest.mark.parametrize("mac", PAST)
@pytest.mark.parametrize(
    ("kind", "datagram"),
    [
        (IPV6, frames.udp_over_ipv6(NOBODY6, HOST6, 1024, OTHER)),
        (IPV4, frames.udp(WORLD, HOST4, 1024, OTHER)),
    ],
    ids=["IPv6", "IPv4"],
)
def test_no_service_of_the_host_hears_who_a_tenant_is_not(net, mac, kind, datagram):
    forged = frames.frame(mac, OURS, kind, datagram)

    def forge():
        send(net, *[forged] * 20)
        say(net, GATEWAY, LAST.decode())

    assert len(heard(net, "host", forge)) == 21, "this test sends what does not arrive anyhow"
    net.load(open_ports=[f"udp/{OTHER}"])
    assert heard(net, "host", forge) == [f"{ALICE} {LAST.decode()}"]


@pytest.mark.parametrize("mac", PAST)
def test_no_tenant_is_a_neighbour_that_he_is_not(net, mac):
    forged = frames.frame(mac, OURS, ARP, frames.arp(OURS, NOBODY4, GATEWAY, operation=1))
    for loaded in (False, True):
        net.ip("host", f"neigh flush dev {PORT}", "neigh flush dev hetero0")
        if loaded:
            net.load()
        send(net, forged)
        assert (NOBODY4 in net.run("host", "ip", "neigh").stdout) != loaded


def test_what_a_tenant_sends_so_takes_no_place_of_connections(net):
    net.load()
    before = remembered(net)
    sent = [
        frames.frame(PAST[-1], OURS, IPV6, frames.udp_over_ipv6(f"2001:db8:9::{number:x}", HOST6, 1024, OTHER))
        for number in range(0x100, 0x180)
    ]
    send(net, *sent)
    assert remembered(net) < before + 100


@pytest.mark.parametrize("calls", ["0", "1"])
def test_what_one_tenant_says_to_all_comes_from_him(net, calls):
    """With br_netfilter, which Docker loads: his neighbours took it for a word of the gateway."""
    switch = "/proc/sys/net/bridge/bridge-nf-call-iptables"
    if net.run("host", "test", "-e", switch, check=False).returncode:
        if calls == "1":
            pytest.skip("this kernel has no br_netfilter")
    else:
        net.run("host", "sh", "-c", f"echo {calls} > {switch}")
    net.load()
    said = frames.frame(BROADCAST, OURS, IPV4, frames.udp(ALICE, "255.255.255.255", 1024, OTHER))

    def shout():
        send(net, said)
        say(net, BOB, LAST.decode())

    assert heard(net, "bob", shout) == [f"{ALICE} {MARK.decode()}", f"{ALICE} {LAST.decode()}"]


def test_what_nobody_answers_is_one_connection(net, monkeypatch):
    """Lost: logs, metrics and calls of a tenant, above a packet each 2 ms."""
    monkeypatch.setattr(pinning, "BEGIN", "1/hour burst 4 packets")
    net.load()
    words = [f"line {number}" for number in range(20)]
    assert heard(net, "world", lambda: say(net, WORLD, *words, LAST.decode())) == [
        f"192.0.2.1 {word}" for word in (*words, LAST.decode())
    ]


def test_what_ended_is_forgotten_soon(net):
    """Lost: places for connections, of which a tenant who opens and closes 500 a second takes 60,000."""
    if net.run("host", "test", "-e", "/proc/net/nf_conntrack", check=False).returncode:
        pytest.skip("this kernel shows no connections (CONFIG_NF_CONNTRACK_PROCFS)")
    net.load()
    net.run("alice", sys.executable, "-c", CLOSE, WORLD, str(OTHER))
    ended = [line.split() for line in net.run("host", "cat", "/proc/net/nf_conntrack").stdout.splitlines()]
    left = [int(words[4]) for words in ended if words[5] == "TIME_WAIT" and f"src={ALICE}" in words]
    assert left
    assert max(left) <= pinning.ENDED


def test_the_guide_says_how_many_places_a_tenant_takes():
    """Lost: who sizes the host's table by the guide."""
    rate, burst = map(int, re.findall(r"\d+", pinning.BEGIN))
    guide = (ROOT / "docs" / "docsite" / "rst" / "guide_security.rst").read_text()
    assert f"{pinning.CONNECTIONS + burst + rate * pinning.ENDED:,} places" in guide
    assert f"{pinning.CONNECTIONS:,} connections to and through the host at a time, of which {rate} begin" in guide
    assert f"remembers for {pinning.ENDED} seconds" in guide
