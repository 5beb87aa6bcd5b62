# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A neighbour takes the address and the MAC of a board that is being wiped, and fetches what the proxy serves it.

Who has the RAM system's host key is taken for the board: it says "wiped" for a disk that still holds the last tenant's
data, and is sent the next one's root. Board 8 has no disk, so what is booted from RAM is a look at its hardware.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from labs import ROOT

BOARD = 8
CONFIG = "/etc/hetero/proxy.json"
#: Fetches the start of a file by TFTP, which is where the keys are, as often as it is there; a new port each time.
FETCH = """
import socket, struct, sys, time
server, name = sys.argv[1:]
while True:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(0.3)
        asker.sendto(b"\\0\\1" + name.encode() + b"\\0octet\\0", (server, 69))
        data = b""
        try:
            while len(data) < 4096:
                said, peer = asker.recvfrom(600)
                if said[:2] != b"\\0\\3":
                    break
                data += said[4:]
                asker.sendto(b"\\0\\4" + said[2:4], peer)
        except socket.timeout:
            pass
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            break
    time.sleep(0.02)
"""


def steal(lab):
    """As a machine with the board's address and MAC, fetch what the board is served, and be gone; what was fetched."""
    board = next(board for board in lab.description["boards"] if board["id"] == BOARD)
    server = lab.description["nodes"]["proxy1"]["networks"][0]["address"].partition("/")[0]
    name = f"hetero-thief-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        lab.inside("ip", "link", "add", "thief", "type", "veth", "peer", "eth0", "address", board["mac"], "netns", name)
        lab.inside("ip", "link", "set", "thief", "master", board["bridge"], "up")
        own = ["nsenter", f"--net=/run/netns/{name}"]
        for words in (f"address add {board['ip']}/24 dev eth0", "link set eth0 up"):
            subprocess.run([*own, "ip", *words.split()], check=True)
        argv = [*own, sys.executable, "-c", FETCH, server, f"initrd_{BOARD}"]
        return subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=1500).stdout
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def stolen(lab, **arguments):
    """(what a neighbour fetched while the board was booted from RAM, what became of that)."""
    with ThreadPoolExecutor(1) as threads:
        thief = threads.submit(steal, lab)
        done = wipe(lab, **arguments)
        return thief.result(), done


def wipe(lab, **arguments):
    """Boot the board into RAM and look at it; the board's part of the result."""
    argv = [sys.executable, "-m", "ansible", "adhoc", "-i", lab.folder / "inventory", "proxy1"]
    arguments = dict(arguments, boards=[BOARD], inspect=True, retries=0, timeout=150)
    argv += ["-m", "hetero.compute.board_wipe", "-a", json.dumps(arguments)]
    done = subprocess.run(argv, cwd=ROOT, env=lab.env, stdout=subprocess.PIPE, text=True, check=False, timeout=3000)
    result = json.loads(done.stdout[done.stdout.index("=> ") + 3 :])
    assert "boards" in result, done.stdout
    lab.module("board_claim", board=BOARD, state="absent")  # it is to be free for other tests
    return result["boards"][0]


def test_nothing_that_tftp_hands_out_makes_a_board(lab):
    """Lost: the proof of a wipe, and the root that is sent to a disk, to any neighbour that takes a board's address."""
    fetched, board = stolen(lab)
    assert b"authorized_keys" in fetched
    assert b"PRIVATE KEY" not in fetched
    assert not board["failed"], board["error"]


def test_a_key_that_was_handed_out_twice_proves_nothing(lab):
    """Lost: the same, on a board without a console, where the key can come by TFTP alone."""
    lab.on_proxy(
        f"python3 -c \"import json; c = json.load(open('{CONFIG}')); c['boards']['{BOARD}']['ram_key'] = 'tftp';"
        " json.dump(c, open('/run/ram_key.json', 'w'))\""
    )
    fetched, board = stolen(lab, config="/run/ram_key.json")
    assert b"PRIVATE KEY" in fetched
    assert board["failed"]
    assert board["hardware"] is None
    assert "the host key of its RAM system was asked for" in board["error"]
    assert f"10.0.2.{BOARD + 1} port" in board["error"]
