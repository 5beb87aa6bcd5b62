# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs given to a container: written down first, then opened, proven and made to last; and all that taken back.

Killed anywhere and run again it converges: each step looks first, and nothing is open that the table does not have.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, NamedTuple, Sequence, cast

from ...claims.host.allocation import ATTACHED, DETACHING, PHASE, allocate, find, forget_the_gone
from ...core.errors import BadInput, HeteroError, Refused
from ...core.plays import play
from ...devices.cgroup.devices import of_container
from ...devices.gpus import gpu_users, libraries
from ...devices.gpus.container_gpus import closing_nodes, nodes_for
from ..lxc import identity, monitors, persistence
from . import open_rights
from .access import HOST, refuse_wild
from .own_files import file_for, must_be_written_down
from .restoration import held_back, must_be_marked_there, must_be_no_copy_that_keeps, take_along

if TYPE_CHECKING:
    from ...claims.host.allocation import Allocation, GpuRequest
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...devices.gpus.discovery import Gpu
    from ..lxc.liblxc import Container
    from .site import Site

Rows = Sequence["Allocation"]
#: What a module returns, or a part of it.
Result = Dict[str, Any]

#: Number of times that a container may restart while one GPU is given to it.
RESTARTS = 3
#: Of one that does not run.
ONCE = "does not run, and would have them for this run alone"
ONCE_WAY = "start it, then run this again; or attach with persistent: true, and it has them from its next start on"
#: Of one that is named by its former path.
MOVED = "was moved to {folder}, and its GPUs are its own there"
MOVED_WAY = "to take them back, name it as it is there: container {name}, lxcpath {lxcpath}"


class Meant(NamedTuple):
    """What is to be taken back: allocations, and the GPUs that are to be closed, of which some may be nobody's by the
    table.
    """

    rows: Sequence[Allocation]
    gpus: Sequence[Gpu]


def attach(
    site: Site,
    container: Container,
    wanted: GpuRequest,
    change: Change,
    deadline: Deadline,
    persistent: bool = True,
    method: str = HOST,
) -> Result:
    """Give a container the GPUs that it wants, if it does not have them; return the module's result.

    :param persistent: whether it has them after a restart, too; if not, it must run.
    :raises NoneFree: the error says for each GPU why it is not given. Nothing was changed.
    """
    _must_be_defined(container)
    if persistent and not os.access(site.host.command, os.X_OK):
        remedy = f"run {play('gpu_host')}, or attach with persistent: false"
        raise Refused("is not there, and containers with GPUs do not start without it", site.host.command, remedy)
    if site.found.unsupported:
        raise Refused(site.found.unsupported, "this host")
    must_be_marked_there(site, container)
    with site.locked(container, "attach", change, deadline):
        _must_be_defined(container)  # it may have been ended while another had the lock
        _must_be_known_by_its_path(site, container)
        _must_run(site, container, persistent, change)
        with change.step("driver"):
            inside = libraries.check(_root_of(container), site.found.driver_version, container.thing, deadline)
        holder = _key(site, container, change)
        with change.step("allocate"), site.store.transaction(dry=change.check):
            take_along(site, container)
            before = site.rows(holder)
            seen = site.look()
            rows = allocate(site.store, holder, wanted, site.found.gpus, lambda: seen, persistent, method)
            refuse_wild(container.name, seen.of(holder), {row.address for row in site.rows(holder)})
            must_be_written_down(site, container)
            after = site.kept(holder)
            lasting = site.kept(holder, persistent=True)
        _note_gpus(container, change, before, after)
        had = {row.address for row in before}
        try:
            done = bring_up(site, container, rows, lasting, change)
            with change.step("prove"):
                done.update(_isolation(site, container, {row.address for row in [*before, *rows]}, done["pid"]))
        except HeteroError as error:
            _give_up(site, container, holder, [row for row in rows if row.address not in had], change, deadline, error)
            raise
        finish(site, container, rows, change, done["pid"])
        return _result(site, container, holder, rows, done, change, libraries=[vars(library) for library in inside])


def detach(
    site: Site,
    container: Container,
    names: Sequence[str],
    change: Change,
    deadline: Deadline,
    on_holders: str = gpu_users.FAIL,
) -> Result:
    """Take GPUs back from a container: deny, remove nodes, wait, rewrite its file, free; return the module's result.

    :param names: addresses, UUIDs or indexes; none for all that it has or can open.
    :param on_holders: what is done about processes that have one open: gpu_users.FAIL, WAIT or KILL.
    """
    # what a dry run takes along is seen until its end
    dry = site.store.transaction(dry=True) if change.check else nullcontext()
    with site.locked(container, "detach", change, deadline), dry:
        if not container.defined:
            return _forget(site, container, change)
        _must_be_known_by_its_path(site, container)
        with site.store.transaction(dry=change.check):
            take_along(site, container)
        holder = identity.key_of(container) or identity.key_by_id(container) or container.folder
        before = site.rows(holder)
        meant = _meant(site, container, names, before)
        must_be_no_copy_that_keeps(container, holder, [row.address for row in before if row not in meant.rows])
        if names:
            must_be_written_down(site, container, {gpu.address for gpu in meant.gpus})
        pid = container.init_pid
        if on_holders == gpu_users.FAIL and pid:
            kept = site.gpus_of([row for row in site.kept(holder) if row not in meant.rows])
            nodes = closing_nodes(site.found, meant.gpus, meant.rows, kept)
            gpu_users.refuse_users(container, of_container(pid, container.name), nodes, site.paths)
        done = take_back(site, container, holder, meant, on_holders, change, deadline)
        left = [row for row in before if row not in meant.rows]
        _note_gpus(container, change, before, left)
        return _result(site, container, holder, left, done, change)


# ---- giving


def bring_up(site: Site, container: Container, rows: Rows, lasting: Rows, change: Change) -> Result:
    """Open, prove and persist what is allocated; return a dict of `proofs` and `pid`.

    :param lasting: allocations that outlive a restart.
    """
    nodes = nodes_for(site.found, site.gpus_of(rows))
    method = rows[0].method if rows else HOST
    for _start in range(RESTARTS):
        pid = container.init_pid
        with change.step("open"):
            proofs = site.running(container, pid).give(nodes, method, change.check) if pid else []
        with change.step("persist"):
            persist(site, container, lasting, change)
        if container.init_pid == pid:
            return dict(proofs=proofs, pid=pid)
    raise HeteroError(f"was restarted {RESTARTS} times meanwhile", container.thing, "run this again")


def finish(site: Site, container: Container, rows: Iterable[Allocation], change: Change, pid: int | None) -> None:
    """Write down that a container has what is allocated to it, and that its folder has the mark."""
    if not change.check:
        identity.note_marks([container.lxcpath], site.store)
    with site.store.transaction(dry=change.check):
        for row in rows:
            if row.state != ATTACHED:
                site.store.grant(replace(row, state=ATTACHED))
                text = f"attached to {container.name}" if pid else f"attached to {container.name} for its next start"
                site.store.event(site.store.instance_of(row.holder), PHASE, text, address=row.address)


def _give_up(
    site: Site, container: Container, holder: str, fresh: Rows, change: Change, deadline: Deadline, error: HeteroError
) -> None:
    """Take back what this call allocated and could not give."""
    if change.check or not fresh:
        return
    try:
        take_back(site, container, holder, Meant(fresh, site.gpus_of(fresh)), gpu_users.FAIL, change, deadline)
    except HeteroError as second:
        remedy = "have module hetero.compute.gpu_reconcile mend it (repair: true)"
        raise HeteroError(f"{error}; taking that back: {second}", container.thing, remedy) from error


def _isolation(site: Site, container: Container, own: set[str], pid: int | None) -> Result:
    """Return how GPUs that a container was not given are closed to it; raise Refused if one is open."""
    if not pid:
        return dict(isolation=None, others=[])
    reaches = {far.address: far for far in open_rights.reach_of(container, pid, site.found.gpus)}
    refuse_wild(container.name, reaches, own)
    others = [far for address, far in sorted(reaches.items()) if address not in own]
    only = any(far.state == open_rights.NODE_ONLY for far in others)
    listed = [dict(address=far.address, state=far.state, why=far.why) for far in others]
    return dict(isolation=open_rights.NODE_ONLY if only else "cgroup", others=listed)


# ---- taking back


def _meant(site: Site, container: Container, names: Sequence[str], rows: list[Allocation]) -> Meant:
    """Return what is to be taken back: what is named, or all that the container has or can open."""
    if names:
        return _named(site, names, rows)
    gpus = {gpu.address: gpu for gpu in site.gpus_of(rows)}
    pid = container.init_pid
    if pid:
        open_to_it = open_rights.open_to(container, pid, site.found.gpus)
        gpus.update((gpu.address, gpu) for gpu in site.found.gpus if gpu.address in open_to_it)
    return Meant(rows, list(gpus.values()))


def _named(site: Site, names: Sequence[str], rows: Rows) -> Meant:
    """Return _meant for GPUs that a user names. A GPU that is gone is named as in the table."""
    chosen: list[Allocation] = []
    gpus: list[Gpu] = []
    for name in names:
        named = [row for row in rows if str(name).lower() in (row.address.lower(), (row.uuid or "").lower())]
        if not named or site.gpus_of(named):
            gpu = find(name, site.found.gpus)
            gpus.append(gpu)
            named = [row for row in rows if row.address == gpu.address]
        chosen += [row for row in named if row not in chosen]
    return Meant(chosen, gpus)


def take_back(
    site: Site, container: Container, holder: str, meant: Meant, how: str, change: Change, deadline: Deadline
) -> Result:
    """Close GPUs, persist that, wait for processes and free; return a dict of `proofs`, `holders` and `pid`.

    :param holder: the container's key as the caller found it. Its file may be written anew meanwhile and name another.
    :param how: what is done about processes that have one open: gpu_users.FAIL, WAIT or KILL.
    """
    store = site.store
    with store.transaction(dry=change.check):
        for row in meant.rows:
            store.grant(replace(row, state=DETACHING))
        keep = [row for row in site.rows(holder) if row not in meant.rows and row.state != DETACHING]
    nodes = closing_nodes(site.found, meant.gpus, meant.rows, site.gpus_of(keep))
    done: Result = dict(proofs=[], holders=[], isolation=None, others=[])
    for _start in range(RESTARTS):
        # what a copy of its folder starts with, a person decides (persistence.copy_way)
        if not keep or identity.key_of(container) or identity.key_by_id(container) != holder:
            with change.step("persist"):
                persist(site, container, [row for row in keep if row.persistent], change)
        pid = done["pid"] = container.init_pid
        if pid:
            running = site.running(container, pid)
            open_to_it = () if change.check else open_rights.open_to(container, pid, meant.gpus)
            with held_back(site, container, pid, open_to_it):
                with change.step("close"):
                    done["proofs"] = running.take(nodes, change.check)
                with change.step("holders"):
                    if not change.check:
                        done["holders"] = gpu_users.let_go(container, running.cgroup, nodes, how, deadline, site.paths)
        if container.init_pid == pid:
            break
    else:
        raise HeteroError(f"was restarted {RESTARTS} times meanwhile", container.thing, "run this again")
    with store.transaction(dry=change.check):
        for row in meant.rows:
            instance = store.instance_of(holder)
            store.free(row)
            store.event(instance, PHASE, f"taken back from {container.name}", address=row.address)
    return done


def _forget(site: Site, container: Container, change: Change) -> Result:
    """Remove what the table has of a container that no longer exists."""
    pid = monitors.init_of(container.name, container.lxcpath)
    if pid:
        what = open_rights.GONE.format(pid=pid, config=container.config_file)
        raise Refused(what, container.thing, open_rights.GONE_WAY.format(pid=pid))
    with site.store.transaction(dry=change.check):
        live = site.look()
        gone = forget_the_gone(site.store, live)
        gone = [row for row in gone if row.holder.startswith(f"{container.folder}#")]
        kept = [row for row in site.store.allocations() if row.holder.startswith(f"{container.folder}#")]
        identity.must_be_no_more(container.lxcpath, [row.holder for row in kept], site.store.marked())
        there = [live.moved_to(row.holder) for row in kept if site.store.instance_of(row.holder) is None]
        for folder in filter(None, there):
            lxcpath, name = os.path.split(folder)
            raise Refused(MOVED.format(folder=folder), container.thing, MOVED_WAY.format(lxcpath=lxcpath, name=name))
    _note_gpus(container, change, gone, [])
    done = dict(proofs=[], pid=None, isolation=None, others=[], holders=[])
    return _result(site, container, None, kept, done, change)  # an instance keeps its own until it is ended


# ---- both


def _must_be_defined(container: Container) -> None:
    if not container.defined:
        raise BadInput("there is no such container", container.thing, "check name and lxcpath (lxc-ls)")


def _must_run(site: Site, container: Container, persistent: bool, change: Change) -> None:
    """Raise Refused if a container is to have GPUs for one run alone, and does not run.

    A dry run of an instance's start finds those that it had so.
    """
    is_dry_start = change.check and bool(site.rows(identity.key_of(container) or ""))
    if not (persistent or is_dry_start or container.init_pid):
        raise Refused(ONCE, container.thing, ONCE_WAY)


def _must_be_known_by_its_path(site: Site, container: Container) -> None:
    """Raise Refused where LXC, or the table, knows a container by another path. Of an instance's, its claim tells."""
    if site.store.instance_of(identity.key_of(container) or "") is None:
        identity.must_be_called_so(container)
    identity.must_run_by_no_other(container)
    identity.must_run_itself(container)


def _root_of(container: Container) -> str:
    """Return where a container's files are seen: through its init if it runs, because its root may be an overlay."""
    pid = container.init_pid
    return f"/proc/{pid}/root" if pid else container.root


def _key(site: Site, container: Container, change: Change) -> str:
    """Return the container's key; give it an id if it has none."""
    key = identity.key_of(container)
    if key is None:
        change.note(container.thing, dict(id=None), dict(id="a new one"))
        if change.check:
            return container.folder
        identity.give_id(container, site.host.command)
        key = cast("str", identity.key_of(container))
    return key


def persist(site: Site, container: Container, rows: Rows, change: Change) -> None:
    """Write into a container's file what it has after a restart; without GPUs remove the file."""
    # without its line in the configuration, as after a move, no start would give any of it
    old = persistence.read(container) if identity.includes(container) else None
    new = file_for(site, rows) if rows else None
    change.note(f"{container.thing}, after a restart", _shown(old), _shown(new))
    if not change.check:
        # Also if nothing differs: the file may be of an earlier boot of the host.
        persistence.write(container, new, site.host) if new else persistence.remove(container, site.host)


def _notes(container: Container, rows: Rows, pid: int | None) -> list[str]:
    """Return what else a person should know."""
    if not rows or not pid or identity.settles(container):
        return []
    return ["it runs since before its first GPU: stop and start it once, or a reboot typed inside loses its GPUs"]


def _shown(persisted: persistence.Persisted | None) -> Result:
    if persisted is None:
        return dict(gpus=[], rules=[])
    return dict(gpus=[gpu["address"] for gpu in persisted.gpus], rules=list(persisted.rules))


def _note_gpus(container: Container, change: Change, before: Rows, after: Rows) -> None:
    change.note(container.thing, *(dict(gpus=sorted(row.address for row in rows)) for rows in (before, after)))


def _result(
    site: Site, container: Container, holder: str | None, rows: Rows, done: Result, change: Change, **more: Any
) -> Result:
    for proof in done["proofs"]:
        change.note(f"{container.thing} {proof.path}", proof.before, proof.after)
    gpus = {gpu.address: gpu for gpu in site.found.gpus}
    shown, notes = [], _notes(container, rows, done["pid"])
    for row in rows:
        gpu = gpus.get(row.address)
        if gpu is not None and gpu.uuid is None and row.uuid:
            notes.append(f"{row.address} is taken for {row.uuid} by its slot: no UUID is shown until it is used")
        facts = {name: getattr(gpu, name, None) for name in ("index", "minor", "model", "arch", "numa_node")}
        shown.append(dict(facts, address=row.address, uuid=row.uuid, share=row.share, persistent=row.persistent))
    return dict(
        change.result,
        container=container.name,
        holder=holder,
        running=bool(done["pid"]),
        gpus=shown,
        nodes=[vars(proof) for proof in done["proofs"]],
        isolation=done["isolation"],
        others=done["others"],
        holders=done.get("holders", []),
        notes=notes,
        **more,
    )
