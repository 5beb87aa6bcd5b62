# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's `apc>` command line of AOS 5 and later; what a command does to the outlets is left to the PDU."""

from __future__ import annotations

from .terminal import CTRL_C

SWITCHING = {"olon": ("on", 0), "oloff": ("off", 0), "olreboot": ("reboot", 0)}


class CommandLine:
    """The `apc>` command line of AOS 5 and later."""

    banner = (
        "Schneider Electric                      Network Management Card AOS      v6.5.0\n"
        "(c) Copyright 2016 All Rights Reserved  Rack PDU 2g APP                  v6.5.0\n"
    )

    def __init__(self, pdu, terminal):
        self._pdu, self._terminal = pdu, terminal

    async def serve(self):
        answer = "\n"
        while answer is not None:
            await self._terminal.show(f"{answer}apc>")
            words = (await self._terminal.line(keys=(CTRL_C,))).split()
            answer = await self._answer(words[0].lower(), words[1:]) if words and words[0] != CTRL_C else "\n"

    async def _answer(self, verb, words):
        if verb in ("exit", "quit", "bye"):
            return None
        if verb not in SWITCHING and verb != "olstatus":
            return "E101: Command Not Found\n\n"
        try:
            numbers = self._numbers("".join(words))
        except ValueError:
            return "E102: Parameter Error\n\n"
        if verb == "olstatus":
            outlets = [self._pdu.outlets[number - 1] for number in numbers]
            rows = "".join(f" {outlet.number}: {outlet.name}: {outlet.state.title()}\n" for outlet in outlets)
            return f"E000: Success\n{rows}\n"
        await self._pdu.command(SWITCHING[verb], numbers)
        return "E000: Success\n\n"

    def _numbers(self, text):
        count = len(self._pdu.outlets)
        if text.lower() == "all":
            return list(range(1, count + 1))
        numbers = []
        for part in text.split(","):
            first, _dash, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
        if not numbers or min(numbers) < 1 or max(numbers) > count:
            raise ValueError(text)
        return numbers
