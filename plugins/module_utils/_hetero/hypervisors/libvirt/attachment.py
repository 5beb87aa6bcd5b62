# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices given to a libvirt domain and taken back, in the running guest and in the description of its next start.

The host's allocation table and devices/pci/holders.py say who may have a device; domain.py speaks with virsh.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, ContextManager, Dict, List, Mapping, NamedTuple, Tuple
from xml.etree import ElementTree

from ...claims.host.allocation import ATTACHED, Allocation, GpuRequest, short
from ...core.errors import BadInput, HeteroError, Refused, TimedOut
from ...core.locks import lock
from ...core.plays import play
from ...devices.pci import sysfs
from ...devices.pci.change_plan import Plan, refuse
from ...devices.pci.domains import STARTS
from ...devices.pci.groups import card
from ...devices.pci.holders import holders
from ...devices.pci.paths import LOCK
from . import hostdev

if TYPE_CHECKING:
    from typing import Callable

    from ...claims.host.store import Store
    from ...core.changes import Change
    from ...devices.pci.paths import Paths
    from .domain import Domain

#: With this `method` begins in rows of the allocation table that are written here; after it comes the driver on which
#: the device was. Rows of earlier releases have no driver.
METHOD = "libvirt"
VERB = "libvirt_hostdev"
FREE = f"free it first; what a domain has that is no more, {play('reconcile')} frees"


#: [(address, whether in the running guest)]; and {"live" or "config": {address: how it is managed}}.
Moved = List[Tuple[str, bool]]
Shown = Dict[str, Dict[str, str]]


class Asked(NamedTuple):
    """What a domain is to have.

    :param live: in the running guest.
    :param config: in the description of its next start.
    :param functions: all functions of each card go together.
    """

    devices: Tuple[str, ...]
    managed: bool = True
    live: bool = True
    config: bool = True
    functions: bool = False


def holder_of(name: str) -> str:
    """Return the holder to which a domain's devices are allocated."""
    return f"domain:{name}"


def by_hand(row: Allocation) -> bool:
    """Return whether a device was given by this module, and not with the claim of an instance."""
    return row.method.partition(":")[0] == METHOD


def driver_before(row: Allocation) -> str | None:
    """Return the driver on which a guest's device was before it was given; None where it had none, or none is known."""
    driver = row.method.rpartition(":")[2]
    return driver if driver not in ("", METHOD) else None


def attach(
    domain: Domain,
    asked: Asked,
    store: Store,
    change: Change,
    paths: Paths,
    of_containers: Callable[[Collection[str]], Mapping[str, str]],
) -> dict[str, Any]:
    """Give the domain these devices; return the module's result.

    :param of_containers: called with addresses for {address: in words, which container has it}, beside the table.
    """
    with _locked(domain, paths, store, change):
        look = _Look(domain, asked, paths)
        missing = look.missing
        if missing:
            _refuse(look, missing, paths, of_containers(look.devices))
        with store.transaction(dry=change.check):
            _write_down(store, look)
        before = look.shown()
        try:
            with change.step("attach"):
                for address, live in missing:
                    if not change.check:
                        _replace(domain, look, address, live)
        except HeteroError:
            _forget(store, _Look(domain, asked, paths, look), change)
            raise
        return _result(look, before, missing, change, paths, there=True)[0]


def detach(domain: Domain, asked: Asked, store: Store, change: Change, paths: Paths) -> dict[str, Any]:
    """Take these devices from the domain; return the module's result."""
    with _locked(domain, paths, store, change):
        look = _Look(domain, asked, paths)
        there = look.there
        before = look.shown()
        with change.step("detach"):
            for address, live in there:
                if not change.check:
                    _take(domain, look, address, live)
        result, after = _result(look, before, there, change, paths, there=False)
        _forget(store, after, change)
        return result


def _take(domain: Domain, look: _Look, address: str, live: bool) -> None:
    """Take a device away and wait until it is gone.

    A guest that was asked before may release it at that moment; then libvirt has nothing to take.
    """
    try:
        domain.detach(hostdev.xml(address, look.sides[live][address].managed), live)
    except HeteroError:
        if address in hostdev.devices_in(domain.xml(live)):
            raise
    _gone(domain, address, live)


class _Look:
    """A domain and devices as they are now.

    :param before: an earlier look with the same devices.
    """

    def __init__(self, domain: Domain, asked: Asked, paths: Paths, before: _Look | None = None) -> None:
        self.domain = domain
        self.asked = asked
        self.running = domain.active
        self.wanted = _sides(domain, asked, self.running)
        #: {whether of the running guest (True) or of its next start (False): {address: Given}}
        sides = (True, False) if self.running else (False,)
        self.sides = {live: hostdev.devices_in(domain.xml(live)) for live in sides}
        self.all = sysfs.devices(paths)
        has = {address for side in self.sides.values() for address in side}
        self.devices: list[str] = before.devices if before else _devices(asked, self.all, has)

    @property
    def missing(self) -> Moved:
        """Return [(address, live)] of devices to attach: to the running guest (live), or to its configuration.

        In the running guest `managed` stays as it was when the device was attached.
        """
        found = []
        for live in self.wanted:
            for address in self.devices:
                given = self.sides[live].get(address)
                if given is None or (not live and given.managed != self.asked.managed):
                    found.append((address, live))
        return found

    @property
    def there(self) -> Moved:
        """Return [(address, live)] of devices that are to be detached."""
        return [(address, live) for live in self.wanted for address in self.devices if address in self.sides[live]]

    def shown(self) -> Shown:
        """Return the fields of the diff: which of the wanted devices it has, and how they are managed."""
        names = {True: "live", False: "config"}
        return {
            names[live]: {address: _managed(side[address]) for address in self.devices if address in side}
            for live, side in self.sides.items()
        }


def _managed(given: hostdev.Given) -> str:
    return "managed" if given.managed else "not managed"


def _sides(domain: Domain, asked: Asked, running: bool) -> list[bool]:
    """Return which descriptions are to be changed: True is the running guest's, False its next start's."""
    config = asked.config
    if config and not domain.persistent:
        if not asked.live or not running:
            raise Refused("is not kept when it ends, and so has no next start", domain.thing, "give config: false")
        config = False
    sides = [live for live, wanted in ((True, asked.live and running), (False, config)) if wanted]
    if not sides:
        raise Refused("does not run, and its next start is not meant either", domain.thing, "start it, or config: true")
    return sides


def _devices(asked: Asked, devices: Mapping[str, sysfs.Device], has: Collection[str]) -> list[str]:
    """Return the wanted addresses, in order. A device that left the machine can still be taken from a domain."""
    chosen: list[str] = []
    for name in asked.devices:
        address = sysfs.address_of(name)
        if address in devices:
            chosen += [one.address for one in card(devices[address], devices)] if asked.functions else [address]
        elif address in has:
            chosen.append(address)
        else:
            raise BadInput("no such PCI device here", address, "see module hetero.compute.pci_info, or lspci -nn")
        if address not in chosen:
            chosen.append(address)
    return sorted(dict.fromkeys(chosen))


def _refuse(look: _Look, missing: Moved, paths: Paths, of_containers: Mapping[str, str]) -> None:
    """Raise Refused or BadInput with all reasons against giving it these devices."""
    holder = holder_of(look.domain.name)
    addresses = sorted({address for address, _live in missing})
    for address in addresses:
        if address not in look.all:
            raise BadInput("is not in this machine any more", address, "take it from the domain (state: detached)")
    has = {address for side in look.sides.values() for address in side}
    chosen = tuple(look.all[address] for address in sorted({*look.devices, *has}) if address in look.all)
    refuse(Plan(chosen, hostdev.VFIO, look.all), {}, False)
    fresh = [look.all[address] for address in addresses if not _runs_with(look, address)]
    held, defined = holders(fresh, paths, own=holder)
    for device in fresh:
        # the machine's boot display was bound to a stub on purpose
        against = [one for one in held[device.address] if one.kind != "display" or device.driver not in sysfs.STUBS]
        said = [found.text for found in against] or list(filter(None, [of_containers.get(device.address)]))
        if not said and device.address not in has:  # one that both have by hand is lent from one to the other
            said = [STARTS.format(name=name) for name in defined.get(device.address, ())]
        if said:
            who = "; ".join(said)
            raise Refused(f"{device.address} cannot go to it: {who}", look.domain.thing, FREE)
    if not look.asked.managed:
        for address in addresses:
            if look.all[address].driver != hostdev.VFIO:
                what = f"is on {look.all[address].driver or 'no driver'}, and with managed no libvirt binds nothing"
                remedy = "bind it to vfio-pci (module hetero.compute.pci_driver), or managed: true"
                raise Refused(what, address, remedy)


def _runs_with(look: _Look, address: str) -> bool:
    return address in look.sides.get(True, ())


def _replace(domain: Domain, look: _Look, address: str, live: bool) -> None:
    """Give a device, or change in one step how the next start's is managed: it has it whatever libvirt refuses."""
    if address not in look.sides[live]:
        domain.attach(hostdev.xml(address, look.asked.managed), live)
        return
    description = domain.xml(live, whole=True)
    hostdev.manage(description, address, look.asked.managed)
    domain.libvirt.define(ElementTree.tostring(description, encoding="unicode"))


def _gone(domain: Domain, address: str, live: bool) -> None:
    """Wait until a running guest has released a device, which libvirt only asks it to do."""
    deadline = domain.libvirt.deadline
    what = f"its guest has not let go of {address} within {deadline.seconds:g} s"
    error = TimedOut(what, domain.thing, "does it know PCI hot-plug? else end it, or detach with live: false")
    domain.wait(lambda: address not in hostdev.devices_in(domain.xml(live)), deadline, error)


# ---- the host's allocation table


def _write_down(store: Store, look: _Look) -> None:
    holder = holder_of(look.domain.name)
    table = store.allocations()
    for address in look.devices:
        others = [short(row.holder) for row in table if row.address == address and row.holder != holder]
        if others:  # the domain was given it by hand, or the other a moment ago
            remedy = f"take it from the domain (state: detached), or {FREE}"
            raise Refused(f"{address} is allocated to {', '.join(others)}", look.domain.thing, remedy)
        if not any(row.address == address and row.holder == holder for row in table):
            device = look.all.get(address)
            ids, driver = (device.ids, device.driver) if device else (None, None)
            wanted, method = GpuRequest(arch=ids, gpus=(address,)), f"{METHOD}:{driver or ''}"
            row = Allocation(address, holder, None, False, ATTACHED, time.time(), wanted, (), look.asked.config, method)
            store.grant(row)
            store.event(store.instance_of(holder), "pci", f"allocated to {look.domain.thing}", address=address)
    if look.asked.config:
        _note_persistent(store, look, look.devices)


def _note_persistent(store: Store, look: _Look, persistent: Collection[str]) -> None:
    """Write down which of these devices, where they were given by hand, the domain has from its next start on."""
    for row in store.allocations(holder_of(look.domain.name)):
        is_so = row.address in persistent
        if row.address in look.devices and by_hand(row) and row.persistent != is_so:
            store.grant(replace(row, persistent=is_so))


def _forget(store: Store, look: _Look, change: Change) -> None:
    """Free devices that neither the guest nor its next start has. Those of an instance's claim belong to that."""
    holder = holder_of(look.domain.name)
    with store.transaction(dry=change.check):
        instance = store.instance_of(holder)
        for row in store.allocations(holder):
            is_away = not any(row.address in side for side in look.sides.values())
            if row.address in look.devices and is_away and (instance is None or by_hand(row)):
                store.free(row)
                store.event(instance, "pci", f"taken back from {look.domain.thing}", address=row.address)
        _note_persistent(store, look, look.sides[False])


# ---- what was done


def _result(
    look: _Look, before: Shown, moved: Moved, change: Change, paths: Paths, there: bool
) -> tuple[dict[str, Any], _Look]:
    """Return (the module's result, a new look), after checking what the domain has and where the devices are."""
    domain, after = look.domain, look
    if moved and not change.check:
        after = _Look(domain, look.asked, paths, look)
        wrong = after.missing if there else after.there
        if wrong:
            address, live = wrong[0]
            what = f"{'has no' if there else 'has still'} {address} in its {'guest' if live else 'next start'}"
            raise HeteroError(f"{what}, although libvirt took the change", domain.thing, "see: virsh dumpxml")
    shown = _expected(before, moved, look.asked, there) if change.check else after.shown()
    change.note(domain.thing, before, shown)
    devices = [_device(look, after, shown, address, there) for address in look.devices]
    return dict(change.result, domain=domain.name, running=after.running, devices=devices), after


def _expected(before: Shown, moved: Moved, asked: Asked, there: bool) -> Shown:
    found = {name: dict(side) for name, side in before.items()}
    for address, live in moved:
        side = found["live" if live else "config"]
        if there:
            side[address] = "managed" if asked.managed else "not managed"
        else:
            side.pop(address)
    return found


def _device(look: _Look, after: _Look, shown: Shown, address: str, there: bool) -> dict[str, Any]:
    """Return what the result says of one device."""
    managed = look.asked.managed
    device, now = look.all.get(address), after.all.get(address)
    fields: dict[str, Any] = dict(
        address=address,
        live=address in shown.get("live", {}),
        config=address in shown["config"],
        before=device.driver if device else None,
        driver=now.driver if now else None,
        xml=hostdev.xml(address, managed),
    )
    runs = _runs_with(look, address)
    fields["afterwards"] = hostdev.afterwards(fields["before"], managed, runs) if there and device else None
    return fields


def _locked(domain: Domain, paths: Paths, store: Store, change: Change) -> ContextManager[object]:
    """Keep others from changing bindings or giving devices during the block; check mode takes no lock."""
    if change.check:
        return ExitStack()
    return lock(paths.run_folder, LOCK, VERB, store.actor, domain.libvirt.deadline)
