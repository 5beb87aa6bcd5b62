# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a bridge, two tenants on it, and what lies beyond it: network namespaces, and this kernel's nftables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import frames
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors import pinning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.bridge import bridge_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host.preflight import Plan

ALICE, BOB, GATEWAY = "10.0.81.10", "10.0.81.11", "10.0.81.1"
#: The proxy, in a network that the host is in; a machine of the world, behind a router.
PROXY, WORLD = "10.0.2.254", "198.51.100.1"
TOOLS, PATH = ("nft", "ip", "bridge", "busybox"), "/usr/sbin:/usr/bin:/sbin:/bin"
#: One port as a service of the host and of each machine, and another.
SERVICE, OTHER = 2222, 5353
PLAN = Plan(network="10.0.81.0/24", addresses=[ALICE, "10.0.81.13"], closed_networks=["10.0.2.0/24"])
SERVE = f"""
import socket, selectors
doors = selectors.DefaultSelector()
for port in ({SERVICE}, {OTHER}):
    doors.register(socket.create_server(("", port)), selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for door, _events in doors.select():
        door.fileobj.accept()[0].close()
"""
#: By which a listener knows that what came before has come or never will.
LAST = b"alice said all"
NEXT = frames.frame(frames.BROADCAST, pinning.mac(ALICE), frames.IPV4, frames.udp(ALICE, BOB, 1024, 7, data=LAST))
#: How many of these connections there are at a time, of [address, port].
HOLD = """
import json, socket, sys
held = []
for door in json.loads(sys.argv[1]):
    try:
        held.append(socket.create_connection(door, 3))
    except OSError:
        pass
print(len(held))
"""
REACH = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


def pytest_collection_modifyitems(items):
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]
    why = "namespaces need root: run as root" if os.geteuid() else None
    if missing:
        why = f"{', '.join(missing)} not installed: tools/setup test"
    for item in items if why else []:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason=why))


class Net:
    """The namespaces, by the process that keeps each: host, alice, bob, world."""

    def __init__(self):
        self.kept = {}
        for name in ("host", "alice", "bob", "world"):
            words = ["unshare", "--net", sys.executable, "-c", SERVE]
            self.kept[name] = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            assert self.kept[name].stdout.readline() == "ready\n"

    def run(self, name, *words, check=True):
        words = ["nsenter", f"--net=/proc/{self.kept[name].pid}/ns/net", *words]
        return subprocess.run(words, check=check, capture_output=True, text=True, timeout=600)

    def ip(self, name, *lines):
        for line in lines:
            self.run(name, "ip", *line.split())

    def nft(self, text):
        words = ["nsenter", f"--net=/proc/{self.kept['host'].pid}/ns/net", "nft", "--file", "-"]
        subprocess.run(words, input=text, text=True, check=True, timeout=600)

    def join(self, name, address, port):
        """A tenant's port, made as LXC makes it."""
        peer = f"eth0 address {pinning.mac(address)} netns {self.kept[name].pid}"
        self.ip("host", f"link add {port} type veth peer name {peer}", f"link set {port} master hetero0 up")
        self.ip(name, "link set lo up", f"addr add {address}/24 dev eth0", "link set eth0 up")
        self.ip(name, f"route add default via {GATEWAY}")

    def link(self, ours, theirs, port):
        self.ip("host", f"link add {port} type veth peer name {port} netns {self.kept['world'].pid}")
        self.ip("host", f"addr add {ours}/24 dev {port}", f"link set {port} up")
        self.ip("world", f"addr add {theirs}/24 dev {port}", f"link set {port} up")

    def load(self, **more):
        bridge = bridge_of(replace(PLAN, **more), [], [])
        self.nft(pinning.rules(bridge))
        return bridge

    def flush(self):
        self.nft("flush ruleset")

    def reaches(self, name, address, port=SERVICE):
        return self.run(name, sys.executable, "-c", REACH, address, str(port), check=False).returncode == 0

    def holds(self, name, *addresses):
        """How many connections somebody has at a time: three to an open port of each address."""
        doors = [(address, OTHER) for address in addresses for _time in range(3)]
        return int(self.run(name, sys.executable, "-c", HOLD, json.dumps(doors)).stdout)

    def heard(self, name, frame, interface="eth0", seconds=20, sender=("alice", "eth0", NEXT)):
        """Whether a frame of alice, or of another, arrives at somebody's interface, before an honest one sent next."""
        who, port, after = sender
        hear = [sys.executable, frames.__file__, "hear", interface, str(seconds), LAST.hex()]
        words = ["nsenter", f"--net=/proc/{self.kept[name].pid}/ns/net", *hear]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ear:
            assert ear.stdout.readline() == "ready\n"
            self.run(who, sys.executable, frames.__file__, "send", port, frame.hex(), after.hex())
            # the kernel shows a frame without its VLAN
            return frames.MARK.hex() in ear.stdout.read()

    def end(self):
        for process in self.kept.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def network():
    net = Net()
    try:
        net.ip("host", "link set lo up", "link add hetero0 type bridge", f"addr add {GATEWAY}/24 dev hetero0")
        net.ip("host", "link set hetero0 up")
        net.run("host", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        net.join("alice", ALICE, pinning.port("lxc", ALICE))
        net.join("bob", BOB, pinning.port("lxc", BOB))
        net.link("192.0.2.1", "192.0.2.2", "up0")
        net.link("10.0.2.241", PROXY, "lan0")
        net.ip("world", "link set lo up", f"addr add {WORLD}/32 dev lo")
        net.ip("host", "route add 198.51.100.0/24 via 192.0.2.2")
        yield net
    finally:
        net.end()


@pytest.fixture
def net(network):
    """With no rules at all, as without the role."""
    network.flush()
    yield network
    network.flush()
