# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the watcher sees of boards: real packets, as boards send them, between two network namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import phases

MAC = "00:1a:ca:00:57:90"
PROXY, BOARD, OTHER = "e-phases-proxy", "e-phases-board", "10.0.2.9"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and packet sockets need root")


def inside(namespace, *argv, **more):
    return subprocess.run(["nsenter", f"--net=/run/netns/{namespace}", *argv], check=True, timeout=1200, **more)


def python(namespace, script, *arguments):
    """Run a script in a namespace; its output."""
    argv = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return inside(namespace, *argv, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def network():
    """The proxy at 10.0.2.254, and a board's end with 10.0.2.1 and, for another machine, 10.0.2.9."""
    names = [f"{name}-{os.getpid()}" for name in (PROXY, BOARD)]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        proxy, board = names
        subprocess.run(
            ["ip", "link", "add", "eth0", "netns", proxy, "type", "veth", "peer", "eth0", "netns", board], check=True
        )
        inside(board, "ip", "link", "set", "eth0", "address", MAC)
        for name, address in ((proxy, "10.0.2.254/24"), (board, "10.0.2.1/24"), (board, f"{OTHER}/24")):
            inside(name, "ip", "address", "add", address, "dev", "eth0")
        for name in names:
            inside(name, "ip", "link", "set", "eth0", "up")
            inside(name, "ip", "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


WATCH = """
    import sys, time
    from types import SimpleNamespace
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.phases import Watcher, Wire
    board = SimpleNamespace(id=0, ip="10.0.2.1", mac="00:1a:ca:00:57:90")
    seen = []
    known = {"pinned": Wire("eth0", frozenset([0]), True), "near": Wire("eth0", frozenset([0])), "far": Wire("eth0")}
    wire = known[(sys.argv[2:] or ["pinned"])[0]]
    watcher = Watcher([board], lambda *what: seen.append(what), "10.0.2.254", "10.0.2.254", wire)
    print("open", flush=True)
    sys.stdin.readline()  # what comes before the reading begins is not lost
    began = time.monotonic()
    with watcher:
        print("reading", flush=True)
        while sys.stdin.readline() == "seen?\\n":
            print(*[f"{kind} {name} {sender}" for _number, kind, name, _at, sender in list(seen)], sep="; ", flush=True)
        time.sleep(0.2)
    for number, kind, name, at, sender in seen:
        print(*((kind, name, sender) if "senders" in sys.argv else (number, kind, name, at >= began - 0.01)))
"""


class Watching:
    """A watcher in the proxy's namespace, as a process: open first, then reading, then its report."""

    def __init__(self, namespace, *what):
        argv = ["nsenter", f"--net=/run/netns/{namespace}", sys.executable, "-c", textwrap.dedent(WATCH), *what]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "open\n"

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def seen(self):
        """What it has seen up to now, while it goes on."""
        self.process.stdin.write("seen?\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return (self.process.stdout.readline() if line == "reading\n" else line).strip().split("; ")

    def report(self):
        self.go_on()
        lines = self.process.communicate(timeout=600)[0].splitlines()
        return lines[lines[:1] == ["reading"] :]


SEND = """
    import socket, struct, sys
    source, kind = sys.argv[1:3]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    udp.bind((source, 0))
    if kind == "tftp":
        for name in sys.argv[3:]:
            udp.sendto(b"\\0\\1" + name.encode() + b"\\0octet\\0blksize\\0001432\\0", ("10.0.2.254", 69))
    elif kind == "again":
        for _time in range(2):
            udp.sendto(b"\\0\\1initrd_0\\0octet\\0", ("10.0.2.254", 69))
    elif kind == "fragments":
        # The IP header of a packet's first part, which holds the ports only; the name comes in the second.
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        udp_header = struct.pack("!HHHH", udp.getsockname()[1], 69, 8 + 16, 0)
        ends = socket.inet_aton(source) + socket.inet_aton("10.0.2.254")
        for flags, part in ((0x2000, udp_header), (1, b"\\0\\1initrd_0\\0octet\\0"[:16])):
            head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), 7, flags, 64, 17, 0)
            raw.sendto(head + ends + part, ("10.0.2.254", 0))
    elif kind == "flood":
        packet = b"\\0\\1noise\\0octet\\0"
        for _time in range(30000):
            udp.sendto(packet, ("10.0.2.254", 69))
    elif kind == "write":
        udp.sendto(b"\\0\\2evil\\0octet\\0", ("10.0.2.254", 69))
    elif kind == "dhcp":
        mac, options = bytes.fromhex(sys.argv[3].replace(":", "")), sys.argv[4].encode()
        head = struct.pack("!BBBB", 1, 1, 6, 0) + bytes(24) + mac + bytes(10 + 192)
        packet = head + b"\\x63\\x82\\x53\\x63" + options
        udp.sendto(packet, ("10.0.2.254", 67))
    elif kind == "nfs":
        tcp = socket.socket()
        tcp.bind((source, 0))
        tcp.settimeout(3)
        try:
            tcp.connect(("10.0.2.254", int(sys.argv[3])))
        except OSError:
            pass
    else:
        udp.sendto(b"noise", ("10.0.2.254", int(kind)))
"""


def test_phases_are_seen(network):
    """Nobody would see where a boot is, and a stall would be blamed on the wrong part."""
    proxy, board = network
    watching = Watching(proxy)
    python(board, SEND, "10.0.2.1", "dhcp", MAC, "\x3c\x09PXEClient")
    watching.go_on()
    python(board, SEND, "10.0.2.1", "tftp", "/tftpboot/01-00-1a-ca-00-57-90.ipxe", "vmlinux_0", "initrd_0")
    python(board, SEND, OTHER, "dhcp", MAC, "\x3c\x05udhcp")  # no address of its own yet: known by its MAC address
    python(board, SEND, OTHER, "dhcp", MAC, "\x3c\x0cU-Boot.armv8")
    python(board, SEND, OTHER, "dhcp", MAC, "\x3c\x21HTTPClient:Arch:00016:UNDI:003001")
    python(board, SEND, "10.0.2.1", "nfs", "2049")
    assert watching.report() == [
        "0 firmware  True",
        "0 tftp 01-00-1a-ca-00-57-90.ipxe True",
        "0 tftp vmlinux_0 True",
        "0 tftp initrd_0 True",
        "0 system  True",
        "0 firmware  True",
        "0 firmware  True",
        "0 nfs  True",
    ]


def test_who_asks_is_told_apart(network):
    """Lost: the proof of a wipe, to who fetches the RAM system's key in a board's place and is taken for a repeat."""
    proxy, board = network
    watching = Watching(proxy, "senders")
    watching.go_on()
    python(board, SEND, "10.0.2.1", "again")
    python(board, SEND, "10.0.2.1", "tftp", "initrd_0")
    said = watching.report()
    assert [line.split(" port ")[0] for line in said] == ["tftp initrd_0 10.0.2.1"] * 3
    assert said[0].endswith(f"({MAC})")
    assert said[0] == said[1] != said[2]


def test_nobody_asks_unseen(network):
    """Lost: the same, to one who asks in fragments, or in a flood that leaves no room for what is to be seen."""
    proxy, board = network
    watching = Watching(proxy, "senders")
    python(board, SEND, "10.0.2.1", "flood")
    watching.go_on()
    for _time in range(100):  # for the flood may be on its way still, and leaves no room for these
        python(board, SEND, "10.0.2.1", "fragments")
        said = watching.seen()
        if any(line.startswith("tftp ? 10.0.2.1 port ") for line in said):
            break
    else:
        raise AssertionError(said)
    assert "tftp ? packets that were not seen" in watching.report()


def test_what_is_no_boot_is_not_seen(network):
    """Another machine's boot, or a board's other traffic, would be taken for this board's boot."""
    proxy, board = network
    watching = Watching(proxy)
    watching.go_on()
    python(board, SEND, "10.0.2.1", "5353")
    python(board, SEND, "10.0.2.1", "write")
    python(board, SEND, "10.0.2.1", "nfs", "2050")
    python(board, SEND, OTHER, "dhcp", "00:1a:ca:00:00:01", "\x3c\x05other")
    assert watching.report() == []


def test_the_kernel_passes_nothing_else(network):
    """Where roots are served at full speed, a filter in Python would need a core of its own and lose packets."""
    proxy, board = network
    script = """
        import socket, subprocess, sys
        from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import packet_sockets
        packets = packet_sockets
        raw = packets.ear(packets.ETH_P_IP, packets.REQUESTS, "")
        raw.settimeout(0.5)
        board = ["nsenter", "--net=/run/netns/" + sys.argv[1], sys.executable, "-c", sys.argv[2], "10.0.2.1"]
        for what in (["5353"], ["nfs", "2050"], ["tftp", "wanted"], ["68"]):
            subprocess.run(board + what, check=True)
        try:
            while True:
                packet = raw.recv(2048)
                print(packet[9], int.from_bytes(packet[22:24], "big"))
        except socket.timeout:
            print("end")
    """
    assert python(proxy, script, board, textwrap.dedent(SEND)) == "17 69\nend\n"


#: A neighbour's frame from a MAC of its own, with a request as the board would make it.
FORGED = """
    import socket, struct, sys
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import dhcp
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import neighbours
    mac, board = (bytes.fromhex(text.replace(":", "")) for text in ("02:66:66:66:66:66", "00:1a:ca:00:57:90"))
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    wire.bind(("eth0", 0x0800))
    asked = b"\\0\\1initrd_0\\0octet\\0"
    ends = socket.inet_aton("10.0.2.1") + socket.inet_aton("10.0.2.254")
    def frame(protocol, body):
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 7, 0, 64, protocol, 0) + ends
        return b"\\xff" * 6 + mac + b"\\x08\\x00" + head + body
    for _time in range(int(sys.argv[1])):
        wire.send(frame(17, struct.pack("!HHHH", 5000, 69, 8 + len(asked), 0) + asked))
    wire.send(frame(6, struct.pack("!HHIIBBHHH", 900, 2049, 1, 0, 0x50, 2, 512, 0, 0)))
    wire.send(neighbours._broadcast(mac, dhcp.discover("00:1a:ca:00:57:90", b"abcd")))
"""


def test_a_neighbours_frames_are_not_the_boards(network):
    """Lost: every wipe whose key goes by TFTP, refused for ever, to one frame of a neighbour that the filter drops."""
    proxy, board = network
    watching = Watching(proxy, "senders")
    python(board, FORGED, "1")
    watching.go_on()
    python(board, FORGED, "1")
    python(board, SEND, "10.0.2.1", "tftp", "initrd_0")
    said = watching.report()
    assert [line.split(" port ")[0] for line in said] == ["tftp initrd_0 10.0.2.1"]
    assert said[0].endswith(f"({MAC})")


def test_a_neighbours_flood_hides_nothing(network):
    """Lost: the same, to a neighbour that sends more than can be read."""
    proxy, board = network
    watching = Watching(proxy, "senders")
    python(board, FORGED, "30000")
    watching.go_on()
    python(board, SEND, "10.0.2.1", "tftp", "initrd_0")
    assert [line.split(" port ")[0] for line in watching.report()] == ["tftp initrd_0 10.0.2.1"]


def test_where_macs_are_not_pinned_every_sender_counts(network):
    """Lost: the count of those who may have a board's key, where its address may come from any MAC."""
    proxy, board = network
    for wire in ("near", "far"):
        watching = Watching(proxy, "senders", wire)
        watching.go_on()
        python(board, FORGED, "1")
        kinds = [line.split()[0] for line in watching.report()]
        # a near board still asks for its address itself
        assert kinds == ["tftp", "nfs"] + (["firmware"] if wire == "far" else []), wire


@pytest.mark.parametrize("wire", ["pinned", "near"])
def test_a_local_account_speaks_for_no_board(network, wire):
    """Lost: the same, and a board's boot or cabling judged by what an account of the proxy says over the loopback."""
    proxy, _board = network
    watching = Watching(proxy, "senders", wire)
    script = """
        import socket
        from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import dhcp
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for where in ("127.0.0.1", "10.0.2.254"):
            udp.sendto(dhcp.discover("00:1a:ca:00:57:90", b"abcd"), (where, 67))
            for _time in range(15000):
                udp.sendto(b"\\0\\1initrd_0\\0octet\\0", (where, 69))
    """
    python(proxy, script)
    watching.go_on()
    assert watching.report() == []


def test_the_proxys_own_questions_are_no_boot(network):
    """Lost: the right verdict on a silent board, which "asked for an address only" as the proxy's self-test had."""
    proxy, _board = network
    for wire in ("pinned", "near"):
        watching = Watching(proxy, "senders", wire)
        watching.go_on()
        script = """
            from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import neighbours
            from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
            neighbours.own_answer("10.0.2.254", "00:1a:ca:00:57:90", Deadline(0.3))
            neighbours.dhcp_servers("eth0", "00:1a:ca:00:57:90", 0.3)
        """
        python(proxy, script)
        assert watching.report() == [], wire


def test_an_established_mount_is_found(network):
    """A boot that another, killed call began would look as if it had never reached its root."""
    proxy, board = network
    script = """
        import socket, subprocess, sys
        from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.phases import nfs_connected
        server = socket.create_server(("::", 2049), family=socket.AF_INET6, dualstack_ipv6=True)
        print(nfs_connected("10.0.2.1"))
        hold = "import socket, sys; c = socket.create_connection(('10.0.2.254', 2049)); print(1, flush=True); input()"
        board = subprocess.Popen(["nsenter", "--net=/run/netns/" + sys.argv[1], sys.executable, "-c", hold],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        board.stdout.readline()
        print(nfs_connected("10.0.2.1"), nfs_connected("10.0.2.11"), nfs_connected("10.0.2.254"))
        board.communicate(b"\\n")
    """
    assert python(proxy, script, board) == "False\nTrue False False\n"


@pytest.mark.parametrize("packet", [b"", b"\x45", b"\x45" + bytes(19), b"\x60" + bytes(60), b"\x4f" + bytes(30)])
def test_broken_packets_say_nothing(packet):
    """One odd packet on the network would end the watcher, and with it the module."""
    assert phases.parse(packet, MAC) is None


FOREIGN = """
    import socket, struct, sys
    kind = sys.argv[1]
    if kind == "arp":
        address, mac = socket.inet_aton(sys.argv[2]), bytes.fromhex(sys.argv[3].replace(":", ""))
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
        wire.bind(("eth0", 0x0806))
        body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + mac + address + bytes(6) + address
        wire.send(b"\\xff" * 6 + mac + b"\\x08\\x06" + body)
    else:
        op, message, server = int(sys.argv[2]), int(sys.argv[3]), socket.inet_aton(sys.argv[4])
        mac = bytes.fromhex(sys.argv[5].replace(":", ""))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        udp.bind(("10.0.2.9", 67 if op == 2 else 68))
        packet = struct.pack("!BBBB", op, 1, 6, 0) + bytes(24) + mac + bytes(10 + 192) + b"\\x63\\x82\\x53\\x63"
        packet += bytes([53, 1, message]) + bytes([54, 4]) + server + b"\\xff"
        udp.sendto(packet, ("10.0.2.255", 68 if op == 2 else 67))
"""


def test_strangers_in_the_proxys_place_are_seen(network):
    """A board that somebody else's DHCP led away would be put out of use, and nobody would look for that machine."""
    proxy, board = network
    watching = Watching(proxy)
    watching.go_on()
    inside(board, "ip", "neigh", "flush", "dev", "eth0")
    python(board, SEND, "10.0.2.1", "5353")  # it asks by ARP, and the proxy itself answers
    python(board, FOREIGN, "dhcp", "2", "2", "10.0.2.66", MAC)  # an offer that everybody hears
    python(board, FOREIGN, "dhcp", "1", "3", "10.0.2.67", MAC)  # the board took another's
    python(board, FOREIGN, "dhcp", "1", "3", "10.0.2.254", MAC)
    python(board, FOREIGN, "dhcp", "2", "2", "10.0.2.66", "00:1a:ca:00:00:01")  # to a machine that is no board
    python(board, FOREIGN, "arp", "10.0.2.254", "02:66:66:66:66:66")
    python(board, FOREIGN, "arp", "10.0.2.9", "02:66:66:66:66:66")
    python(board, FOREIGN, "arp", "0.0.0.0", "02:66:66:66:66:66")
    strangers = [line for line in watching.report() if "other" in line]
    assert strangers == [
        "0 other DHCP server 10.0.2.66 True",
        "0 other DHCP server 10.0.2.67 True",
        "0 other holder of the proxy's address 02:66:66:66:66:66 True",
    ]
