# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host's PCI devices, processes and mounts are told of, and where the records of their bindings lie.

One value that is handed down, so that a test can lay all of it into a folder of its own.
"""

from __future__ import annotations

import os
from typing import NamedTuple, Tuple

#: One change of bindings at a time on a host.
LOCK = "pci"


class Paths(NamedTuple):
    sys: str = "/sys"
    proc: str = "/proc"
    dev: str = "/dev"
    #: udev's rules of this host, and the file there that keeps bindings over a boot.
    rules: str = "/etc/udev/rules.d/40-hetero-pci.rules"
    journal: str = "/var/lib/hetero/pci/journal.json"
    run: str = "/run"
    #: To whom this host's GPUs are allocated.
    state_db: str = "/var/lib/hetero/host.db"
    #: Names of vendors and products: Debian's pci.ids, what update-pciids fetched, other distributions'.
    ids: Tuple[str, ...] = ("/var/lib/pciutils/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
    #: Where libvirt keeps its domains: all that are defined, and those that run.
    domains: str = "/etc/libvirt/qemu"
    running_domains: str = "/run/libvirt/qemu"

    @property
    def run_folder(self) -> str:
        return os.path.join(self.run, "hetero")

    def device(self, address: str, *attribute: str) -> str:
        return os.path.join(self.sys, "bus/pci/devices", address, *attribute)

    @property
    def probe(self) -> str:
        """Takes an address, and asks all drivers for it."""
        return os.path.join(self.sys, "bus/pci/drivers_probe")

    def driver(self, name: str, *attribute: str) -> str:
        return os.path.join(self.sys, "bus/pci/drivers", name, *attribute)


def below(root: str) -> Paths:
    """All of them under another root, for a tree that is not this machine's own."""

    def moved(path: str) -> str:
        return os.path.join(root, path.lstrip("/"))

    plain = {name: moved(path) for name, path in Paths()._asdict().items() if isinstance(path, str)}
    return Paths(ids=tuple(map(moved, Paths().ids)), **plain)
