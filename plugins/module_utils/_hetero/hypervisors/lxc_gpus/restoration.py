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
from contextlib import suppress
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Collection,
    ContextManager,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Protocol,
    cast,
)

from ...claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
    allocate,
    aside,
    follow_the_moved,
    gpu_of,
    write_again,
)
from ...claims.lost_database import RECONCILE, listed
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, NoneFree, Refused, told
from ...core.locks import lock
from ...core.this_node import THIS_NODE
from ...devices.gpus.container_gpus import nodes_for
from ...scheduling.compute_hosts import gpu_count
from ..lxc import folders, identity, liblxc, persistence
from .access import ACCESS
from .open_rights import BY_FILE, DOUBT, Reach, has, rule_of

if TYPE_CHECKING:
    from ...claims.host.claim_records import Claim
    from ...claims.host.store import Store
    from ...devices.gpus.discovery import Found, Gpu
    from .open_rights import Live

VERB = "restore"
#: Seconds to wait for others who work on a container; at boot there are none.
TURN_TIME = 60.0
OLDER = "by its own file; the table was lost or is older"
#: Whose a GPU may be.
COPIED = "may be container {name}'s, by the file that was copied with it: {way}"
UNREAD = "may be container {name}'s: the table has none of it, and what it has by its own file cannot be read: {error}"
ELSEWHERE = (
    "may be container {name}'s of {lxcpath}, by its own file, and the table does not have it: have module "
    "hetero.compute.gpu_reconcile write it down (lxcpath {lxcpath}, repair true), or take it back (module "
    "hetero.compute.lxc_gpu_attach, state detached, lxcpath {lxcpath}, container {name}), where it is not wanted there"
)
UNSEEN = (
    f"may be {{name}}'s: no claim of it is in the database of {THIS_NODE}, which may be older than the record of one, "
    f"{{path}}, and its container is not to be seen: run {RECONCILE}, which says how it comes back"
)


class Site(Protocol):
    """What is used here of attachment.Site."""

    @property
    def store(self) -> Store: ...
    @property
    def found(self) -> Found: ...
    @property
    def lxcpaths(self) -> tuple[str, ...]: ...
    @property
    def run_folder(self) -> str: ...
    @property
    def host(self) -> persistence.Host: ...

    def look(self) -> Live: ...
    def rows(self, holder: str) -> list[Allocation]: ...
    def kept(self, holder: str, persistent: bool = False) -> list[Allocation]: ...
    def gpus_of(self, rows: Iterable[Allocation]) -> list[Gpu]: ...


def restore(site: Site) -> dict[str, str | None]:
    """Rewrite the files of all containers with GPUs; return {name: None, or why it will not start}."""
    for claim in site.store.claims():
        with suppress(HeteroError):  # its own start says what is odd about it
            site.store.as_recorded(claim, _is_there)
    with site.store.transaction():
        follow_the_moved(site.store, site.found.gpus)

    def turn(container: liblxc.Container) -> ContextManager[object]:
        return lock(site.run_folder, container.lock_name, VERB, site.store.actor, Deadline(TURN_TIME))

    done: dict[str, str | None] = {}
    for lxcpath in site.lxcpaths:
        done.update(persistence.restore(lxcpath, lambda *asked: resolve(site, *asked), site.host, turn))
    identity.note_marks(site.lxcpaths, site.store)
    return done


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
    own = here or _by_own_file(site, container) is not None
    rows = _own(site, container, persisted) if own else _afresh(site, container, persisted)
    nodes = nodes_for(site.found, site.gpus_of(rows))
    return persistence.Persisted(
        request=[vars(row.wanted) for row in rows],
        gpus=[dict(address=row.address, uuid=row.uuid) for row in rows],
        nodes=nodes,
        rules=[f"{rule_of(node)} {ACCESS}" for node in nodes],
    )


def _by_own_file(site: Site, container: liblxc.Container) -> persistence.Persisted | None:
    """Return what a container has by its own file, if that is of this machine: by its id, or by the UUID of a GPU, for
    that stays the same where the machine is installed anew.
    """
    persisted = persistence.read(container, site.host)
    if persisted is not None:
        return persisted
    persisted = persistence.read(container)
    shown = {gpu.uuid for gpu in site.found.gpus if gpu.uuid}
    return persisted if persisted and any(old["uuid"] in shown for old in persisted.gpus) else None


def unwritten(site: Site, container: liblxc.Container) -> list[tuple[Gpu, GpuRequest]]:
    """Return [(GPU, GpuRequest)] that a container has by its own file, and not by a table that was lost or is older."""
    persisted = _by_own_file(site, container)
    return _unknown(site, _key(container), persisted) if persisted else []


def _unknown(site: Site, key: str, persisted: persistence.Persisted) -> list[tuple[Gpu, GpuRequest]]:
    """Return [(GPU, GpuRequest)] that the container with a key has by what is written, and not by the table."""
    rows, found = site.rows(key), []
    had = {row.address for row in rows}.union(gpu.address for gpu in site.gpus_of(rows))
    for old, request in zip(persisted.gpus, persisted.request):
        gpu = gpu_of(old["address"], old["uuid"], site.found.gpus)
        if gpu is not None and gpu.address not in had:
            found.append((gpu, _wanted(request)))
    return found


def by_files(site: Site) -> list[Reach]:
    """Return a Reach for each GPU that a container has by its own file, and not by a table that is older; and for each
    that may be one's own of which that cannot be told, also in other folders in which containers of ours are or were.
    """
    found = _by_records(site)
    others = _other_folders(site)
    for lxcpath in (*site.lxcpaths, *others):
        for name in liblxc.containers(lxcpath):
            try:
                container = liblxc.Container(name, lxcpath)
            except BadInput:  # a folder that was moved aside may have any name
                continue
            try:
                for gpu, wanted in unwritten(site, container):
                    # one that was left where all were copied to another folder takes no GPU from who has it there
                    state, why = (DOUBT, ELSEWHERE) if lxcpath in others else (BY_FILE, OLDER)
                    why = why.format(name=name, lxcpath=lxcpath)
                    found.append(Reach(_key(container), name, gpu.address, state, why, alone=not wanted.share))
                found += _by_copied_file(site, container)
            except HeteroError as error:
                found += _by_unread_file(site, container, error)
    return found


def folders_in(store: Store) -> set[str]:
    """Return the folders whose containers have GPUs by the table."""
    holders = (row.holder for row in store.allocations())
    return {os.path.dirname(holder.rpartition("#")[0]) for holder in holders if holder.startswith("/")}


def _other_folders(site: Site) -> list[str]:
    """Return the folders of containers, beside the site's, that have had the mark or are in the table."""
    paths = sorted({*folders_in(site.store), *site.store.marked()}.difference(site.lxcpaths))
    own = [os.stat(lxcpath) for lxcpath in site.lxcpaths if os.path.isdir(lxcpath)]
    there = [path for path in paths if os.path.isdir(path)]
    return [path for path in there if not any(os.path.samestat(os.stat(path), one) for one in own)]


def _by_unread_file(site: Site, container: liblxc.Container, error: HeteroError) -> list[Reach]:
    """Return a Reach for each GPU where a container's own file cannot be read, and the table has nothing of it."""
    folder = container.folder
    had = any(row.holder.startswith(f"{folder}#") for row in site.store.allocations())
    if had or not os.path.lexists(identity.file_of(container)):
        return []
    with suppress(Refused):  # a configuration that cannot be read may be of one that has GPUs
        if not identity.includes(container):
            return []
        folder = identity.key_by_id(container) or folder
    why = UNREAD.format(name=container.name, error=error)
    return [Reach(folder, container.name, gpu.address, DOUBT, why) for gpu in site.found.gpus]


def _by_copied_file(site: Site, container: liblxc.Container) -> list[Reach]:
    """Return a Reach for each GPU that a container had which may be this one, in a copy of its folder in its place, and
    which the table does not have.
    """
    written = persistence.read_file(identity.file_of(container))
    if written is None or written.machine != site.host.machine_id or identity.key_of(container) is not None:
        return []
    if identity.key_by_id(container) != written.key or not identity.includes(container):
        return []
    why = COPIED.format(name=container.name, way=persistence.copy_way(container, written.key))
    unknown = _unknown(site, written.key, written)
    return [Reach(written.key, container.name, gpu.address, DOUBT, why) for gpu, _wanted_then in unknown]


def _by_records(site: Site) -> list[Reach]:
    """Return a Reach for each GPU, for the claims of which only the record is known, and whose container, which is to
    have more GPUs than the table knows, is not to be seen.
    """
    found: list[Reach] = []
    for claim in site.store.all_forgotten():
        key = claim.container
        if key is None or len(site.rows(key)) >= gpu_count(claim.flavor) or _is_seen(site, key):
            continue
        why = UNSEEN.format(name=claim.instance, path=site.store.records.path(claim.instance))
        found += [Reach(key, claim.instance, gpu.address, DOUBT, why) for gpu in site.found.gpus]
    return found


def _is_seen(site: Site, key: str) -> bool:
    """Return whether the container with a key lies in its place, or a copy of it, so that its file tells what it has.
    """
    folder = key.rpartition("#")[0]
    try:
        return os.path.dirname(folder) in site.lxcpaths and identity.key_by_id(identity.Folder(folder)) == key
    except Refused:
        return False


def must_be_written_down(site: Site, container: liblxc.Container, taken: Collection[str] = ()) -> None:
    """Raise Refused if a container has GPUs only by its own file, which would now be written without them.

    :param taken: addresses of GPUs that are being taken back.
    """
    left = [gpu.address for gpu, _wanted_then in unwritten(site, container) if gpu.address not in taken]
    if left:
        what = f"has {listed(left)} by its own file, and not by the table, which was lost or is older"
        back = f"or take them back (module hetero.compute.lxc_gpu_attach, state detached, gpus {', '.join(left)})"
        raise Refused(what, container.thing, f"run {RECONCILE}, which writes them down, {back}")


def write_down(
    site: Site, container: liblxc.Container, gpu: Gpu, wanted: GpuRequest, persistent: bool = True, dry: bool = False
) -> str | None:
    """Write into the table that a container has a GPU; return None, or in words why that is impossible.

    :param wanted: the request that it comes from.
    """
    try:
        with site.store.transaction(dry=dry):
            _given_again(site, container, gpu, wanted, persistent)
    except NoneFree as error:
        return "; ".join(error.facts["rejected"].values()) or error.what
    return None


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
    key = _key(container)
    rows: dict[str, Allocation] = {}
    persisted = _by_own_file(site, container)
    for old, request in zip(persisted.gpus, persisted.request) if persisted else ():
        gpu, wanted = gpu_of(old["address"], old["uuid"], site.found.gpus), _wanted(request)
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
        had = {row.address: row for row in site.rows(_key(container))}
        for gpu, request in zip(named, persisted.request):
            if gpu.address not in had:
                _given_again(site, container, gpu, _wanted(request))
        uuids = {gpu.address: gpu.uuid or old["uuid"] for gpu, old in zip(named, persisted.gpus)}
        rows = [row for row in site.kept(_key(container), persistent=True) if row.address in uuids]
        rows = [replace(row, uuid=row.uuid or uuids[row.address]) for row in rows]
        for row in rows:
            site.store.grant(row)
        return rows


def _afresh(site: Site, container: liblxc.Container, persisted: persistence.Persisted) -> list[Allocation]:
    """Allocate as many GPUs of each kind as a container had elsewhere."""
    asked = [_wanted(request) for request in persisted.request]
    counts = Counter(wanted.arch for wanted in asked)
    share = all(wanted.share for wanted in asked)
    with site.store.transaction():
        # Requests for any architecture come last: GPUs that the container has by then count for them.
        for arch in sorted(counts, key=lambda arch: arch is None):
            _allocated(site, container, GpuRequest(counts[arch] if arch else len(asked), arch, share=share))
        return site.kept(_key(container), persistent=True)


def _allocated(site: Site, container: liblxc.Container, wanted: GpuRequest) -> None:
    for row in allocate(site.store, _key(container), wanted, site.found.gpus, site.look):
        site.store.grant(replace(row, state=ATTACHED))


def _given_again(
    site: Site, container: liblxc.Container, gpu: Gpu, wanted: GpuRequest, persistent: bool = True
) -> None:
    """Write exactly this GPU down again. The request stays what it was, and a UUID that is not shown yet."""
    key, it = _key(container), replace(wanted, count=None, gpus=(gpu.address,))
    persisted = persistence.read(container)
    uuids = {old["address"]: old["uuid"] for old in persisted.gpus} if persisted else {}
    for row in allocate(site.store, key, it, site.found.gpus, site.look, persistent):
        uuid = row.uuid or uuids.get(row.address)
        site.store.grant(replace(row, uuid=uuid, state=ATTACHED, wanted=wanted))


def _key(container: liblxc.Container) -> str:
    """Return the key of a container that has one."""
    return cast("str", identity.key_of(container))


def _wanted(request: Mapping[str, Any]) -> GpuRequest:
    return GpuRequest(**dict(request, gpus=tuple(request["gpus"])))
