# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with a BMC that speaks IPMI 2.0 (RMCP+), with ipmitool. A BMC has one machine, which is outlet 1.

The password is in the environment of ipmitool, which its user alone can read; never in its arguments. The session asks
for the rights of an operator, so that an account with no more is enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...core.command import Limits, ended
from ...core.errors import Busy, HeteroError, Lost
from ...core.output import MOST_OF_OTHERS
from .drawn import Drawn, measure
from .driver import NAMELESS, Answer
from .program import ProgramDriver

if TYPE_CHECKING:
    import subprocess

#: The only outlet: two names for one machine would be two outlets.
OUTLET = "1"
#: Seconds until ipmitool asks again, and how often it does; a silent BMC is given up after some 12 s.
ANSWER, AGAIN = "1", "3"
STATE = re.compile(r"^Chassis Power is (on|off)$", re.M | re.I)
#: What ipmitool says of DCMI's power reading, which not every BMC has (DCMI 1.5, 6.6.1).
READING = re.compile(r"^\s*Instantaneous power reading:\s*([0-9]+) Watts", re.M)
NOT_MEASURED = re.compile(r"^\s*Power reading state is:\s*deactivated", re.M)
#: What ipmitool says with -v; without, a wrong password looks like no answer.
WRONG_CREDENTIAL = re.compile(
    r"HMAC is invalid|invalid integrity check|unauthorized name|invalid name length|Username is too long"
    r"|password is longer than",
    re.I,
)
NOT_ALLOWED = re.compile(r"unauthorized role|invalid role|failed: (Insufficient|Requested) privilege level", re.I)
NO_SESSION = re.compile(r"insufficient resources for (session|role)|No (session )?slot available", re.I)
OTHER_CIPHER = re.compile(
    r"invalid (authentication|integrity|confidentiality) algorithm|no matching (cipher|auth|integ)", re.I
)
NOT_READY = re.compile(r"failed: (Node busy|Command not supported in present state|.*(initiali|firmware update))", re.I)
NO_NAME = re.compile(r"^Address lookup for .* failed$", re.M)
NO_SESSION_MADE = re.compile(r"Unable to establish (IPMI|LAN)|No response|Close Session command failed", re.I)


class Ipmi(ProgramDriver):
    """One BMC, asked by a run of ipmitool for each question."""

    dialect = "ipmi"
    measures = True
    window = float("inf")  # a machine may take a minute, of which its BMC tells
    stuck = "look at the machine, and at the log of its BMC"
    _hung = Lost

    def login(self) -> None:
        self._must_be_right()

    def logout(self) -> None:
        """Do nothing: ipmitool ends its session."""

    def status(self) -> dict[str, str]:
        done = self._run("chassis", "power", "status")
        found = STATE.search(done.stdout)
        if done.returncode or not found:
            remedy = "check what this account may do, and whether it is a BMC"
            raise HeteroError(f"does not tell its state ({self._words(done)})", self.name, remedy)
        return {OUTLET: found[1].lower()}

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._order(state) for outlet in outlets}

    def _order(self, state: str) -> Answer:
        done = self._run("chassis", "power", state)
        return Answer(done.returncode == 0, self._words(done) if done.returncode else done.stdout.strip())

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        """Return the watts of the whole machine; a BMC has no counter."""
        done = self._run("dcmi", "power", "reading")
        found = READING.search(done.stdout)
        if done.returncode or not found or NOT_MEASURED.search(done.stdout):
            return {}
        return {OUTLET: Drawn(measure(found[1]))}

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ipmitool and return its end.

        :raises Lost: the BMC did not answer.
        :raises Busy: it is not ready for that, or has no session left.
        """
        argv = ["ipmitool", "-v", "-I", "lanplus", "-L", "OPERATOR", "-N", ANSWER, "-R", AGAIN, "-E"]
        for option, value in (
            ("-H", self.settings["host"]),
            ("-p", self.settings.get("port")),
            ("-C", self.settings.get("cipher_suite")),
            ("-U", self.secrets.get("username")),
        ):
            argv += [option, str(value)] if value else []
        password = self.secrets.get("password") or ""
        env = {"IPMITOOL_PASSWORD": password, "IPMI_PASSWORD": password}
        remedy = f"{self.way}, that it has power, and that IPMI over LAN is turned on there"

        def run(limit: float) -> subprocess.CompletedProcess[str]:
            return ended([*argv, *words], self.name, remedy, Limits(limit, MOST_OF_OTHERS), env=env)

        done = self._asked(run, "ask", "ipmitool", remedy)
        if done.returncode:
            self._fail(done.stderr, self._words(done), remedy)
        return done

    def _fail(self, said: str, words: str, remedy: str) -> None:
        """Raise the error of a run that failed; none where the BMC only refused what it was told.

        :param words: its last words, masked.
        """
        if WRONG_CREDENTIAL.search(said):
            why = self.masked(WRONG_CREDENTIAL.search(said)[0])  # type: ignore[index]
            raise HeteroError(f"refuses the user or the password ({why})", self.name, self.credential)
        if NOT_ALLOWED.search(said):
            what = f"this account may not do that ({words})"
            raise HeteroError(what, self.name, "give it the privilege OPERATOR on the BMC's LAN channel")
        if NO_SESSION.search(said):
            raise Busy(f"has no session left ({words})", self.name, "end sessions of others, or raise timeout")
        if NOT_READY.search(said):
            raise Busy(f"is not ready for that yet ({words})", self.name, "wait, or raise timeout")
        if OTHER_CIPHER.search(said):
            what = f"does not take cipher suite {self.settings.get('cipher_suite') or 3}"
            raise HeteroError(what, self.name, "give one that it knows (cipher_suite: 17, or 3 on older ones)")
        if NO_NAME.search(said):
            raise Lost(f"cannot be reached ({self.nameless or words})", self.name, NAMELESS)
        if NO_SESSION_MADE.search(said):
            also = ", and its user: some BMCs do not answer to a wrong one" if "RAKP" in said else ""
            raise Lost(f"no answer by IPMI ({words})", self.name, f"{remedy}{also}")
