# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugs and PDUs that are read and switched by HTTP, with the library requests. http_apis.py knows what each is asked.

An answer is read to a limit, redirections and the machine's own proxies are not followed, and certificates are checked
unless the settings say otherwise. Others read back whether an outlet switched.
"""

# Pylint may take a module of this name for the standard library's, to which it adds two imports of its own.
# pylint: disable=unused-import
from __future__ import annotations

import ipaddress
import json
import os
from importlib import import_module
from typing import Any, Iterator, Mapping

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Lost, TimedOut
from ...core.printable import brief
from ...core.spelling import instead
from .driver import CUT_OFF, Answer, PowerDriver
from .http_apis import APIS, NUMBER, OUTLET, Api, Ask, filled, found, named, own, wrong_table

#: Most bytes of an answer: a PDU of 48 outlets with its measurements tells some 20 KB.
MOST = 1 << 20
#: Most seconds for one answer.
ANSWER = 10.0
#: In place of an answer's status.
UNTRUSTED, UNANSWERED, TOO_MUCH, NO_HTTP = -1, -2, -3, -4
#: The user that devices have where none is given.
USER = "admin"
PACKAGE = "python3-requests"


class Http(PowerDriver):
    """A device that is asked by HTTP, an outlet at a time. There is no session, so that reading disturbs nobody."""

    readers = True
    _session: Any = None  # of requests, from login to logout

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        yield from super().wrong(name, settings)
        yield from _wrong_way(name, settings)
        api, table = settings.get("api"), settings.get("api_table")
        if api and table:
            yield "api", BadInput("has both an api and an api_table", name, "give one of them")
        elif api and api not in APIS:
            yield "api", BadInput(f"no such api: {brief(str(api))}", name, instead(api, APIS))
        elif not api and not table:
            what = "does not say which api it has"
            yield "api", BadInput(what, name, f"give api ({', '.join(APIS)}), or a table of your own (api_table)")
        elif table:
            for what, remedy in wrong_table(table):
                yield "api_table", BadInput(what, name, remedy)

    def login(self) -> None:
        for _key, error in self.wrong(self.name, self.settings):
            raise error
        try:
            requests = import_module("requests")
        except ImportError as error:
            what = "the Python library requests is not installed"
            raise HeteroError(what, self.name, f"install {PACKAGE}") from error
        table = self.settings.get("api_table")
        self._api: Api = own(table) if table else APIS[self.settings["api"]]
        self.dialect = self.settings.get("api") or "own api"
        if not self.settings.get("outlets"):
            raise BadInput("does not tell which outlets it has", self.name, "name its outlets")
        self._session = requests.Session()
        self._session.trust_env = False  # neither proxies nor ~/.netrc of this machine
        # unverified only by the site's word, which needs no warning at each question
        import_module("urllib3").disable_warnings()
        self._session.verify = self.settings.get("tls_ca") or self.settings.get("tls_verify", True)
        self._session.headers["Accept-Encoding"] = "identity"
        self._session.headers.update(self._api.headers)
        self._session.auth = self._auth(requests)

    def logout(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def status(self) -> dict[str, str]:
        """Return {outlet: "on", "off" or "unknown (…)"}; an outlet that a device does not know hides no other."""
        answers: dict[Ask, Any] = {}
        states: dict[str, str] = {}
        errors: dict[str, HeteroError] = {}
        for outlet in map(str, self.settings["outlets"]):
            try:
                states[outlet] = self._state(outlet, answers)
            except HeteroError as error:
                if error.thing == self.name:  # not of this outlet alone
                    raise
                errors[outlet] = error
        if not states:
            raise next(iter(errors.values()))
        return {**states, **{outlet: f"unknown ({error.what})" for outlet, error in errors.items()}}

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._order(outlet, state) for outlet in outlets}

    def _state(self, outlet: str, answers: dict[Ask, Any]) -> str:
        """Return an outlet's state.

        :param answers: what was asked already, for devices that tell of all outlets at once.
        """
        ask = self._filled(self._api.read, outlet)
        if ask not in answers:
            text = self._send(ask, outlet)
            try:
                answers[ask] = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise self._strange(outlet, text) from error
        pointers = [named(self._api.state, outlet), *([self._api.alone] if self._api.alone and outlet == "1" else [])]
        for pointer in pointers:
            try:
                value = json.dumps(found(answers[ask], pointer))
            except KeyError:
                continue
            words = {**dict.fromkeys(self._api.is_on, "on"), **dict.fromkeys(self._api.is_off, "off")}
            return words.get(value) or f"unknown ({self._quoted(value)})"
        raise self._strange(outlet, json.dumps(answers[ask]))

    def _order(self, outlet: str, state: str) -> Answer:
        try:
            text = self._send(self._filled(self._api.on if state == "on" else self._api.off, outlet), outlet)
        except Lost:
            raise
        except HeteroError as error:
            return Answer(False, error.what)
        return Answer(True, self._quoted(text) or "done")

    def _filled(self, ask: Ask, outlet: str) -> Ask:
        allowed = NUMBER if self._api.needs_numbers() else OUTLET
        if not allowed.fullmatch(outlet):
            kind = "a number from 1" if self._api.needs_numbers() else "letters, digits, and . : _ - only"
            raise BadInput("is none that it can be asked for", f"outlet {brief(outlet)} of {self.name}", f"give {kind}")
        return filled(ask, outlet)

    def _send(self, ask: Ask, outlet: str) -> str:
        """Return the text of an answer.

        A child process asks, because a device that sends a byte a time would be listened to for ever.

        :raises Lost: there is none, or not the whole of it.
        :raises HeteroError: it is an error.
        """
        limit = max(CUT_OFF, min(ANSWER, self.deadline.left))
        try:
            kind, words, text = in_child(lambda: self._exchange(ask, limit), Deadline(limit), self.name, self.way)
        except TimedOut as error:
            raise Lost(f"no whole answer within {limit:.1f} s", self.name, f"{self.way}, or raise timeout") from error
        if kind == UNTRUSTED:
            remedy = "give the authority that signed it (tls_ca), or with tls_verify: false no proof is asked for"
            raise HeteroError(f"its certificate is not trusted ({self._quoted(words)})", self.name, remedy)
        if kind == UNANSWERED:
            also = "that it speaks TLS there (tls)" if self.settings.get("tls") else "that it has power"
            raise Lost(f"no answer ({self._quoted(words)})", self.name, f"{self.way}, and {also}")
        if kind == NO_HTTP:
            remedy = "see what answers there, and check its host, port and tls"
            raise HeteroError(f"answers against the rules of HTTP ({self._quoted(words)})", self.name, remedy)
        if kind == TOO_MUCH:
            raise HeteroError(f"answers with more than {MOST >> 10} KiB", self.name, "see what answers there")
        if kind in (401, 403):
            raise HeteroError(f"refuses the credential ({kind})", self.name, self.credential)
        if not 200 <= kind < 300:
            what = f"answers {kind}: {self._quoted(text) or self._quoted(words)}"
            raise HeteroError(what, f"outlet {outlet} of {self.name}", "check its api, and the outlet's name")
        return str(text)

    def _exchange(self, ask: Ask, limit: float) -> tuple[int, str, str]:
        """Return (status, reason, text) of an answer; or in place of the status what went wrong."""
        requests = import_module("requests")
        given: dict[str, Any] = dict(timeout=limit, allow_redirects=False, stream=True)
        if ask.body:
            kind = "application/json" if ask.body.startswith(("{", "[")) else "application/x-www-form-urlencoded"
            given.update(data=ask.body, headers={"Content-Type": kind})
        if self._api.auth == "query" and self.secrets.get("password"):
            given["params"] = {"user": self.secrets.get("username") or USER, "password": self.secrets["password"]}
        try:
            with self._session.request(ask.method, f"{self._base()}{ask.path}", **given) as answer:
                said = b""
                for part in answer.iter_content(8192):
                    said += part
                    if len(said) > MOST:
                        return TOO_MUCH, "", ""
        except requests.exceptions.RequestException as error:
            # only a certificate is a matter of trust: a device may hang up, or speak no TLS
            untrusted = isinstance(error, requests.exceptions.SSLError) and "certificate" in str(error).lower()
            return UNTRUSTED if untrusted else UNANSWERED, str(error), ""
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # the library's, of headers it cannot read
            return NO_HTTP, f"{type(error).__name__}: {error}", ""
        return answer.status_code, str(answer.reason), said.decode("utf-8", "replace")

    def _base(self) -> str:
        tls = self.settings.get("tls", False)
        port = self.settings.get("port") or (443 if tls else 80)
        host = str(self.settings["host"])
        return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    def _auth(self, requests: Any) -> Any:
        user, password = self.secrets.get("username") or USER, self.secrets.get("password")
        if not password:
            return None
        # basic is sent as UTF-8, digest's password is hashed
        for word, secret in (("username", user), ("password", password)):
            if not secret.isascii() and (self._api.auth, word) in (("digest", "username"), ("bearer", "password")):
                what = f"its {word} has characters that are not ASCII, which {self._api.auth} does not carry"
                raise BadInput(what, self.name, self.credential)
        if self._api.auth == "bearer":
            self._session.headers["Authorization"] = f"Bearer {password}"
        ways = {"basic": requests.auth.HTTPBasicAuth, "digest": requests.auth.HTTPDigestAuth}
        way = ways.get(self._api.auth)
        as_sent = (user.encode(), password.encode()) if self._api.auth == "basic" else (user, password)
        return way(*as_sent) if way else None

    def _strange(self, outlet: str, text: str) -> HeteroError:
        what = f"its answer has no state that is known: {self._quoted(text)}"
        return HeteroError(what, f"outlet {outlet} of {self.name}", "check its api and host, and the outlet's name")

    def _quoted(self, text: str) -> str:
        return brief(" ".join(self.masked(text).split()))


def _wrong_way(name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
    """Yield (key, error) of each setting by which no device is reached."""
    host, authority = str(settings.get("host") or ""), settings.get("tls_ca")
    try:
        if ":" in host:
            ipaddress.ip_address(host.partition("%")[0])
        else:
            host.encode("idna")
    except ValueError:
        yield "host", BadInput(f"'{brief(host)}' is no host", name, "give its name or address")
    if authority and not settings.get("tls"):
        yield "tls_ca", BadInput("has tls_ca without tls, and so nothing would be checked", name, "give tls: true, too")
    elif authority and not os.path.exists(authority):
        what = f"its tls_ca {brief(str(authority))} is not there"
        yield "tls_ca", BadInput(what, name, "put the certificate there, or name the file or folder that it is in")
