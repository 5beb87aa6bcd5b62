# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plugs and PDUs with an HTTP interface are asked, and how an answer is read: one table for each kind of device.

A site's own device has such a table in the inventory, with the same keys. http.py sends the requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from typing import Any, Iterator, Mapping, Sequence, Tuple

from ...core.spelling import instead
from .own_tables import wrong_keys, wrong_states

#: How a device is logged in to.
AUTHS = ("basic", "digest", "bearer", "query", "none")
METHODS = ("GET", "POST", "PUT")
#: A name of an outlet, which comes into paths and bodies; "." and ".." would lead to another path.
OUTLET = re.compile(r"(?!\.{1,2}\Z)[\w.:-]{1,100}", re.ASCII)
#: The same of a device that counts its outlets from 1.
NUMBER = re.compile(r"[1-9][0-9]{0,8}")
#: A path that goes into a request as it is, and what no body may have: half a character of UTF-16.
PATH = re.compile(r"/[^\s\x00-\x1f\x7f\ud800-\udfff]*")
HALF = re.compile(r"[\ud800-\udfff]")
#: A header's name and its value (RFC 9110, sections 5.1 and 5.5).
HEADER, VALUE = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII), re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
#: What stands for an outlet in a table: its name, and a number less by one.
NAME, INDEX = "{outlet}", "{index}"


@dataclass(frozen=True)
class Ask:
    """One request; `{outlet}` in its path and body is the outlet's name, `{index}` its number less one."""

    path: str
    method: str = "GET"
    body: str = ""


@dataclass(frozen=True)
class Api:
    """How a kind of device is read and switched.

    :param read: asks for an outlet's state.
    :param state: JSON pointer (RFC 6901) of the state in the answer. A part `KEY=VALUE` is the element of an array
        whose KEY has that value.
    :param alone: JSON pointer of the state of outlet 1 where `state` leads to nothing: a device with a single outlet
        may name it otherwise.
    :param is_on: values of the state, as text of JSON, that mean on; `is_off` those that mean off.
    :param on: switches an outlet on; `off` switches it off.
    :param auth: one of AUTHS. "bearer" sends the password as token; "query" sends user and password in the address.
    """

    read: Ask
    state: str
    on: Ask
    off: Ask
    is_on: Tuple[str, ...] = ("true",)
    is_off: Tuple[str, ...] = ("false",)
    alone: str = ""
    auth: str = "basic"
    headers: Tuple[Tuple[str, str], ...] = ()

    def needs_numbers(self) -> bool:
        """Return whether an outlet must be a number."""
        return any(INDEX in text for text in self._texts())

    def tells_apart(self) -> bool:
        """Return whether an outlet's name is in each request, or is what its state is found by in the answer."""
        asked = [(self.state, self.read.path, self.read.body), *((ask.path, ask.body) for ask in (self.on, self.off))]
        return all(NAME in text or INDEX in text for text in map("".join, asked))

    def _texts(self) -> Iterator[str]:
        yield self.state
        for ask in (self.read, self.on, self.off):
            yield from (ask.path, ask.body)


#: Sources: the vendors' pages of their interfaces. Shelly: shelly-api-docs.shelly.cloud, Gen1 /relay, Gen2 Switch.
#: Tasmota: tasmota.github.io/docs/Commands, web requests. Home Assistant: developers.home-assistant.io/docs/api/rest.
#: NETIO: AN21, JSON M2M API. Digital Loggers: digital-loggers.com/rest.html; its outlets are counted from 1 on the
#: device and from 0 in its addresses, and physical_state is what the relay does.
APIS = {
    "shelly1": Api(
        read=Ask("/relay/{outlet}"),
        state="/ison",
        on=Ask("/relay/{outlet}?turn=on"),
        off=Ask("/relay/{outlet}?turn=off"),
    ),
    "shelly2": Api(
        read=Ask("/rpc/Switch.GetStatus?id={outlet}"),
        state="/output",
        on=Ask("/rpc/Switch.Set?id={outlet}&on=true"),
        off=Ask("/rpc/Switch.Set?id={outlet}&on=false"),
        auth="digest",
    ),
    "tasmota": Api(
        read=Ask("/cm?cmnd=Power{outlet}"),
        state="/POWER{outlet}",
        alone="/POWER",
        on=Ask("/cm?cmnd=Power{outlet}%20On"),
        off=Ask("/cm?cmnd=Power{outlet}%20Off"),
        is_on=('"ON"',),
        is_off=('"OFF"',),
        auth="query",
    ),
    "home_assistant": Api(
        read=Ask("/api/states/{outlet}"),
        state="/state",
        on=Ask("/api/services/switch/turn_on", "POST", '{"entity_id": "{outlet}"}'),
        off=Ask("/api/services/switch/turn_off", "POST", '{"entity_id": "{outlet}"}'),
        is_on=('"on"',),
        is_off=('"off"',),
        auth="bearer",
    ),
    "netio": Api(
        read=Ask("/netio.json"),
        state="/Outputs/ID={outlet}/State",
        on=Ask("/netio.json", "POST", '{"Outputs": [{"ID": {outlet}, "Action": 1}]}'),
        off=Ask("/netio.json", "POST", '{"Outputs": [{"ID": {outlet}, "Action": 0}]}'),
        is_on=("1",),
        is_off=("0",),
    ),
    "dli": Api(
        read=Ask("/restapi/relay/outlets/{index}/physical_state/"),
        state="",
        on=Ask("/restapi/relay/outlets/{index}/state/", "PUT", "value=true"),
        off=Ask("/restapi/relay/outlets/{index}/state/", "PUT", "value=false"),
        auth="digest",
        headers=(("X-CSRF", "x"), ("Accept", "application/json")),
    ),
}
#: Keys of a table in the inventory, and of a request in it.
KEYS = tuple(one.name for one in fields(Api))
ASK_KEYS = tuple(one.name for one in fields(Ask))
REQUESTS = ("read", "on", "off")


def filled(ask: Ask, outlet: str) -> Ask:
    """Return the request for an outlet."""
    return replace(ask, path=named(ask.path, outlet), body=named(ask.body, outlet))


def named(text: str, outlet: str) -> str:
    """Return a text of a table for an outlet."""
    text = text.replace(INDEX, str(int(outlet) - 1)) if INDEX in text else text
    return text.replace(NAME, outlet)


def found(answer: Any, pointer: str) -> Any:
    """Return what a JSON pointer leads to in an answer.

    :raises KeyError: nothing is there.
    """
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        key, equals, value = part.partition("=")
        if isinstance(answer, list) and equals:
            answer = next((one for one in answer if isinstance(one, dict) and str(one.get(key)) == value), None)
        elif isinstance(answer, list):
            answer = answer[int(part)] if part.isdecimal() and int(part) < len(answer) else None
        elif isinstance(answer, dict):
            answer = answer.get(part)
        else:
            answer = None
        if answer is None:
            raise KeyError(pointer)
    return answer


def wrong_table(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, remedy) of each mistake in a table of the inventory."""
    yield from wrong_keys("api_table", table, KEYS)
    for key in REQUESTS:
        yield from _wrong_request(key, table.get(key))
    usual = {key: [json.loads(text) for text in getattr(Api, key)] for key in ("is_on", "is_off")}
    yield from wrong_states("api_table", table, usual)
    if not str(table.get("state", "")).startswith("/") and table.get("state") != "":
        yield "its api_table has no state", "give the JSON pointer of the state in the answer, such as /ison"
    if not isinstance(table.get("alone", ""), str):
        yield "its api_table has an alone that is no text", "give the JSON pointer of the only outlet's state"
    if table.get("auth", AUTHS[0]) not in AUTHS:
        yield f"its api_table has no such auth: {table['auth']}", instead(table["auth"], AUTHS)
    headers = table.get("headers", {})
    if not isinstance(headers, dict):
        yield "its api_table has no mapping for headers", "give names and values"
    elif not all(HEADER.fullmatch(str(name)) and VALUE.fullmatch(str(value)) for name, value in headers.items()):
        # a value may be a secret
        yield "its api_table has a header that HTTP cannot carry", "give names and values of one line of plain ASCII"


def _wrong_request(key: str, given: Any) -> Iterator[tuple[str, str]]:
    example = f"{key}: {{path: '/relay/{NAME}'}}"
    if not isinstance(given, dict) or not PATH.fullmatch(str(given.get("path", ""))):
        yield f"its api_table has no {key} with a path that begins with / and has no space", f"give {example}"
        return
    for name in given:
        if name not in ASK_KEYS:
            yield f"its api_table has an unknown key {key}.{name}", instead(name, ASK_KEYS)
    if not isinstance(given.get("body", ""), str) or HALF.search(given.get("body", "")):
        yield f"its api_table has a {key}.body that is no text", "write it as the device reads it, in quotes"
    if given.get("method", METHODS[0]) not in METHODS:
        yield f"its api_table has no such {key}.method: {given['method']}", instead(given["method"], METHODS)


def own(table: Mapping[str, Any]) -> Api:
    """Return the Api of a table of the inventory in which wrong_table finds nothing."""
    plain = {key: table[key] for key in ("state", "alone", "auth") if key in table}
    requests = {key: Ask(**table[key]) for key in REQUESTS}
    values: dict[str, Sequence[str]] = {
        key: tuple(json.dumps(value) for value in table[key]) for key in ("is_on", "is_off") if key in table
    }
    headers = tuple((str(name), str(value)) for name, value in table.get("headers", {}).items())
    return Api(**plain, **requests, **values, headers=headers)  # type: ignore[arg-type]
