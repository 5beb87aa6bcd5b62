# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a PCI device in use: processes, guests, mounted disks, the network that this host needs, its display.

devices/gpus/processes.py finds processes, storage.py and network.py what uses a disk or an interface. The caller
decides what is done about a holder.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Collection

from ...claims.host.store import Store
from ...core.kernel_text import lines_of
from ...core.plays import play
from ..gpus import discovery, processes
from . import domains, made_guests, network, storage
from .sysfs import text

if TYPE_CHECKING:
    from .paths import Paths
    from .sysfs import Device

#: Kinds that `force` does not override: the host would lose its files or its network, an instance its GPU.
FIRM = ("storage", "network", "allocation")
#: Of a device in the table, as it is committed.
ALLOCATED = "is allocated to {holder}"
#: Of a guest that neither the table nor libvirt knows, or not as what it is.
BY_FOLDER = f"is guest {{name}}'s, by {{file}}, and libvirt has no domain of that: {play('reconcile')} tells of it"
#: A process's name, which the kernel cuts at 15 characters (proc(5), comm).
PERSISTENCED = "nvidia-persistenced"[:15]
DISPLAY_SERVERS = ("Xorg", "X", "Xwayland", "gnome-shell", "kwin_wayland", "weston", "sway")
#: Where systemd alone puts processes: the cgroup of a service of its, in version 2 or in its own hierarchy. Names
#: elsewhere are a tenant's own, and so is what a process calls itself.
SERVICE = re.compile(r"(?:0:|\d+:name=systemd):/system\.slice/(nvidia-persistenced[\w@.:-]*\.service)")


@dataclass(frozen=True)
class Holder:
    """One reason why a device is in use.

    :param kind: process, daemon (nvidia-persistenced), guest, display, storage, network or allocation.
    :param text: the same in words, for errors.
    """

    address: str
    kind: str
    text: str
    pid: int | None = None
    command: str | None = None
    #: The systemd service of a daemon.
    unit: str | None = None

    @property
    def firm(self) -> bool:
        return self.kind in FIRM

    @property
    def shown(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "address"}


def holders(
    chosen: Collection[Device], paths: Paths, own: str | None = None
) -> tuple[dict[str, list[Holder]], dict[str, list[str]]]:
    """Return ({address: holders} of these devices, {address: domains that are defined with it}).

    One look at all processes serves all devices.

    :param own: the asker's own holder of allocations, which is no obstacle.
    """
    parts = {device.address: _Parts(device, paths) for device in chosen}
    numbers = {number for part in parts.values() for number in part.numbers}
    open_by = processes.holders(sorted(numbers), paths)
    defined, running = domains.holders(paths)
    table, folders, found = _allocations(paths, own), _by_folders(paths, own), {}
    for device in chosen:
        part, address = parts[device.address], device.address
        held = [Holder(address, "storage", said) for said in storage.uses(part.disks, paths)]
        held += [Holder(address, "network", said) for said in network.uses(part.interfaces, paths)]
        if device.boot_display:
            held.append(Holder(address, "display", "is the display that this machine boots on"))
        given = {**folders.get(address, {}), **table.get(address, {})}  # of one holder the table's word is said
        held += [Holder(address, "allocation", said) for said in given.values()]
        held += [Holder(address, "guest", f"running domain {name} has it") for name in running.get(address, ())]
        # one process opens many nodes of a card
        by_pid = {process.pid: process for number in part.numbers for process in open_by[number]}
        held += [_process(address, by_pid[pid], device, paths) for pid in sorted(by_pid)]
        found[address] = held
    return found, defined


def _allocations(paths: Paths, own: str | None) -> dict[str, dict[str, str]]:
    """Return {address: {holder: in words, that it is allocated to it}} of others, from this host's database."""
    found: dict[str, dict[str, str]] = {}
    with Store(paths.state_db, create=False) as store:
        for allocation in store.allocations():
            if allocation.holder != own:
                said = ALLOCATED.format(holder=allocation.holder)
                found.setdefault(allocation.address, {})[allocation.holder] = said
    return found


def _by_folders(paths: Paths, own: str | None) -> dict[str, dict[str, str]]:
    """Return {address: {holder: in words, that it has it}} of others of which only the folder tells."""
    found: dict[str, dict[str, str]] = {}
    for address, names in made_guests.only_by_folder(paths).items():
        for name in names:
            holder, file = f"domain:{name}", os.path.join(paths.guests, name, made_guests.DESCRIPTION)
            if holder != own:
                found.setdefault(address, {})[holder] = BY_FOLDER.format(name=name, file=file)
    return found


class _Parts:
    """What the kernel made of a device: the numbers of its nodes, its disks, its network interfaces."""

    def __init__(self, device: Device, paths: Paths) -> None:
        self.numbers: set[processes.Number] = set()
        self.disks: list[str] = []
        self.interfaces: list[str] = []
        if device.bridge:
            return  # what lies below it belongs to other devices
        for folder, _folders, names in os.walk(os.path.realpath(paths.device(device.address))):
            where = folder.split(os.sep)
            if where[-2] == "net":
                self.interfaces.append(where[-1])
            if "dev" in names:
                self._number(folder, "b" if "block" in where else "c")
        if device.driver == "nvidia":
            gpus = discovery.find(paths=paths).gpus
            self.numbers |= {node.number for gpu in gpus if gpu.address == device.address for node in gpu.nodes}
        self.numbers |= vfio_nodes(device, paths)

    def _number(self, folder: str, kind: str) -> None:
        try:
            number = text(os.path.join(folder, "dev"))
        except FileNotFoundError:
            return  # it was removed meanwhile
        major, _colon, minor = number.partition(":")
        self.numbers.add((kind, int(major), int(minor)))
        if kind == "b":
            self.disks.append(number)


def vfio_nodes(device: Device, paths: Paths) -> set[processes.Number]:
    """Return a set with the number of the node by which a guest has a device; empty if no guest can have it."""
    # one that is just leaving vfio-pci has no driver any more
    if device.group is None or not (device.driver == "vfio-pci" or device.changing):
        return set()
    try:
        seen = os.stat(os.path.join(paths.dev, "vfio", str(device.group)))
    except FileNotFoundError:
        return set()
    return {("c", os.major(seen.st_rdev), os.minor(seen.st_rdev))}


def _process(address: str, process: processes.Process, device: Device, paths: Paths) -> Holder:
    name = f"{process.command} (pid {process.pid}"
    if process.container or process.domain:
        name += f", in container {process.container}" if process.container else f", domain {process.domain}"
    name += ")"
    common: dict[str, Any] = dict(pid=process.pid, command=process.command)
    own = process.command == PERSISTENCED and not (process.container or process.domain)
    unit = _unit(process.pid, paths) if own else None
    if unit is not None:
        return Holder(address, "daemon", f"nvidia-persistenced has it open: {name}", unit=unit, **common)
    if process.domain or device.driver == "vfio-pci" or device.changing:
        return Holder(address, "guest", f"a guest has it: {name}", **common)
    if process.command in DISPLAY_SERVERS:
        return Holder(address, "process", f"the display server has it open: {name}", **common)
    return Holder(address, "process", f"a process has it open: {name}", **common)


def _unit(pid: int, paths: Paths) -> str | None:
    try:
        lines = lines_of(os.path.join(paths.proc, str(pid), "cgroup"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((found[1] for found in map(SERVICE.fullmatch, lines) if found), None)
