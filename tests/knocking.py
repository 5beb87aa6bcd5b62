# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many TCP connections at once, as text of a program: it is run where an attacker is, in a namespace or on a board."""

from __future__ import annotations

#: Defines knock(own, target, port, number, seconds), which opens so many connections and returns (those that it got,
#: the others). What a packet filter refuses is not answered at all, and the kernel asks again after a second. The
#: seconds begin once the link knows the target's MAC: a bridge's new port can take longer than they last.
KNOCK = """
import json, selectors, socket, subprocess, time

def find(own, target, seconds=5):
    argv = ["ip", "-json", "neighbour", "show", "to", target]
    with socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((own, 0))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                sock.sendto(b"", (target, 9))
            except OSError:
                pass  # no answer to the question before, or the filter's
            found = json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout or "[]")
            if any("lladdr" in one for one in found):
                return
            time.sleep(0.05)

def knock(own, target, port, number, seconds):
    find(own, target)
    doors, got, others = selectors.DefaultSelector(), [], []
    for _number in range(number):
        sock = socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET)
        sock.setblocking(False)
        sock.bind((own, 0))
        sock.connect_ex((target, port))
        doors.register(sock, selectors.EVENT_WRITE)
    end = time.monotonic() + seconds
    while doors.get_map() and time.monotonic() < end:
        for key, _mask in doors.select(0.1):
            refused = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            (others if refused else got).append(key.fileobj)
            doors.unregister(key.fileobj)
    return got, others + [key.fileobj for key in doors.get_map().values()]
"""
