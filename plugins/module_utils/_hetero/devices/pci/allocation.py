# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets which PCI device by an alias: devices that are bound for guests and that nobody has, by the kernel's and the
table's word. The choice is made in the caller's transaction, so that of several askers one gets a device.

Rows are those of claims/host/allocation.py: a device has one holder, a container or a guest. Others give the device.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence, cast

from ...claims.host.allocation import ATTACHED, ATTACHING, Allocation, GpuRequest, choose, short
from ...core.errors import BadInput, NoneFree
from ...openstack import specs
from ...site.instance import age
from . import sysfs
from .domains import STARTS
from .groups import card, siblings, strangers
from .holders import ALLOCATED, holders
from .sysfs import STUBS

if TYPE_CHECKING:
    from ...claims.host.allocation import Table
    from ...openstack.specs import Alias
    from .holders import Holder
    from .paths import Paths
    from .sysfs import Device

PHASE = "pci"
#: How the text of a holder by the table begins. Such holders are left out: this transaction reads the table itself.
TABLE = ALLOCATED.format(holder="")
PF = "type-PF"
NONE_KEPT: Mapping[str, str] = MappingProxyType({})


def requested(flavor: Mapping[str, Any], aliases: Mapping[str, Any], host: str) -> list[tuple[Alias, int]]:
    """Return [(Alias, count)] that a flavor asks this host for.

    :param aliases: of the host's configuration: {name: vendor_id, product_id and other keys of Nova's aliases}.
    :param host: its name, for errors.
    :raises NoneFree: the host has no such alias.
    :raises BadInput: the flavor's property, or an alias of the host, makes no sense.
    """
    text = (flavor.get("extra_specs") or {}).get(specs.PROPERTY)
    if text is None:
        return []
    known = known_aliases(aliases, host)
    asked = [part.partition(":")[0].strip() for part in str(text).split(",")]
    missing = sorted({name for name in asked if re.fullmatch("[^:,]+", name) and name not in known})
    if missing:
        why = f"has no alias {', '.join(missing)} (it has {', '.join(sorted(known)) or 'none'})"
        raise NoneFree(why, host, "name it in kvm_guests_aliases of the host", rejected={"alias": why})
    return specs.requests(str(text), known, f"flavor {flavor.get('name')}")


def known_aliases(aliases: Mapping[str, Any], host: str) -> dict[str, Alias]:
    """Return {name: Alias} of a host's configuration."""
    texts = [json.dumps(dict(spec, name=name)) for name, spec in aliases.items()]
    return specs.aliases(texts, f"aliases of {host}")


def fits(device: Device, alias: Alias) -> bool:
    """Return whether an alias asks for such a device.

    Without device_type it asks for no physical function, as in Nova.
    """
    return any(_fits(device, spec) for spec in alias.specs)


def _fits(device: Device, spec: Mapping[str, Any]) -> bool:
    ids = (spec["vendor_id"].lower(), spec["product_id"].lower())
    kind = spec.get("dev_type")
    return (device.vendor_id, device.product_id) == ids and (device.kind != PF if kind is None else device.kind == kind)


def allocate(
    store: Table,
    holder: str,
    asked: Sequence[tuple[Alias, int]],
    paths: Paths,
    named: Sequence[str] = (),
    kept: Mapping[str, str] = NONE_KEPT,
) -> list[Allocation]:
    """Write down which devices `holder` has, and with each the other functions of its card.

    :param asked: [(Alias, count)].
    :param named: addresses of the devices that it is to be; without any, all that fit may be chosen.
    :param kept: {address of a device that it is not to be, though it may be free: why}.
    :raises NoneFree: `facts['rejected']` says for each device why it is not given.
    """
    named = [sysfs.address_of(name) for name in named]
    count = sum(number for _alias, number in asked)
    if named and len(set(named)) != count:
        what = f"names {len(set(named))} devices, and the flavor asks for {count}"
        raise BadInput(what, "devices", "name as many, or none")
    devices, table = sysfs.devices(paths), store.allocations()
    held, defined = holders([one for one in devices.values() if one.driver in STUBS], paths, own=holder)
    others = {address: [name for name in names if name != short(holder)] for address, names in defined.items()}
    given: set[str] = set()
    answered: set[str] = set()
    for alias, number in asked:
        fitting = [one for one in devices.values() if fits(one, alias) and (not named or one.address in named)]
        rejected = {one.address: why_not(one, holder, devices, table, held, others) for one in fitting}
        rejected = {address: why or kept.get(address) for address, why in rejected.items()}
        # a function that came with its card may also be asked for by an alias of its own
        come = [one for one in fitting if one.address in given - answered]
        free = [one for one in fitting if rejected[one.address] is None and one.address not in given]
        chosen = [*come, *choose(free, (), max(0, number - len(come)))][:number]
        if len(chosen) < number:
            raise _none_free(alias, number, len(chosen), rejected, named, holder)
        answered.update(one.address for one in chosen)
        given.update(function.address for one in chosen for function in card(one, devices))
    rows = [_row(devices[address], holder) for address in sorted(given)]
    for row in rows:
        store.grant(row)
        store.event(store.instance_of(holder), PHASE, f"allocated to {short(holder)}", address=row.address)
    return rows


def write_down(store: Table, holder: str, address: str, paths: Paths, **more: Any) -> None:
    """Write into the table that `holder` has a device, which it has already.

    :param more: fields of the row that are not as of a device that it has with its claim.
    """
    device = sysfs.devices(paths).get(address)
    if device is not None:
        store.grant(replace(_row(device, holder), state=ATTACHED, **more))
        store.event(store.instance_of(holder), PHASE, f"{short(holder)} has it: written down again", address=address)


def is_own(row: Allocation, device: Device) -> bool:
    """Return whether the device at an allocation's address is, by its ids, the one that was given.

    Rows of earlier releases name no ids, and take any.
    """
    return row.wanted.arch in (None, device.ids)


def why_not(
    device: Device,
    holder: str,
    devices: Mapping[str, Device],
    table: Iterable[Allocation],
    held: Mapping[str, Sequence[Holder]],
    defined: Mapping[str, Sequence[str]],
) -> str | None:
    """Return in words why a device cannot go to a guest of `holder`, or None.

    :param held: {address: holders} of devices that are bound for guests.
    :param defined: {address: names of others' domains that would start with it}.
    """
    if device.of_the_host:
        return "is of the host itself"
    mates = [device, *siblings(device, devices)]
    for row in table:
        if row.holder != holder and any(row.address == mate.address for mate in mates):
            since = f"{short(row.holder)} since {age(time.time() - row.since)}"
            return f"allocated to {since}" if row.address == device.address else f"its IOMMU group is with {since}"
    parts = card(device, devices)
    for part in parts:
        if part.driver not in STUBS or part.changing:
            name = "is" if part is device else f"its function {part.address} is"
            return f"{name} on {part.driver or 'no driver'}, not kept for guests (module hetero.compute.pci_driver)"
    if device.group is None:
        return "has no IOMMU group: switch the IOMMU on"
    for other in strangers(parts, devices):
        return f"IOMMU group {other.group} is not viable: {other.address} in it is on the host's {other.driver}"
    for mate in mates:
        # the machine's boot display was bound for guests on purpose
        others = [one for one in held.get(mate.address, ()) if not one.text.startswith(TABLE)]
        against = [one for one in others if one.kind != "display"]
        if against:
            return against[0].text
        if defined.get(mate.address):
            return STARTS.format(name=defined[mate.address][0])
    return None


def _row(device: Device, holder: str) -> Allocation:
    """Return a new row. Its `method` keeps the driver to which the device goes back, its `wanted` what it is."""
    wanted = GpuRequest(arch=device.ids, gpus=(device.address,))
    driver = cast("str", device.driver)  # it has one: only what is parked is given
    return Allocation(device.address, holder, None, False, ATTACHING, time.time(), wanted, (), True, driver)


def _none_free(
    alias: Alias, number: int, found: int, rejected: Mapping[str, str | None], named: Sequence[str], holder: str
) -> NoneFree:
    reasons = {address: why for address, why in rejected.items() if why}
    told = "; ".join(f"{address} {why}" for address, why in sorted(reasons.items()))
    if not rejected:
        ids = ", ".join(sorted({f"{spec['vendor_id']}:{spec['product_id']}" for spec in alias.specs}))
        told = f"{', '.join(named) if named else 'nothing here'} is no {ids}"
        reasons = {"alias": f"alias {alias.name}: {told}"}
    what = f"wants {number} of alias {alias.name}, {found or 'none'} free: {told}"
    return NoneFree(what, short(holder), "wait, or ask for less", rejected=reasons)
