# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host shows its PCI devices, processes and mounts, and where the records of bindings lie.

It is one value that is passed on, so that a test can put all of it into a folder of its own.
"""

from __future__ import annotations

import os
from typing import NamedTuple, Tuple

from ...claims.host.config import CONFIG, config_here

#: Name of the lock: one change of bindings at a time on a host.
LOCK = "pci"


class Paths(NamedTuple):
    sys: str = "/sys"
    proc: str = "/proc"
    dev: str = "/dev"
    #: The file with udev's rules that keep bindings over a boot.
    rules: str = "/etc/udev/rules.d/40-hetero-pci.rules"
    journal: str = "/var/lib/hetero/pci/journal.json"
    run: str = "/run"
    #: The database that says who has this host's GPUs and PCI devices.
    state_db: str = "/var/lib/hetero/host.db"
    #: Names of vendors and products: what update-pciids fetched, Debian's pci.ids, other distributions'.
    ids: Tuple[str, ...] = ("/var/lib/pciutils/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
    #: Where libvirt keeps its domains: all that are defined, and those that run.
    domains: str = "/etc/libvirt/qemu"
    running_domains: str = "/run/libvirt/qemu"
    #: Where the files of the guests lie that were made here.
    guests: str = "/var/lib/libvirt/hetero"

    @property
    def run_folder(self) -> str:
        return os.path.join(self.run, "hetero")

    def device(self, address: str, *attribute: str) -> str:
        return os.path.join(self.sys, "bus/pci/devices", address, *attribute)

    @property
    def probe(self) -> str:
        """The file that takes an address and offers its device to all drivers."""
        return os.path.join(self.sys, "bus/pci/drivers_probe")

    def driver(self, name: str, *attribute: str) -> str:
        return os.path.join(self.sys, "bus/pci/drivers", name, *attribute)


#: Without its configuration.
THIS_HOST = Paths()


def here(state_db: str | None = None, config: str = CONFIG) -> Paths:
    """Return this host's, by its configuration, even if no role set it up: all who give devices away share one table.

    :param state_db: another database.
    """
    of_host = config_here(config)
    return Paths(state_db=state_db or of_host.state_db, guests=of_host.kvm.guests_folder)


def below(root: str) -> Paths:
    """Return the same paths below another root."""

    def moved(path: str) -> str:
        return os.path.join(root, path.lstrip("/"))

    plain = {name: moved(path) for name, path in Paths()._asdict().items() if isinstance(path, str)}
    return Paths(ids=tuple(map(moved, Paths().ids)), **plain)
