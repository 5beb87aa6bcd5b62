# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs a container has after its host's restart, and with which numbers: its own, wherever they are now. And
which it has if the host's table was lost.

On another host it gets other GPUs, by its request. hypervisors/lxc/persistence.py knows the form of its file.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Collection,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
)

from ...claims.host.allocation import (
    ATTACHED,
    DETACHING,
    PHASE,
    Allocation,
    GpuRequest,
    allocate,
    aside,
    follow_the_moved,
    gpu_of,
    write_again,
)
from ...claims.lost_database import listed
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, NoneFree, Refused, told
from ...core.locks import lock
from ..lxc import folders, identity, liblxc, persistence
from .open_rights import has, open_to
from .own_files import by_own_file, file_for, key_of_made, other_folders, request_of

if TYPE_CHECKING:
    from ...claims.host.claim_records import Claim
    from ...claims.host.store import Store
    from ...devices.gpus.discovery import Gpu
    from .own_files import Site

VERB = "restore"
#: Seconds to wait for others who work on a container; at boot there are none.
TURN_TIME = 60.0


def restore(site: Site) -> dict[str, str | None]:
    """Rewrite the files of all containers with GPUs; return {name: None, or why it will not start}.

    In folders that are not the site's, only of those that the table knows: others may have been left there in a move.
    They are named with their folder.
    """
    for claim in site.store.claims():
        with suppress(HeteroError):  # its own start says what is odd about it
            site.store.as_recorded(claim, _is_there)
    with site.store.transaction():
        follow_the_moved(site.store, site.found.gpus)

    def turn(container: liblxc.Container) -> ContextManager[object]:
        return lock(site.run_folder, container.lock_name, VERB, site.store.actor, Deadline(TURN_TIME))

    def known(container: liblxc.Container) -> bool:
        key = identity.key_of(container)
        return key is not None and bool(site.rows(key))

    def own(*asked: Any) -> persistence.Persisted:
        return resolve(site, *asked)

    holders = {row.holder for row in site.store.allocations() if row.holder.startswith("/")}
    if not all(os.path.lexists(holder.rpartition("#")[0]) for holder in holders):
        _follow(site, turn)
    done: dict[str, str | None] = {}
    for lxcpath in site.lxcpaths:
        done.update(persistence.restore(lxcpath, own, site.host, turn))
    for lxcpath in other_folders(site):
        found = persistence.restore(lxcpath, own, site.host, turn, known)
        done.update({os.path.join(lxcpath, name): why for name, why in found.items()})
    identity.note_marks(site.lxcpaths, site.store)
    return done


def _follow(site: Site, turn: Callable[[liblxc.Container], ContextManager[object]]) -> None:
    """Have files and configurations of containers whose folders were moved be of where these lie now."""
    for lxcpath in (*site.lxcpaths, *other_folders(site)):
        for name in liblxc.containers(lxcpath):
            with suppress(HeteroError):  # what is odd about one is said of it later, or by its own start
                container = liblxc.Container(name, lxcpath)
                with site.store.transaction(dry=True):
                    was_moved = take_along(site, container)
                if not was_moved:
                    continue
                with turn(container), site.store.transaction():
                    if take_along(site, container):
                        rows = site.kept(key_of_made(container), persistent=True)
                        persistence.write(container, file_for(site, rows), site.host)


def _is_there(kept: Claim) -> bool:
    """Return whether the container that the record of a claim tells of lies in its place."""
    lxcpath, name = os.path.split((kept.container or "").rpartition("#")[0])
    return bool(lxcpath) and identity.key_of(liblxc.Container(name, lxcpath)) == kept.container


def resolve(
    site: Site, container: liblxc.Container, persisted: persistence.Persisted, here: bool
) -> persistence.Persisted:
    """Return what a container is to have, with today's numbers.

    :param here: whether its GPUs were of this host, as it is installed now.
    :raises HeteroError: why it cannot have them.
    """
    if site.found.unsupported:
        raise Refused(site.found.unsupported, "this host")
    own = here or by_own_file(site, container) is not None
    rows = _own(site, container, persisted) if own else _afresh(site, container, persisted)
    return file_for(site, rows)


def write_down(site: Site, container: liblxc.Container, gpu: Gpu, wanted: GpuRequest, dry: bool = False) -> str | None:
    """Write into the table that a container has a GPU; return None, or in words why that is impossible.

    :param wanted: the request that it comes from.
    """
    try:
        with site.store.transaction(dry=dry):
            _given_again(site, container, gpu, wanted)
    except NoneFree as error:
        return "; ".join(error.facts["rejected"].values()) or error.what
    return None


def take_along(site: Site, container: liblxc.Container) -> list[Allocation]:
    """Have what a container of somebody's own has by its folder's former path allocated to it where it lies now; return
    these allocations as they were. Those of instances are followed by their claims.
    """
    store, marked, key = site.store, site.store.marked(), identity.key_of(container)
    if key is None:
        return []
    moved = [row for row in store.allocations() if identity.was_moved(row.holder, key, marked)]
    moved = [row for row in moved if store.instance_of(row.holder) is None]
    for row in moved:
        store.free(row)
        store.grant(replace(row, holder=key))
        store.event(None, PHASE, f"{key} has it, which was {row.holder}", address=row.address)
    _go_on_taking_back(store, container, key)
    return moved


def _go_on_taking_back(store: Store, container: liblxc.Container, key: str) -> None:
    """Have what is being taken back from a container that runs be taken back by the id that it has by now, such as of a
    configuration that was put back from a backup: its processes may have it open.
    """
    rows = [row for row in store.allocations() if row.state == DETACHING and store.instance_of(row.holder) is None]
    rows = [row for row in rows if row.holder != key and row.holder.startswith(f"{container.folder}#")]
    if not rows or not container.init_pid:
        return
    own = {row.address for row in store.allocations(key)}
    for row in rows:
        store.free(row)
        if row.address not in own:
            store.grant(replace(row, holder=key))


def must_be_marked_there(site: Site, container: liblxc.Container) -> None:
    """Raise Refused where a container's folder may be the bare point of a mount: giving the container an id marks that
    folder, and a new mark would say that what was made there, and is not seen, is gone for good.
    """
    marked = site.store.marked()
    if container.lxcpath in marked and not folders.is_marked(container.lxcpath, marked):
        identity.must_be_seen(container.lxcpath, site.store.made(), marked)


def must_be_no_copy_that_keeps(container: liblxc.Container, key: str, left: Collection[str]) -> None:
    """Raise Refused where a container is to keep some GPUs, of which a copy of its folder has no file of its own.

    :param left: their addresses.
    """
    if left and identity.key_of(container) is None:
        way = f"take back all of them (no gpus); or, {persistence.copy_way(container, key)}"
        raise Refused(f"is a copy of its folder, and has {', '.join(left)} as well", container.thing, way)


@contextmanager
def held_back(site: Site, container: liblxc.Container, pid: int, addresses: Collection[str | None]) -> Iterator[None]:
    """Have nobody given GPUs while they are closed to a running container, of which the table has nothing: they are
    being taken back. Where that is cut short, or fails as processes still have one open, they stay so, and a later look
    at the container ends it. What is another's by the table stays so; what stays open is given to nobody as it is.
    """
    gpus, rows, done = [gpu for gpu in site.found.gpus if gpu.address in addresses], [], []
    with site.store.transaction():
        given = {row.address for row in site.store.allocations()} if gpus else ()
        for gpu in (gpu for gpu in gpus if gpu.address not in given):
            # one in a copy of its folder keeps the id by which it may have others
            key = identity.key_of(container) or identity.key_by_id(container)
            if key is None:
                must_be_marked_there(site, container)
                key = identity.give_id(container, site.host.command)
            row = _row(key, gpu, GpuRequest(gpus=(gpu.address,)), persistent=False)
            rows.append(replace(row, state=DETACHING))
            site.store.grant(rows[-1])
    try:
        yield
        done = rows
    except HeteroError:
        with suppress(HeteroError, OSError):  # it may have ended
            still = open_to(container, pid, gpus) if rows else ()
            done = [row for row in rows if row.address in still]
        raise
    finally:
        with site.store.transaction():
            for row in done:
                site.store.free(row)


class Begun(NamedTuple):
    """What was written into a table that had been lost.

    :param written: {address of a GPU: names of the containers that it was written down for}.
    :param left: in words, why what containers have may not all be written down yet.
    """

    written: Dict[str, List[str]]
    left: List[str]


def begin_anew(site: Site, also: Iterable[str] = (), dry: bool = False) -> Begun:
    """Write into a table that was lost what containers with an id have, by their own files.

    For running containers what the kernel lets them open counts, too. A GPU of several becomes shared. A repetition
    adds what is missing.

    :param also: folders of containers beside the site's and those in which one runs.
    :returns: what was written. A fault of one container does not stop the others.
    """
    had: list[tuple[str, Allocation]] = []
    written: dict[str, list[str]] = {}
    left: list[str] = []
    for lxcpath in sorted({*site.lxcpaths, *also, *folders.in_use()}):
        for name in liblxc.containers(lxcpath):
            try:
                container = liblxc.Container(name, lxcpath)
            except BadInput as error:  # a folder that somebody has put there may have any name
                left += [str(error)] if os.path.lexists(os.path.join(lxcpath, name, identity.FOLDER)) else []
                continue
            try:
                had += [(name, row) for row in _had(site, container)] if identity.key_of(container) else []
            except Exception as error:  # noqa: BLE001 - the others have what they have, whatever is wrong with one
                left.append(told(error, container.thing))
    marked = site.store.marked()
    unseen = folders.out_of_sight(marked, site.lxcpaths)
    left += [str(folders.unseen(lxcpath, "a container", marked)) for lxcpath in unseen]
    named = sorted({name for name, row in had if row.persistent})
    if named and not site.found.gpus:
        gone = f"where they are gone for good, move {identity.FOLDER}/{identity.FILE} of these containers aside"
        left.append(f"this host shows no GPU, and {listed(named)} had some: load the driver, or, {gone}")
    with site.store.transaction(dry=dry):
        firm = {row.address for row in site.store.allocations() if not row.share}
        for name, row in had:
            # If a copy of the table and a container's file give a GPU to different ones, gpu_reconcile reports it.
            if not (row.persistent and row.address in firm) and write_again(site.store, row):
                written.setdefault(row.address, []).append(name)
        there = {row.address for row in site.store.allocations()}
    missing = [f"{row.address} of container {name}" for name, row in had if row.address not in there]
    left += [f"not in the table although it was written: {listed(missing)}"] if missing else []
    return Begun(written, left)


def _had(site: Site, container: liblxc.Container) -> list[Allocation]:
    """Return allocations of what a container has by its own file, and of what else it can open."""
    identity.must_run_itself(container)
    key = key_of_made(container)
    rows: dict[str, Allocation] = {}
    persisted = by_own_file(site, container)
    for old, request in zip(persisted.gpus, persisted.request) if persisted else ():
        gpu, wanted = gpu_of(old["address"], old["uuid"], site.found.gpus), request_of(request)
        row = _row(key, gpu, wanted) if gpu else _row_of_the_lost(key, old, wanted, site.found.gpus)
        rows[row.address] = replace(row, uuid=row.uuid or old["uuid"])
    pid = container.init_pid
    for gpu in has(container, pid, site.found.gpus) if pid else []:
        rows.setdefault(gpu.address, _row(key, gpu, GpuRequest(gpus=(gpu.address,)), persistent=False))
    return list(rows.values())


def _row(key: str, gpu: Gpu, wanted: GpuRequest, persistent: bool = True) -> Allocation:
    nodes = tuple((node.path, *node.number) for node in gpu.nodes)
    return Allocation(gpu.address, key, gpu.uuid, wanted.share, ATTACHED, time.time(), wanted, nodes, persistent)


def _row_of_the_lost(key: str, old: Mapping[str, Any], wanted: GpuRequest, gpus: Iterable[Gpu]) -> Allocation:
    """Return the allocation of a GPU that is not here now. It stays its holder's, as it would with the table."""
    address, uuid = old["address"], old["uuid"]
    if any(gpu.address == address for gpu in gpus):
        address = aside(address, uuid)
    return Allocation(address, key, uuid, wanted.share, ATTACHED, time.time(), wanted)


def _own(site: Site, container: liblxc.Container, persisted: persistence.Persisted) -> list[Allocation]:
    """Return the allocations of a container's own GPUs. A missing one is written again if nobody else has the GPU."""
    named = []
    for old in persisted.gpus:
        gpu = gpu_of(old["address"], old["uuid"], site.found.gpus)
        if gpu is None:
            what = f"is no more on this host (UUID {old['uuid']})"
            remedy = f"put it back and run hetero gpu-{VERB}, or detach it (module hetero.compute.lxc_gpu_attach)"
            raise Refused(what, f"GPU {old['address']}", remedy)
        if gpu.unsupported:
            raise Refused(gpu.unsupported, f"GPU {gpu.address}", f"mend that, then run hetero gpu-{VERB}")
        named.append(gpu)
    with site.store.transaction():
        had = {row.address: row for row in site.rows(key_of_made(container))}
        for gpu, request in zip(named, persisted.request):
            if gpu.address not in had:
                _given_again(site, container, gpu, request_of(request))
        uuids = {gpu.address: gpu.uuid or old["uuid"] for gpu, old in zip(named, persisted.gpus)}
        rows = [row for row in site.kept(key_of_made(container), persistent=True) if row.address in uuids]
        rows = [replace(row, uuid=row.uuid or uuids[row.address]) for row in rows]
        for row in rows:
            site.store.grant(row)
        return rows


def _afresh(site: Site, container: liblxc.Container, persisted: persistence.Persisted) -> list[Allocation]:
    """Allocate as many GPUs of each kind as a container had elsewhere."""
    asked = [request_of(request) for request in persisted.request]
    counts = Counter(wanted.arch for wanted in asked)
    share = all(wanted.share for wanted in asked)
    with site.store.transaction():
        # Requests for any architecture come last: GPUs that the container has by then count for them.
        for arch in sorted(counts, key=lambda arch: arch is None):
            _allocated(site, container, GpuRequest(counts[arch] if arch else len(asked), arch, share=share))
        return site.kept(key_of_made(container), persistent=True)


def _allocated(site: Site, container: liblxc.Container, wanted: GpuRequest) -> None:
    for row in allocate(site.store, key_of_made(container), wanted, site.found.gpus, site.look):
        site.store.grant(replace(row, state=ATTACHED))


def _given_again(site: Site, container: liblxc.Container, gpu: Gpu, wanted: GpuRequest) -> None:
    """Write exactly this GPU down again. The request stays what it was, and a UUID that is not shown yet."""
    key, it = key_of_made(container), replace(wanted, count=None, gpus=(gpu.address,))
    persisted = persistence.read(container)
    uuids = {old["address"]: old["uuid"] for old in persisted.gpus} if persisted else {}
    for row in allocate(site.store, key, it, site.found.gpus, site.look):
        uuid = row.uuid or uuids.get(row.address)
        site.store.grant(replace(row, uuid=uuid, state=ATTACHED, wanted=wanted))
