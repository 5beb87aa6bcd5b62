# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switched PDUs, and switches with PoE, by SNMP with net-snmp's commands. snmp_tables.py knows where each kind has its
outlets, and what its numbers mean.

Community and passphrases are in a snmp.conf that only this user can read, while the driver is in use; never in a
process's arguments or environment. Others read back whether an outlet switched.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from typing import Any, Iterator, Mapping, Sequence

from ...core.command import MOST_WORDS, Limits, ended
from ...core.errors import BadInput, HeteroError, Lost, TimedOut
from ...core.output import MOST_OF_OTHERS, TooMuch
from ...core.printable import brief
from .drawn import Drawn, measure
from .driver import CUT_OFF, HOST, NAMELESS, Answer, PowerDriver
from .snmp_meters import METERS, Column
from .snmp_tables import OWN, TABLES, Order, likely, own, wrong_table

SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0"
VERSIONS = ("1", "2c", "3")
#: Seconds to wait for an answer, and how often a question is sent again, because a packet may be lost.
ANSWER, AGAIN = 3.0, 1
#: RFC 3414, 11.2. net-snmp refuses shorter ones.
SHORTEST_PASSPHRASE = 8
#: Most objects of one question, so that an answer fits into a packet of 484 bytes, which every agent takes (RFC 3417).
AT_ONCE = 12

ROW = re.compile(r"^\.([\d.]+)[ \t]+(.*)$", re.M)
#: net-snmp's words for endOfMibView (RFC 3416, 3).
PAST_THE_END = "No more variables left"
#: What to look at if nothing answers: the community, or with version 3 the user.
NO_ANSWER = "{way}, and whether it has power; one that has another community does not answer either"
NO_ANSWER_TO_USER = (
    "{way}, and whether it has power; one whose user has another privacy_password or protocol does not answer either"
)
#: What to do if there are no outlets.
SEEN = "check what this community or user may see"
#: Lines that say nothing about the PDU: the object that failed, and folders that net-snmp makes.
BESIDE = ("Failed object", "Created directory")
REFUSED = re.compile(r"unknown user name|authentication failure|unsupported security level|decryption error", re.I)
UNREACHABLE = re.compile(r"unknown host|no route|unreachable", re.I)


class Snmp(PowerDriver):
    """A PDU that is asked by SNMP. There is no login, so that reading disturbs nobody."""

    readers = True
    measures = True
    packages = ("snmp",)
    #: A table of a site's own file (registry.py), and what it is called.
    table: Mapping[str, Any] | None = None
    table_name = OWN
    wrong_table = staticmethod(wrong_table)
    _folder: Any = None  # with snmp.conf, from login to logout
    _table: Any = None  # the Table that it answers

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        yield from super().wrong(name, settings)
        if settings.get("snmp_table"):
            for what, remedy in wrong_table(settings["snmp_table"]):
                yield "snmp_table", BadInput(what, name, remedy)

    def login(self) -> None:
        self._must_be_right()
        self._folder = tempfile.TemporaryDirectory(prefix="hetero-snmp-")
        path = os.path.join(self._folder.name, "snmp.conf")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(self._configuration())
        given = self.settings.get("snmp_table") or self.table
        kind = "" if given else self._kind()
        for table in [own(given, self.table_name)] if given else likely(kind):
            self._table = table
            if self._rows():
                self.dialect, self.window, self.stuck = table.name, table.window, table.stuck
                return
        if given:
            what = f"answers, but has no outlets at {self._table.state}"
            raise HeteroError(what, self.name, f"{SEEN}, or correct the state of its snmp_table")
        names, kind = ", ".join(dict.fromkeys(table.name for table in TABLES)), self.masked(kind) or "unknown"
        what = f"answers, but has no outlets in the tables of {names} (its sysObjectID is {kind})"
        raise HeteroError(what, self.name, f"{SEEN}, give a table of your own (snmp_table), or use another driver")

    def logout(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def status(self) -> dict[str, str]:
        states = self._table.states
        rows = {outlet: value for outlet, (_oid, value) in self._rows().items()}
        return {outlet: states.get(value) or f"unknown ({self.masked(value)})" for outlet, value in rows.items()}

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        rows, order = self._rows(), self._table.on if state == "on" else self._table.off
        return {one: self._order(order, rows[one][0]) if one in rows else self._gone(one) for one in outlets}

    def _gone(self, outlet: str) -> Answer:
        """Return the answer for an outlet that was there before: of a unit of several that starts anew."""
        what, thing = "is not listed any more", f"outlet {outlet} of {self.name}"
        return Answer(False, what, HeteroError(what, thing, "look at the PDU's own list of outlets"))

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        """Return {outlet: Drawn} by the columns of its kind of device."""
        meter = METERS.get(self._table.name)
        if meter is None:
            return {}
        indexes = {outlet: index for outlet, (index, _state) in self._rows().items() if outlet in outlets}
        watts, kwh = self._measured(meter.watts, indexes), self._measured(meter.kwh, indexes)
        return {outlet: Drawn(watts.get(outlet), kwh.get(outlet)) for outlet in indexes}

    def _measured(self, columns: Sequence[Column], indexes: Mapping[str, str]) -> dict[str, float]:
        """Return {outlet: measure} by the first of the columns that has any."""
        for column in columns:
            rows = {outlet: column.row(index) for outlet, index in indexes.items()}
            values = self._got(list(rows.values()))
            digits = {outlet: column.row(index, column.digits) for outlet, index in indexes.items() if column.digits}
            behind = self._got(list(digits.values())) if values else {}
            found = {
                outlet: measure(values.get(row), column.unit(behind.get(digits.get(outlet, ""), "0")))
                for outlet, row in rows.items()
            }
            if any(value is not None for value in found.values()):
                return {outlet: value for outlet, value in found.items() if value is not None}
        return {}

    def _got(self, oids: list[str]) -> dict[str, str]:
        """Return {OID: value} of objects. Of version 1's answers, one that is missing hides others: ask one by one."""
        found: dict[str, str] = {}
        for first in range(0, len(oids), AT_ONCE):
            some = oids[first : first + AT_ONCE]
            try:
                found.update(self._ask("snmpget", *some))
            except Lost:
                raise
            except HeteroError:
                for oid in some if len(some) > 1 else ():
                    with suppress(HeteroError):
                        found.update(self._ask("snmpget", oid))
        return {oid: value for oid, value in found.items() if value.lstrip("-").isdigit()}

    def _order(self, order: Order, index: str) -> Answer:
        try:
            self._ask("snmpset", f"{order.column}.{index}", "i", str(order.value))
        except Lost:
            raise
        except HeteroError as error:
            return Answer(False, error.what)
        return Answer(True, "set")

    def _kind(self) -> str:
        """Return its sysObjectID; "" where it has none."""
        rows = self._ask("snmpget", SYS_OBJECT_ID)
        return rows[0][1].strip(".") if rows else ""

    def _rows(self) -> dict[str, tuple[str, str]]:
        """Return {outlet: (index, value)} of the state column, in its order."""
        rows, column = {}, self._table.state
        for oid, value in self._ask("snmpwalk", column):
            # after the column's end, version 2c says so in words, with the last outlet's OID
            if oid.startswith(f"{column}.") and not value.startswith(PAST_THE_END):
                index = oid[len(column) + 1 :]
                rows[self._table.outlet(index)] = (index, value)
        return rows

    def _ask(self, program: str, *words: str) -> list[tuple[str, str]]:
        """Run one of net-snmp's commands; return the (OID, value) pairs that it prints."""
        left = self.deadline.left
        wait = max(0.1, min(ANSWER, 0.8 * left / (1 + AGAIN)))
        argv = [program, "-m", "", "-Oqne", "-t", f"{wait:.2f}", "-r", str(AGAIN), self._address(), *words]
        where = {"SNMPCONFPATH": self._folder.name, "SNMP_PERSISTENT_DIR": self._folder.name}
        try:
            done = ended(argv, self.name, "look at the PDU", Limits(max(0.5, left), MOST_OF_OTHERS), env=where)
        except TimedOut as error:
            if self.nameless:  # net-snmp prints nothing while it waits for a name server; for a PDU it would have ended
                what = f"cannot be reached: {self.nameless} ({error.what})"
                raise Lost(what, self.name, NAMELESS) from error
            raise self._no_answer(error.what, left) from error
        except TooMuch as error:
            raise TooMuch(
                error.what, error.thing, error.remedy, said=self.masked(error.facts.get("said", ""))
            ) from error
        if done.returncode == 0:
            return ROW.findall(done.stdout)
        heard = _words(done.stderr or done.stdout)
        said = _words(self.masked(done.stderr or done.stdout))
        if "Timeout" in heard:
            raise self._no_answer(said, left)
        if REFUSED.search(heard):
            raise HeteroError(f"refuses the SNMP user: {said}", self.name, self.credential)
        if UNREACHABLE.search(heard):
            raise HeteroError(f"cannot be reached: {said}", self.name, self.way)
        what = said or f"{program} ended with {done.returncode}"
        raise HeteroError(what, self.name, "check what this account may do")

    def _no_answer(self, said: str, left: float) -> Lost:
        """Return the error for no answer. If the deadline came before anything could, that is said instead."""
        if left < CUT_OFF:
            return Lost("its time was up before it could answer by SNMP", self.name, "raise timeout")
        remedy = NO_ANSWER_TO_USER if self._version == "3" else NO_ANSWER
        return Lost(f"no answer by SNMP ({said})", self.name, remedy.format(way=self.way))

    @property
    def _version(self) -> str:
        return str(self.settings.get("snmp_version") or VERSIONS[0])

    def _address(self) -> str:
        host, port = str(self.settings.get("host") or ""), int(self.settings.get("port") or 161)
        if not HOST.fullmatch(host):
            raise BadInput(f"'{host}' is no host", self.name, "give its name or address")
        return f"udp6:[{host}]:{port}" if ":" in host else f"udp:{host}:{port}"

    def _configuration(self) -> str:
        """Return the text of snmp.conf (snmp.conf(5))."""
        version = self._version
        if version not in VERSIONS:
            raise BadInput(f"no such SNMP version: {version}", self.name, f"give one of {', '.join(VERSIONS)}")
        lines = [f"defVersion {version}"]
        if version != "3":
            lines.append(f"defCommunity {self._secret('community')}")
        else:
            lines.append(f"defSecurityName {self._secret('username')}")
            words = [word for word in ("password", "privacy_password") if self.secrets.get(word)]
            if words == ["privacy_password"]:
                raise BadInput("has a privacy_password without a password", self.name, "give both, or neither")
            lines.append(f"defSecurityLevel {('noAuthNoPriv', 'authNoPriv', 'authPriv')[len(words)]}")
            if "password" in words:
                lines.append(f"defAuthType {self._protocol('auth_protocol', 'SHA')}")
                lines.append(f"defAuthPassphrase {self._passphrase('password')}")
            if "privacy_password" in words:
                lines.append(f"defPrivType {self._protocol('privacy_protocol', 'AES')}")
                lines.append(f"defPrivPassphrase {self._passphrase('privacy_password')}")
        return "".join(f"{line}\n" for line in lines)

    def _protocol(self, option: str, usual: str) -> str:
        protocol = str(self.settings.get(option) or usual)
        if not re.fullmatch(r"[\w-]+", protocol):
            raise BadInput(f"'{protocol}' is no {option}", self.name, f"give one like {usual}")
        return protocol

    def _passphrase(self, option: str) -> str:
        if len(str(self.secrets[option])) < SHORTEST_PASSPHRASE:
            what = f"its {option} is shorter than {SHORTEST_PASSPHRASE} characters, which SNMP version 3 does not allow"
            raise BadInput(what, self.name, self.credential)
        return self._secret(option)

    def _secret(self, option: str) -> str:
        """Return a secret in quotes for snmp.conf."""
        secret = str(self.secrets.get(option) or "")
        if not secret:
            raise BadInput(f"no {option} is known for it", self.name, f"give {option}, or a credentials file")
        if not secret.isprintable():
            raise BadInput(f"its {option} has a control character", self.name, self.credential)
        return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", secret))


def _words(text: str) -> str:
    """Return a command's words in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return brief(" ".join(line for line in lines if not line.startswith(BESIDE)), MOST_WORDS)
