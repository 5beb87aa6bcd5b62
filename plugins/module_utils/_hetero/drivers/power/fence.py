# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any fence agent (fence_apc, fence_eaton_snmp, fence_raritan …) by its name: options by standard input, an agent run
for each question. What the agent does with a PDU is its own business; whether an outlet switched is read back.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Iterator, Mapping, cast

from ...core.command import ended, last_words
from ...core.errors import BadInput, HeteroError, Lost
from ...core.output import MOST_OF_OTHERS
from .driver import Answer
from .program import ProgramDriver

if TYPE_CHECKING:
    import subprocess

#: Our words for what fence agents call differently (FenceAgentAPI.md, and `fence_apc -o metadata`).
NAMES = {"host": "ip", "port": "ipport", "privacy_password": "snmp_priv_passwd"}
#: Exit codes of `status`.
STATES = {0: "on", 2: "off"}
#: A line of `list-status`: plug, name, state; the name may hold commas.
LISTED = re.compile(r"^([^,\s]+),(?:.*,)?(ON|OFF|UNKNOWN)$", re.M | re.I)
#: A session that was lost is asked for again. A login that failed is not: an agent does not tell a wrong password, of
#: which three lock a PDU, from a PDU whose place is taken.
LOST = re.compile(r"connection lost|connection timed out", re.I)
#: The outlet did not follow in the agent's own time; the order was taken.
TOO_LATE = re.compile(r"timed out waiting to power", re.I)
#: What agents put before their words (fencing.py, LOG_FORMAT).
LOGGED = re.compile(r"^\S+ \S+ (?:ERROR|WARNING): ")
#: An option of the agents that switch one machine each, whatever the outlet; with it, outlets are addresses
#: (fencing.py, _add_dependency_options).
ONE_MACHINE = "port_as_ip"
YES = ("1", "yes", "on", "true")
#: Agents are installed where a login shell of root looks, and others do not.
PLACES = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))


def is_by_address(settings: Mapping[str, Any]) -> bool:
    """Whether each outlet is the address of a machine of its own, by the settings of a PDU."""
    options = settings.get("agent_options") if settings.get("driver", "fence") == "fence" else None
    return isinstance(options, dict) and str(options.get(ONE_MACHINE)).lower() in YES


def _program(agent: str) -> str | None:
    """Where an agent lies on this node, or None."""
    return shutil.which(agent, path=os.pathsep.join((os.environ.get("PATH", os.defpath), PLACES)))


class Fence(ProgramDriver):
    """A PDU behind a fence agent."""

    _hung = Lost
    _agent: str | None = None
    _lists = True  # until it has listed nothing

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        """What else may be in a host is the agent's business."""
        host, agent = str(settings.get("host") or ""), str(settings.get("agent") or "")
        if re.search(r"\s", host):
            yield "host", BadInput(f"'{host}' is no host", name, "give its name or address")
        if not re.fullmatch(r"(/.*/)?fence_[\w.-]+", agent):
            yield "agent", BadInput(f"'{agent}' is no fence agent", name, "name its agent, like fence_apc")
        elif _program(agent) is None:
            what = f"program {agent} is not installed"
            yield "agent", HeteroError(what, name, f"install the package that has {agent}")

    def login(self) -> None:
        for _key, error in self.wrong(self.name, self.settings):
            raise error
        self._agent = _program(self.settings["agent"])
        self.dialect = os.path.basename(self.settings["agent"])

    def logout(self) -> None:
        """An agent has logged out when it ends."""

    def status(self) -> dict[str, str]:
        """All outlets where the agent lists them with their states, else those that are named in the settings.

        Some agents list `UNKNOWN` for all; each is asked for then, and one without an answer does not hide others.
        """
        named = [str(outlet) for outlet in self.settings.get("outlets") or ()]
        listed = self._ask("list-status") if self._lists else None
        rows = LISTED.findall(listed.stdout) if listed and not listed.returncode else ()
        # one that is called as a secret is, and named in no setting, is told to nobody
        seen = {plug: state.lower() for plug, state in rows if plug in named or self.masked(plug) == plug}
        status = {plug: state for plug, state in seen.items() if state in STATES.values()}
        for outlet in named or seen:
            if outlet not in status and (outlet in seen or not seen):
                state, words = self._one(outlet)
                if state is None and not seen:
                    what = f"{self.dialect} does not tell its state: {words}"
                    remedy = "check its host, its credential and the outlet"
                    raise HeteroError(what, f"outlet {outlet} of {self.name}", remedy)
                status[outlet] = state or f"unknown ({words})"
        if named and not seen and self._lists:
            self._lists = False
            self._check_machines(named)
        if not status:
            said = self._words(cast("subprocess.CompletedProcess[str]", listed))
            what = f"{self.dialect} lists no outlets (it said: {said})"
            raise HeteroError(what, self.name, "name its outlets, or check its host and credential")
        return status

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._order(outlet, state) for outlet in outlets}

    def _order(self, outlet: str, state: str) -> Answer:
        done = self._ask(state, outlet)
        return Answer(done.returncode == 0 or bool(TOO_LATE.search(done.stderr)), self._words(done))

    def _one(self, outlet: str) -> tuple[str | None, str]:
        """(state, the agent's words)"""
        done = self._ask("status", outlet)
        return STATES.get(done.returncode), self._words(done)

    def _check_machines(self, named: list[str]) -> None:
        """One outlet only, where the agent does not ask which. :raises BadInput: two would be the same machine."""
        if (
            len(named) > 1
            and not is_by_address(self.settings)
            and f'name="{ONE_MACHINE}"' in self._ask("metadata").stdout
        ):
            what = f"{self.dialect} switches one machine, whatever the outlet: {', '.join(named)} would be the same"
            remedy = f"make each a PDU of its own, or give addresses as outlets, and agent_options {ONE_MACHINE}: 1"
            raise BadInput(what, self.name, remedy)

    def _ask(self, action: str, outlet: str | None = None) -> subprocess.CompletedProcess[str]:
        """The agent's end. :raises Lost: it lost the PDU."""
        options, remedy = self._options(action, outlet), "look at the PDU, or raise timeout"

        def run(limit: float) -> subprocess.CompletedProcess[str]:
            return ended([str(self._agent)], self.name, remedy, limit, options, most=MOST_OF_OTHERS)

        done = self._asked(run, "ask", str(self.dialect), remedy)
        if done.returncode not in STATES and LOST.search(done.stderr):
            raise Lost(f"{self.dialect}: {self._words(done)}", self.name, remedy)
        return done

    def _words(self, done: subprocess.CompletedProcess[str]) -> str:
        """Its last words: of one that succeeded not what it, or its Python, complained of."""
        shown = self._shown(done)
        said = shown.stdout.strip() if done.returncode in STATES else ""
        return said.splitlines()[-1] if said else LOGGED.sub("", last_words(shown))

    def _options(self, action: str, outlet: str | None) -> str:
        """The agent's standard input: an option a line."""
        options = {"action": action, **{name: self.settings.get(name) for name in ("host", "port", "snmp_version")}}
        options.update(self.secrets)
        options.update(self.settings.get("agent_options") or {}, plug=outlet)
        lines = [(NAMES.get(name, name), str(value)) for name, value in options.items() if value not in (None, "")]
        for name, value in lines:
            if not value.isprintable() or not re.fullmatch(r"\w[\w.-]*", name):
                raise BadInput(f"option {name} has a control character", self.name, "correct it")
        # Agents cut white space and one pair of quotes off a value: those in quotes keep what is theirs.
        return "".join(
            f'{name}="{value}"\n' if re.search(r'^["\s]|["\s]$', value) else f"{name}={value}\n"
            for name, value in lines
        )
