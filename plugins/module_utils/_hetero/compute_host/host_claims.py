# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claim memory, processors, disk, devices and an address on a compute host for a request (instances by flavor), in
one transaction; or raise why that is not possible.

Class Containers says which devices a container gets, and guest_claims.py those of a guest. lifecycle.py makes what was
claimed.
"""

from __future__ import annotations

import ipaddress
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Iterable, Sequence

from ..claims.host.allocation import GpuRequest
from ..claims.host.config import SET_UP
from ..claims.host.store import Asked
from ..claims.reservations import NOTHING
from ..core.errors import BadInput, NoneFree
from ..core.lines import line
from ..hypervisors.lxc import id_maps, liblxc
from ..scheduling.compute_hosts import gpu_arch, gpu_count
from ..scheduling.extra_specs import satisfies
from ..scheduling.fit import AMOUNTS, by_reason, nodes_found, summary
from ..scheduling.places import held_for
from ..site.kinds import CONTAINER, GUEST, OF_HOSTS
from ..site.leases import as_date, kept
from ..site.node_clock import begin_lease
from .addresses import addresses_there
from .guest_claims import Guests
from .host_fit import free_gpus, limits_of, unfit, without_image
from .host_queue import HostQueue
from .info import claim_fields
from .lost_database import key_of_folder
from .moved_instances import of_another
from .unclaimed_instances import made_unclaimed, of_record

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from ..core.changes import Change
    from ..scheduling.queue import Left
    from .claim_request import ClaimRequest
    from .host import Host

#: Verb of `hetero` that ends leases.
REAPER = "host reap"


def wanted_of(host: Host, flavor: dict[str, Any], held: Collection[str] = ()) -> GpuRequest | None:
    """Return the GPUs that a flavor asks for, all of one architecture if it names any; None if it asks for no GPU.

    :param held: addresses of those that are held for others.
    """
    count, requirement = gpu_count(flavor), gpu_arch(flavor)
    if not count or requirement is None:
        return GpuRequest(count=count) if count else None
    free = [gpu for gpu in free_gpus(host) if gpu.address not in held]
    archs = sorted({gpu.arch for gpu in host.gpus if gpu.arch and satisfies(gpu.arch, requirement)})
    most = max(archs, key=lambda arch: sum(gpu.arch == arch for gpu in free), default=None)
    if most is None:
        raise BadInput(f"has no GPU whose gpu_arch satisfies '{requirement}'", host.name, "ask another host")
    return GpuRequest(count=count, arch=most)


def present(host: Host, request: ClaimRequest, change: Change) -> dict[str, Any]:
    """Claim what `request` asks for, or find it claimed, in one transaction, which check mode takes back.

    :returns: instances (the claims), new (the names of new ones), lines; the first says what is found or chosen.
    :raises NoneFree: the text says why, as do `facts['rejected']` and `facts['rejected_lines']`.
    """
    request.check()
    if request.lease_hours:
        begin_lease(host.store, REAPER, change.check)
    kind, queue = KINDS[request.kind](host, request), HostQueue(host)
    queue.look()
    if not all(map(host.store.claim_of, request.instances)) and not unfit(host, request):
        kind.look()  # others wait for the database as long as a transaction lasts
    with host.store.transaction(dry=change.check):
        before = {claim.instance: claim for claim in map(host.store.claim_of, request.instances) if claim}
        kind.left = queue.left_to(request)
        after = _claims(host, request, kind, before)
        for claim in after:
            old = before.get(claim.instance)
            change.note(claim.instance, shown(host, old) if old else {}, shown(host, claim))
        queue.served(request, [claim for claim in after if claim.instance not in before])
        new = [claim.instance for claim in after if claim.instance not in before]
        text = f"wants {request.flavor['name']}: {_found(host, request, kind, len(new))}"
        lines, now = [line(request.request, "", "", text)], time.time()
        for claim in before.values():
            told = kept(claim.instance, request.lease_hours, claim.expires, now)
            lines += [line(claim.instance, host.name, "", told)] if told else []
        return dict(instances=[claim_fields(host, claim) for claim in after], new=new, lines=lines)


def shown(host: Host, claim: Claim) -> dict[str, Any]:
    """Return the fields of a claim that a diff shows."""
    return {
        "host": host.name,
        "owner": claim.owner,
        "flavor": claim.flavor.get("name"),
        "image": claim.image,
        "ssh_public_key": claim.ssh_public_key,
        "address": claim.address,
        KINDS[claim.kind].devices: [row.address for row in host.store.allocations(claim.holder)],
        "expires": as_date(claim.expires),
    }


def _found(host: Host, request: ClaimRequest, kind: Containers | Guests, new: int) -> str:
    """Return `1 of 4 fermi GPUs free, gpu1 chosen`, by what was free before.

    :param new: how many claims are new.
    """
    if not new:
        return f"has {host.name}"
    asked = len(request.instances)
    short = f" ({new} of {asked})" if new < asked else ""
    return f"{kind.was_free}{host.name} chosen{short}"


def _new(claims: Iterable[Claim], before: Collection[str]) -> int:
    """Return how many of the claims were not there before."""
    return sum(claim.instance not in before for claim in claims)


def _claims(host: Host, request: ClaimRequest, kind: Containers | Guests, before: Collection[str]) -> list[Claim]:
    """Claim all instances, or with `partial` those that can be had. Those that are there keep what they have."""
    limits, flavor = limits_of(host), str(request.flavor.get("name"))
    if len(before) < len(request.instances):
        never = unfit(host, request) or list(filter(None, [limits.never(request)]))
        if never:
            raise _no_node(host, request, never, 0, len(before), {host.name: never})
    claims: list[Claim] = []
    for instance in request.instances:
        if instance not in before:
            kind.reserved, kind.reserved_amounts = _reserved(host, request, kind.left)
        try:
            if instance not in before and limits.may_have(request.owner, flavor) == 0:
                why = limits.why_no_more(request.owner, flavor)
                raise NoneFree(why, instance, rejected={"owner": why})
            claims.append(_claim(host, request, kind, instance, instance in before))
        except NoneFree as none:
            if request.partial and claims:
                # The failed instance's part is already written in this transaction.
                host.store.release(instance)
                break
            raise _no_node(host, request, _reasons(kind, none), _new(claims, before), len(before)) from none
    return claims


def _reserved(host: Host, request: ClaimRequest, left: Left) -> tuple[dict[str, str], dict[str, tuple[int, str]]]:
    """Return {device: why} of those that a further instance does not get, as they are reserved, and {memory_mb and so
    on: (how much of it is, why)} of what there would be too little of.

    :param left: what those who wait leave to it.
    """
    queue = HostQueue(host)
    queue.held_for = left
    needs = queue.needs(request) if queue.reserves else None
    if needs is None:
        return {}, {}
    until = time.time() + 3600 * request.lease_hours if request.lease_hours else None
    wanted = frozenset().union(*(names for names, _count in needs.devices))
    lots = queue.lots(time.time())
    free = [name for lot in lots if lot.when == 0 for name in lot.devices if name in wanted - left.devices.keys()]
    return queue.kept_from(request.owner, until, free), queue.amounts_kept(request.owner, until, needs)


def _claim(host: Host, request: ClaimRequest, kind: Containers | Guests, instance: str, is_there: bool) -> Claim:
    asked = Asked(
        instance,
        request.owner,
        request.flavor,
        request.image,
        request.ssh_public_key,
        request.kind,
        wanted=None if is_there else kind.wanted,
        lease_hours=request.lease_hours,
        request=request.request,
        no_image=_no_image(host, request.image, instance),
        held=_held_amounts(kind),
        arrives=request.arrives,
    )
    held = kind.held
    gpus = [replace(gpu, unsupported=held[gpu.address]) if gpu.address in held else gpu for gpu in host.gpus]
    claim, new = host.store.claim(asked, host.capacity, host.site.look, gpus)
    if not new:
        return claim
    folder = os.path.join(host.config.disks(request.kind), instance)
    why = of_record(host, instance) or of_another(host, OF_HOSTS[request.kind].name, folder) or kind.taken(instance)
    if why:
        raise NoneFree(why, instance, rejected={"name": why})
    kind.allocate(claim)
    return host.store.put(instance, address=_address(host, host.config.section(request.kind).addresses))


def _held_amounts(kind: Containers | Guests) -> dict[str, tuple[int, str]]:
    """Return {memory_mb and so on: (how much of it others are to get, who in words)}."""
    held = {key: (size, held_for(wish)) for key, (size, wish) in kind.left.amounts.items()}
    for key, (size, why) in kind.reserved_amounts.items():
        waits, who = held.get(key, (0, ""))
        held[key] = (waits + size, f"{who}; {why}" if who else why)
    return held


def _no_image(host: Host, image: str, instance: str) -> str | None:
    """Return why an instance that is there could not be made anew of another image, or None if it could."""
    claim = host.store.claim_of(instance)
    why = without_image(host, image) if claim and claim.image != image else []
    return why[0] if why else None


def _address(host: Host, addresses: Sequence[str] | None) -> str:
    """Return the first address that no instance has."""
    if not addresses:
        raise BadInput("names no addresses for instances", "host.json", SET_UP)
    first, last = map(ipaddress.ip_address, addresses)
    # An instance that is there has its address, whatever the database says.
    taken = {claim.address for claim in host.store.in_use()} | addresses_there(host.config)
    for number in range(int(first), int(last) + 1):
        address = str(ipaddress.ip_address(number))
        if address not in taken:
            return address
    why = f"no address is free from {first} to {last}"
    raise NoneFree(
        why, host.name, "terminate something, or widen the addresses of the host's role", rejected={"address": why}
    )


def free_ids(host: Host, wish: int | None = None) -> int:
    """Return the first id of a range that no container's users have on this host.

    :param wish: as of `id_maps.free_range`.

    It is called in the transaction that takes the range. A container that is there has its range, whatever the database
    says.
    """
    own = [(claim.first_id, id_maps.COUNT) for claim in host.store.in_use() if claim.first_id is not None]
    first = id_maps.free_range([*own, *id_maps.mapped(host.config.lxc.lxcpath)], wish)
    if first is None:
        why = f"no {id_maps.COUNT} ids are left that root has in {' and '.join(id_maps.FILES)}"
        remedy = "terminate something, or give root a wider range there"
        raise NoneFree(why, host.name, remedy, rejected={"ids": f"{why}: {remedy}"})
    return first


def _reasons(kind: Containers | Guests, none: NoneFree) -> list[str]:
    """Return in words what the store or an allocation refused, with equal reasons of devices together."""
    rejected = none.facts["rejected"]
    if not rejected or set(rejected) & {*AMOUNTS, "address", "ids", "name", "alias", "owner"}:
        return list(rejected.values()) or [none.what]
    return [f"{kind.asked} wanted: {by_reason(rejected)}"]


def _no_node(
    host: Host,
    request: ClaimRequest,
    reasons: list[str],
    found: int,
    there: int,
    unfit: dict[str, list[str]] | None = None,
) -> NoneFree:
    """Return the error `bob wants cg1.xlarge (…): no node.`, with the reasons.

    :param found: how many further instances could be claimed.
    :param there: how many were claimed before.
    :param unfit: {name of the host: why it never fits}.
    """
    rejected = {host.name: reasons}
    lines = summary(rejected)
    head = f"{request.wants}: {nodes_found(found, len(request.instances), there)}."
    text = "\n".join([head, *(f"  {reason}" for reason in lines)])
    return NoneFree(text, rejected=rejected, rejected_lines=lines, unfit=unfit or {}, room=found)


class Containers:
    """What containers take besides memory, processors and disk: GPUs, which the store allocates itself.

    :param request: of one request.
    :ivar left: what those who wait leave to it.
    :ivar reserved: {address: why} of GPUs that its next instance does not get, as they are reserved.
    :ivar reserved_amounts: {memory_mb and so on: (how much of it is reserved, why)} of what that is short of.
    """

    #: What its devices are called in answers.
    devices = "gpus"

    def __init__(self, host: Host, request: ClaimRequest) -> None:
        self.host = host
        self.flavor = request.flavor
        self.arrives = request.arrives
        self.free = free_gpus(host)
        self.left = NOTHING
        self.reserved: dict[str, str] = {}
        self.reserved_amounts: dict[str, tuple[int, str]] = {}

    @property
    def held(self) -> dict[str, str]:
        """{address: why} of the GPUs that others are to get."""
        return {**self.reserved, **{address: held_for(wish) for address, wish in self.left.devices.items()}}

    @property
    def wanted(self) -> GpuRequest | None:
        if self.arrives and self.arrives.gpu_arch:  # the same kind, of those that its flavor takes
            return GpuRequest(count=gpu_count(self.flavor), arch=self.arrives.gpu_arch)
        return wanted_of(self.host, self.flavor, self.held)

    @property
    def asked(self) -> str:
        return str(self.wanted)

    @property
    def was_free(self) -> str:
        wanted = self.wanted
        if wanted is None:
            return ""
        kind = [gpu for gpu in self.host.gpus if wanted.arch in (None, gpu.arch)]
        having = sum(gpu in kind for gpu in self.free)
        return f"{having} of {len(kind)} {f'{wanted.arch} GPUs' if wanted.arch else 'GPUs'} free, "

    def look(self) -> None:
        """Do nothing: `taken` looks at folders, and nobody is asked."""

    def taken(self, instance: str) -> str | None:
        """Return why no container of that name can be made, or None."""
        lxcpath = self.host.config.lxc.lxcpath
        if instance not in liblxc.containers(lxcpath):
            return None
        path = os.path.join(lxcpath, instance)
        if key_of_folder(path):  # renamed, it would not be the one that the newer database knows
            return f"{made_unclaimed(self.host, 'container', path)}; or choose another name"
        return f"there is a container {instance} already that is no instance: rename it, or choose another name"

    def allocate(self, claim: Claim) -> None:
        """Give the container's users ids. The store has given it its GPUs."""
        if self.host.config.lxc.unprivileged:
            wish = self.arrives.first_id if self.arrives else None
            self.host.store.put(claim.instance, first_id=free_ids(self.host, wish))


#: {what an instance runs in: the class that claims its devices}.
KINDS: dict[str | None, type[Containers] | type[Guests]] = {CONTAINER.section: Containers, GUEST.section: Guests}
