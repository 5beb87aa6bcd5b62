# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs behind any fence agent (fence_apc, fence_eaton_snmp, fence_raritan …).

An agent runs for each question and gets its options by standard input. The agent knows how to use the PDU; outlets are
read back.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Iterator, Mapping, cast

from ...core.command import Limits, ended, last_words
from ...core.errors import BadInput, HeteroError, Lost
from ...core.output import MOST_OF_OTHERS
from .driver import Answer
from .program import ProgramDriver

if TYPE_CHECKING:
    import subprocess

#: Setting → its name as an option of fence agents (FenceAgentAPI.md, and `fence_apc -o metadata`).
NAMES = {"host": "ip", "port": "ipport", "privacy_password": "snmp_priv_passwd"}
#: Exit code of `status` → state.
STATES = {0: "on", 2: "off"}
#: A line of `list-status`: plug, name, state. The name may hold commas.
LISTED = re.compile(r"^([^,\s]+),(?:.*,)?(ON|OFF|UNKNOWN)$", re.M | re.I)
#: Words after which a session is tried again. A failed login is not: an agent does not tell a wrong password, of which
#: three lock a PDU, from a PDU that is in use.
LOST = re.compile(r"connection lost|connection timed out", re.I)
#: The order was accepted, but the outlet did not follow within the agent's own time.
TOO_LATE = re.compile(r"timed out waiting to power", re.I)
#: The agent did not find the outlet's state in what the PDU showed (fencing.py, EC_STATUS). fence_apc takes a prompt
#: that came late for the end of its list: asked again, it finds it. An order is a state, so that twice is once.
MISREAD = re.compile(r"unable to obtain correct plug status", re.I)
#: What agents print before their words (fencing.py, LOG_FORMAT).
LOGGED = re.compile(r"^\S+ \S+ (?:ERROR|WARNING): ")
#: An option of agents that switch one machine each, whatever the outlet. With it, outlets are addresses (fencing.py,
#: _add_dependency_options).
ONE_MACHINE = "port_as_ip"
YES = ("1", "yes", "on", "true")
#: Folders with agents that are in the path of root's login shell, but not in other paths.
PLACES = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))


def is_by_address(settings: Mapping[str, Any]) -> bool:
    """Return whether each outlet of a PDU is the address of a machine of its own."""
    options = settings.get("agent_options") if settings.get("driver", "fence") == "fence" else None
    return isinstance(options, dict) and str(options.get(ONE_MACHINE)).lower() in YES


def _program(agent: str) -> str | None:
    """Return the path of an agent on this node, or None."""
    return shutil.which(agent, path=os.pathsep.join((os.environ.get("PATH", os.defpath), PLACES)))


class Fence(ProgramDriver):
    """A PDU behind a fence agent."""

    needs_host = False  # some agents have none, or name it by an option of their own
    _hung = Lost
    _agent: str | None = None
    _lists = True  # until `list-status` has listed nothing

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        """Yield wrong settings. Only the agent knows what else may be in a host."""
        host, agent = str(settings.get("host") or ""), str(settings.get("agent") or "")
        if re.search(r"\s", host):
            yield "host", BadInput(f"'{host}' is no host", name, "give its name or address")
        if not re.fullmatch(r"(/.*/)?fence_[\w.-]+", agent):
            yield "agent", BadInput(f"'{agent}' is no fence agent", name, "name its agent, like fence_apc")
        elif _program(agent) is None:
            what = f"program {agent} is not installed"
            yield "agent", HeteroError(what, name, f"install the package that has {agent}")

    def login(self) -> None:
        self._must_be_right()
        self._agent = _program(self.settings["agent"])
        self.dialect = os.path.basename(self.settings["agent"])

    def logout(self) -> None:
        """Do nothing: an agent logs out when it ends."""

    def status(self) -> dict[str, str]:
        """Return the outlets that the agent lists with their states, or else those that the settings name.

        Some agents list all as `UNKNOWN`. Then each outlet is asked, and one without an answer does not hide the
        others.
        """
        named = [str(outlet) for outlet in self.settings.get("outlets") or ()]
        listed = self._ask("list-status") if self._lists else None
        rows = LISTED.findall(listed.stdout) if listed and not listed.returncode else ()
        # an outlet whose name looks like a secret, and that no setting names, is not shown
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
        """Return (state or None, the agent's words)."""
        done = self._ask("status", outlet)
        return STATES.get(done.returncode), self._words(done)

    def _check_machines(self, named: list[str]) -> None:
        """Raise BadInput for several outlets if the agent does not ask which: they would be the same machine."""
        if (
            len(named) > 1
            and not is_by_address(self.settings)
            and f'name="{ONE_MACHINE}"' in self._ask("metadata").stdout
        ):
            what = f"{self.dialect} switches one machine, whatever the outlet: {', '.join(named)} would be the same"
            remedy = f"make each a PDU of its own, or give addresses as outlets, and agent_options {ONE_MACHINE}: 1"
            raise BadInput(what, self.name, remedy)

    def _ask(self, action: str, outlet: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the agent, once more if it misread the PDU, and return its end.

        :raises Lost: it lost the PDU.
        """
        options, remedy = self._options(action, outlet), "look at the PDU, or raise timeout"

        def run(limit: float) -> subprocess.CompletedProcess[str]:
            return ended([str(self._agent)], self.name, remedy, Limits(limit, MOST_OF_OTHERS), options)

        done = self._asked(run, "ask", str(self.dialect), remedy)
        if done.returncode not in STATES and MISREAD.search(done.stderr):
            done = self._asked(run, "ask", str(self.dialect), remedy)
        if done.returncode not in STATES and LOST.search(done.stderr):
            raise Lost(f"{self.dialect}: {self._words(done)}", self.name, remedy)
        return done

    def _words(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return its last words; after a success not the warnings of the agent or of its Python."""
        shown = self._shown(done)
        said = shown.stdout.strip() if done.returncode in STATES else ""
        return said.splitlines()[-1] if said else LOGGED.sub("", last_words(shown))

    def _options(self, action: str, outlet: str | None) -> str:
        """Return the agent's standard input, with an option on each line."""
        options = {"action": action, **{name: self.settings.get(name) for name in ("host", "port", "snmp_version")}}
        options.update(self.secrets)
        options.update(self.settings.get("agent_options") or {}, plug=outlet)
        lines = [(NAMES.get(name, name), str(value)) for name, value in options.items() if value not in (None, "")]
        for name, value in lines:
            if not value.isprintable() or not re.fullmatch(r"\w[\w.-]*", name):
                raise BadInput(f"option {name} has a control character", self.name, "correct it")
        # Agents cut white space and one pair of quotes off a value, so values are put into quotes.
        return "".join(
            f'{name}="{value}"\n' if re.search(r'^["\s]|["\s]$', value) else f"{name}={value}\n"
            for name, value in lines
        )
