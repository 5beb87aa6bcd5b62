# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names of PDUs are names of one device: what is reached at one address has the same outlets, whatever it is
called, and by whichever of its own ports it is asked.

Where that cannot be told for sure, two questions have two answers: `is_same` is sure, `may_be_same` is what nobody may
rule out.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from functools import lru_cache
from typing import NamedTuple

#: Ports at which a PDU itself is asked, by ssh, telnet and SNMP: its own address, as where none is named.
OWN_PORTS = (None, 22, 23, 161)
#: Options of fence agents that choose one of several units behind one address.
UNITS = ("switch", "managed")
#: All names together are asked for so long (seconds): who is on the same node as a name server that is down waits once.
LOOKUPS = 12.0
PORT = re.compile(r"(?P<host>.+):(?P<port>[0-9]{1,5})")


class Place(NamedTuple):
    """Where a PDU is reached.

    :param hosts: all of its host's addresses; the name itself where nobody says one.
    :param known: whether these are addresses.
    :param port: None for one of its own.
    :param unit: which of several it is that one address has; None where its settings do not say.
    """

    hosts: frozenset[str]
    known: bool
    port: int | None = None
    unit: str | None = None

    def is_at(self, other):
        """Whether both are surely one address."""
        return self.port == other.port and bool(self.hosts & other.hosts)

    def may_be_at(self, other):
        """Whether nobody can rule that out: only one of them names a port, or a name has no address just now."""
        ports = self.port == other.port or None in (self.port, other.port)
        return ports and (bool(self.hosts & other.hosts) or not (self.known and other.known))


def address(settings):
    """What a PDU is known by, whatever it is called: host and port, or the file that plays it; None without either."""
    host, port = settings.get("host"), settings.get("port")
    return (f"{host}:{port}" if port else host) if host else settings.get("path")


def place(settings):
    """The Place of a PDU's settings; None where they name no address."""
    host = settings.get("host") or settings.get("path")
    if not host:
        return None
    return _placed(host, _port(settings.get("port")), _unit(settings))


def plug(outlet):
    """An outlet as its PDU counts it: 05 is 5."""
    text = str(outlet).strip()
    return str(int(text)) if re.fullmatch(r"[0-9]+", text) else text


def is_same(noted, settings):
    """Whether an address that was noted (`address`) is that of a PDU."""
    here = place(settings)
    return here is not None and any(one.is_at(here) for one in _readings(noted))


def may_be_same(noted, settings):
    """The same for what nobody can rule out (Place.may_be_at)."""
    here = place(settings)
    return here is not None and any(one.may_be_at(here) for one in _readings(noted))


def devices(pdus):
    """{name of a PDU: the first of all names of the same device}, for all that is sure; none of those without address.

    :param pdus: {name: settings}.
    """
    places = {name: here for name, here in ((name, place(pdus[name])) for name in pdus) if here}
    first: dict[str, str] = {}
    for name, here in places.items():
        alike = {first[other] for other in first if here.is_at(places[other]) and here.unit == places[other].unit}
        first[name] = min([name, *alike])
        first.update({other: first[name] for other in first if first[other] in alike})
    return first


def of(pdus, fed, alike):
    """Names of PDUs at the address that was noted of an outlet, its own first; none of another unit.

    :param pdus: {name: settings}.
    :param fed: claim_records.Fed.
    :param alike: is_same or may_be_same.
    """
    named = [name for name in pdus if fed.address and alike(fed.address, pdus[name])]
    if fed.pdu in named:
        named = [name for name in named if not are_apart(pdus[fed.pdu], pdus[name])]
    return sorted(named, key=lambda name: name != fed.pdu)


def now(pdus, fed):
    """Names that the PDU of an outlet has now, its own first: all of its address, else its own; none where it is gone.

    :param pdus, fed: as for `of`.
    """
    return of(pdus, fed, is_same) or [name for name in (fed.pdu,) if name in pdus]


def is_at(pdus, fed, pdu, outlet):
    """Whether what was noted of an outlet is this one, whatever its PDU is called now; the rest is as for `of`."""
    return plug(fed.outlet) == plug(outlet) and pdu in now(pdus, fed)


def may_be_at(pdus, fed, pdu, outlet):
    """The same for what nobody may rule out."""
    return plug(fed.outlet) == plug(outlet) and (pdu in now(pdus, fed) or pdu in of(pdus, fed, may_be_same))


def are_apart(one, other):
    """Whether the settings of two PDUs name two units behind one address."""
    units = [_unit(settings) for settings in (one, other)]
    return None not in units and units[0] != units[1]


def _readings(noted):
    """Places that a noted address may mean: the last part of one of IPv6 may be a port."""
    found = PORT.fullmatch(noted)
    if not found or noted.startswith("/"):
        return [_placed(noted)]
    if ":" not in found["host"]:
        return [_with_port(found)]
    return [*([_with_port(found)] if _number(found["host"]) else []), _placed(noted)]


def _with_port(found):
    return _placed(found["host"], _port(int(found["port"])))


def _placed(host, port=None, unit=None):
    """The Place of a host, in the one spelling that all of its spellings and names have."""
    text = str(host)
    number = text if text.startswith("/") else _number(text)
    name = text.lower().rstrip(".")
    found = frozenset([number]) if number else _looked_up(name)
    return Place(found or frozenset([name]), bool(found), port, unit)


def _number(text):
    """An address in its own spelling, of IPv4 where it is one; None for a name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=None)
def _looked_up(name):
    """The addresses of a name; none where nobody says one in time."""
    found: list[str] = []
    began = time.monotonic()
    asking = threading.Thread(target=lambda: found.extend(_addresses(name)), name=f"look up {name}", daemon=True)
    asking.start()
    asking.join(max(0.0, LOOKUPS - _waited[0]))
    _waited[0] += time.monotonic() - began
    return frozenset(found)


#: Seconds that were waited for names so far.
_waited = [0.0]


def _addresses(name):
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return [_number(str(address[0])) or str(address[0]) for *_kind, address in found]
    except (OSError, UnicodeError):
        return []


def _port(port):
    return None if port in OWN_PORTS else port


def _unit(settings):
    options = settings.get("agent_options")
    named = [f"{key} {options[key]}" for key in UNITS if options.get(key)] if isinstance(options, dict) else []
    script = settings.get("script")
    return " ".join([*named, *([str(script)] if script else [])]) or None
