# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NetBox by its REST API: devices, their interfaces' MACs, and the outlets that cables lead to from their power ports.

`url` is the address of a list of devices as the browser shows it, with its filters. Nothing is written there, and the
token goes to that server only.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from ...core.errors import BadInput
from ..documents import Asked, json_of
from ..source_site import BOARD_KEYS, Board, Pdu, Site, told

#: How many objects one page is asked for, and devices one question names. A server may give fewer.
PAGE, NAMED = 100, 50
#: Most pages of one list: a server that always says that there are more is not asked for ever.
MOST_PAGES = 10_000
#: What a browser's address has besides filters.
NO_FILTERS = ("page", "per_page", "sort", "limit", "offset", "format")
#: Names of outlets that are a number and a word for outlet; others are asked for.
OUTLET = re.compile(r"(?:(?:outlet|port|socket|plug|out)[ _#-]*)?0*([1-9][0-9]*)", re.IGNORECASE)
#: Custom fields that are taken where a site has such.
CUSTOM = tuple(key for key in BOARD_KEYS if key not in ("mac", "ip", "pdu", "outlet"))


def read(asked: Asked) -> Site:
    base, filters = place(asked.url)
    server = Server(base, asked.token, asked.get)
    devices = server.all("dcim/devices", filters)
    ids = [device["id"] for device in devices]
    interfaces = list(server.of("dcim/interfaces", "device_id", ids))
    ports = list(server.of("dcim/power-ports", "device_id", ids))
    feeding = sorted({peer["device"]["id"] for port in ports for peer in outlets(port)})
    site = site_of(devices, interfaces, ports, list(server.of("dcim/devices", "id", feeding)), base)
    if asked.token and base.startswith("http:"):
        site.notes.append(f"{base}: the token went there unencrypted")
    return site


def place(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return (the server's address with its path, filters) of the address of a list of devices."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput("is no address of a server", url, "give url=https://netbox.example.org/dcim/devices/?site=lab")
    if parts.username or parts.password:
        what = "has a user name or password, which others see in the command"
        raise BadInput(what, parts.hostname, "leave it out: the token comes from NETBOX_TOKEN or hetero_netbox_token")
    path = re.sub(r"/(?:api/)?(?:dcim/(?:devices/)?)?\Z", "", f"{parts.path.rstrip('/')}/")
    filters = [(key, value) for key, value in parse_qsl(parts.query) if key not in NO_FILTERS]
    return f"{parts.scheme}://{parts.netloc}{path}", filters


class Server:
    """The lists of one NetBox, whole: all pages of each."""

    def __init__(self, base: str, token: str, get: Callable[[str, dict[str, str]], str]) -> None:
        self._base, self._get = base, get
        # a token of NetBox 4.5 and later names itself, and has another scheme
        scheme = "Bearer" if token.startswith("nbt_") else "Token"
        self._headers = {"Accept": "application/json", **({"Authorization": f"{scheme} {token}"} if token else {})}

    def of(self, kind: str, key: str, values: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield all objects of a kind whose `key` is one of these values."""
        for start in range(0, len(values), NAMED):
            yield from self.all(kind, [(key, str(value)) for value in values[start : start + NAMED]])

    def all(self, kind: str, filters: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        """Return all objects of a kind, of all pages; raise BadInput where a page is missing or cut off."""
        found: dict[Any, dict[str, Any]] = {}
        count = None
        for _page in range(MOST_PAGES):
            query = urlencode([*filters, ("limit", PAGE), ("offset", len(found))])
            url = f"{self._base}/api/{kind}/?{query}"
            answer = json_of(self._get(url, self._headers), url)
            results = told(answer, "results")
            if not isinstance(results, list) or not all(isinstance(told(one, "id"), int) for one in results):
                raise BadInput("does not answer as NetBox does: no results", url, "check the address")
            count = answer.get("count")
            before = len(found)
            found.update({one.get("id"): one for one in results})
            # by its own address and not by `next`, which may name another server
            if not answer.get("next") or len(found) == before:
                break
        if count != len(found):
            what = f"told of {count} objects, and gave {len(found)}"
            raise BadInput(what, f"{self._base}/api/{kind}/", "run this again once nobody changes them")
        return list(found.values())


def outlets(port: Mapping[str, Any]) -> list[Any]:
    """Return the outlets that a power port is cabled to; NetBox before 3.3 has one at most, under another name."""
    kind = port.get("connected_endpoints_type") or port.get("connected_endpoint_type")
    ends = port.get("connected_endpoints")
    ends = ends if isinstance(ends, list) else [port.get("connected_endpoint")]
    return [end for end in ends if isinstance(told(end, "device", "id"), int)] if kind == "dcim.poweroutlet" else []


def site_of(
    devices: Sequence[Mapping[str, Any]],
    interfaces: Sequence[Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    feeding: Sequence[Mapping[str, Any]],
    source: str,
) -> Site:
    """Return the site of NetBox's objects.

    :param feeding: the devices whose outlets feed them.
    """
    site, names = Site(), _names(feeding)
    interfaces_of, ports_of = _by_device(interfaces), _by_device(ports)
    for device in devices:
        name = _name(device)
        board = Board(name, f"{source}, device {name}")
        board.take("ip", str(told(device, "primary_ip4", "address") or "").partition("/")[0])
        board.take("vendor", told(device, "device_type", "manufacturer", "name"))
        board.take("model", told(device, "device_type", "model"))
        for key in CUSTOM:
            board.take_field(key, told(device, "custom_fields", key))
        _add_mac(board, interfaces_of.get(device["id"], []))
        _add_power(site, board, ports_of.get(device["id"], []), names)
        site.boards.append(board)
    for device in feeding:
        if names.get(device.get("id")) in site.pdus:
            _add_pdu(site.pdus[names[device.get("id")]], device)
    return site


def _by_device(objects: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for one in objects:
        number = told(one, "device", "id")
        if isinstance(number, int):
            found.setdefault(number, []).append(one)
    return found


def _names(feeding: Sequence[Mapping[str, Any]]) -> dict[Any, str]:
    """Return PDUs' names by their ids; two sites of one NetBox may have PDUs of one name."""
    names = [_name(device) for device in feeding]
    twice = {name for name in names if names.count(name) > 1}
    return {
        device.get("id"): f"{name}-{device.get('id')}" if name in twice else name
        for device, name in zip(feeding, names)
    }


def _name(device: Mapping[str, Any]) -> str:
    return str(device.get("name") or f"device-{device.get('id')}")


def _add_mac(board: Board, interfaces: Sequence[Mapping[str, Any]]) -> None:
    """Take the MAC of the board's only interface that has one and is no BMC's; several are a question."""
    macs = {}
    for one in interfaces:
        mac = told(one, "primary_mac_address", "mac_address") or one.get("mac_address")
        if mac and not one.get("mgmt_only"):
            macs[str(one.get("name"))] = str(mac)
    if len(macs) == 1:
        board.take("mac", *macs.values())
    elif macs:
        which = ", ".join(f"{name} {mac}" for name, mac in sorted(macs.items()))
        board.ask("mac", f"{board.where}: which interface boots: {which}")
    else:
        board.ask("mac", f"{board.where}: no interface has a MAC address")


def _add_power(site: Site, board: Board, ports: Sequence[Mapping[str, Any]], names: Mapping[Any, str]) -> None:
    ends = [end for port in ports for end in outlets(port)]
    if len(ends) != 1:
        which = ", ".join(f"{end.get('name')} of {_name(end.get('device') or {})}" for end in ends)
        why = f"several outlets feed it ({which}), and one is switched" if ends else "no cable leads to an outlet"
        board.ask("pdu", f"{board.where}: {why}")
        return
    pdu = ends[0].get("device") or {}
    name = names.get(pdu.get("id"), _name(pdu))
    site.pdu(name, f"{board.where}, its cable")
    board.take("pdu", name)
    number = OUTLET.fullmatch(str(ends[0].get("name") or "").strip())
    if number:
        board.take("outlet", number[1])
    else:
        board.ask("outlet", f"{board.where}: the outlet of {name} is called {str(ends[0].get('name'))!r} there")


def _add_pdu(pdu: Pdu, device: Mapping[str, Any]) -> None:
    pdu.take("host", str(told(device, "primary_ip4", "address") or "").partition("/")[0])
    made = f"{told(device, 'device_type', 'manufacturer', 'name')} {told(device, 'device_type', 'model')}"
    pdu.ask("driver", f"{pdu.where}: NetBox says that it is {made}")
