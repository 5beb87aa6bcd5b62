# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host as its modules return it: GPUs and their holders, instances, free capacity. It only reads."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Collection, Dict, Iterable, Mapping, Sequence

from ..claims.host.allocation import short
from ..claims.host.config import disk_gb
from ..core.errors import BadInput
from ..core.plays import play
from ..devices.pci import sysfs
from ..devices.pci.allocation import fits, known_aliases, why_not
from ..devices.pci.holders import holders as pci_holders
from ..scheduling.fit import AMOUNTS
from ..site.instance_states import ENDING, LEAVING
from ..site.leases import until
from ..site.moves import host_of
from ..site.owners import alike
from .unclaimed_instances import half_made, unclaimed

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation
    from ..claims.host.claim_records import Claim
    from ..devices.gpus.discovery import Gpu
    from .host import Host

OTHER_LEASE = (
    f"the record of its claim has another lease: {{lease}}; the database is older than it: run {play('reconcile')}"
)
#: A part of what a module returns.
Fields = Dict[str, Any]
#: Most events of an instance that a call may ask for; a larger number is taken for a mistake.
MOST_EVENTS = 10000


def information(host: Host, instance: str | None = None, events: int = 0) -> Fields:
    """Return what host_info returns.

    :param instance: show only this instance or request; then only its GPUs are listed, and all else is the host's.
    :param events: number of newest events to return with each instance.
    """
    if not 0 <= events <= MOST_EVENTS:
        raise BadInput(f"is {events}", "events", f"ask for 0 to {MOST_EVENTS}")
    now = time.time()
    with host.store.snapshot():
        everybody = host.store.claims()
        allocations = host.store.allocations()
        claims = [claim for claim in everybody if instance in (None, claim.instance, claim.request)]
        newest = {claim.instance: host.store.newest_events(claim.instance, events) for claim in claims if events}
    gpus = [gpu_fields(gpu, allocations, everybody) for gpu in host.gpus]
    devices = device_fields(host, allocations, everybody)
    instances = [instance_fields(host, claim, allocations, now) for claim in claims]
    for fields in instances:
        fields["events"] = [dict(vars(event)) for event in newest.get(fields["instance"], ())]
    return dict(
        name=host.name,
        hypervisor=host.hypervisors[0],
        hypervisors=host.hypervisors,
        cpu_arch=host.cpu_arch,
        driver_version=host.found.driver_version,
        unsupported=host.found.unsupported,
        capacity=capacity_fields(host.capacity, [*everybody, *host.store.all_forgotten()]),
        disk_gb=disk_gb(host.config),
        gpus=_of(gpus, instance, claims),
        devices=_of(devices, instance, claims),
        instances=instances,
        claims=[claim_fields(host, claim) for claim in claims],
        unclaimed=[*unclaimed(host, instance), *half_made(host, instance)],
        ended=[] if instance is None or claims else host.store.ended(instance),
        alike=[] if instance is None or claims else alike(everybody, instance),
    )


def _of(things: list[Fields], instance: str | None, claims: Iterable[Claim]) -> list[Fields]:
    """Return the things that the claims in question have, or all things if no instance is asked for."""
    names = {claim.instance for claim in claims}
    return things if instance is None else [thing for thing in things if thing["instance"] in names]


def _length(path: str) -> int | None:
    """Return the length of a file in bytes; None where it is not there."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def claim_fields(host: Host, claim: Claim) -> Fields:
    """Return a claim in the words of a board's claim."""
    console = os.path.join(host.config.disks(claim.kind), claim.instance, "console.log")
    return dict(
        instance=claim.instance,
        request=claim.request,
        name=host.name,
        kind=claim.kind,
        ip=claim.address,
        owner=claim.owner,
        flavor=claim.flavor.get("name"),
        image=claim.image,
        created=claim.created,
        expires=claim.expires,
        host_key=claim.host_key,
        image_hash=claim.image_hash,
        state=claim.state,
        mover=claim.mover,
        departure=claim.departure,
        leaves_for=_leaves_for(host, claim),
        console=console,
        console_bytes=_length(console),
    )


def _leaves_for(host: Host, claim: Claim) -> str:
    """Return the host for which an instance leaves this one, by its record too, which may be newer; "" for none."""
    kept = host.store.kept(claim.instance)
    both = [claim if kept is None or not kept.is_same(claim) or kept.since < claim.since else kept, claim]
    return next((host_of(one.note) for one in both if one.state == LEAVING), "")


def instance_fields(host: Host, claim: Claim, allocations: Iterable[Allocation], now: float) -> Fields:
    """Return an instance: its claim, the seconds in its state, the seconds that are left of its lease, its GPUs."""
    return dict(
        claim_fields(host, claim),
        note="; ".join(text for text in (claim.note, _lease_note(host, claim, now)) if text),
        since=claim.since,
        # A clock that was set back must not make a time span negative.
        since_seconds=round(max(0.0, now - claim.since), 3),
        lease_seconds=None if claim.expires is None else round(claim.expires - now, 3),
        gpus=sorted(row.address for row in allocations if row.holder == claim.holder),
        **{key: getattr(claim, key) for key in AMOUNTS},
    )


def _lease_note(host: Host, claim: Claim, now: float) -> str | None:
    """Return the note of `status` on the record of a claim: it is lost, unreadable, or newer than the database."""
    doubt, other = host.store.doubt_of(claim), host.store.other_lease(claim)
    if doubt:
        there = host.store.claim_of(claim.instance)  # the record of a claim that ends goes first
        ends = there is None or not there.is_same(claim) or there.state == ENDING
        return None if ends else ": ".join(doubt)
    return OTHER_LEASE.format(lease=until(other[0], now)) if other and claim.expires == other[0] else None


def gpu_fields(gpu: Gpu, allocations: Iterable[Allocation], claims: Iterable[Claim]) -> Fields:
    """Return a GPU and who has it. `holder` is for people; `instance` is None for a holder that is no instance."""
    return dict(
        address=gpu.address,
        uuid=gpu.uuid,
        index=gpu.index,
        minor=gpu.minor,
        vendor=gpu.vendor,
        model=gpu.model,
        arch=gpu.arch,
        driver=gpu.driver,
        numa_node=gpu.numa_node,
        healthy=gpu.healthy,
        why_unhealthy=gpu.why_unhealthy,
        unsupported=gpu.unsupported,
        **_holder(gpu.address, allocations, claims),
    )


def device_fields(host: Host, allocations: Sequence[Allocation], claims: Collection[Claim]) -> list[Fields]:
    """Return the PCI devices that the host's aliases name, and who has each. `unsupported` says why a guest cannot get
    a device now.
    """
    aliases = known_aliases(host.config.kvm.aliases, host.name)
    if not aliases:
        return []
    devices, shown = sysfs.devices(host.pci), []
    held, defined = pci_holders([one for one in devices.values() if one.driver in sysfs.STUBS], host.pci)
    for device in devices.values():
        names = [name for name, alias in sorted(aliases.items()) if fits(device, alias)]
        if not names:
            continue
        has = _holder(device.address, allocations, claims)
        shown.append(
            dict(
                address=device.address,
                ids=device.ids,
                arch=", ".join(names),
                driver=device.driver,
                numa_node=device.numa_node,
                healthy=True,
                why_unhealthy=None,
                unsupported=None if has["holder"] else why_not(device, "", devices, allocations, held, defined),
                **has,
            )
        )
    return shown


def _holder(address: str, allocations: Iterable[Allocation], claims: Iterable[Claim]) -> Fields:
    rows = [row for row in allocations if row.address == address]
    named = {claim.holder: claim.instance for claim in claims}
    return dict(
        holder=", ".join(named.get(row.holder) or short(row.holder) for row in rows) or None,
        instance=next((named[row.holder] for row in rows if row.holder in named), None),
        since=min((row.since for row in rows), default=None),
    )


def capacity_fields(capacity: Mapping[str, int], claims: Collection[Claim]) -> dict[str, dict[str, int]]:
    """Return {"memory_mb": {"total": …, "free": …}, …}."""
    return {
        key: dict(total=total, free=max(0, total - sum(getattr(claim, key) for claim in claims)))
        for key, total in capacity.items()
    }
