# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which names of PDUs mean one device: names with one address have the same outlets, by whichever port the PDU is
asked. Several units behind one address are several devices.

Where that is uncertain, `is_same` returns False and `may_be_same` returns True.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Dict, Mapping

from ...drivers.power.fence import is_by_address
from ...drivers.power.pdu_places import (
    EACH,
    Place,
    Settings,
    as_number,
    is_text,
    own_port,
    place,
    placed,
    unit_of,
    where,
)

if TYPE_CHECKING:
    from ..records.claim_records import Fed

#: {name: settings} of all PDUs.
Pdus = Mapping[str, Settings]
#: The text before the unit in a noted address. Older releases take the whole for a host without an address.
UNIT = " ;unit="
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


def address(settings: Settings) -> str | None:
    """Return the text that identifies a PDU whatever its name is, or None where its settings have nothing for it.

    It has host and port, or the file that plays the PDU, or other settings, and the unit.
    """
    host, port = where(settings)
    unit = f"{UNIT}{unit_of(settings)}" if unit_of(settings) else ""
    return f"{host}:{port}{unit}" if host and port else f"{host}{unit}" if host else None


def plug(outlet: str | int) -> str:
    """Return an outlet in one spelling: "5" for "05", and the usual spelling of an outlet that is an IP address."""
    text = str(outlet).strip()
    return str(int(text)) if re.fullmatch(r"[0-9]+", text) else as_number(text) or text


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


def has_one_machine(settings: Settings) -> bool:
    """Return whether a PDU is a BMC by IPMI, which has one machine, whatever that is called by others of its names."""
    program = settings.get("agent") if settings.get("driver") == "fence" else settings.get("driver")
    return "ipmi" in str(program) and not is_by_address(settings)


def unresolved(pdus: Pdus, fed: Fed, pdu: str, outlet: str) -> list[str]:
    """Return the host names without an address just now, because of which a noted outlet may be this one."""
    settings = pdus.get(pdu, {})
    named = place(settings)
    places = [named] if named else []
    for noted in (fed.address, _as_known(pdus, fed).address):
        places += _readings(noted, settings) if noted is not None else []
    if any(EACH in here.hosts for here in places):
        places += [placed(fed.outlet), placed(outlet)]
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
    return where(settings)[0] == EACH and alike(placed(one), placed(other))


def _is_machine(settings: Settings, fed: Fed, outlet: str) -> bool:
    """Return whether one outlet is itself an address, and the other is an outlet of a PDU at just that address."""
    here = place(settings)
    if here is None or fed.address is None:
        return False
    for there in _readings(fed.address, settings):
        each = EACH in there.hosts, EACH in here.hosts
        if each == (True, False) and placed(fed.outlet).hosts & here.hosts:
            return True
        if each == (False, True) and placed(outlet).hosts & there.hosts:
            return True
    return False


def are_apart(one: Settings, other: Settings) -> bool:
    """Return whether the settings of two PDUs name two units behind one address."""
    units = [unit_of(settings) for settings in (one, other)]
    return None not in units and units[0] != units[1]


def _places(noted: str, settings: Settings) -> list[Place]:
    """Return those places of a PDU's settings that a noted address may mean.

    An earlier release noted nothing but host and port.
    """
    here, host = place(settings), settings.get("host") or settings.get("path")
    if here is None or UNIT in noted or noted.startswith(EACH) or not host:
        return [here] if here else []
    return [here, placed(host, own_port(settings.get("port")), here.unit, is_text(settings))]


def _readings(noted: str, settings: Settings) -> list[Place]:
    """Return the places that a noted address may mean: the last part of an IPv6 address may be a port.

    :param settings: those of the PDU that is compared; where a script interprets its host, the noted one is text, too.
    """
    host, _mark, unit = noted.partition(UNIT)
    found = PORT.fullmatch(host)
    if unit.startswith("/"):
        return [placed(host, None, unit, True)]
    of_text = is_text(settings)
    whole = placed(host, None, unit or None, of_text)
    if not found or (host.startswith("/") and found["host"] != EACH):
        return [whole]
    with_port = placed(found["host"], own_port(int(found["port"])), unit or None, of_text)
    if ":" not in found["host"]:
        return [with_port, whole] if of_text else [with_port]
    return [*([with_port] if as_number(found["host"]) else []), whole]
