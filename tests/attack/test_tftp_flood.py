# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board asks TFTP again and again, and answers nothing: a machine with its address and MAC, whoever runs on it."""

from __future__ import annotations

import subprocess
import time

from bridge import board, machine

#: Two boards that nobody has: their machines are off.
FLOODS, BOOTS = 7, 8
#: Requests from ports of their own, whose answers nobody takes; each asks for a timeout of 255 s.
FLOOD = """
import socket
asking = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _number in range(400)]
for asker in asking:
    asker.sendto(b"\\0\\1boot.ipxe\\0octet\\0timeout\\x00255\\0", ("10.0.2.254", 69))
print("sent", flush=True)
input()
"""
FETCH = """
import socket
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(2)
answer = None
while answer is None:
    asker.sendto(b"\\0\\1boot.ipxe\\0octet\\0blksize\\x001400\\0", ("10.0.2.254", 69))
    try:
        answer, server = asker.recvfrom(2000)
    except socket.timeout:
        continue
asker.sendto(b"\\0\\4\\0\\0", server)
print(asker.recv(2000)[4:10].decode())
"""
#: Role tftp_proxy's bound for one board, and in.tftpd itself.
MOST = 128 + 1


def test_a_board_that_asks_and_never_answers(up):
    """Lost: every other board's boot, and the proxy's memory, to one board that asks for files all the time."""
    one, other = board(up, FLOODS), board(up, BOOTS)
    with machine(up, "one", one["ip"], one["mac"]) as words, machine(up, "other", other["ip"], other["mac"]) as others:
        flood = subprocess.Popen(
            [*words, "/usr/bin/python3", "-c", FLOOD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with flood:
            assert flood.stdout.readline() == "sent\n"
            start = time.monotonic()
            fetch = [*others, "/usr/bin/python3", "-c", FETCH]
            said = subprocess.run(fetch, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
            seconds = time.monotonic() - start
            held = up.on_proxy("pgrep -xa in.tftpd").splitlines()
            flood.communicate("end\n", timeout=600)
    assert said == "#!ipxe\n"
    assert len(held) <= MOST, f"{len(held)} processes, and another board's file came after {seconds:.1f} s"
    assert all("--refuse timeout" in words for words in held), "a board says how long one may wait"
