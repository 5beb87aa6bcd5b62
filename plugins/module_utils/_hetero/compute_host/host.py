# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host as its files describe it: configuration, open store, the GPUs that are in it.

claims/host/config.py and devices/gpus/discovery.py know what the files may hold.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from ..claims.host.config import read_config, tenants_paths
from ..claims.host.store import Store
from ..devices.gpus import discovery
from ..devices.gpus.paths import HERE
from ..devices.gpus.paths import Paths as GpuPaths
from ..devices.pci.paths import Paths
from ..hypervisors.lxc import persistence
from ..hypervisors.lxc_gpus.site import Site
from ..images.store import ImageStore
from ..site.kinds import BY_HYPERVISOR
from .lost_database import must_not_be_lost

if TYPE_CHECKING:
    from typing import Self

    from ..devices.gpus.discovery import Found, Gpu


class Places(NamedTuple):
    """Where a host looks.

    :param paths: where the kernel shows GPUs.
    :param machine: for which boot of which machine a container's file is valid.
    :param pci: where the kernel shows PCI devices, and libvirt its domains. The configuration names the database.
    """

    paths: GpuPaths = HERE
    machine: persistence.Host = persistence.HERE
    pci: Paths = Paths()


THIS_MACHINE = Places()


class Host:
    """Configuration, store and GPUs of one compute host; a context manager that closes the store.

    :param path: the configuration file.
    :param actor: who acts, for events and locks (default: the process).
    :param create: with False a missing database reads as empty and stays missing.
    :param write: whether a database of an older release is upgraded (default: as `create`).
    :param lost: whether the caller makes a lost database anew (reconcile).
    :param places: where it looks at devices, containers and domains.
    :raises BadInput: the file is missing or wrong.
    :raises HeteroError: the database is lost, or cannot be read.
    """

    def __init__(
        self,
        path: str,
        actor: str | None = None,
        create: bool = True,
        write: bool | None = None,
        lost: bool = False,
        places: Places = THIS_MACHINE,
    ) -> None:
        self.config = read_config(path)
        if not lost:
            must_not_be_lost(self.config)
        self.name: str = self.config.name
        #: The names of its hypervisors. A host with both gives GPUs to containers and cards to guests.
        self.hypervisors = [word for word, kind in BY_HYPERVISOR.items() if kind.section in self.config.offers]
        self.actor = actor or f"pid {os.getpid()}"
        self.cpu_arch = platform.machine()
        self.capacity = self.config.capacity
        self.paths, self.machine = places.paths, places.machine
        self.pci = places.pci._replace(state_db=self.config.state_db, guests=self.config.kvm.guests_folder)
        self._found: Found | None = None
        self.store = Store(self.config.state_db, self.actor, create=create, write=write)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()

    @property
    def found(self) -> Found:
        """Return what discovery finds, looked up once: the GPUs, the nodes that they share, the driver's version."""
        if self._found is None:
            self._found = discovery.find(self.config.lxc.gpu_overrides, self.paths)
        return self._found

    @property
    def gpus(self) -> list[Gpu]:
        return self.found.gpus

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that flavors are compared with (scheduling/compute_hosts.py)."""
        return dict(
            hypervisors=self.hypervisors,
            cpu_arch=self.cpu_arch,
            capacity={key: {"total": total} for key, total in self.capacity.items()},
            gpus=[asdict(gpu) for gpu in self.gpus],
        )

    @property
    def site(self) -> Site:
        """The place where GPUs are given to containers."""
        folders, run_folder = (self.config.lxc.lxcpath,), self.config.run_folder
        return Site(self.store, self.found, folders, run_folder, self.paths, self.machine, self.pci)

    @property
    def images(self) -> ImageStore:
        """The image store: images are kept by hash as those of boards, but have no kernel."""
        return ImageStore(self.folder("images"), kernels=False, closed=tenants_paths(self.config))

    def folder(self, *parts: str) -> str:
        """Return a path below the state folder."""
        return os.path.join(self.config.state_folder, *parts)
