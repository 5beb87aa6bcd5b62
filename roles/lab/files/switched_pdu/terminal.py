# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The telnet side of the lab's PDU: characters of one user in, screens out; what the screens say is left to others."""

from __future__ import annotations

import asyncio

IAC, DONT, DO, WONT, WILL, SB, IP, BRK, SE = 255, 254, 253, 252, 251, 250, 244, 243, 240  # RFC 854
ECHO, SGA = 1, 3
ENTER, ESC, CTRL_C, CTRL_L = "\r", "\x1b", "\x03", "\x0c"


class Gone(Exception):
    """The user's connection is over: closed, idle for too long, or dropped by a fault switch."""


class Terminal:
    """The telnet side of one user: characters in, screens out. Every end of line that a client sends counts."""

    def __init__(self, reader, writer, pdu):
        self._reader, self._writer, self._pdu = reader, writer, pdu
        self._keys = []
        self._command = b""
        self._after_cr = False

    def offer(self):
        """The server echoes and wants single characters."""
        self._writer.write(bytes([IAC, WILL, ECHO, IAC, WILL, SGA]))

    async def show(self, text, screen=True):
        """Write text; a screen costs the PDU's `delay`."""
        if screen:
            self._pdu.screens += 1
            await asyncio.sleep(self._pdu.settings.get("delay", 0))
        self._writer.write(text.replace("\n", "\r\n").encode())
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise Gone from error

    async def line(self, secret=False, keys=()):
        """What is typed up to an end of line; a key of `keys` (ESC, Ctrl-C) counts at once and is returned alone."""
        typed = ""
        while True:
            key = await self._key()
            if key in keys:
                return key
            if key == ENTER:
                await self.show("\n", screen=False)
                return typed.strip()
            if key in "\b\x7f":
                typed = typed[:-1]
            elif key.isprintable():
                typed += key
                await self.show("*" if secret else key, screen=False)

    async def _key(self):
        while not self._keys:
            try:
                data = await asyncio.wait_for(self._reader.read(1024), self._pdu.settings.get("idle", 180))
            except (asyncio.TimeoutError, ConnectionError) as error:
                raise Gone from error
            if not data:
                raise Gone
            for byte in data:
                self._take(byte)
        return self._keys.pop(0)

    def _take(self, byte):
        if self._command:
            self._telnet(byte)
        elif byte == IAC:
            self._command = bytes([IAC])
        elif self._after_cr and byte in b"\n\0":
            self._after_cr = False
        elif byte:
            self._after_cr = byte == 13
            self._keys.append(ENTER if byte in b"\r\n" else chr(byte))

    def _telnet(self, byte):
        command = self._command = self._command + bytes([byte])
        if command[1] == SB:
            if command[-2:] == bytes([IAC, SE]):
                self._command = b""
            return
        if command[1] in (DO, DONT, WILL, WONT):
            if len(command) < 3:
                return
            # A client that sent an interrupt throws our output away until its timing mark is answered, so this goes
            # out before the menu that the interrupt asks for.
            if command[1] == DO and command[2] not in (ECHO, SGA):
                self._writer.write(bytes([IAC, WONT, command[2]]))
            elif command[1] == WILL:
                self._writer.write(bytes([IAC, DONT, command[2]]))
        elif command[1] in (IP, BRK):
            self._keys.append(CTRL_C)
        self._command = b""
