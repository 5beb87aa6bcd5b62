# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which names of PDUs mean one device: names with one address have the same outlets, by whichever port the PDU is
asked. Several units behind one address are several devices.

Where that is uncertain, `is_same` returns False and `may_be_same` returns True.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import threading
import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, NamedTuple

from ...drivers.power.fence import is_by_address
from ...site.proxy_config import SECRETS

if TYPE_CHECKING:
    from ..records.claim_records import Fed

#: The settings of a PDU in proxy.json; and {name: settings} of all PDUs.
Settings = Mapping[str, Any]
Pdus = Mapping[str, Settings]
#: Ports of a PDU itself (ssh, telnet, SNMP), which mean the same device as no port. Other ports may be forwarded ones.
OWN_PORTS = (None, 22, 23, 161)
#: Options of fence agents that choose one of several units behind one address.
UNITS = ("switch", "managed")
#: Options of fence agents that name the address, and its port, over what the PDU's settings say.
HOSTS, PORTS = ("ip", "ipaddr", "ip_address", "hostname", "host"), ("ipport", "udpport", "port")
#: The noted address where each outlet is an address of its own. It looks like a path, so that no resolver is asked.
EACH = "/port_as_ip"
#: The text before the unit in a noted address. Older releases take the whole for a host without an address.
UNIT = " ;unit="
#: Settings that may differ between two names of one device.
BESIDES = ("agent_options", "driver", "host_key", "known_hosts", "outlets", "username", *SECRETS)
#: Most seconds for looking up all names together, so that a name server that is down delays a process only once.
LOOKUPS = 12.0
PORT = re.compile(r"(?P<host>.+):(?P<port>[0-9]{1,5})")


class Remembered(Dict[str, Settings]):
    """PDUs by name that are asked many times which of them have an address, and do not change meanwhile."""

    def __init__(self, pdus: Pdus) -> None:
        super().__init__(pdus)
        self._found: dict[tuple[str, Callable[[str, Settings], bool]], list[str]] = {}

    def alike(self, noted: str, alike: Callable[[str, Settings], bool]) -> list[str]:
        key = noted, alike
        if key not in self._found:
            self._found[key] = _alike(self, noted, alike)
        return self._found[key]


class Place(NamedTuple):
    """Where a PDU is reached.

    :param hosts: the host's name and all of its addresses.
    :param known: True where there are addresses.
    :param port: the port; None for one of OWN_PORTS.
    :param unit: which of several units behind one address it is; None where the settings do not say.
    :param text: True where a script interprets the host, so that no resolver is asked for it.
    """

    hosts: frozenset[str]
    known: bool
    port: int | None = None
    unit: str | None = None
    text: bool = False

    def is_at(self, other: Place) -> bool:
        """Return whether both are surely one address."""
        return self.port == other.port and bool(self.hosts & other.hosts)

    def may_be_at(self, other: Place) -> bool:
        """Return whether both may be one address.

        They may where only one of them names a port, and where a name has no address just now.
        """
        ports = self.port == other.port or None in (self.port, other.port)
        named = not (self.known and other.known) and not (self.text or other.text)
        return ports and (bool(self.hosts & other.hosts) or named)


def address(settings: Settings) -> str | None:
    """Return the text that identifies a PDU whatever its name is, or None where its settings have nothing for it.

    It has host and port, or the file that plays the PDU, or other settings, and the unit.
    """
    host, port = _where(settings)
    unit = f"{UNIT}{_unit(settings)}" if _unit(settings) else ""
    return f"{host}:{port}{unit}" if host and port else f"{host}{unit}" if host else None


def place(settings: Settings) -> Place | None:
    """Return the Place of a PDU's settings, or None where they name no address."""
    host, port = _where(settings)
    if not host:
        return None
    return _placed(host, _port(port), _unit(settings), _is_text(settings))


def plug(outlet: str | int) -> str:
    """Return an outlet in one spelling: "5" for "05", and the usual spelling of an outlet that is an IP address."""
    text = str(outlet).strip()
    return str(int(text)) if re.fullmatch(r"[0-9]+", text) else _number(text) or text


def is_same(noted: str, settings: Settings) -> bool:
    """Return whether a noted address (`address`) is surely that of a PDU."""
    places = _places(noted, settings)
    return any(
        one.is_at(here) and one.unit in (None, here.unit) for one in _readings(noted, settings) for here in places
    )


def may_be_same(noted: str, settings: Settings) -> bool:
    """Return whether a noted address (`address`) may be that of a PDU."""
    places = _places(noted, settings)
    return any(
        one.may_be_at(here) and (None in (one.unit, here.unit) or one.unit == here.unit)
        for one in _readings(noted, settings)
        for here in places
    )


def devices(pdus: Pdus) -> dict[str, str]:
    """Return {name of a PDU: the first name of the same device}, as far as that is certain.

    PDUs without an address are left out.
    """
    places = {name: here for name, here in ((name, place(pdus[name])) for name in pdus) if here}
    first: dict[str, str] = {}
    for name, here in places.items():
        alike = {first[other] for other in first if here.is_at(places[other]) and here.unit == places[other].unit}
        first[name] = min([name, *alike])
        first.update({other: first[name] for other in first if first[other] in alike})
    return first


def of(pdus: Pdus, fed: Fed, alike: Callable[[str, Settings], bool]) -> list[str]:
    """Return the names of PDUs at the noted address of an outlet's PDU, its noted name first; none of another unit.

    :param fed: the outlet as it was noted.
    :param alike: is_same or may_be_same.
    """
    noted = fed.address
    if not noted:
        return []
    named = pdus.alike(noted, alike) if isinstance(pdus, Remembered) else _alike(pdus, noted, alike)
    if fed.pdu in named and UNIT not in noted:
        # An earlier release noted no unit: the unit of the PDU of that name counts.
        named = [name for name in named if not are_apart(pdus[fed.pdu], pdus[name])]
    return sorted(named, key=lambda name: name != fed.pdu)


def _alike(pdus: Pdus, noted: str, alike: Callable[[str, Settings], bool]) -> list[str]:
    return [name for name in pdus if alike(noted, pdus[name])]


def has_outlets_by_number(pdus: Pdus, fed: Fed) -> bool:
    """Return whether a noted outlet is surely none that is itself an address, of which one has several spellings."""
    return not ((fed.address or "").startswith(EACH) or is_by_address(pdus.get(fed.pdu, {})))


def now(pdus: Pdus, fed: Fed) -> list[str]:
    """Return the names that a noted outlet's PDU has now, its noted name first.

    They are those of the noted device or, where no PDU has its address, those of the PDU with its name. There are none
    where that is gone, too.
    """
    return of(pdus, _as_known(pdus, fed), is_same) or [name for name in (fed.pdu,) if name in pdus]


def is_at(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> bool:
    """Return whether a noted outlet is surely this one, whatever its PDU is called now."""
    return pdu in now(pdus, fed) and _is_outlet(pdus[pdu], fed.outlet, outlet, Place.is_at)


def may_be_at(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> bool:
    """Return whether a noted outlet may be this one."""
    if pdu not in pdus:
        return False
    known = _as_known(pdus, fed)
    named = pdu in now(pdus, fed) or any(pdu in of(pdus, one, may_be_same) for one in (fed, known))
    return (named and _is_outlet(pdus[pdu], fed.outlet, outlet, Place.may_be_at)) or _is_machine(
        pdus[pdu], known, outlet
    )


def unresolved(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> list[str]:
    """Return the host names without an address just now, because of which a noted outlet may be this one."""
    settings = pdus.get(pdu, {})
    named = place(settings)
    places = [named] if named else []
    for noted in (fed.address, _as_known(pdus, fed).address):
        places += _readings(noted, settings) if noted is not None else []
    if any(EACH in here.hosts for here in places):
        places += [_placed(fed.outlet), _placed(outlet)]
    return sorted({host for here in places if not here.known for host in here.hosts})


def _as_known(pdus: Pdus, fed: Fed) -> Fed:
    """Return a noted outlet as it would be noted today.

    Where no PDU has the noted address now, that of the PDU with the noted name takes its place.
    """
    named = of(pdus, fed, is_same)
    # An earlier release noted the PDU's host also where each outlet is an address.
    is_old = fed.pdu in named and is_by_address(pdus[fed.pdu])
    if fed.pdu not in pdus or (named and not is_old):
        return fed
    return replace(fed, address=address(pdus[fed.pdu]))


def _is_outlet(settings: Settings, one: str, other: str, alike: Callable[[Place, Place], bool]) -> bool:
    """Return whether two outlets of a PDU are one; two addresses may have other spellings or names."""
    if plug(one) == plug(other):
        return True
    return _where(settings)[0] == EACH and alike(_placed(one), _placed(other))


def _is_machine(settings: Settings, fed: Fed, outlet: str) -> bool:
    """Return whether one outlet is itself an address, and the other is an outlet of a PDU at just that address."""
    here = place(settings)
    if here is None or fed.address is None:
        return False
    for there in _readings(fed.address, settings):
        each = EACH in there.hosts, EACH in here.hosts
        if each == (True, False) and _placed(fed.outlet).hosts & here.hosts:
            return True
        if each == (False, True) and _placed(outlet).hosts & there.hosts:
            return True
    return False


def are_apart(one: Settings, other: Settings) -> bool:
    """Return whether the settings of two PDUs name two units behind one address."""
    units = [_unit(settings) for settings in (one, other)]
    return None not in units and units[0] != units[1]


def _places(noted: str, settings: Settings) -> list[Place]:
    """Return those places of a PDU's settings that a noted address may mean.

    An earlier release noted nothing but host and port.
    """
    here, host = place(settings), settings.get("host") or settings.get("path")
    if here is None or UNIT in noted or noted.startswith(EACH) or not host:
        return [here] if here else []
    return [here, _placed(host, _port(settings.get("port")), here.unit, _is_text(settings))]


def _readings(noted: str, settings: Settings) -> list[Place]:
    """Return the places that a noted address may mean: the last part of an IPv6 address may be a port.

    :param settings: those of the PDU that is compared; where a script interprets its host, the noted one is text, too.
    """
    host, _mark, unit = noted.partition(UNIT)
    found = PORT.fullmatch(host)
    if unit.startswith("/"):
        return [_placed(host, None, unit, True)]
    of_text = _is_text(settings)
    whole = _placed(host, None, unit or None, of_text)
    if not found or (host.startswith("/") and found["host"] != EACH):
        return [whole]
    with_port = _placed(found["host"], _port(int(found["port"])), unit or None, of_text)
    if ":" not in found["host"]:
        return [with_port, whole] if of_text else [with_port]
    return [*([with_port] if _number(found["host"]) else []), whole]


def _where(settings: Settings) -> tuple[str | None, int | None]:
    """Return (host, port) as a PDU's driver takes them.

    Where there is no host, a text of all settings that tell the PDU from others takes its place.
    """
    options, driver = _options(settings), settings.get("driver")
    host = _first(options, HOSTS) or settings.get("host") or settings.get("path")
    port = _first(options, PORTS) or settings.get("port")
    if is_by_address(settings):
        host = EACH
    elif driver == "command":
        # The script is called with the host alone.
        return host or _script(settings), None
    elif not host and driver == "fence":
        named = {**{key: settings[key] for key in settings if key not in BESIDES}, **options}
        words = [f"{key}={named[key]}" for key in sorted(named) if key not in BESIDES and named[key] not in (None, "")]
        return " ".join(["/fence", *words]), None
    return host, int(str(port)) if str(port).isdigit() else None


def _options(settings: Settings) -> Mapping[str, Any]:
    """Return the options for a fence agent besides the settings that all drivers have."""
    options = settings.get("agent_options")
    return options if isinstance(options, dict) and settings.get("driver", "fence") == "fence" else {}


def _first(options: Mapping[str, Any], words: Iterable[str]) -> Any:
    return next((options[word] for word in words if options.get(word)), None)


def _is_text(settings: Settings) -> bool:
    """Return whether a script interprets the PDU's host, which then need not be a host name."""
    return settings.get("driver") == "command"


def _placed(host: str, port: int | None = None, unit: str | None = None, text: bool = False) -> Place:
    """Return the Place of a host, in the one spelling that all of its spellings and names have."""
    given = str(host)
    number = given if given.startswith("/") else _number(given)
    if number:
        return Place(frozenset([number]), True, port, unit)
    name = given.lower().rstrip(".")
    if text:
        return Place(frozenset([name]), True, port, unit, True)
    found = _looked_up(name)
    return Place(found | {name}, bool(found), port, unit)


def _number(text: str) -> str | None:
    """Return an IP address in its usual spelling (IPv4 where it is a mapped one); None for a host name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=None)
def _looked_up(name: str) -> frozenset[str]:
    """Return the addresses of a name; none where no resolver answers in time."""
    found: list[str] = []
    began = time.monotonic()
    asking = threading.Thread(target=lambda: found.extend(_addresses(name)), name=f"look up {name}", daemon=True)
    asking.start()
    asking.join(max(0.0, LOOKUPS - _waited[0]))
    _waited[0] += time.monotonic() - began
    return frozenset(found)


#: Seconds that this process has waited for names so far.
_waited = [0.0]


def _addresses(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return [_number(str(address[0])) or str(address[0]) for *_kind, address in found]
    except (OSError, UnicodeError):
        return []


def _port(port: int | None) -> int | None:
    """Return a port, or None for one of OWN_PORTS."""
    return None if port in OWN_PORTS else port


def _unit(settings: Settings) -> str | None:
    """Return which of several units behind one address a PDU's settings name, or None."""
    options = {} if is_by_address(settings) else _options(settings)
    named = [f"{key} {options[key]}" for key in UNITS if options.get(key)]
    script = _script(settings)
    return " ".join([*named, *([script] if script else [])]) or None


def _script(settings: Settings) -> str | None:
    script = settings.get("script")
    return os.path.normpath(str(script)) if script else None
