# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place where GPUs are given to containers: what all who work there look at."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ContextManager, Iterable, Iterator

from ...claims.host.allocation import DETACHING, gpu_of
from ...core.locks import is_ours, lock
from ...devices.gpus.paths import HERE, Paths
from ...devices.pci.paths import THIS_HOST
from ...devices.pci.paths import Paths as PciPaths
from ...site.instance import lock_of
from ...site.kinds import CONTAINER
from ..lxc import persistence
from . import open_rights
from .access import Running
from .own_files import by_files, folders_in

if TYPE_CHECKING:
    from ...claims.host.allocation import Allocation
    from ...claims.host.store import Store
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...devices.gpus.discovery import Found, Gpu
    from ..lxc.liblxc import Container

RUN_FOLDER = "/run/hetero"


@dataclass
class Site:
    """Where GPUs are given: the host's table, the GPUs found, and the folders whose containers may hold GPUs.

    :param host: for which boot of this machine a container's file is valid.
    :param pci: where libvirt's files and those of guests lie.
    """

    store: Store
    found: Found
    lxcpaths: tuple[str, ...] = ("/var/lib/lxc",)
    run_folder: str = RUN_FOLDER
    paths: Paths = HERE
    host: persistence.Host = persistence.HERE
    pci: PciPaths = THIS_HOST

    def look(self) -> open_rights.Live:
        """Return what the kernel says now of containers in these folders and in those that the table knows; and what
        containers have by their own files, if the table is older.
        """
        lxcpaths = sorted(folders_in(self.store).union(self.lxcpaths))
        known = {row.holder.rpartition("#")[0] for row in self.store.allocations()}
        live = open_rights.look(lxcpaths, self.found.gpus, known)
        return open_rights.Live((*by_files(self), *live.reaches), self.store.marked(), self.pci, lxcpaths)

    def locked(self, container: Container, verb: str, change: Change, deadline: Deadline) -> ContextManager[object]:
        """Let one verb at a time work on a container, and none on the instance in it, which would make it anew or end
        it meanwhile; check mode takes no lock.
        """
        return ExitStack() if change.check else self._turn(container, verb, deadline)

    @contextmanager
    def _turn(self, container: Container, verb: str, deadline: Deadline) -> Iterator[None]:
        """Hold the locks of a container and its instance. A verb that gives its instance GPUs has the other already."""
        claim, instance, names = self.store.claim_of(container.name), lock_of(container.name), [container.lock_name]
        if claim is not None and claim.kind == CONTAINER.section and not is_ours(self.run_folder, instance):
            names = [instance, *names]
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(lock(self.run_folder, name, verb, self.store.actor, deadline))
            yield

    def running(self, container: Container, pid: int) -> Running:
        return Running(container, pid, self.host.private)

    def rows(self, holder: str) -> list[Allocation]:
        return self.store.allocations(holder)

    def kept(self, holder: str, persistent: bool = False) -> list[Allocation]:
        """Return the allocations that a container is to have; with `persistent` only those that outlive its restart."""
        rows = [row for row in self.rows(holder) if row.state != DETACHING]
        return [row for row in rows if row.persistent or not persistent]

    def gpus_of(self, rows: Iterable[Allocation]) -> list[Gpu]:
        """Return the GPUs of allocations, without those that are gone."""
        gpus = (gpu_of(row.address, row.uuid, self.found.gpus) for row in rows)
        return [gpu for gpu in gpus if gpu is not None]
