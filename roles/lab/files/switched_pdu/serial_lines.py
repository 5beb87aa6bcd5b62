# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The serial line of a board as a terminal server has it: a port of TCP, which is there whether the board has power.

Who connects hears what the board says from then on, and types on it. As on a real line, nothing is kept for anybody.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

#: Bytes that wait for a reader who does not take them; what comes beyond is lost to that one.
BEHIND = 1 << 20


class SerialLine:
    """One port.

    :param place: address and port.
    :param device: the network interface that it is bound to, or None.
    :param typed: is called with the bytes that are typed.
    """

    def __init__(self, place, device, typed):
        self._place, self._device, self._typed = place, device, typed
        self._readers = set()
        self._server = None

    async def listen(self):
        listening = socket.socket(socket.AF_INET6 if ":" in self._place[0] else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._device:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._device.encode())
        listening.bind(self._place)
        self._server = await asyncio.start_server(self._reader, sock=listening)

    def say(self, data):
        """Give all who listen what the board says."""
        for writer in self._readers:
            if writer.transport.get_write_buffer_size() < BEHIND:
                writer.write(data)

    async def _reader(self, reader, writer):
        self._readers.add(writer)
        try:
            with suppress(ConnectionError):
                while True:
                    data = await reader.read(4096)
                    if not data:
                        return
                    self._typed(data)
        finally:
            self._readers.discard(writer)
            writer.close()
