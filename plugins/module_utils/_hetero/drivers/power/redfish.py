# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with a BMC that speaks Redfish (DSP0266), with the library sushy. web.py asks.

The service is the PDU, and each of its systems an outlet, by its Id: which system is switched is never guessed. Others
read back PowerState.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, suppress
from typing import Any, Callable, Iterator, Mapping
from urllib.parse import urljoin, urlsplit

from ...core.errors import BadInput, Busy, HeteroError, Lost, TimedOut
from ...core.printable import brief
from ...core.spelling import instead
from .drawn import Drawn, measure
from .driver import CONTROL, Answer
from .web import Reply, WebDriver

ROOT = "/redfish/v1/"
#: PowerState → state. In all others (PoweringOff, Paused, null) the system is neither on nor off.
STATES = {"On": "on", "Off": "off"}
#: State → the reset types that do it, best first. Of the others, GracefulShutdown asks the system, which may say no,
#: and PushPowerButton does either.
RESETS = {"on": ("On", "ForceOn"), "off": ("ForceOff",)}
#: Setting boot_once → BootSourceOverrideTarget.
BOOTS = {"pxe": "Pxe", "uefi_http": "UefiHttp"}
#: Statuses of a service that is not ready for this now: conflict, locked, too many requests, unavailable.
NOT_NOW = (409, 423, 429, 503)
#: Statuses of what a service has not.
ABSENT = (404, 405, 501)
#: What services say with other statuses of a system that is still on its way (iDRAC, iLO, Base registry).
ON_ITS_WAY = re.compile(
    r"SYS518|InvalidOperationForSystemState|ResourceInUse|ResourceNotReady|ServiceInUnknownState"
    r"|ServiceTemporarilyUnavailable|ServiceShuttingDown|transition",
    re.I,
)
#: What they say if no session is left.
NO_SESSION = re.compile(r"SessionLimit|CreateLimitReached|(limit|maximum|too many)\W.*\bsessions?\b|RAC0218", re.I)
#: Most characters in which these are looked for.
LOOKED_AT = 10000
#: Seconds for the farewell, whatever the deadline: a session that is left open takes the place of somebody's.
FAREWELL = 5.0
#: What sushy raises of a service that breaks the rules, beside its own errors.
ODD = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)


class Absent(Exception):
    """The service has not what it was asked for. It leaves this file in the words of a HeteroError."""


class _Answer:
    """A Reply as sushy reads it."""

    def __init__(self, reply: Reply, headers: Any) -> None:
        self.status_code, self.content, self.headers = reply.status, reply.text.encode(), headers

    def json(self) -> Any:
        return json.loads(self.content)


class _Connector:
    """What sushy asks by, in place of its own, which would wait for a silent BMC, and retry, for minutes.

    :param ask: is called with method, path, data and headers; returns an _Answer.
    :param session: of requests, to which sushy gives the token of its session.
    """

    def __init__(self, ask: Callable[..., _Answer], session: Any) -> None:
        self._ask, self._session = ask, session

    def get(self, path: str = "", **_more: Any) -> _Answer:
        return self._ask("GET", path)

    def post(self, path: str = "", data: Any = None, **_more: Any) -> _Answer:
        return self._ask("POST", path, data)

    def patch(self, path: str = "", data: Any = None, etag: str | None = None, **_more: Any) -> _Answer:
        return self._ask("PATCH", path, data, {"If-Match": etag} if etag else None)

    def delete(self, path: str = "", **_more: Any) -> _Answer:
        return self._ask("DELETE", path)

    def set_auth(self, auth: Any) -> None:
        """Ignore it: who is refused logs in again by outlets.py."""

    def set_http_basic_auth(self, username: str | None, password: str | None) -> None:
        self._session.auth = (username.encode(), password.encode()) if username and password else None

    def set_http_session_auth(self, token: str) -> None:
        self._session.headers["X-Auth-Token"] = token


class Redfish(WebDriver):
    """The systems of one Redfish service, in a session of its own."""

    dialect = "redfish"
    readers = True
    measures = True
    tls = True
    patience = 20.0
    window = float("inf")  # a machine may take a minute, of which its BMC tells
    stuck = "look at the machine, and at the log of its BMC"
    _auth: Any = None  # of sushy, from login to logout
    _root: Any = None
    _farewell: float | None = None

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        yield from super().wrong(name, settings)
        boot = settings.get("boot_once")
        if boot and boot not in BOOTS:
            yield "boot_once", BadInput(f"no such boot_once: {brief(str(boot))}", name, instead(boot, BOOTS))

    def login(self) -> None:
        super().login()
        self._sushy = self._library("sushy")
        user, password = self.secrets.get("username"), self.secrets.get("password")
        if bool(user) != bool(password):
            what = f"has a {'username' if user else 'password'} only"
            raise BadInput(what, self.name, self.credential)
        with self._read("its service root"):
            self._enter(user, password)
        with self._read("its list of systems"):
            paths = self._root.get_system_collection().members_identities
            self._systems = {path.rstrip("/").rpartition("/")[2]: path for path in paths}
            if len(self._systems) != len(paths) or any(CONTROL.search(name) or not name for name in self._systems):
                raise ValueError("two systems have one Id, or a system has none")
        if not self._systems:
            raise HeteroError("tells of no systems", self.name, "see what this account may do")

    def logout(self) -> None:
        auth, self._auth, self._root, self._farewell = self._auth, None, None, FAREWELL
        if auth is not None and auth.get_session_key():
            with suppress(HeteroError, Absent, *ODD):
                auth.close()
            auth.reset_session_attrs()  # or sushy would try again when it is thrown away
        self._farewell = None
        super().logout()

    def status(self) -> dict[str, str]:
        """Return {system: "on", "off" or "unknown (…)"}; one that does not tell its state hides no other."""
        return self._each(self._systems, self._state)

    def _state(self, name: str) -> str:
        with self._read("a system", name):
            seen = self._answer("GET", self._systems[name]).json()["PowerState"]
            return STATES.get(seen) or f"unknown ({self._quoted(str(seen))})"

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._answered(outlet, state) for outlet in outlets}

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        """Return {system: Drawn} of systems that have a chassis for themselves; one that is silent hides no other."""
        found: dict[str, Drawn] = {}
        for outlet in outlets:
            with suppress(HeteroError, Absent, *ODD):
                found[outlet] = self._drawn(self._answer("GET", self._systems[outlet]).json())
        return found

    def _drawn(self, system: Any) -> Drawn:
        """Return what a system draws: EnvironmentMetrics of its chassis (Chassis 1.15), or the older Power."""
        (path,) = [link["@odata.id"] for link in system["Links"]["Chassis"]]  # of two, which draws what is not known
        chassis = self._answer("GET", path).json()
        if len(chassis.get("Links", {}).get("ComputerSystems", ())) > 1:
            return Drawn()  # it is the power of others, too
        told = Drawn()
        if "EnvironmentMetrics" in chassis:
            with suppress(HeteroError, Absent, *ODD):
                metrics = self._answer("GET", chassis["EnvironmentMetrics"]["@odata.id"]).json()
                sensors = [metrics.get(name) or {} for name in ("PowerWatts", "EnergykWh")]
                told = Drawn(*(measure(sensor.get("Reading")) for sensor in sensors))
        if told.watts is None and "Power" in chassis:
            control = self._answer("GET", chassis["Power"]["@odata.id"]).json()["PowerControl"]
            told = told._replace(watts=measure(control[0]["PowerConsumedWatts"]))
        return told

    def _enter(self, user: str | None, password: str | None) -> None:
        """Read the service root, which needs no credential, and open a session; without sessions send the password."""
        auths, errors = self._library("sushy.auth"), self._sushy.exceptions
        connector, basic = _Connector(self._answer, self._session), auths.BasicAuth(user, password)
        self._root = self._sushy.Sushy(self._base(), root_prefix=ROOT, auth=basic, connector=connector)
        if user:
            # not where it tells of none: some refuse the credential at an address that they do not have
            with suppress(Absent, errors.MissingAttributeError, errors.MissingXAuthToken):
                self._root.get_sessions_path()
                self._auth = auths.SessionAuth(user, password)
                self._auth.set_context(self._root, connector)
                self._auth.authenticate()
                return
            self._auth = None
            basic.authenticate()

    def _answered(self, outlet: str, state: str) -> Answer:
        """Return the answer for an outlet: what one system refuses is not said of the others of its service."""
        try:
            return self._order(outlet, state)
        except (BadInput, Busy, Lost, TimedOut):
            raise
        except HeteroError as error:
            if error.remedy == self.credential:
                raise
            return Answer(False, error.what, error)

    def _order(self, outlet: str, state: str) -> Answer:
        thing = f"outlet {outlet} of {self.name}"
        if outlet not in self._systems:
            raise BadInput(f"no such system (it has {', '.join(self._systems)})", thing, "correct the outlet")
        with self._read("a system", outlet):
            system = self._root.get_system(self._systems[outlet])
            allowed = {reset.value: reset for reset in system.get_allowed_reset_system_values()}
        fit = next((allowed[name] for name in RESETS[state] if name in allowed), None)
        if fit is None:
            asking, ways = " without asking the system" if state == "off" else "", ", ".join(sorted(allowed))
            what = f"its BMC has no way to switch it {state}{asking} (it allows {ways or 'nothing'})"
            raise HeteroError(what, thing, "update the BMC, or switch the machine by an outlet of a PDU")
        with self._read("a system", outlet):
            if state == "on" and self.settings.get("boot_once"):
                self._boot_once(system)
            system.reset_system(fit)
        return Answer(True, f"{fit.value} accepted")

    def _boot_once(self, system: Any) -> None:
        target = BOOTS[self.settings["boot_once"]]
        sources = {source.value: source for source in system.get_allowed_system_boot_source_values()}
        if target not in sources:
            what = f"its BMC cannot have it boot by {target} once (it allows {', '.join(sorted(sources))})"
            raise HeteroError(what, self.name, "take boot_once out, and set the boot order in the firmware")
        enabled = self._sushy.BOOT_SOURCE_ENABLED_ONCE
        system.set_system_boot_options(target=sources[target], enabled=enabled)

    def _answer(self, method: str, path: str, data: Any = None, headers: Any = None) -> _Answer:
        """Return an answer that is no error.

        :param path: as the service gives it. Only this service is asked, whatever host it names there.
        :raises Busy: the service or the system is not ready for that.
        :raises Lost: there is no answer, or the session is over.
        :raises Absent: there is no such thing.
        """
        parts = urlsplit(urljoin(f"{self._base()}{ROOT}", path))
        target = f"{parts.path}{f'?{parts.query}' if parts.query else ''}"
        given: dict[str, Any] = {"headers": {"OData-Version": "4.0", "Accept": "application/json", **(headers or {})}}
        if data is not None:
            given["json"] = data
        reply = self._asked(method, target, given, self._farewell)
        if not 200 <= reply.status < 300:
            raise self._error(reply)
        folded = self._library("requests").structures.CaseInsensitiveDict(reply.headers)
        return _Answer(reply, folded)

    def _error(self, reply: Reply) -> HeteroError | Absent:
        """Return the error of an answer that is one."""
        status, said = reply.status, self._quoted(_said(reply.text) or reply.reason)
        words = f"{status}: {said}" if said else str(status)
        text = reply.text[:LOOKED_AT]
        if NO_SESSION.search(text):
            remedy = "end sessions in its web page, or raise timeout"
            return Busy(f"has no session left ({words})", self.name, remedy)
        if status == 401 and "X-Auth-Token" in self._session.headers:
            return Lost(f"its session is over ({words})", self.name, "raise timeout")
        if status == 401:
            return HeteroError(f"refuses the credential ({words})", self.name, self.credential)
        if status in NOT_NOW or (status >= 400 and ON_ITS_WAY.search(text)):
            return Busy(f"is not ready for that yet ({words})", self.name, "wait, or raise timeout")
        if status == 403:
            return HeteroError(f"this account may not do that ({words})", self.name, "let it switch power (Operator)")
        if status in ABSENT:
            return Absent(f"answers {words}")
        if status >= 500:
            return Lost(f"answers {words}", self.name, "look at the BMC, or raise timeout")
        what = "its host, port and tls" if status < 400 else "what this account may do"
        return HeteroError(f"answers {words}", self.name, f"check {what}")

    @contextmanager
    def _read(self, what: str, outlet: str | None = None) -> Iterator[None]:
        """Name the outlet in errors of a block that are no other's; put into words what breaks Redfish's rules."""
        thing = f"outlet {outlet} of {self.name}" if outlet else self.name
        try:
            yield
        except Absent as error:
            remedy = "see whether Redfish is turned on there, and its version"
            raise HeteroError(str(error), thing, remedy) from error
        except (self._sushy.exceptions.SushyError, *ODD) as error:
            said = self._quoted(f"{type(error).__name__}: {error}")
            remedy = "see what answers at its host and port, and update the BMC"
            raise HeteroError(f"answers with no Redfish when asked for {what} ({said})", thing, remedy) from error


def _said(text: str) -> str:
    """Return what an error says for people (DSP0266, 8.6): its messages, or all of it where it is no such error."""
    try:
        error = json.loads(text)["error"]
        told = [one.get("Message") or one.get("MessageId") for one in error.get("@Message.ExtendedInfo") or ()]
        said = " ".join(str(one) for one in told if one) or str(error.get("message") or "")
    except ODD:
        return text
    return said or text
