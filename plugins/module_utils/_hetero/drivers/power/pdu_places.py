# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a PDU is reached, in the one spelling that all spellings and names of its address have."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
from functools import lru_cache
from typing import Any, Iterable, Mapping, NamedTuple

from ...site.proxy_config import SECRETS
from .fence import is_by_address

#: The settings of a PDU in proxy.json.
Settings = Mapping[str, Any]
#: Ports of a PDU itself (ssh, telnet, SNMP), which mean the same device as no port. Other ports may be forwarded ones.
OWN_PORTS = (None, 22, 23, 161)
#: Options of fence agents that choose one of several units behind one address.
UNITS = ("switch", "managed")
#: Options of fence agents that name the address, and its port, over what the PDU's settings say.
HOSTS, PORTS = ("ip", "ipaddr", "ip_address", "hostname", "host"), ("ipport", "udpport", "port")
#: The noted address where each outlet is an address of its own. It looks like a path, so that no resolver is asked.
EACH = "/port_as_ip"
#: The same of the hubs of this node, which are one PDU.
HUBS = "/uhubctl"
#: Settings that may differ between two names of one device.
BESIDES = ("agent_options", "banks", "driver", "host_key", "inrush", "known_hosts", "outlets", "username", *SECRETS)
#: Most seconds for looking up all names together, so that a name server that is down delays a process only once.
LOOKUPS = 12.0


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

    @property
    def keys(self) -> list[str]:
        """Return texts, in order, at least one of which each other name of the same device has, too.

        Without the port: by two ports it may be one device. Devices at forwarded ports of one host have the same texts.
        """
        return sorted(" ".join([host, self.unit] if self.unit else [host]) for host in self.hosts)


def place(settings: Settings) -> Place | None:
    """Return the Place of a PDU's settings, or None where they name no address."""
    host, port = where(settings)
    if not host:
        return None
    return placed(host, own_port(port), unit_of(settings), is_text(settings))


def where(settings: Settings) -> tuple[str | None, int | None]:
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
    elif driver == "uhubctl":
        return HUBS, None
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


def is_text(settings: Settings) -> bool:
    """Return whether a script interprets the PDU's host, which then need not be a host name."""
    return settings.get("driver") == "command"


def placed(host: str, port: int | None = None, unit: str | None = None, text: bool = False) -> Place:
    """Return the Place of a host, in the one spelling that all of its spellings and names have."""
    given = str(host)
    number = given if given.startswith("/") else as_number(given)
    if number:
        return Place(frozenset([number]), True, port, unit)
    name = given.lower().rstrip(".")
    if text:
        return Place(frozenset([name]), True, port, unit, True)
    found = _looked_up(name)
    return Place(found | {name}, bool(found), port, unit)


def as_number(text: str) -> str | None:
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
        return [as_number(str(address[0])) or str(address[0]) for *_kind, address in found]
    except (OSError, UnicodeError):
        return []


def own_port(port: int | None) -> int | None:
    """Return a port, or None for one of OWN_PORTS."""
    return None if port in OWN_PORTS else port


def unit_of(settings: Settings) -> str | None:
    """Return which of several units behind one address a PDU's settings name, or None."""
    options = {} if is_by_address(settings) else _options(settings)
    named = [f"{key} {options[key]}" for key in UNITS if options.get(key)]
    script = _script(settings)
    return " ".join([*named, *([script] if script else [])]) or None


def _script(settings: Settings) -> str | None:
    script = settings.get("script")
    return os.path.normpath(str(script)) if script else None
