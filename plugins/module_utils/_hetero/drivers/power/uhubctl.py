# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that USB feeds: hubs of this node that switch each port by itself, with program uhubctl.

An outlet is HUB:PORT, as uhubctl prints them: 1-1.4:2. A hub with USB 3 is two hubs there, which uhubctl switches
together; a port of both is one outlet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ...core.command import MOST_WORDS, Limits, ended
from ...core.errors import BadInput, HeteroError
from ...core.output import MOST_OF_OTHERS
from ...core.printable import brief
from ...core.this_node import THIS_NODE
from .driver import Answer
from .program import ProgramDriver

if TYPE_CHECKING:
    import subprocess

#: A hub by its bus and ports (a root hub by its bus alone), and one of the 14 ports that uhubctl knows of a hub.
OUTLET = re.compile(r"(?P<hub>[1-9][0-9]{0,2}(?:-[1-9][0-9]?(?:\.[1-9][0-9]?){0,6})?):(?P<port>[1-9]|1[0-4])")
#: Hosts that mean this node.
HERE = ("localhost", "127.0.0.1", "::1")
HUB = re.compile(r"^Current status for hub (\S+)", re.M)
#: A port's line: its bits, and words up to the name of what is plugged in, which may be anything, lines too.
PORT = re.compile(r"^  Port (\d+): [0-9a-f]{4}([^\[\n]*)", re.M)
DENIED = re.compile(r"permission problems", re.I)
LIST = f"run uhubctl on {THIS_NODE}, which lists the hubs that it can switch"


class Uhubctl(ProgramDriver):
    """Hubs at this node, asked by a run of uhubctl for each outlet. Reading disturbs nobody."""

    dialect = "uhubctl"
    readers = True
    needs_host = False  # it is this node
    stuck = "see whether it is a hub of which uhubctl knows that it cuts the power: some take the order and do nothing"

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        host = str(settings.get("host") or "")
        if host and host not in HERE:
            what = f"has host {brief(host)}, but uhubctl switches hubs of {THIS_NODE} alone"
            yield "host", BadInput(what, name, "leave host out, or give localhost")

    def login(self) -> None:
        #: {outlet: why it is not switched} of outlets that are one port by what was read last.
        self._twins: dict[str, HeteroError] = {}
        self._must_be_right()

    def logout(self) -> None:
        """Do nothing: uhubctl keeps nothing open."""

    def status(self) -> dict[str, str]:
        """Return the states of the outlets that are named, else of all. One that is not there hides no other."""
        self._twins.clear()
        ports: dict[str, str] = {}

        def state_of(outlet: str) -> str:
            state, ports[outlet] = self._state(outlet)
            return state

        named = [str(outlet) for outlet in self.settings.get("outlets") or ()]
        states = self._each(named or self._all(), state_of)
        for outlet in named:
            for twin in sorted(ports):
                if twin != outlet and ports[twin] == ports.get(outlet):
                    pair = " and ".join(sorted((outlet, twin)))
                    what = f"has one port as two outlets, {pair}: the USB 2 and the USB 3 of a hub"
                    self._twins[outlet] = BadInput(what, self.name, "give each board a port of its own")
                    states[outlet] = f"unknown ({what})"
        if self._twins and len(self._twins) == len(named):
            raise next(iter(self._twins.values()))
        return states

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        refused = {outlet: Answer(False, "", error) for outlet, error in self._twins.items()}
        return {outlet: refused.get(outlet) or self._order(outlet, state) for outlet in outlets}

    def _all(self) -> list[str]:
        """Return the outlets of all hubs that uhubctl can switch, each of USB 3 twice, as uhubctl lists it."""
        done = self._run()
        if done.returncode:
            raise HeteroError(f"finds no hub ({self._said(done)})", self.name, LIST)
        parts = HUB.split(done.stdout)
        return [f"{hub}:{port}" for hub, ports in zip(parts[1::2], parts[2::2]) for port, _words in PORT.findall(ports)]

    def _state(self, outlet: str) -> tuple[str, str]:
        """Return an outlet's state, and the name of its port, which is one for the USB 2 and the USB 3 of a hub."""
        hub, port = self._parts(outlet)
        done = self._run("-l", hub, "-p", port)
        if done.returncode:
            what = f"no hub with switched ports is there ({self._said(done)})"
            remedy = f"{LIST}; one that is unplugged, or cuts no port by itself, is not among them"
            raise HeteroError(what, self._thing(outlet), remedy)
        # Both halves of a hub are told, in the same order whichever is asked for. What is plugged in names itself, and
        # may say that it is another hub, but not before the first one is told.
        first = HUB.search(done.stdout)
        name = f"{first[1] if first else hub}:{port}"
        # A port gives no power where no line says that it does.
        seen = {_meant(words) for number, words in PORT.findall(done.stdout) if number == port}
        if len(seen) == 1:
            return seen.pop(), name
        return f"unknown ({' and '.join(sorted(seen)) or self._said(done)})", name

    def _order(self, outlet: str, state: str) -> Answer:
        hub, port = self._parts(outlet)
        done = self._run("-l", hub, "-p", port, "-a", state)
        return Answer(done.returncode == 0, self._said(done))

    def _parts(self, outlet: str) -> tuple[str, str]:
        found = OUTLET.fullmatch(outlet)
        if not found:
            raise BadInput("is none that a hub has", self._thing(outlet), "write HUB:PORT, such as 1-1.4:2")
        return found["hub"], found["port"]

    def _thing(self, outlet: str) -> str:
        return f"outlet {brief(outlet)} of {self.name}"

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        remedy = "look at its hubs, or raise timeout"

        def run(limit: float) -> subprocess.CompletedProcess[str]:
            return ended(["uhubctl", *words], self.name, remedy, Limits(limit, MOST_OF_OTHERS))

        done = self._asked(run, "run", "uhubctl", remedy)
        if done.returncode and DENIED.search(done.stderr):
            raise HeteroError(f"may not use USB ({self._said(done)})", self.name, "do it as root")
        return done

    def _said(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return the first line that it said of an error, else its last one."""
        shown = self._shown(done)
        lines = shown.stderr.strip().splitlines()[:1] or shown.stdout.strip().splitlines()[-1:]
        return brief(lines[0].strip(), MOST_WORDS) if lines else "nothing"


def _meant(words: str) -> str:
    """Return the state that is meant by the words of a port's line."""
    said = words.split()
    if "power" in said:
        return "on"
    return "off" if said[:1] == ["off"] else f"unknown ({brief(' '.join(said), MOST_WORDS) or 'nothing'})"
