# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root in a container on the bridge that it shares with a neighbour: taking addresses, and reaching for the host.

What root in a container sends, it sends from the container's network; the frames are made there by the host's Python,
as the container's image has none.
"""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import frames
import pytest
from conftest import GPU_HOST
from frames import ARP, BROADCAST, IPV4, IPV6, MARK

HOST, MANAGEMENT, PROXY = "10.0.2.241", "10.0.100.241", "10.0.2.254"
GATEWAY, ALICE, BOB = "10.0.81.1", "10.0.81.10", "10.0.81.11"
#: A machine of the world: an address of the lab's namespace that none of the host's networks has in it.
WORLD = "203.0.113.1"
#: Who of [address, port] takes a connection; and whether the proxy's TFTP server says anything.
REACH = """
import json, socket, sys
reached = []
for address, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((address, port), 2).close()
        reached.append([address, port])
    except OSError:
        pass
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.settimeout(2)
try:
    asked.sendto(b"\\0\\1boot.ipxe\\0octet\\0", (sys.argv[2], 69))
    reached.append([asked.recvfrom(600)[1][0], 69])
except OSError:
    pass
print(json.dumps(reached))
"""
SERVE = """
import socket
door = socket.create_server(("", 8080))
print("ready", flush=True)
while True:
    door.accept()[0].close()
"""


class Bridge:
    """The host's bridge, and the networks of the containers on it."""

    def __init__(self, lab):
        self.lab = lab
        text = base64.b64encode(Path(frames.__file__).read_bytes()).decode()
        self.on_host(f"echo {text} | base64 -d > /run/frames.py")
        self.macs = {name: self.inside(name, "cat /sys/class/net/eth0/address").strip() for name in ("alice", "bob")}

    def on_host(self, command):
        return self.lab.on_node(GPU_HOST, command).stdout

    def inside(self, name, command):
        """A command as root of a container has it, as far as networks go."""
        enter = f"nsenter --net=/proc/$(lxc-info -n {name} -pH)/ns/net"
        mounted = f"mount -t sysfs none /sys && {command}"
        return self.on_host(f"{enter} unshare --mount sh -c {shlex.quote(mounted)}")

    def heard_by_bob(self, *sent):
        """Those of the frames that arrive at bob's interface when alice sends them."""
        words = " ".join(frame.hex() for frame in sent)
        hear = "nsenter --net=/proc/$(lxc-info -n bob -pH)/ns/net python3 /run/frames.py hear eth0 3 > /run/heard"
        send = f"nsenter --net=/proc/$(lxc-info -n alice -pH)/ns/net python3 /run/frames.py send eth0 {words}"
        wait = "until grep -q ready /run/heard; do :; done"
        heard = self.on_host(f": > /run/heard; {hear} & {wait}; {send}; wait; cat /run/heard").split()
        return [frame for frame in sent if frame.hex() in heard]

    def reached_by_alice(self, *doors):
        words = f"{shlex.quote(json.dumps(doors))} {PROXY}"
        return json.loads(self.inside("alice", f"python3 -c {shlex.quote(REACH)} {words}"))


@contextmanager
def serving(lab):
    """A service of the world, in the lab's namespace."""
    words = ["nsenter", f"--net=/run/netns/{lab.description['namespace']}", sys.executable, "-c", SERVE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.kill()


@pytest.fixture
def bridge(neighbours):
    return Bridge(neighbours)


def test_a_container_cannot_speak_as_another_as_the_gateway_or_as_a_router(bridge):
    """Lost: what is meant for bob, his logins too; whom DHCP or a router's word can lead, follows alice."""
    ours, its = bridge.macs["alice"], bridge.macs["bob"]
    honest = frames.frame(BROADCAST, ours, IPV4, frames.udp(ALICE, BOB, 1024, 7))
    forged = [
        frames.frame(BROADCAST, ours, IPV4, frames.udp(BOB, GATEWAY, 1024, 7)),
        frames.frame(BROADCAST, its, IPV4, frames.udp(ALICE, BOB, 1024, 7)),
        frames.frame(BROADCAST, ours, ARP, frames.arp(ours, GATEWAY, BOB)),
        frames.frame(BROADCAST, ours, ARP, frames.arp(ours, BOB, GATEWAY)),
        frames.frame(BROADCAST, its, ARP, frames.arp(its, BOB, GATEWAY)),
        frames.frame(BROADCAST, ours, IPV4, frames.udp(ALICE, "255.255.255.255", 67, 68)),
        frames.frame("33:33:00:00:00:01", ours, IPV6, frames.router_advertisement()),
        frames.frame(BROADCAST, ours, 0x88B5, MARK),
    ]
    assert bridge.heard_by_bob(*forged, honest) == [honest]


def test_a_container_that_takes_its_neighbour_s_address_and_mac_gets_nothing_of_its(bridge):
    """Lost: ssh to bob leads to alice, and the MAC's place on the bridge with it, by a frame that no rule sees."""
    ours, its = bridge.macs["alice"], bridge.macs["bob"]
    where = "bridge fdb show br hetero0 | grep -v permanent | grep ^"
    stolen = frames.frame("01:80:c2:00:00:0e", its, frames.LLDP, MARK).hex()
    bridge.inside(
        "alice",
        f"ip link set eth0 address {its} && ip addr add {BOB}/24 dev eth0 && python3 /run/frames.py send eth0 {stolen}"
        f" {frames.frame(BROADCAST, its, ARP, frames.arp(its, BOB, GATEWAY)).hex()}",
    )
    try:
        assert bridge.lab.ssh("bob", "hostname").split() == ["bob"]
        port = bridge.on_host("lxc-info -n bob | awk '/^Link/ {print $2}'").strip()
        assert f"dev {port} " in bridge.on_host(where + its)
    finally:
        bridge.inside("alice", f"ip addr del {BOB}/24 dev eth0; ip link set eth0 address {ours}")
    assert bridge.lab.ssh("alice", "hostname").split() == ["alice"], "its own is its own again"


def test_a_container_reaches_the_world_and_not_the_host_or_the_networks_of_the_site(bridge):
    """Lost: the host's and the proxy's sshd, boot files and roots, for whoever has guessed or stolen a password."""
    way = bridge.lab.description["bridges"][0]["addresses"][0].split("/")[0]
    doors = [[address, 22] for address in (GATEWAY, HOST, MANAGEMENT, PROXY)] + [[PROXY, 2049], [BOB, 22]]
    bridge.lab.inside("ip", "addr", "add", f"{WORLD}/32", "dev", "lo")
    bridge.on_host(f"ip route replace {WORLD} via {way}")
    try:
        with serving(bridge.lab):
            assert bridge.reached_by_alice(*doors, [WORLD, 8080]) == [[BOB, 22], [WORLD, 8080]]
    finally:
        bridge.on_host(f"ip route del {WORLD}")
        bridge.lab.inside("ip", "addr", "del", f"{WORLD}/32", "dev", "lo")
    assert bridge.lab.ssh("alice", "hostname").split() == ["alice"], "from outside people get in"
