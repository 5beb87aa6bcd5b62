# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host's configuration file, as roles gpu_lxc and kvm_guests write it, and the machine's own values where it
says nothing. Each role has a section; a machine with both offers containers and guests.

It is JSON because the system's Python has no YAML. devices/gpus/discovery.py knows which GPUs there are.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from ...core import retention
from ...core.errors import BadInput, naming
from ...core.plays import play
from ...core.typed_keys import (
    ADDRESS,
    FLAG,
    MAPPING,
    NUMBERED,
    PATH,
    TEXT,
    Key,
    Kind,
    Record,
    TableOf,
    address_of,
    declared,
    keys_of,
    one_of,
    read_file,
    text,
    whole,
)
from ...files.paths import existing
from ...scheduling.fit import AMOUNTS
from ...site.kinds import OF_HOSTS
from ...site.owner_limits import LIMITS, Limit
from ...site.reservations import RESERVATIONS, Reservation

#: Where the roles write it.
CONFIG = "/etc/hetero/host.json"
SET_UP = f"run {play('gpu_host')} (of guests: {play('kvm_host')})"
MEMINFO = "/proc/meminfo"


def _addresses(value: Any) -> list[Any] | None:
    """Return [first, last] or [] unchanged, or None for anything else."""
    if not isinstance(value, list) or len(value) not in (0, 2):
        return None
    found: list[Any] = [address_of(one) for one in value]
    return value if None not in found and found == sorted(found) else None


@dataclass(frozen=True)
class Section:
    """The settings of a section. Outside of sections they hold for each section.

    :param addresses: the first and the last address that instances may get.
    :param pids: the most processes of a container, each of their threads counted.
    :param root_gb: the size of the root of a container whose flavor has no local_gb.
    :param aliases: PCI devices, as Nova's: {name: {vendor_id, product_id, device_type}}.
    :param guests_folder: where guests' disks are; libvirt's QEMU must get there.
    :param domain_type: how guests run ("qemu": emulated); by default as libvirt can.
    """

    bridge: str = declared(text("the name of a network interface", 15), "hetero0")  # IFNAMSIZ
    prefix_length: int = declared(whole(0, 32), 24)
    gateway: str | None = declared(ADDRESS)
    addresses: Sequence[str] | None = declared(Kind("the first and the last IPv4 address", _addresses))
    default_image: str | None = declared(NUMBERED)
    # of containers
    lxcpath: str = declared(PATH, "/var/lib/lxc")
    unprivileged: bool = declared(FLAG, True)
    pids: int = declared(whole(), 4096)
    root_gb: int = declared(whole(), 10)
    gpu_overrides: Mapping[str, Any] = declared(MAPPING, {})
    # of guests
    aliases: Mapping[str, Mapping[str, Any]] = declared(TableOf(MAPPING), {})
    guests_folder: str = declared(PATH, "/var/lib/libvirt/hetero")
    domain_type: str | None = declared(one_of("kvm", "qemu"))
    libvirt_uri: str = declared(TEXT, "qemu:///system")


@dataclass(frozen=True)
class HostConfig:
    """The contents of host.json: per-machine settings with defaults, and the sections.

    :param name: the machine's name, for people.
    :param events_days: for how many days events are kept.
    :param owner_limits: {owner, or * for all others: what it may have}.
    :param reservations: which instances or devices are whose, from when until when.
    :param lxc: the settings for containers, also where none are offered.
    :param kvm: the settings for guests, also where none are offered.
    :param offers: the sections that the file has; a file without sections is for a host of containers.
    :param capacity: what all instances together may have: {amount: value}, in the units of AMOUNTS.
    """

    name: str = declared(NUMBERED, platform.node().split(".")[0])
    state_folder: str = declared(PATH, "/var/lib/hetero")
    run_folder: str = declared(PATH, "/run/hetero")
    events_days: int = declared(whole(1, 36500), retention.EVENTS_DAYS)
    owner_limits: Mapping[str, Limit] = declared(LIMITS, {})
    reservations: Sequence[Reservation] = declared(RESERVATIONS, ())
    lxc: Section = Section()
    kvm: Section = Section()
    offers: Sequence[str] = ("lxc",)
    capacity: Mapping[str, int] = field(default_factory=dict)

    @property
    def state_db(self) -> str:
        """The path of the host's database."""
        return os.path.join(self.state_folder, "host.db")

    def section(self, kind: str) -> Section:
        """Return the settings of a section by its name."""
        return {"lxc": self.lxc, "kvm": self.kvm}[kind]

    def disks(self, kind: str) -> str:
        """Return the folder of the disks of a section's instances."""
        return getattr(self.section(kind), OF_HOSTS[kind].disks)


#: Keys of per-machine settings: sections that repeat one must agree.
_MACHINE = {**keys_of(HostConfig), **dict.fromkeys(AMOUNTS, Key(whole()))}
_SECTION = keys_of(Section)
#: What a part of the file itself says, without defaults; null and "" say nothing.
PART = Record({key: Key(one.kind) for key, one in {**_MACHINE, **_SECTION}.items()})
#: The reader of host.json.
FILE = Record({**PART.keys, **dict.fromkeys(OF_HOSTS, Key(PART))})
#: The configuration of a host that no role set up.
DEFAULTS = HostConfig()


def read_config(path: str, meminfo: str = MEMINFO) -> HostConfig:
    """Return the configuration with its defaults; raise BadInput if it is missing or wrong.

    :param meminfo: path of the kernel's file with the machine's memory.
    """
    said = read_file(path, FILE, SET_UP)
    sections = {kind: said.pop(kind) for kind in OF_HOSTS if kind in said}
    machine = _of_machine(said, sections, path)
    amounts = {key: machine.pop(key) for key in AMOUNTS if key in machine}
    for kind in OF_HOSTS:
        of_both = {**said, **sections.get(kind, {})}
        machine[kind] = Section(**{key: of_both[key] for key in _SECTION if key in of_both})
    config = HostConfig(**machine, offers=list(sections) or DEFAULTS.offers)
    capacity = {key: amounts[key] if key in amounts else _HAS[key](config, meminfo) for key in AMOUNTS}
    return replace(config, capacity=capacity)


def config_here(path: str = CONFIG) -> HostConfig:
    """Return this host's configuration, or the defaults if no role set it up."""
    return read_config(path) if os.path.exists(path) else DEFAULTS


def _of_machine(said: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], path: str) -> dict[str, Any]:
    """Return what the file says of the machine, in whichever section."""
    machine = {key: said[key] for key in _MACHINE if key in said}
    for key in _MACHINE:
        given = {kind: section[key] for kind, section in sections.items() if key in section}
        values = list(given.values())
        if any(value != values[0] for value in values):
            what = f"{key} is {' and '.join(f'{value!r} for {kind}' for kind, value in given.items())}"
            raise BadInput(what, path, "the machine has it once: give roles gpu_lxc and kvm_guests the same")
        if values:
            machine[key] = values[0]
    return machine


def tenants_paths(config: HostConfig) -> list[str]:
    """Return folders that tenants write to, or whose files hold what tenants said. No image is imported from there."""
    return [config.state_folder, config.run_folder, *map(config.disks, OF_HOSTS)]


def disk_gb(config: HostConfig) -> int:
    """Return the GiB of the smallest file system with instances' disks. Disks are sparse, so more may be promised."""
    return _local_gb(config, MEMINFO)


def _memory_mb(_config: HostConfig, meminfo: str) -> int:
    with naming(meminfo), open(meminfo, encoding="ascii") as file:
        total = next((line.split()[1] for line in file if line.startswith("MemTotal:")), None)
    if total is None or not total.isdigit():
        raise BadInput("has no MemTotal", meminfo, f"set memory_mb, then {SET_UP}")
    return int(total) // 1024


def _vcpus(_config: HostConfig, _meminfo: str) -> int:
    return os.cpu_count() or 1


def _local_gb(config: HostConfig, _meminfo: str) -> int:
    """Return the GiB of the smallest file system with instances' disks."""
    return min(file_system_gb(config.disks(kind)) for kind in config.offers)


def file_system_gb(folder: str) -> int:
    """Return the size in GiB of the file system on which a folder lies or would lie."""
    folder = existing(folder)
    with naming(folder):
        found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize // 2**30


_HAS = {"memory_mb": _memory_mb, "vcpus": _vcpus, "local_gb": _local_gb}
