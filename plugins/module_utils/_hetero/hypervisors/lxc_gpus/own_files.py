# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs containers have by their own files, and not by the host's table, which was lost or is older; and which may
be one's of which that cannot be told. hypervisors/lxc/persistence.py knows the form of such a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping, Protocol, Sequence, cast

from ...claims.host.allocation import Allocation, GpuRequest, gpu_of
from ...claims.lost_database import RECONCILE, listed
from ...core.errors import BadInput, HeteroError, Refused
from ...core.this_node import THIS_NODE
from ...devices.gpus.container_gpus import nodes_for
from ...scheduling.compute_hosts import gpu_count
from ..lxc import identity, liblxc, persistence
from .access import ACCESS
from .open_rights import BY_FILE, DOUBT, Reach, rule_of

if TYPE_CHECKING:
    from ...claims.host.store import Store
    from ...devices.gpus.discovery import Found, Gpu
    from .open_rights import Live

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
    """What is used here of site.Site."""

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


def by_own_file(site: Site, container: liblxc.Container) -> persistence.Persisted | None:
    """Return what a container has by its own file, if that is of this machine: by its id, or by the UUID of a GPU, for
    that stays the same where the machine is installed anew.
    """
    persisted = persistence.read(container, site.host)
    if persisted is not None:
        return persisted
    persisted = persistence.read(container)
    shown = {gpu.uuid for gpu in site.found.gpus if gpu.uuid}
    return persisted if persisted and any(old["uuid"] in shown for old in persisted.gpus) else None


def file_for(site: Site, rows: Sequence[Allocation]) -> persistence.Persisted:
    """Return what the file of a container with these allocations says, with today's numbers of their devices.

    A GPU that is lost stays in it, without its nodes: their numbers may be another device's now.
    """
    nodes = nodes_for(site.found, site.gpus_of(rows))
    return persistence.Persisted(
        request=[vars(row.wanted) for row in rows],
        gpus=[dict(address=row.address, uuid=row.uuid) for row in rows],
        nodes=nodes,
        rules=[f"{rule_of(node)} {ACCESS}" for node in nodes],
    )


def unwritten(site: Site, container: liblxc.Container) -> list[tuple[Gpu, GpuRequest]]:
    """Return [(GPU, GpuRequest)] that a container has by its own file, and not by a table that was lost or is older."""
    persisted = by_own_file(site, container)
    return _unknown(site, key_of_made(container), persisted) if persisted else []


def _unknown(site: Site, key: str, persisted: persistence.Persisted) -> list[tuple[Gpu, GpuRequest]]:
    """Return [(GPU, GpuRequest)] that the container with a key has by what is written, and not by the table."""
    rows, found = site.rows(key), []
    had = {row.address for row in rows}.union(gpu.address for gpu in site.gpus_of(rows))
    for old, request in zip(persisted.gpus, persisted.request):
        gpu = gpu_of(old["address"], old["uuid"], site.found.gpus)
        if gpu is not None and gpu.address not in had:
            found.append((gpu, request_of(request)))
    return found


def by_files(site: Site) -> list[Reach]:
    """Return a Reach for each GPU that a container has by its own file, and not by a table that is older; and for each
    that may be one's own of which that cannot be told, also in other folders in which containers of ours are or were.
    """
    found = _by_records(site)
    others = other_folders(site)
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
                    found.append(Reach(key_of_made(container), name, gpu.address, state, why, alone=not wanted.share))
                found += _by_copied_file(site, container)
            except HeteroError as error:
                found += _by_unread_file(site, container, error)
    return found


def folders_in(store: Store) -> set[str]:
    """Return the folders whose containers have GPUs by the table."""
    holders = (row.holder for row in store.allocations())
    return {os.path.dirname(holder.rpartition("#")[0]) for holder in holders if holder.startswith("/")}


def other_folders(site: Site) -> list[str]:
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


def key_of_made(container: liblxc.Container) -> str:
    """Return the key of a container that has one."""
    return cast("str", identity.key_of(container))


def request_of(request: Mapping[str, Any]) -> GpuRequest:
    return GpuRequest(**dict(request, gpus=tuple(request["gpus"])))
