# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names of PDUs are names of one device: what is reached at one address has the same outlets, whatever it is
called, and by whichever of its own ports it is asked. Several units behind one address are several devices.

Where that cannot be told for sure, two questions have two answers: `is_same` is sure, `may_be_same` is what nobody may
rule out.
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
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, NamedTuple

from ...drivers.power.fence import is_by_address
from ...site.proxy_config import SECRETS

if TYPE_CHECKING:
    from ..records.claim_records import Fed

#: What proxy.json says of a PDU; and {name: settings} of all PDUs.
Settings = Mapping[str, Any]
Pdus = Mapping[str, Settings]
#: Ports at which a PDU itself is asked, by ssh, telnet and SNMP: its own address, as where none is named.
OWN_PORTS = (None, 22, 23, 161)
#: Options of fence agents that choose one of several units behind one address.
UNITS = ("switch", "managed")
#: Options of fence agents that name the address, and its port, over what the PDU's settings say.
HOSTS, PORTS = ("ip", "ipaddr", "ip_address", "hostname", "host"), ("ipport", "udpport", "port")
#: What is noted where each outlet is an address of its own. As a file's path it is no name for a resolver.
EACH = "/port_as_ip"
#: Begins a noted address's unit. Older releases take it all for a host that has no address just now.
UNIT = " ;unit="
#: Settings that make no other device of a PDU.
BESIDES = ("agent_options", "driver", "host_key", "known_hosts", "outlets", "username", *SECRETS)
#: All names together are asked for so long (seconds): who is on the same node as a name server that is down waits once.
LOOKUPS = 12.0
PORT = re.compile(r"(?P<host>.+):(?P<port>[0-9]{1,5})")


class Place(NamedTuple):
    """Where a PDU is reached.

    :param hosts: its host's name, and all of its addresses.
    :param known: whether there are addresses.
    :param port: None for one of its own.
    :param unit: which of several it is that one address has; None where its settings do not say.
    :param text: whether its host is what a script makes of it, which no resolver is asked for.
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
        """Return whether nobody can rule out that both are one address.

        That is so where only one of them names a port, and where a name has no address just now.
        """
        ports = self.port == other.port or None in (self.port, other.port)
        named = not (self.known and other.known) and not (self.text or other.text)
        return ports and (bool(self.hosts & other.hosts) or named)


def address(settings: Settings) -> str | None:
    """Return what a PDU is known by, whatever it is called, or None where its settings name nothing of that.

    It is known by host and port, the file that plays it, or what else its settings name, and by its unit.
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
    """Return an outlet as its PDU counts it: 05 is 5, and an outlet that is an address has that one's own spelling."""
    text = str(outlet).strip()
    return str(int(text)) if re.fullmatch(r"[0-9]+", text) else _number(text) or text


def is_same(noted: str, settings: Settings) -> bool:
    """Return whether what was noted (`address`) is surely that of a PDU."""
    places = _places(noted, settings)
    return any(
        one.is_at(here) and one.unit in (None, here.unit) for one in _readings(noted, settings) for here in places
    )


def may_be_same(noted: str, settings: Settings) -> bool:
    """Return whether nobody can rule out that what was noted (`address`) is that of a PDU."""
    places = _places(noted, settings)
    return any(
        one.may_be_at(here) and (None in (one.unit, here.unit) or one.unit == here.unit)
        for one in _readings(noted, settings)
        for here in places
    )


def devices(pdus: Pdus) -> dict[str, str]:
    """Return {name of a PDU: the first of all names of the same device}, for all that is sure.

    PDUs without an address are not in it.
    """
    places = {name: here for name, here in ((name, place(pdus[name])) for name in pdus) if here}
    first: dict[str, str] = {}
    for name, here in places.items():
        alike = {first[other] for other in first if here.is_at(places[other]) and here.unit == places[other].unit}
        first[name] = min([name, *alike])
        first.update({other: first[name] for other in first if first[other] in alike})
    return first


def of(pdus: Pdus, fed: Fed, alike: Callable[[str, Settings], bool]) -> list[str]:
    """Return the names of PDUs at the address that was noted of an outlet, its own first; none of another unit.

    :param fed: the outlet, as it was noted.
    :param alike: is_same or may_be_same.
    """
    noted = fed.address
    if not noted:
        return []
    named = [name for name in pdus if alike(noted, pdus[name])]
    if fed.pdu in named and UNIT not in noted:
        # an earlier release noted no unit: its name's counts
        named = [name for name in named if not are_apart(pdus[fed.pdu], pdus[name])]
    return sorted(named, key=lambda name: name != fed.pdu)


def now(pdus: Pdus, fed: Fed) -> list[str]:
    """Return the names that the PDU of an outlet has now, its own first.

    They are those of the device that was noted, or, where that is nowhere, of the device that has its name. There are
    none where that is gone, too.
    """
    return of(pdus, _as_known(pdus, fed), is_same) or [name for name in (fed.pdu,) if name in pdus]


def is_at(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> bool:
    """Return whether what was noted of an outlet is surely this one, whatever its PDU is called now."""
    return pdu in now(pdus, fed) and _is_outlet(pdus[pdu], fed.outlet, outlet, Place.is_at)


def may_be_at(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> bool:
    """Return whether nobody can rule out that what was noted of an outlet is this one."""
    if pdu not in pdus:
        return False
    known = _as_known(pdus, fed)
    named = pdu in now(pdus, fed) or any(pdu in of(pdus, one, may_be_same) for one in (fed, known))
    return (named and _is_outlet(pdus[pdu], fed.outlet, outlet, Place.may_be_at)) or _is_machine(
        pdus[pdu], known, outlet
    )


def unresolved(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> list[str]:
    """Return host names without an address just now, so that nobody can tell whether what was noted is this outlet."""
    settings = pdus.get(pdu, {})
    named = place(settings)
    places = [named] if named else []
    for noted in {fed.address, _as_known(pdus, fed).address}:
        places += _readings(noted, settings) if noted is not None else []
    if any(EACH in here.hosts for here in places):
        places += [_placed(fed.outlet), _placed(outlet)]
    return sorted({host for here in places if not here.known for host in here.hosts})


def _as_known(pdus: Pdus, fed: Fed) -> Fed:
    """Return what was noted of an outlet.

    Where the PDU that was noted is nowhere now, it is what would be noted of the PDU that has its name.
    """
    named = of(pdus, fed, is_same)
    # an earlier release noted the PDU's host also where each outlet is an address
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
    """Return whether one is an outlet that is itself an address, and the other of a PDU at just that address."""
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
    """Return the places of a PDU's settings of which what was noted may be.

    An earlier release noted nothing but host and port.
    """
    here, host = place(settings), settings.get("host") or settings.get("path")
    if here is None or UNIT in noted or noted.startswith(EACH) or not host:
        return [here] if here else []
    return [here, _placed(host, _port(settings.get("port")), here.unit, _is_text(settings))]


def _readings(noted: str, settings: Settings) -> list[Place]:
    """Return the places that a noted address may mean: the last part of one of IPv6 may be a port.

    :param settings: the PDU's that it is held against: where a script takes its host as text, so was the one noted.
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

    Where there is no host, it is a text of all that tells the PDU from others.
    """
    options, driver = _options(settings), settings.get("driver")
    host = _first(options, HOSTS) or settings.get("host") or settings.get("path")
    port = _first(options, PORTS) or settings.get("port")
    if is_by_address(settings):
        host = EACH
    elif driver == "command":
        # its script is called with the host alone
        return host or _script(settings), None
    elif not host and driver == "fence":
        named = {**{key: settings[key] for key in settings if key not in BESIDES}, **options}
        words = [f"{key}={named[key]}" for key in sorted(named) if key not in BESIDES and named[key] not in (None, "")]
        return " ".join(["/fence", *words]), None
    return host, int(str(port)) if str(port).isdigit() else None


def _options(settings: Settings) -> Mapping[str, Any]:
    """Return what a fence agent is told besides the settings that all drivers have."""
    options = settings.get("agent_options")
    return options if isinstance(options, dict) and settings.get("driver", "fence") == "fence" else {}


def _first(options: Mapping[str, Any], words: Iterable[str]) -> Any:
    return next((options[word] for word in words if options.get(word)), None)


def _is_text(settings: Settings) -> bool:
    """Return whether a PDU's host is what a script makes of it."""
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
    """Return an address in its own spelling, of IPv4 where it is one, or None for a name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=None)
def _looked_up(name: str) -> frozenset[str]:
    """Return the addresses of a name; none where nobody says one in time."""
    found: list[str] = []
    began = time.monotonic()
    asking = threading.Thread(target=lambda: found.extend(_addresses(name)), name=f"look up {name}", daemon=True)
    asking.start()
    asking.join(max(0.0, LOOKUPS - _waited[0]))
    _waited[0] += time.monotonic() - began
    return frozenset(found)


#: Seconds that were waited for names so far.
_waited = [0.0]


def _addresses(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return [_number(str(address[0])) or str(address[0]) for *_kind, address in found]
    except (OSError, UnicodeError):
        return []


def _port(port: int | None) -> int | None:
    """Return a port, or None for one of a PDU's own."""
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
