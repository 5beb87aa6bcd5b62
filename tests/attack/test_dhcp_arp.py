# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A neighbour on the boards' network, with frames of any source: DHCP in others' names, other DHCP, other ARP."""

from __future__ import annotations

import subprocess
import time

from bridge import board, machine, neighbour

EVIL = "02:66:66:66:66:66"
EVERYONE = "ff:ff:ff:ff:ff:ff"
PROXY, ROGUE = "10.0.2.254", "10.0.2.66"
#: A board that none of the lab's tenants has.
FREE = 2


def test_an_address_that_was_declined_in_a_boards_name(lab):
    """Lost: a board, for ten minutes and then until somebody repairs it, to one packet of anybody."""
    there = board(lab, FREE)
    for source in ("", EVIL):
        pairs = [(there["mac"], there["ip"])]
        with neighbour(lab, "declines", server=PROXY, boards=pairs, count=30, source=source):
            pass
    assert "DHCPDECLINE" in lab.on_proxy("journalctl -u hetero-dhcp -q -o cat"), "the DHCP server did hear it"
    assert lab.provision("carol", board=FREE).board("carol") == FREE


def test_a_request_in_the_frame_of_another(up):
    """Lost: the DHCP server's time, and its table, to whoever invents clients."""
    there = board(up, 9)
    for source, offered in ((there["mac"], there["ip"]), (EVIL, None)):
        with neighbour(up, "asks", mac=there["mac"], source=source) as done:
            pass
        assert done == [offered], source


def test_a_flood_of_clients_that_nobody_knows(up):
    """Lost: every boot, for as long as one neighbour sends requests as fast as it can."""
    with neighbour(up, "discovers", seconds=4) as sent:
        start = time.monotonic()
        asked = up.module("proxy_check_info", stage="services", server=PROXY, dhcp=True, exports="auto")
        assert asked["seconds"]["dhcp"] < 2, time.monotonic() - start
    assert sent[0] > 1000
    assert int(up.on_proxy("journalctl -u hetero-dhcp -q -o cat | grep -c 02:00:00:00 || true")) == 0


def test_another_dhcp_server_and_another_holder_of_the_proxys_address(lab):
    """Lost: boards that boot what a neighbour serves, are put out of use for it one by one, and nobody told why."""
    rogue = dict(own=ROGUE, given="10.0.2.199", real=EVIL)
    takes = dict(address=PROXY, mac=EVIL, target=EVERYONE, seconds=120)
    with neighbour(lab, "server", **rogue), neighbour(lab, "takes", **takes):
        notes = lab.module("proxy_check_info", stage="services", server=PROXY, interface="eth0", dhcp=True)["notes"]
        assert any(ROGUE in note and EVIL in note for note in notes), notes
        played = lab.provision("dave", expect=2, board=FREE, hetero_boot_timeout=8)
    assert f"another DHCP server answers boards: {ROGUE} ({EVIL})" in played.output
    assert f"another machine says that it has the proxy's address {PROXY}: {EVIL}" in played.output
    found = lab.module("board_info", boards=[FREE], power=True)["boards"][0]
    assert (found["state"], found["power"]) == ("shutting down", "off"), "neither on, nor in error"


def test_the_proxys_address_is_taken_from_a_running_board(two):
    """Lost: a board that hangs, or runs what a neighbour serves as its root, because of one ARP packet."""
    there = board(two, 1)
    with neighbour(two, "takes", address=PROXY, mac=EVIL, target=there["mac"], seconds=60) as sent:
        time.sleep(0.2)
        said = two.ssh("victim", "head -c 300000 /dev/urandom > /root/x; sync; wc -c < /root/x", timeout=60)
        assert int(said) == 300000
    assert sent[0] > 5


def test_a_boards_address_is_taken_to_mount_its_root(two):
    """Lost: a tenant's root, kernel and host key, to a neighbour who says that its address is theirs."""
    there = board(two, 1)
    script = (
        "import socket, sys\n"
        f"try: socket.create_connection(('{PROXY}', 2049), 3); print('mounts')\n"
        "except OSError: print('nothing')\n"
        "asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); asker.settimeout(2)\n"
        f"asker.sendto(b'\\0\\1vmlinux_1\\0octet\\0', ('{PROXY}', 69))\n"
        "try: asker.recv(600); print('fetches')\n"
        "except OSError: print('nothing')\n"
    )
    with machine(two, "evil", there["ip"], EVIL) as words, neighbour(
        two, "takes", address=there["ip"], mac=EVIL, target=EVERYONE, seconds=30
    ):
        time.sleep(1.2)  # Linux keeps a neighbour that it has just learned for a second (arp(7), locktime)
        argv = [*words, "/usr/bin/python3", "-c", script]
        said = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
    assert said.split() == ["nothing", "nothing"]
    two.inside("ip", "neigh", "flush", "to", there["ip"])  # where the login comes from believed the lie, too
    assert two.ssh("victim", "hostname").strip() == "victim"
