# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APC's two command lines as tables: `apc>` of AOS 5 and later, and `APC>` of AOS 3, which a password with -c opens.

What a command does to the outlets is left to the PDU.
"""

from __future__ import annotations

from typing import NamedTuple

from .terminal import CTRL_C


class Words(NamedTuple):
    """What a command line calls things."""

    banner: str
    prompt: str
    status: str
    switching: dict  # command: (verb, seconds until then)
    success: str


WORDS = {
    "cli": Words(
        "Schneider Electric                      Network Management Card AOS      v6.5.0\n"
        "(c) Copyright 2016 All Rights Reserved  Rack PDU 2g APP                  v6.5.0\n",
        "apc>",
        "olstatus",
        {"olon": ("on", 0), "oloff": ("off", 0), "olreboot": ("reboot", 0)},
        "E000: Success",
    ),
    "cli3": Words(
        "American Power Conversion               Network Management Card AOS      v3.9.2\n"
        "(c) Copyright 2009 All Rights Reserved  Rack PDU APP                     v3.9.2\n",
        "APC>",
        "status",
        {"on": ("on", 0), "off": ("off", 0), "reboot": ("reboot", 0)},
        "OK",
    ),
}
# A prompt alone does not tell the words.
WORDS["cli-capital"] = WORDS["cli"]._replace(prompt="APC>")


class CommandLine:
    """A command line: one word, a list of outlets."""

    def __init__(self, pdu, terminal, name):
        self._pdu, self._terminal, self._words = pdu, terminal, WORDS[name]
        self.banner = self._words.banner

    async def serve(self):
        answer = "\n"
        while answer is not None:
            await self._terminal.show(f"{answer}{self._words.prompt}")
            words = (await self._terminal.line(keys=(CTRL_C,))).split()
            answer = await self._answer(words[0].lower(), words[1:]) if words and words[0] != CTRL_C else "\n"

    async def _answer(self, verb, words):
        if verb in ("exit", "quit", "bye", "logout", "logoff"):
            return None
        if verb not in self._words.switching and verb != self._words.status:
            return "E101: Command Not Found\n\n"
        try:
            numbers = self._numbers("".join(words) or "all")
        except ValueError:
            return "E102: Parameter Error\n\n"
        if verb == self._words.status:
            outlets = [self._pdu.outlets[number - 1] for number in numbers]
            rows = "".join(f" {outlet.number}: {outlet.name}: {outlet.state.title()}\n" for outlet in outlets)
            return f"{self._words.success}\n{rows}\n"
        if not words:
            return "E103: Command Line Error\n\n"
        await self._pdu.command(self._words.switching[verb], numbers)
        return f"{self._words.success}\n\n"

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
