# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugs and PDUs that are read and switched by HTTP. web.py asks, and http_apis.py knows what each is asked.

Others read back whether an outlet switched.
"""

# Pylint may take a module of this name for the standard library's, to which it adds two imports of its own.
# pylint: disable=unused-import
from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Iterator, Mapping

from ...core.errors import BadInput, HeteroError, Lost
from ...core.printable import brief
from ...core.spelling import instead
from .drawn import Drawn
from .driver import Answer
from .http_apis import APIS, NAME, NUMBER, OUTLET, Api, Ask, filled, found, named, own, wrong_table
from .http_meters import METERS
from .web import WebDriver

#: The user that devices have where none is given.
USER = "admin"


class Http(WebDriver):
    """A device that is asked by HTTP, an outlet at a time. There is no session, so that reading disturbs nobody."""

    readers = True
    measures = True
    packages = ("python3-requests",)
    #: A table of a site's own file (registry.py), and what it is called.
    table: Mapping[str, Any] | None = None
    table_name = "own api"
    wrong_table = staticmethod(wrong_table)

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        yield from super().wrong(name, settings)
        api, table = settings.get("api"), settings.get("api_table") or cls.table
        if api and table:
            yield "api", BadInput("has both an api and an api_table", name, "give one of them")
        elif api and api not in APIS:
            yield "api", BadInput(f"no such api: {brief(str(api))}", name, instead(api, APIS))
        elif not api and not table:
            what = "does not say which api it has"
            yield "api", BadInput(what, name, f"give api ({', '.join(APIS)}), or a table of your own (api_table)")
        elif table:
            mistakes, outlets = list(wrong_table(table)), sorted({str(one) for one in settings.get("outlets") or ()})
            if not mistakes and len(outlets) > 1 and not own(table).tells_apart():
                what = f"its api_table asks the same for outlets {', '.join(outlets)}, which would be one"
                mistakes.append((what, f"put {NAME} into its paths or bodies, or make each a PDU of its own"))
            for what, remedy in mistakes:
                yield "api_table", BadInput(what, name, remedy)

    def login(self) -> None:
        super().login()
        table = self.settings.get("api_table") or self.table
        self._api: Api = own(table) if table else APIS[self.settings["api"]]
        self.dialect = self.settings.get("api") or self.table_name
        if not self.settings.get("outlets"):
            raise BadInput("does not tell which outlets it has", self.name, "name its outlets")
        self._session.headers.update(self._api.headers)
        self._session.auth = self._auth(self._library("requests"))

    def status(self) -> dict[str, str]:
        """Return {outlet: "on", "off" or "unknown (…)"}; an outlet that a device does not know hides no other."""
        answers: dict[Ask, Any] = {}
        return self._each(map(str, self.settings["outlets"]), lambda outlet: self._state(outlet, answers))

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        return {outlet: self._order(outlet, state) for outlet in outlets}

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        """Return {outlet: Drawn} by the device's meter, without those that it cannot be asked for."""
        meter = METERS.get(str(self.settings.get("api")))
        if meter is None:
            return {}
        answers: dict[Ask, Any] = {}
        found: dict[str, Drawn] = {}
        for outlet in outlets:
            with suppress(HeteroError, ValueError, RecursionError):
                ask = self._filled(meter.read, outlet)
                if ask not in answers:
                    answers[ask] = json.loads(self._send(ask, outlet))
                found[outlet] = meter.drawn(answers[ask], outlet)
        return found

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

        :raises Lost: there is none, or not the whole of it.
        :raises HeteroError: it is an error.
        """
        given: dict[str, Any] = {}
        if ask.body:
            kind = "application/json" if ask.body.startswith(("{", "[")) else "application/x-www-form-urlencoded"
            given.update(data=ask.body, headers={"Content-Type": kind})
        if self._api.auth == "query" and self.secrets.get("password"):
            given["params"] = {"user": self.secrets.get("username") or USER, "password": self.secrets["password"]}
        reply = self._asked(ask.method, ask.path, given)
        if reply.status in (401, 403):
            raise HeteroError(f"refuses the credential ({reply.status})", self.name, self.credential)
        if not 200 <= reply.status < 300:
            what = f"answers {reply.status}: {self._quoted(reply.text) or self._quoted(reply.reason)}"
            raise HeteroError(what, f"outlet {outlet} of {self.name}", "check its api, and the outlet's name")
        return reply.text

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
