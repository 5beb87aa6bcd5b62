# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who answers on the boards' network: the role's dnsmasq, its packet filter and a stranger, in network namespaces."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import textwrap

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import (
    BOARDS,
    EVIL,
    NEEDS,
    inside,
    python,
    rendered,
)

pytestmark = NEEDS

OWN = """
    import json
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import neighbours
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
    print(json.dumps([neighbours.own_answer("10.0.2.254", mac, Deadline(limit)) for mac, limit in {asked!r}]))
"""
BOARD, STRANGER = BOARDS[1]["mac"], "02:00:00:00:00:01"


def test_the_proxy_asks_its_own_dhcp_server_as_a_board(network):
    """A board that DHCP refuses would be out of use for it, and the proxy would call itself sound."""
    assert python(network[0], OWN.format(asked=[(BOARD, 10), (STRANGER, 1)])) == ["10.0.2.2", None]


#: A DHCP message of the attacker: `message`, in frames of `source`, about the client `mac`; then who is answered.
SENT = """
    import json, socket, struct, time
    IP = 0x0800
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(IP))
    wire.bind(("eth0", IP))
    def mac_bytes(mac): return bytes.fromhex(mac.replace(":", ""))
    def send(source, mac, kind, options=b"", hlen=6, relay="0.0.0.0", split=False):
        body = struct.pack("!4B4sHH", 1, 1, hlen, 0, b"xid1", 0, 0x8000) + bytes(12) + socket.inet_aton(relay)
        body += mac_bytes(mac).ljust(16, b"\\0") + bytes(192)
        body += b"\\x63\\x82\\x53\\x63" + options + bytes([53, 1, kind, 255])
        body = struct.pack("!4H", 68, 67, 8 + len(body), 0) + body
        for start, end, mark in ((0, 24, 0x2000), (24, None, 3)) if split else ((0, None, 0),):
            part = body[start:end]
            head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(part), 7, mark, 64, 17, 0, bytes(4), b"\\xff" * 4)
            total = sum(struct.unpack("!10H", head))
            total = (total & 0xffff) + (total >> 16)
            head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + head[12:]
            wire.send(b"\\xff" * 6 + mac_bytes(source) + struct.pack("!H", IP) + head + part)
    def offered(seconds):
        wire.settimeout(seconds)
        try:
            while True:
                data = wire.recv(2048)[42:]
                if data[:1] == b"\\2":
                    return socket.inet_ntoa(data[16:20])
        except socket.timeout:
            return None
    found = []
    board, evil = BOARD, EVIL
    for seconds, case in (
        (20, dict(source=board)), (0.7, dict(source=evil)), (0.7, dict(source=board, hlen=16)),
        (0.7, dict(source=board, relay="10.0.2.66")), (0.7, dict(source=evil, split=True)),
        (0.7, dict(source=evil, mac=evil)),
    ):
        send(**dict(dict(mac=board, kind=1), **case))
        found.append(offered(seconds))
    for pad in range(600):
        options = bytes([54, 4]) + socket.inet_aton("10.0.2.254") + bytes([50, 4]) + socket.inet_aton("10.0.2.2")
        send(board, board, 4, bytes(pad % 9) + options + (bytes([12, 3]) + b"abc") * (pad % 3))
        if pad % 20 == 19:
            time.sleep(0.02)
    print(json.dumps(found))
""".replace("BOARD", repr(BOARD)).replace("EVIL", repr(EVIL))


def test_only_a_board_itself_is_answered_and_it_cannot_be_declined(network):
    """One packet in a board's name would take it out for ten minutes."""
    proxy, other = network
    found = python(other, SENT)
    assert found == ["10.0.2.2", None, None, None, None, None], "itself; as others; odd; relayed; in fragments; unknown"
    assert python(proxy, OWN.format(asked=[(BOARD, 10)])) == ["10.0.2.2"]


SERVER = """
    import socket
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_BROADCAST, socket.SO_REUSEADDR):
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    sock.bind(("", 67))
    print("ready", flush=True)
    while True:
        asked = sock.recv(2048)
        own = socket.inet_aton("10.0.2.66")
        answer = b"\\2" + asked[1:16] + socket.inet_aton("10.0.2.199") + own + asked[24:240]
        answer += bytes([53, 1, 2, 54, 4]) + own + b"\\xff"
        sock.sendto(answer, ("10.0.2.255", 68))
"""
STRANGERS = """
    import json
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import neighbours
    servers = neighbours.dhcp_servers("eth0", BOARD, 1.0)
    holders = [sorted(neighbours.holders("eth0", address)) for address in ("10.0.2.66", "10.0.2.254")]
    print(json.dumps([servers, *holders]))
""".replace("BOARD", repr(BOARD))


def test_others_are_asked_for(network):
    """Whoever leads the boards away would have to be looked for by hand; and this proxy must not name itself."""
    proxy, other = network
    assert python(proxy, STRANGERS) == [{}, [EVIL], []]
    argv = ["nsenter", f"--net=/run/netns/{other}", sys.executable, "-c", textwrap.dedent(SERVER)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as rogue:
        try:
            assert rogue.stdout.readline() == "ready\n"
            inside(other, "ip", "address", "add", "10.0.2.254/24", "dev", "eth0")
            assert python(proxy, STRANGERS) == [{"10.0.2.66": EVIL}, [EVIL], [EVIL]]
        finally:
            inside(other, "ip", "address", "del", "10.0.2.254/24", "dev", "eth0")
            rogue.kill()


def test_a_boards_address_needs_the_boards_mac(network):
    """A neighbour with a board's address would mount the board's root."""
    proxy, other = network
    script = """
        import json, socket
        sock = socket.create_server(("10.0.2.254", 2049))
        sock.settimeout(2)
        print(json.dumps(1), flush=True)
        try:
            print(sock.accept()[1][0])
        except socket.timeout:
            print("nobody")
    """
    heard = []
    for address in ("10.0.2.66", BOARDS[2]["ip"]):
        if address != "10.0.2.66":
            inside(other, "ip", "address", "add", f"{address}/24", "dev", "eth0")
        patience = 60 if address == "10.0.2.66" else 2
        listens = textwrap.dedent(script).replace("settimeout(2)", f"settimeout({patience})")
        argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", listens]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
            server.stdout.readline()
            connect = f"""
                import json, socket
                try:
                    socket.create_connection(("10.0.2.254", 2049), {patience}, ("{address}", 0))
                except OSError:
                    pass
                print(1)
            """
            python(other, connect)
            heard.append(server.stdout.read().strip())
    assert heard == ["10.0.2.66", "nobody"]
    known = inside(proxy, "ip", "neigh", "show", BOARDS[2]["ip"], stdout=subprocess.PIPE, text=True).stdout
    assert EVIL not in known


#: Somebody of the proxy's, of a number, who listens where the NFS server is not, and is asked by a board.
SERVES = """
    import os, socket
    os.setgid({account})
    os.setuid({account})
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, {protocol}) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", {port}))
        sock.listen()
        print("ready", flush=True)
        sock.accept()[0].sendall(b"served")
"""
ASKS = """
    import json, socket
    try:
        with socket.create_connection(("10.0.2.254", {port}), 2, ("10.0.2.1", {source})) as sock:
            print(json.dumps(sock.recv(9).decode()))
    except OSError as error:
        print(json.dumps(type(error).__name__))
"""
#: Each a datagram or a connection to the board: (protocol, own port, its port, what is said).
SAYS = """
    import json, os, socket
    os.setgid({account})
    os.setuid({account})
    for protocol, source, target, text in {said!r}:
        with socket.socket(socket.AF_INET, protocol) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.settimeout(1)
            sock.bind(("10.0.2.254", source))
            try:
                sock.connect((target[0], target[1]))
                sock.send(text)
            except OSError:
                pass
    print(1)
"""
#: A board, which says what it hears until a root of the proxy says that all was said.
BOARD_HEARS = """
    import json, selectors, socket
    doors = selectors.DefaultSelector()
    for kind, port in {ports!r}:
        door = socket.socket(socket.AF_INET, kind)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("", port))
        if kind == socket.SOCK_STREAM:
            door.listen()
        doors.register(door, selectors.EVENT_READ)
    print("ready", flush=True)
    heard = []
    # the end may be read before what came earlier at another port
    while ready := doors.select(0 if "end" in heard else None):
        for key, _mask in ready:
            door = key.fileobj
            if door.type == socket.SOCK_STREAM:
                heard.append("connected")
                door.accept()[0].close()
            else:
                heard.append(door.recv(99).decode("latin-1"))
    print(json.dumps(heard))
"""
#: Of Linux; a kernel without it has no such sockets.
MPTCP = 262
NOBODY, NETWORK_ALL = 65534, "10.0.2.255"
TCP, UDP = int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)


@pytest.mark.parametrize(
    ("account", "port", "source", "protocol", "got"),
    [
        (0, 2049, 0, 0, "served"),
        (0, 20049, 701, 0, "served"),
        (NOBODY, 2049, 0, 0, "TimeoutError"),
        (NOBODY, 20048, 0, 0, "TimeoutError"),
        (NOBODY, 20048, 0, MPTCP, "TimeoutError"),
        # where rpcbind sends a kernel, which asks from a reserved port; others are served by whom they like
        (NOBODY, 20049, 702, 0, "TimeoutError"),
        (NOBODY, 20049, 0, 0, "served"),
    ],
)
def test_an_account_of_the_proxy_serves_no_nfs(board0, account, port, source, protocol, got):
    """Lost: every board's root, to whoever has the port while nfs-ganesha restarts."""
    proxy, other = board0
    if protocol and not os.path.exists("/proc/sys/net/mptcp/enabled"):
        pytest.skip("this kernel has no MPTCP: it opens no socket of it for accounts either")
    script = textwrap.dedent(SERVES.format(account=account, port=port, protocol=protocol))
    argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        said = python(other, ASKS.format(port=port, source=source))
        server.kill()
    assert said.replace("timeout", "TimeoutError") == got
    # nobody listens, and the kernel says so for nobody: a board knows at once that it is to try again
    assert python(other, ASKS.format(port=port, source=0)) == "ConnectionRefusedError"


@pytest.mark.parametrize(("account", "got"), [(0, "served"), (NOBODY, "TimeoutError")])
def test_beside_the_kernels_nfs_server(board0, tmp_path, account, got):
    """Lost: the same, or every board, where the kernel's own sockets are taken for an account's."""
    (tmp_path / "rules").write_text(rendered("filter.nft.j2", nfs_server="nfsd"))
    inside(board0[0], "nft", "--file", tmp_path / "rules")
    try:
        test_an_account_of_the_proxy_serves_no_nfs(board0, account, 2049, 0, 0, got)
    finally:
        (tmp_path / "rules").write_text(rendered("filter.nft.j2"))
        inside(board0[0], "nft", "--file", tmp_path / "rules")


@pytest.mark.parametrize(
    ("unit", "port"), [("nfs-ganesha", 2049), ("nfs-ganesha", 20048), ("nfs-mountd", 20048), ("nfs-mountd", None)]
)
def test_the_nfs_server_says_who_has_its_port(network, unit, port):
    """Lost: hours with boards that hang, and an NFS server that fails without a word of who is in its place."""
    text = rendered(f"{unit}.service.conf.j2", tftp_proxy_state_folder="/var/lib/hetero")
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStartPre=/bin/sh")]
    argv = [word.replace("$$", "$") for word in shlex.split(line.partition("=")[2])]
    argv = ["nsenter", f"--net=/run/netns/{network[0]}", *argv]
    script = textwrap.dedent(SERVES.format(account=NOBODY, port=port or 2050, protocol=0))
    there = ["nsenter", f"--net=/run/netns/{network[0]}", sys.executable, "-c", script]
    with subprocess.Popen(there, stdout=subprocess.PIPE, text=True) as nosy:
        assert nosy.stdout.readline() == "ready\n"
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        nosy.kill()
    assert (done.returncode, f"pid={nosy.pid}" in done.stderr) == ((1, True) if port else (0, False)), done.stderr


def test_an_account_of_the_proxy_passes_for_no_service_of_it(board0):
    """Lost: what a board boots, to an account that answers in place of TFTP or DHCP; a board, by its tile-monitor."""
    proxy, other = board0
    data, rest = b"\0\3\0\1hers", b"\x30 SNMP, say"
    said = [
        (UDP, 30000, ("10.0.2.1", 5000), data),
        (UDP, 30000, (NETWORK_ALL, 68), b"offer"),
        (TCP, 30000, ("10.0.2.1", 963), b""),
    ]
    ours = [(UDP, 30000, ("10.0.2.1", 5000), rest), (TCP, 30000, ("10.0.2.1", 22), b"")]
    ports = [(UDP, 5000), (UDP, 68), (TCP, 963), (TCP, 22)]
    argv = [sys.executable, "-c", textwrap.dedent(BOARD_HEARS.format(ports=ports))]
    with subprocess.Popen(["nsenter", f"--net=/run/netns/{other}", *argv], stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout.readline() == "ready\n"
        python(proxy, SAYS.format(account=NOBODY, said=said + ours))
        python(proxy, SAYS.format(account=0, said=[*said, (UDP, 30000, ("10.0.2.1", 5000), b"end")]))
        heard = json.loads(board.stdout.read())
    # an account's own words, a connection of its to port 22; root's three
    assert sorted(heard) == sorted([rest.decode(), "connected", data.decode("latin-1"), "offer", "connected", "end"])


#: An account of the proxy's asks a board by IPv6: the names of what it got of each port.
ASKS_BY_IPV6 = """
    import json, os, socket
    os.setgid({account})
    os.setuid({account})
    got = []
    for port in (963, 5000):
        try:
            socket.create_connection(("fd00:1ab::66", port), 1).close()
            got.append("connected")
        except TimeoutError:
            got.append("TimeoutError")
    print(json.dumps(got))
"""


@pytest.mark.parametrize(("account", "got"), [(0, "connected"), (NOBODY, "TimeoutError")])
def test_an_account_of_the_proxy_asks_no_tile_monitor_by_ipv6(board0, account, got):
    """Lost: a Tilera board, whose root one is by tile-monitor, to an account that asks by an address nobody told of."""
    ends = [(name, f"fd00:1ab::{last}/64") for name, last in zip(board0, ("1", "66"))]
    for name, address in ends:
        inside(name, "ip", "address", "add", address, "dev", "eth0", "nodad")
    listens = """
        import socket
        doors = [socket.create_server(("::", port), family=socket.AF_INET6) for port in (963, 5000)]
        print("ready", flush=True)
        input()
    """
    argv = ["nsenter", f"--net=/run/netns/{board0[1]}", sys.executable, "-c", textwrap.dedent(listens)]
    try:
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as board:
            assert board.stdout.readline() == "ready\n"
            assert python(board0[0], ASKS_BY_IPV6.format(account=account)) == [got, "connected"]
            board.kill()
    finally:
        for name, address in ends:
            inside(name, "ip", "address", "del", address, "dev", "eth0")


def test_a_boards_address_on_another_interface(network):
    """Lost: what a board's root holds, to a machine of the management network that says it is the board."""
    proxy, other = network
    ends = ["ip", "link", "add", "leg1", "netns", proxy, "type", "veth", "peer", "leg1", "netns", other]
    subprocess.run(ends, check=True)
    try:
        for name, address in ((proxy, "10.9.0.254/24"), (other, "10.9.0.66/24")):
            inside(name, "ip", "address", "add", address, "dev", "leg1")
            inside(name, "ip", "link", "set", "leg1", "up")
        inside(proxy, "ip", "route", "add", "10.0.2.1/32", "dev", "leg1")
        inside(other, "ip", "address", "add", "10.0.2.1/32", "dev", "leg1")
        ask = textwrap.dedent("""
            import socket, sys
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind((sys.argv[1], 0))
                for port in (2049, 20048, 5000):
                    sock.sendto(sys.argv[1].encode(), ("10.9.0.254", port))
        """)
        ports = [(UDP, 2049), (UDP, 20048), (UDP, 5000)]
        hears = textwrap.dedent(BOARD_HEARS.format(ports=ports))
        argv = ["nsenter", f"--net=/run/netns/{proxy}", sys.executable, "-c", hears]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout.readline() == "ready\n"
            for address in ("10.0.2.1", "10.9.0.66"):
                inside(other, sys.executable, "-c", ask, address)
            inside(proxy, sys.executable, "-c", ask.replace("sys.argv[1].encode()", "b'end'"), "10.9.0.254")
            heard = json.loads(server.stdout.read())
        assert [heard.count("10.0.2.1"), heard.count("10.9.0.66")] == [1, 3], heard
    finally:
        inside(proxy, "ip", "link", "del", "leg1")
