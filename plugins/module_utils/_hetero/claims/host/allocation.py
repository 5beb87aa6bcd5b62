# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets which GPU: the kernel's and the table's knowledge of each is reconciled, and then GPUs are chosen. That
happens in the caller's transaction, so that of several askers one gets a GPU.

This file does not know how a GPU is given to its holder, which is a container's key, or an instance that has no
container yet.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterable, Mapping, Protocol, Sequence, TypeVar, cast

from ...core.errors import BadInput, NoneFree, Refused
from ...site.instance import age

#: States of an allocation: written down before anything is done; proven; being taken back.
ATTACHING, ATTACHED, DETACHING = "attaching", "attached", "detaching"
PHASE = "gpu"
#: Values of an allocation's `method` that a container's GPU has; that of a guest's card says whence it came.
OF_CONTAINERS = ("host", "lxc-attach")
RECONCILE = "look with module hetero.compute.gpu_reconcile, its repair closes it, or writes it down"


@dataclass(frozen=True)
class GpuRequest:
    """A request for a number of GPUs, or for certain ones.

    :param count: how many GPUs the holder is to have; None if `gpus` names them.
    :param arch: architecture, such as fermi, or a PCI device's ids; None takes any.
    :param gpus: addresses, UUIDs or indexes.
    :param share: whether others may have them too.
    """

    count: int | None = None
    arch: str | None = None
    gpus: tuple[str, ...] = ()
    share: bool = False

    def check(self) -> None:
        """Raise BadInput for a request that makes no sense."""
        if (self.count is None) == (not self.gpus):
            raise BadInput("is asked for by number and by name, or not at all", "GPU", "give one of count and gpus")
        if self.count is not None and self.count < 1:
            raise BadInput(f"is {self.count}", "count", "ask for 1 or more")

    def __str__(self) -> str:
        what = "GPU" if self.arch is None else f"{self.arch} GPU"
        if self.gpus:
            return f"{what} {', '.join(map(str, self.gpus))}"
        return f"{self.count} {what}{'s' if self.count != 1 else ''}"


@dataclass(frozen=True)
class Allocation:
    """A GPU given to a holder.

    :param address: the device's; of a GPU that is gone and in whose slot another one is, what `aside` says.
    :param wanted: the request that it serves; after a move to another host, other GPUs serve that.
    :param nodes: (path, kind, major, minor) of the GPU's own device nodes, which can so be closed when the GPU is gone.
    """

    address: str
    holder: str
    uuid: str | None
    share: bool
    state: str
    since: float
    wanted: GpuRequest
    nodes: tuple[tuple[str, str, int | None, int], ...] = ()
    persistent: bool = True
    method: str = "host"


class Device(Protocol):
    """What may be given, as far as choosing needs it."""

    @property
    def address(self) -> str: ...
    @property
    def numa_node(self) -> int | None: ...


class Node(Protocol):
    """A device node of a GPU: its path, and its number (kind, major, minor)."""

    @property
    def path(self) -> str: ...
    @property
    def number(self) -> tuple[str, int | None, int]: ...


class Gpu(Device, Protocol):
    """A GPU that discovery found (devices/gpus/discovery.py)."""

    @property
    def uuid(self) -> str | None: ...
    @property
    def index(self) -> int | None: ...
    @property
    def arch(self) -> str | None: ...
    @property
    def nodes(self) -> Sequence[Node]: ...
    @property
    def healthy(self) -> bool: ...
    @property
    def why_unhealthy(self) -> str | None: ...
    @property
    def unsupported(self) -> str | None: ...


class Reach(Protocol):
    """What a container can do with a GPU; `alone` where it was given to it for itself."""

    @property
    def holder(self) -> str: ...
    @property
    def container(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def alone(self) -> bool: ...


class Seen(Protocol):
    """What the kernel says: who can open a GPU, whether a holder exists, or runs; in words, whose else it may be."""

    def open(self, address: str) -> Iterable[Reach]: ...
    def doubt(self, address: str, holder: str) -> str | None: ...
    def is_there(self, holder: str) -> bool: ...
    def runs(self, holder: str) -> bool: ...


class Claim(Protocol):
    """An instance's claim. Its GPUs are allocated to its holder."""

    @property
    def holder(self) -> str: ...


class Table(Protocol):
    """The host's table of allocations with its claims and events (store.Store)."""

    def allocations(self, holder: str | None = None) -> list[Allocation]: ...
    def grant(self, allocation: Allocation) -> None: ...
    def free(self, allocation: Allocation) -> None: ...
    def in_use(self) -> Sequence[Claim]: ...
    def instance_of(self, holder: str) -> str | None: ...

    def event(
        self, instance: str | None, phase: str, text: str, seconds: float | None = None, address: str | None = None
    ) -> int: ...


AnyDevice = TypeVar("AnyDevice", bound=Device)
AnyGpu = TypeVar("AnyGpu", bound=Gpu)


def allocate(
    store: Table,
    holder: str,
    wanted: GpuRequest,
    gpus: Sequence[Gpu],
    live: Callable[[], Seen],
    persistent: bool = True,
    method: str = "host",
) -> list[Allocation]:
    """Write down which GPUs `holder` has. Those that it has already stay.

    :param gpus: all GPUs of the host.
    :param live: asks the kernel who can open which GPU.
    :returns: the holder's allocations that serve the request, by address.
    :raises NoneFree: `facts['rejected']` says for each GPU why it is not given.
    :raises Refused: this host no longer has a GPU that the holder has.
    """
    wanted.check()
    seen = live()
    forget_the_gone(store, seen)
    follow_the_moved(store, gpus)
    table = store.allocations()
    _none_lost(holder, table, gpus)
    named = list({gpu.address: gpu for gpu in (find(name, gpus) for name in wanted.gpus)}.values())
    rejected = {gpu.address: why_not(gpu, holder, wanted, table, seen) for gpu in named or gpus}
    fit = [gpu for gpu in named or gpus if rejected[gpu.address] is None]
    rejected = {address: why for address, why in rejected.items() if why}
    _none_taken(holder, wanted, table, rejected, gpus)
    has = [row for row in table if row.holder == holder and row.state != DETACHING]
    # what it has by another request stays that one's as long as there are enough
    asked = (wanted, persistent)
    own = [row.address for row in sorted(has, key=lambda row: ((row.wanted, row.persistent) != asked, row.address))]
    count = len(named) if named else cast("int", wanted.count)
    chosen = choose(fit, own, count)
    if len(chosen) < count:
        raise _none_free(holder, wanted, chosen, rejected)
    rows = {row.address: row for row in table if row.holder == holder}
    given = []
    for gpu in chosen:
        row = rows.get(gpu.address)
        new = _row(row, gpu, holder, wanted, persistent, method)
        if new != row:
            store.grant(new)
        if row is None:
            shared = ", shared" if wanted.share else ""
            store.event(store.instance_of(holder), PHASE, f"allocated to {holder}{shared}", address=gpu.address)
        given.append(new)
    return sorted(given, key=lambda row: row.address)


def _row(
    row: Allocation | None, gpu: Gpu, holder: str, wanted: GpuRequest, persistent: bool, method: str
) -> Allocation:
    fields: dict[str, Any] = dict(share=wanted.share, wanted=wanted, persistent=persistent, method=method)
    fields["nodes"] = tuple((node.path, *node.number) for node in gpu.nodes)
    if row is None:
        return Allocation(gpu.address, holder, gpu.uuid, state=ATTACHING, since=time.time(), **fields)
    # the driver may not know the UUID again before the first use after a boot
    return replace(row, uuid=gpu.uuid or row.uuid, state=ATTACHING if row.state == DETACHING else row.state, **fields)


def write_again(store: Table, row: Allocation) -> bool:
    """Add an allocation to a table that was lost; it becomes shared if others have the GPU too.

    :returns: whether it is new. An existing row keeps its request.
    """
    rows = [one for one in store.allocations() if one.address == row.address]
    if any(one.holder == row.holder for one in rows):
        return False
    for other in rows:
        store.grant(replace(other, share=True))
    store.grant(replace(row, share=row.share or bool(rows)))
    store.event(store.instance_of(row.holder), PHASE, f"{row.holder} has it: written down again", address=row.address)
    return True


def _none_lost(holder: str, table: Iterable[Allocation], gpus: Sequence[Gpu]) -> None:
    """Raise Refused if a GPU of the holder vanished.

    It is not silently replaced, because the holder may be using it.
    """
    lost = [row for row in table if row.holder == holder and gpu_of(row.address, row.uuid, gpus) is None]
    if lost:
        names = ", ".join(f"{row.address} ({row.uuid})" for row in lost)
        remedy = "put it back, or detach it (module hetero.compute.lxc_gpu_attach, state detached) and ask again"
        raise Refused(f"has GPU {names}, which is no more on this host", short(holder), remedy)


def _none_taken(
    holder: str,
    wanted: GpuRequest,
    table: Iterable[Allocation],
    rejected: Mapping[str, str | None],
    gpus: Sequence[Gpu],
) -> None:
    """Raise Refused if a GPU that the holder was given for this request, or that it has and that is named, is another's
    as well, or cannot be given now.

    It gets none in its place, for it would have both.
    """
    has = [row for row in table if row.holder == holder and row.state != DETACHING]
    had = [row for row in has if wanted.gpus or row.wanted == wanted]
    found = [gpu_of(row.address, row.uuid, gpus) for row in had]
    taken = [gpu for gpu in found if gpu is not None and gpu.address in rejected]
    if taken:
        has_fault = any(gpu.unsupported or wanted.arch not in (None, gpu.arch) for gpu in taken)
        told = "; ".join(f"GPU {gpu.address}: {rejected[gpu.address]}" for gpu in taken)
        way = "mend that" if has_fault else "end what else has it"
        raise Refused(f"has {told}", short(holder), f"{way}, then run this again")


def follow_the_moved(store: Table, gpus: Sequence[AnyGpu]) -> list[tuple[Allocation, AnyGpu]]:
    """Move allocations of GPUs that are in another slot now (by UUID); return [(row as it was, GPU)].

    Whose own GPU is gone from such a slot keeps its allocation, under `aside`. Into the slot of a guest's card, which
    nothing but its slot names, none is moved: the guest's allocation stands there.
    """
    rows = store.allocations()
    cards = {row.address for row in rows if row.method not in OF_CONTAINERS}
    found = [(row, gpu_of(row.address, row.uuid, gpus)) for row in rows]
    moved = [(row, gpu) for row, gpu in found if gpu is not None and gpu.address not in {row.address, *cards}]
    leaving = [row for row, _gpu in moved]
    taken = {gpu.address: gpu.uuid for _row, gpu in moved}
    gone = [row for row in rows if row not in leaving and row.uuid != taken.get(row.address, row.uuid)]
    for row in [*leaving, *gone]:
        store.free(row)
    for row in gone:
        store.grant(replace(row, address=aside(row.address, row.uuid)))
        text = f"{row.holder} had the GPU that was here ({row.uuid}), and another is here now"
        store.event(store.instance_of(row.holder), PHASE, text, address=row.address)
    for row, gpu in moved:
        nodes = tuple((node.path, *node.number) for node in gpu.nodes)
        store.grant(replace(row, address=gpu.address, nodes=nodes))
        store.event(store.instance_of(row.holder), PHASE, f"moved here from {row.address}", address=gpu.address)
    return moved


def aside(address: str, uuid: str | None) -> str:
    """Return what stands for the address of a GPU that is gone and in whose slot another one is."""
    return uuid or f"{address} (gone)"


def find(name: object, gpus: Sequence[AnyGpu]) -> AnyGpu:
    """Return the GPU that an address, a UUID or an index names; raise BadInput if there is none."""
    text = str(name).strip()
    for gpu in gpus:
        if text.lower() in (gpu.address.lower(), (gpu.uuid or "").lower()) or text == str(gpu.index):
            return gpu
    known = ", ".join(f"{gpu.index}: {gpu.address}" for gpu in gpus) or "none"
    raise BadInput("is no GPU of this host", f"GPU {text}", f"name one by index, address or UUID: {known}")


def why_not(gpu: Gpu, holder: str, wanted: GpuRequest, table: Iterable[Allocation], seen: Seen) -> str | None:
    """Return in words why a GPU cannot be given to `holder`, or None if it can."""
    if gpu.unsupported:
        return gpu.unsupported
    has = any(row.address == gpu.address and row.holder == holder and row.state != DETACHING for row in table)
    if not gpu.healthy and not has:
        return f"is not healthy: {gpu.why_unhealthy}"
    if wanted.arch is not None and gpu.arch != wanted.arch:
        return f"is {gpu.arch or 'of unknown architecture'}, not {wanted.arch}"
    others = [row for row in table if row.address == gpu.address and row.holder != holder]
    for row in others:
        if not row.share:
            return f"allocated to {short(row.holder)} since {age(time.time() - row.since)}"
    if others and not wanted.share:
        return f"shared by {', '.join(short(row.holder) for row in others)}: share it too (share: true), or wait"
    reaches = list(seen.open(gpu.address))
    for reach in reaches:
        if reach.holder != holder and (reach.alone or not wanted.share):
            return f"container {reach.container} can open it, nobody allocated it ({reach.why}): {RECONCILE}"
    has = has or any(reach.holder == holder for reach in reaches)
    return None if has else seen.doubt(gpu.address, holder)


def choose(fit: Iterable[AnyDevice], own: Sequence[str], count: int) -> list[AnyDevice]:
    """Return `count` of the GPUs: the holder's own, then those on the same NUMA nodes, then those of the best fitting
    node.

    :param own: the addresses of the holder's own, in the order in which they are chosen.
    """
    chosen = sorted((gpu for gpu in fit if gpu.address in own), key=lambda gpu: own.index(gpu.address))[:count]
    nodes = {}
    for gpu in sorted(fit, key=lambda gpu: gpu.address):
        if gpu.address not in own:
            nodes.setdefault(gpu.numa_node, []).append(gpu)
    near = {gpu.numa_node for gpu in chosen}
    while len(chosen) < count and nodes:
        missing = count - len(chosen)
        # Near nodes first; then the smallest node that has enough, else the largest, so that others find whole nodes.
        best = min(
            nodes,
            key=lambda node: (node not in near, len(nodes[node]) < missing, abs(len(nodes[node]) - missing), str(node)),
        )
        chosen += nodes.pop(best)[:missing]
    return chosen


def forget_the_gone(store: Table, seen: Seen) -> list[Allocation]:
    """Take back what is allocated to containers that no longer exist; return these rows.

    An instance keeps its GPUs also without a container, until `release` ends its claim. What is being taken back may be
    open in what runs in a container's place, by whatever id.
    """
    claimed = {claim.holder for claim in store.in_use()}
    gone = [row for row in store.allocations() if row.holder not in claimed and not seen.is_there(row.holder)]
    gone = [row for row in gone if row.state != DETACHING or not seen.runs(row.holder)]
    for row in gone:
        store.free(row)
        store.event(None, PHASE, f"free again: {row.holder} is no more", address=row.address)
    return gone


def short(holder: str) -> str:
    """Return a holder's name for people: the container's or the instance's."""
    if holder.startswith("/"):
        return os.path.basename(holder.rpartition("#")[0] or holder)
    return holder.partition(":")[2] or holder


def _none_free(holder: str, wanted: GpuRequest, chosen: Sequence[Gpu], rejected: Mapping[str, str | None]) -> NoneFree:
    told = "; ".join(f"{address} {why}" for address, why in sorted(rejected.items())) or "there is no GPU here"
    what = f"wants {wanted}, {len(chosen) or 'none'} free: {told}"
    return NoneFree(what, short(holder), "wait, or ask for less", rejected=rejected)


def gpu_of(address: str, uuid: str | None, gpus: Sequence[AnyGpu]) -> AnyGpu | None:
    """Return the GPU that an address and a UUID mean, or None if it is gone. The UUID counts, wherever the GPU is now.

    The driver may not know a GPU's UUID before its first use; then the address counts.
    """
    for gpu in gpus:
        if uuid is not None and gpu.uuid == uuid:
            return gpu
    for gpu in gpus:
        if gpu.address == address and (uuid is None or gpu.uuid is None):
            return gpu
    return None
