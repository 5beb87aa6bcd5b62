# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of GPUs compared with the truth: what each container was given, what it can open, what its file says.

It reports differences and mends them if asked to: the table says what should be, the kernel what is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence

from ...claims.host.allocation import ATTACHED, DETACHING, follow_the_moved, forget_the_gone, gpu_of, short
from ...core.changes import Change
from ...core.errors import HeteroError, Refused, TimedOut
from ...core.locks import BUSY, held_by
from ...devices.gpus import gpu_users, processes
from ...devices.gpus.container_gpus import nodes_for
from ...devices.gpus.nodes import NO_GPU, NVIDIA, DeviceNode, majors
from ..lxc import device_nodes, identity, liblxc, monitors, persistence
from . import open_rights, own_files, restoration
from .access import ACCESS, rule_for
from .attachment import Meant, bring_up, finish, take_back

if TYPE_CHECKING:
    from ...claims.host.allocation import Allocation
    from ...core.deadline import Deadline
    from ...devices.cgroup.devices import DeviceCgroup
    from ...devices.gpus.discovery import Gpu
    from .access import Running
    from .site import Site

RESTART = "take the rule out of its configuration, or it is back after a restart"
TAKE_BACK = (
    "take it back from one of them (module hetero.compute.lxc_gpu_attach, state detached), or close it, and look again"
)
GONE = "is no more on this host"
REPLACED = (
    f"{GONE}; another is in its slot, which stays its holder's until this one is taken back (module "
    "hetero.compute.lxc_gpu_attach, state detached)"
)


@dataclass
class Finding:
    """Something that is not as it should be.

    :param done: what was mended, or would be; None if it is only reported.
    :param error: why it could not be mended.
    """

    kind: str
    found: str
    container: str | None = None
    address: str | None = None
    done: str | None = None
    error: str | None = None


class Look:
    """One pass over a host.

    :param repair: mend, and not only report.
    """

    def __init__(self, site: Site, repair: bool, change: Change, deadline: Deadline) -> None:
        self.site = site
        self.repair = repair
        self.change = change
        self.deadline = deadline
        self.findings: list[Finding] = []
        self.moved: set[str] = set()  # keys of containers by their former paths

    def note(
        self,
        kind: str,
        found: str,
        container: liblxc.Container | None = None,
        address: str | None = None,
        done: str | None = None,
        mend: Callable[[], object] | None = None,
    ) -> None:
        """Note a finding. `mend()` is called if it is to be mended and this is no dry run."""
        finding = Finding(kind, found, container.name if container else None, address, done if self.repair else None)
        self.findings.append(finding)
        if not (self.repair and done):
            return
        self.change.note(f"{finding.container or 'table'} {address or ''}".rstrip(), {kind: found}, {kind: None})
        if mend is not None and not self.change.check:
            try:
                mend()
            except HeteroError as error:
                finding.done, finding.error = None, str(error)


def reconcile(site: Site, repair: bool, change: Change, deadline: Deadline) -> dict[str, Any]:
    """Compare the table with all containers of the host, and mend differences; return the module's result."""
    look = Look(site, repair, change, deadline)
    if not change.check:  # a host that was upgraded has marks that nobody wrote down
        identity.note_marks(site.lxcpaths, site.store)
    with change.step("table"):
        _table(look)
    for container in _containers(site):
        with change.step("containers"):
            _container(look, container)
    with change.step("processes"):
        _processes(look)
    return dict(change.result, findings=[asdict(finding) for finding in look.findings])


# ---- the table


def _table(look: Look) -> None:
    site = look.site
    with site.store.transaction(dry=look.change.check or not look.repair):
        for container in _containers(site):
            with suppress(Refused):  # one whose configuration cannot be read is told of as it is looked at
                for row in restoration.take_along(site, container) if container.defined else ():
                    look.moved.add(row.holder)
                    text = f"its folder was moved to {container.folder}, and it is allocated to {row.holder}"
                    look.note("moved", text, container, row.address, "written down")
        for row in forget_the_gone(site.store, site.look()):
            look.note("no holder", f"allocated to {row.holder}, which is no more", address=row.address, done="freed")
        for row, gpu in follow_the_moved(site.store, site.found.gpus):
            text = f"{short(row.holder)} has the GPU that was at {row.address} ({row.uuid})"
            look.note("moved", text, address=gpu.address, done="written down")
    for row in site.store.allocations():
        now = gpu_of(row.address, row.uuid, site.found.gpus)
        gone = REPLACED if any(gpu.address == row.address for gpu in site.found.gpus) else GONE
        why = gone if now is None else now.unsupported or now.why_unhealthy
        if why:
            look.note("lost GPU", f"{short(row.holder)} has it, and it {why}", address=row.address)


def _containers(site: Site) -> list[liblxc.Container]:
    """Return the containers that run, and those with GPUs by the table or by their own files."""
    found = {(lxcpath, name) for lxcpath in site.lxcpaths for name in liblxc.running(lxcpath)}
    for lxcpath in site.lxcpaths:
        for name in liblxc.containers(lxcpath):
            # a folder that was moved aside may have any name; host_reconcile says whose it is
            if liblxc.NAME.fullmatch(name) and os.path.lexists(identity.file_of(liblxc.Container(name, lxcpath))):
                found.add((lxcpath, name))
    for row in site.store.allocations():
        if row.holder.startswith("/"):
            found.add(os.path.split(row.holder.rpartition("#")[0]))
    return [liblxc.Container(name, lxcpath) for lxcpath, name in sorted(found)]


# ---- one container


def _container(look: Look, container: liblxc.Container) -> None:
    site = look.site
    try:
        if not container.defined:
            _unseen(look, container)
            return
        # A dry run takes no lock, so what it sees of a container that is being given a GPU means nothing.
        who = held_by(site.run_folder, container.lock_name) if look.change.check else None
        if who:
            look.note("not looked at", BUSY.format(who=who), container)
            return
        with site.locked(container, "reconcile", look.change, look.deadline):
            _left_still(look, container)
            identity.must_run_itself(container)
            holder = open_rights.key_or_path(container)
            _cut_short(look, container, holder)
            unknown = _unwritten(look, container)
            pid = container.init_pid
            if pid:
                _stale(look, container, pid)
                _not_granted(look, container, pid, site.rows(holder), unknown)
            rows = site.kept(holder)
            # A lost GPU is reported, and one that is still being taken back is not given again.
            if not unknown and len(site.gpus_of(rows)) == len(site.rows(holder)):
                _granted(look, container, rows, site.kept(holder, persistent=True))
    except HeteroError as error:
        look.findings.append(Finding("not looked at", str(error), container.name))


def _left_still(look: Look, container: liblxc.Container) -> None:
    pid = container.init_pid
    running = look.site.running(container, pid) if pid else None
    if running is not None and running.is_left_still:
        text = "it stands still since a look at who has its GPUs was killed"
        look.note("stands still", text, container, None, "let go on", running.go_on)


def _unseen(look: Look, container: liblxc.Container) -> None:
    """Note one that runs all the same; or GPUs of a container whose folder's file system may not be mounted. Of a
    claim's, host_reconcile tells.
    """
    store, pid = look.site.store, monitors.init_of(container.name, container.lxcpath)
    if pid:
        said = (open_rights.GONE.format(pid=pid, config=container.config_file), open_rights.GONE_WAY.format(pid=pid))
        look.note("not seen", ": ".join(said), container)
        return
    rows = [row for row in store.allocations() if row.holder.startswith(f"{container.folder}#")]
    holders = [row.holder for row in rows if store.instance_of(row.holder) is None and row.holder not in look.moved]
    try:
        identity.must_be_no_more(container.lxcpath, holders, store.marked())
    except Refused as error:
        look.note("not seen", f"allocated to it: {error}", container, ", ".join(row.address for row in rows))


def _unwritten(look: Look, container: liblxc.Container) -> list[Gpu]:
    """Write down what a container has by its own file, if nobody else has it; return the GPUs that then are not in the
    table.

    Nothing of these is closed, and the container's file stays.
    """
    site, left = look.site, []
    for gpu, wanted in own_files.unwritten(site, container):
        why = restoration.write_down(site, container, gpu, wanted, dry=True)
        text = f"it has it by its own file, and not by the table: {why or 'that was lost, or is older'}"
        mend = partial(restoration.write_down, site, container, gpu, wanted)
        look.note("not written down", text, container, gpu.address, None if why else "written down", mend)
        if why or not look.repair or look.change.check:
            left.append(gpu)
    return left


def _cut_short(look: Look, container: liblxc.Container, holder: str) -> None:
    """Finish detachments that were interrupted; of one without a key of its own, by whatever id they began."""
    site = look.site
    rows = [row for row in site.store.allocations() if f"{row.holder}#".startswith(f"{holder}#")]
    for row in (row for row in rows if row.state == DETACHING):

        def mend(row: Allocation = row) -> None:
            meant = Meant([row], site.gpus_of([row]))
            take_back(site, container, row.holder, meant, gpu_users.FAIL, look.change, look.deadline)

        text = "its detaching was cut short, or waits for its processes"
        look.note("being taken back", text, container, row.address, "taken back", mend)


def _granted(
    look: Look, container: liblxc.Container, rows: Sequence[Allocation], lasting: Sequence[Allocation]
) -> None:
    """Note if a container does not have what the table says; a dry run of giving it tells."""
    site, dry = look.site, Change(check=True)
    done = bring_up(site, container, rows, lasting, dry)
    wrong = [f"{proof.path} {_words(proof.before)}" for proof in done["proofs"] if proof.changed]
    wrong += [f"{entry['before_header']}: {entry['before']['rules']}" for entry in dry.diff]
    unfinished = [row for row in rows if row.state != ATTACHED]
    if not wrong and not unfinished:
        return
    if unfinished:
        wrong.insert(0, "its attaching was cut short")

    def mend() -> None:
        finish(site, container, rows, look.change, bring_up(site, container, rows, lasting, look.change)["pid"])

    addresses = ", ".join(row.address for row in rows) or None
    others = _open_to_others(site, rows)
    given = None if others else "given what it was allocated"
    look.note("incomplete", "; ".join(wrong + others), container, addresses, given, mend)


def _open_to_others(site: Site, rows: Sequence[Allocation]) -> list[str]:
    """Return in words which of these GPUs, each for one holder alone, another container can open now."""
    live = site.look()
    return [
        f"not given: container {reach.container} can open {row.address} ({reach.why}): {TAKE_BACK}"
        for row in rows
        for reach in ([] if row.share else live.open(row.address))
        if reach.holder != row.holder
    ]


def _words(before: dict[str, bool]) -> str:
    allowed = "allowed" if before["allowed"] else "denied"
    return f"is {allowed} and {'there' if before['node'] else 'not there'}"


def _not_granted(
    look: Look, container: liblxc.Container, pid: int, rows: Sequence[Allocation], by_file: Sequence[Gpu]
) -> None:
    """Note GPUs that a container was not given and that are open to it, or of which it has a node.

    :param by_file: GPUs that it has only by its own file.
    """
    site = look.site
    # a GPU in the slot of one that is gone was given in its place, if its UUID was not shown then
    slots = {row.address for row in rows if gpu_of(row.address, row.uuid, site.found.gpus) is None}
    given = [*site.gpus_of(rows), *by_file, *(gpu for gpu in site.found.gpus if gpu.address in slots)]
    own = {gpu.address for gpu in given}
    running = site.running(container, pid)
    asked = running.cgroup.look()
    wild = asked.may("c", NVIDIA, NO_GPU, "r")
    kept = nodes_for(site.found, given)
    for far, gpu in zip(open_rights.reach_of(container, pid, site.found.gpus), site.found.gpus):
        nodes = open_rights.own_nodes(gpu)
        inside = [node for node in nodes if device_nodes.look(container, node.path, pid) == node.number]
        if far.address in own:
            continue
        if far.state == open_rights.OPEN:
            kind, text = ("wildcard", f"{far.why}; {RESTART}") if wild else ("not allocated", far.why)
            _close(look, running, kind, text, far.address, nodes, kept)
        elif inside:
            paths = ", ".join(node.path for node in inside)
            _close(look, running, "left-over node", f"{paths} is in it", far.address, nodes)
        elif far.state == open_rights.NODE_ONLY:
            text = f"{far.why}: give it device rules to have that proven"
            look.note(open_rights.NODE_ONLY, text, container, far.address)
    shared = [node for node in site.found.shared + site.found.caps if node.major is not None]
    unknown = open_rights.allows_unknown(asked)
    for node in shared if not (rows or by_file) else ():
        there = device_nodes.look(container, node.path, pid) == node.number
        if there or (open_rights.may_open(asked, node) and not unknown):
            _close(look, running, "left-over node", f"{node.path} is open, it has no GPU", None, [node])


def _close(
    look: Look,
    running: Running,
    kind: str,
    text: str,
    address: str | None,
    nodes: Sequence[DeviceNode],
    kept: Iterable[DeviceNode] = (),
) -> None:
    """Note what is open or there, and close it.

    :param kept: nodes that the container was given.
    """

    def mend() -> None:
        with restoration.held_back(look.site, running.container, running.pid, [address]):
            gpu_users.refuse_users(running.container, running.cgroup, nodes, look.site.paths)
            _deny_wide(running.cgroup, nodes, kept)
            running.take(nodes)
            let_go = (gpu_users.FAIL, look.deadline, look.site.paths)  # what was opened before that
            gpu_users.let_go(running.container, running.cgroup, nodes, *let_go)

    look.note(kind, text, running.container, address, "closed", mend)


def _deny_wide(cgroup: DeviceCgroup, nodes: Iterable[DeviceNode], kept: Iterable[DeviceNode]) -> None:
    """Remove rules of cgroup v1, such as "c 195:* rwm", that open one of the nodes: only so it is closed.

    What the container was given first gets rules of its own. A rule that also opens devices of other drivers stays.
    """
    v1 = cgroup.v1
    if v1 is None:
        return
    for node in nodes:
        for wide in v1.wider(rule_for(node)):
            if wide.major == node.major:
                for own in kept:
                    cgroup.allow_v1(rule_for(own))
                # m stays: making a node harms nobody, and a wider rule may give it
                v1.remove(wide._replace(access=ACCESS))


def _stale(look: Look, container: liblxc.Container, pid: int) -> None:
    """Note numbers that belonged to a driver when they were given, and now belong to another."""
    site = look.site
    current = {node.path: node for node in site.found.shared}
    numbers = {node.number for node in site.found.shared}
    written = persistence.read(container)
    seen = {(node.path, node.kind, node.major, node.minor) for node in (written.nodes if written else ())}
    for path in current:
        number = device_nodes.look(container, path, pid)
        if number is not None:
            seen.add((path, *number))
    running = site.running(container, pid)
    names: dict[int | None, str] = {major: name for name, major in majors(site.paths).items()}
    for path, kind, major, minor in sorted(seen):
        now = current.get(path)
        if now is None or (kind, major, minor) in numbers:
            continue
        old = DeviceNode(path, kind, major, minor)
        there = device_nodes.look(container, path, pid) == old.number
        if there or open_rights.may_open(running.cgroup, old):
            text = f"{path} was given as {major}:{minor}, its driver's is {now.major}:{now.minor}; "
            text += f"{major} is {names.get(major, 'nobody')}'s now"
            _close(look, running, "stale major", text, None, [old])


# ---- processes of the host


def _processes(look: Look) -> None:
    """Note processes of the host that use a GPU of somebody else; they are in no row of the table."""
    gpus = {node.number: gpu for gpu in look.site.found.gpus for node in gpu.nodes}
    rows = {row.address: row for row in look.site.store.allocations()}
    try:
        for number, found in processes.holders(gpus, look.site.paths).items():
            row, others = rows.get(gpus[number].address), [process for process in found if process.container is None]
            if row and others:
                text = f"{short(row.holder)} has it, and the host's {gpu_users.told(others)} has it open"
                look.note("used by the host", text, address=row.address)
    except TimedOut as error:  # a tenant's process keeps who asks about it waiting
        look.note("not looked at", str(error))
