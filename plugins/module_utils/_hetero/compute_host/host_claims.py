# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a request (instances by flavor) to claims on an accelerator host: memory, processors, disk, devices and an
address in one transaction, and what is said where they are not to be had.

Which devices a container gets is said by class Containers, and a guest in guest_claims.py. Making what was claimed is
for lifecycle.py.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ..claims.host.allocation import Wanted
from ..claims.host.config import SET_UP
from ..core.errors import BadInput, NoneFree
from ..hypervisors.lxc import id_maps, liblxc
from ..roots.machine_identity import must_be_keys
from ..scheduling.compute_hosts import gpu_arch, gpu_count, rejections
from ..scheduling.extra_specs import satisfies
from ..scheduling.fit import AMOUNTS, describe, summary
from ..scheduling.flavor_check import validate
from ..site.image_names import valid_image
from ..site.instance import must_be_free_word, valid_instance
from ..site.kinds import CONTAINER, GUEST
from ..site.leases import as_date, must_be_hours
from ..site.node_clock import begin_lease
from ..site.owners import must_be_numbers, names_of
from .addresses import addresses_there
from .guest_claims import Guests
from .info import claim_fields

#: More instances of one request are a slip of the pen.
MOST = 500
#: Verb of `hetero` that ends leases.
REAPER = "gpu-reap"


@dataclass(frozen=True)
class Wish:
    """What somebody asks for; `count` of them are the instances NAME-1 … NAME-N, one is NAME.

    :param kind: what they are to run in, a key of KINDS.
    :param devices: addresses of the PCI devices that a guest is to get; none for any that fit.
    :param numbers: which of NAME-1 … NAME-N this host is asked for, where others have the rest; none for all.
    """

    request: str
    owner: str
    flavor: dict
    image: str
    ssh_public_key: str
    count: int = 1
    partial: bool = False
    lease_hours: float | None = None
    kind: str = "lxc"
    devices: tuple = ()
    numbers: tuple = ()

    @property
    def instances(self):
        return names_of(self.request, min(self.count, MOST), self.numbers)

    @property
    def wants(self):
        """`ml-8 wants 2 cg1.xlarge (…)`"""
        many = "" if self.count == 1 else f"{len(self.instances)} "
        return f"{self.request} wants {many}{describe(self.flavor['name'], self.flavor)}"

    def check(self):
        """BadInput for what no host could serve."""
        for instance in [self.request, *self.instances]:
            must_be_free_word(valid_instance(instance))
        if not self.owner.strip():
            raise BadInput("is empty", "owner", "say who asks")
        if not self.image.strip():
            raise BadInput("is empty", "image", "name an image, or give the host one (default_image of its role)")
        valid_image(self.image)
        validate(self.flavor)
        if not self.flavor.get("name"):
            raise BadInput("has no name", "flavor", "give it the key name, for people and for comparison")
        gpu_count(self.flavor)
        must_be_keys(self.ssh_public_key)
        if not 1 <= self.count <= MOST:
            raise BadInput(f"is {self.count}", "count", f"ask for 1 to {MOST}")
        must_be_numbers(self.numbers, self.count)
        if self.lease_hours is not None:
            must_be_hours(self.lease_hours, "lease_hours")


def wanted_of(host, flavor):
    """The GPUs that a flavor asks for, all of one architecture where it says anything of that; None for none."""
    count, requirement = gpu_count(flavor), gpu_arch(flavor)
    if not count or requirement is None:
        return Wanted(count=count) if count else None
    free = free_gpus(host)
    archs = sorted({gpu.arch for gpu in host.gpus if gpu.arch and satisfies(gpu.arch, requirement)})
    most = max(archs, key=lambda arch: sum(gpu.arch == arch for gpu in free), default=None)
    if most is None:
        raise BadInput(f"has no GPU whose gpu_arch satisfies '{requirement}'", host.name, "ask another host")
    return Wanted(count=count, arch=most)


def free_gpus(host):
    """GPUs that nobody has, as far as the table says it."""
    taken = {row.address for row in host.store.allocations()}
    return [gpu for gpu in host.gpus if gpu.address not in taken and gpu.healthy and not gpu.unsupported]


def present(host, wish, change):
    """Claim what `wish` asks for, or find it claimed; one transaction, which check mode takes back.

    :returns: instances (the claims), new (the names of new ones), lines.
    :raises NoneFree: the text says why, as do `facts['rejected']` and `facts['rejected_lines']`.
    """
    wish.check()
    if wish.lease_hours is not None:
        begin_lease(host.store, REAPER, change.check)
    with host.store.transaction(dry=change.check):
        before = {claim.instance: claim for claim in map(host.store.claim_of, wish.instances) if claim}
        kind = KINDS[wish.kind](host, wish)
        after = _claims(host, wish, kind, before)
        for claim in after:
            old = before.get(claim.instance)
            change.note(claim.instance, shown(host, old) if old else {}, shown(host, claim))
        new = [claim.instance for claim in after if claim.instance not in before]
        text = f"wants {wish.flavor['name']}: {_found(host, wish, kind, len(new))}"
        lines = [line(wish.request, "", text)]
        return dict(instances=[claim_fields(host, claim) for claim in after], new=new, lines=lines)


def line(instance, node, text, seconds=None):
    """One line for people, as the progress display shows them."""
    return dict(instance=instance, node=node, phase="", text=text, seconds=seconds)


def shown(host, claim):
    """The fields of a claim that a diff shows."""
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


def _found(host, wish, kind, new):
    """`1 of 4 fermi GPUs free, gpu1 chosen`, by what was free before."""
    if not new:
        return f"has {host.name}"
    asked = len(wish.instances)
    short = f" ({new} of {asked})" if new < asked else ""
    return f"{kind.was_free}{host.name} chosen{short}"


def _new(claims, before):
    """How many of the claims were not there before."""
    return sum(claim.instance not in before for claim in claims)


def _claims(host, wish, kind, before):
    """Claim all instances, or those that can be had where `partial`; those that are there keep what they have."""
    if len(before) < len(wish.instances):
        offers = [kind.hypervisor] if kind.hypervisor in host.hypervisors else host.hypervisors
        unfit = rejections(wish.flavor, dict(host.facts, hypervisors=offers)) + _without_image(host, wish.image)
        if unfit:
            raise _no_node(host, wish, kind, unfit, 0, {host.name: unfit})
    claims = []
    for instance in wish.instances:
        try:
            claims.append(_claim(host, wish, kind, instance, instance in before))
        except NoneFree as none:
            if wish.partial and claims:
                # Inside this transaction, what the last one had begun is there.
                host.store.release(instance)
                break
            raise _no_node(host, wish, kind, _reasons(kind, none), _new(claims, before)) from none
    return claims


def _without_image(host, name):
    """Why containers of this image cannot be made here."""
    try:
        image = host.images.get(name)
    except BadInput as error:
        return [f"image {name}: {error.what}"]
    return [wrong_arch(host, image)] if image.arch != host.cpu_arch else []


def wrong_arch(host, image):
    """The words for an image that does not run on this host."""
    return f"image {image.name} is for {image.arch}, this host is {host.cpu_arch}"


def _claim(host, wish, kind, instance, is_there):
    claim, new = host.store.claim(
        instance,
        wish.owner,
        wish.flavor,
        wish.image,
        wish.ssh_public_key,
        wish.kind,
        host.capacity,
        None if is_there else kind.wanted,
        host.site.look if kind.wanted else None,
        host.gpus,
        wish.lease_hours,
        wish.request,
    )
    if not new:
        return claim
    why = kind.taken(instance)
    if why:
        raise NoneFree(why, instance, rejected={"name": why})
    kind.allocate(claim)
    return host.store.put(instance, address=_address(host, host.config[wish.kind]["addresses"]))


def _address(host, addresses):
    """The first address that no instance has."""
    if not addresses:
        raise BadInput("names no addresses for instances", "host.json", SET_UP)
    first, last = map(ipaddress.ip_address, addresses)
    # What is there has its address, whatever the database says.
    taken = {claim.address for claim in host.store.claims()} | addresses_there(host.config)
    for number in range(int(first), int(last) + 1):
        address = str(ipaddress.ip_address(number))
        if address not in taken:
            return address
    why = f"no address is free from {first} to {last}"
    raise NoneFree(
        why, host.name, "terminate something, or widen the addresses of the host's role", rejected={"address": why}
    )


def free_ids(host):
    """The first id of a range that no container's users have on this host; called in the transaction that takes it.

    A container that is there has its range, whatever the database says.
    """
    own = [(claim.first_id, id_maps.COUNT) for claim in host.store.claims() if claim.first_id is not None]
    first = id_maps.free_range([*own, *id_maps.mapped(host.config["lxc"]["lxcpath"])])
    if first is None:
        why = f"no {id_maps.COUNT} ids are left that root has in {' and '.join(id_maps.FILES)}"
        remedy = "terminate something, or give root a wider range there"
        raise NoneFree(why, host.name, remedy, rejected={"ids": f"{why}: {remedy}"})
    return first


def _reasons(kind, none):
    """What the store or an allocation refused, for people; equal reasons of devices together."""
    rejected = none.facts["rejected"]
    if not rejected or set(rejected) & {*AMOUNTS, "address", "ids", "name", "alias"}:
        return list(rejected.values()) or [none.what]
    groups = {}
    for address, why in sorted(rejected.items()):
        groups.setdefault(why, []).append(address)
    told = "; ".join(f"{', '.join(addresses)} {why}" for why, addresses in groups.items())
    return [f"{kind.asked} wanted: {told}"]


def _no_node(host, wish, kind, reasons, found, unfit=None):
    """`bob wants cg1.xlarge (…): no node.` and why."""
    rejected = {host.name: reasons}
    lines = summary(rejected)
    head = f"{wish.wants}: {f'{found} of {len(wish.instances)} nodes' if found else 'no node'}."
    text = "\n".join([head, *(f"  {reason}" for reason in lines)])
    return NoneFree(text, rejected=rejected, rejected_lines=lines, unfit=unfit or {})


class Containers:
    """What containers take besides memory, processors and disk: GPUs, which the store allocates itself.

    :param wish: of one request.
    """

    hypervisor = CONTAINER.hypervisor
    #: What its devices are called in answers.
    devices = "gpus"

    def __init__(self, host, wish):
        self.host = host
        self.flavor = wish.flavor
        self.free = free_gpus(host)

    @property
    def wanted(self):
        return wanted_of(self.host, self.flavor)

    @property
    def asked(self):
        return str(self.wanted)

    @property
    def was_free(self):
        wanted = self.wanted
        if wanted is None:
            return ""
        kind = [gpu for gpu in self.host.gpus if wanted.arch in (None, gpu.arch)]
        having = sum(gpu in kind for gpu in self.free)
        return f"{having} of {len(kind)} {f'{wanted.arch} GPUs' if wanted.arch else 'GPUs'} free, "

    def taken(self, instance):
        """Why no container of that name can be made, or None."""
        if instance in liblxc.containers(self.host.config["lxc"]["lxcpath"]):
            return f"there is a container {instance} already that is no instance: rename it, or choose another name"
        return None

    def allocate(self, claim):
        """Ids for its users; GPUs are the store's to give, which has done it."""
        if self.host.config["lxc"]["unprivileged"]:
            self.host.store.put(claim.instance, first_id=free_ids(self.host))


#: What an instance runs in → what is claimed for one.
KINDS: dict[str | None, type[Containers] | type[Guests]] = {CONTAINER.section: Containers, GUEST.section: Guests}
