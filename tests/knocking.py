# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many TCP connections at once, as text of a program: it is run where an attacker is, in a namespace or on a board."""

from __future__ import annotations

#: Defines knock(own, target, port, number, seconds), which opens so many connections and returns (those that it got,
#: the others). What a packet filter refuses is not answered at all, and the kernel asks again after a second.
KNOCK = """
import selectors, socket, time

def knock(own, target, port, number, seconds):
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
