# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The serial lines of the lab's boards, by which the proxy's conserver has their consoles."""

from __future__ import annotations

import socket
from contextlib import suppress

from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import until
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_emulator import login, talk

#: A board that says that it has power, and of each line that is typed what it is.
BOARD = ["sh", "-c", 'echo power good; while read -r line; do echo "heard $line"; done']


class Reader:
    """Somebody at a board's serial line."""

    def __init__(self, port):
        self._line, self._said = socket.create_connection(("127.0.0.1", port), 20), b""
        self._line.settimeout(0.02)

    def hears(self, text, times=1):
        def heard():
            with suppress(TimeoutError):
                self._said += self._line.recv(65536)
            return self._said.count(text) == times

        assert until(heard), self._said

    def types(self, text):
        self._line.sendall(text)

    def close(self):
        self._line.close()


def test_a_line_is_there_before_the_power_and_after_it(emulated):
    """Lost: what a lab's board says first, or last, or all of it from its second boot on; and a way to type on it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pdu = emulated(dialect="cli", outlets={"1": {"name": "board1", "argv": BOARD, "line": port}})
    first, second = Reader(port), Reader(port)
    first.types(b"nobody is there\n")
    talk(pdu, *login(b"olOn 1\r", b"exit\r"))
    for one in (first, second):
        one.hears(b"power good\n")
    second.types(b"from the second\n")
    for one in (first, second):
        one.hears(b"heard from the second\n")
    second.close()
    for order in (b"olOff 1\r", b"olOn 1\r"):
        talk(pdu, *login(order, b"exit\r"))
    first.hears(b"power good\n", times=2)
    first.hears(b"heard", times=1)
    first.close()


def test_a_board_that_reads_nothing_holds_nobody_up(emulated):
    """Lost: a PDU of the lab that answers nobody any more, for somebody typed on a board whose kernel hangs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    board = {"name": "board1", "argv": ["sh", "-c", "echo power good; exec sleep 600"], "line": port}
    pdu = emulated(dialect="cli", outlets={"1": board})
    talk(pdu, *login(b"olOn 1\r", b"exit\r"))
    one = Reader(port)
    one.types(b"x" * 300_000)
    one.close()
    talk(pdu, *login(b"olOff 1\r", b"exit\r"))
    assert until(lambda: pdu.outlets["1"]["state"] == "off")
