# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host's configuration file, as roles gpu_lxc and kvm_guests write it, and the machine's own values where it
says nothing. Each role has a section; a machine with both offers containers and guests.

It is JSON because the system's Python has no YAML. devices/gpus/discovery.py knows which GPUs there are.
"""

from __future__ import annotations

import copy
import os
import platform
from typing import Any, Mapping

from ...core.errors import BadInput, naming
from ...core.plays import play
from ...core.typed_keys import (
    ADDRESS,
    FLAG,
    NUMBERED,
    OBJECT,
    PATH,
    TEXT,
    Key,
    Kind,
    Record,
    TableOf,
    address_of,
    one_of,
    read_file,
    text,
    whole,
)
from ...files.paths import existing
from ...scheduling.fit import AMOUNTS
from ...site.kinds import OF_HOSTS

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


#: Settings that the machine has once, for all its sections, with their defaults. Two sections must not differ in them.
_MACHINE = {
    "name": Key(NUMBERED, platform.node().split(".")[0]),  # for people
    "state_folder": Key(PATH, "/var/lib/hetero"),
    "run_folder": Key(PATH, "/run/hetero"),
    **dict.fromkeys(AMOUNTS, Key(whole(), None)),  # offered to instances; by default all that it has
}
#: Settings of a section with their defaults. Outside of sections they hold for each section.
_SECTION = {
    "bridge": Key(text("the name of a network interface", 15), "hetero0"),  # IFNAMSIZ
    "prefix_length": Key(whole(0, 32), 24),
    "gateway": Key(ADDRESS, None),
    "addresses": Key(Kind("the first and the last IPv4 address", _addresses), None),  # that they may get
    "default_image": Key(NUMBERED, None),
    # of containers
    "lxcpath": Key(PATH, "/var/lib/lxc"),
    "unprivileged": Key(FLAG, True),
    "pids": Key(whole(), 4096),  # processes of a container, each of their threads counted
    "root_gb": Key(whole(), 10),  # of a container whose flavor has no local_gb
    "gpu_overrides": Key(OBJECT, {}),
    # of guests
    "aliases": Key(TableOf(OBJECT), {}),  # of PCI devices, as Nova's: name → vendor_id, product_id, device_type
    "guests_folder": Key(PATH, "/var/lib/libvirt/hetero"),  # where guests' disks are; libvirt's QEMU must get there
    "domain_type": Key(one_of("kvm", "qemu"), None),  # qemu: emulated; by default what libvirt has
    "libvirt_uri": Key(TEXT, "qemu:///system"),
}
#: What a part of the file itself says, without defaults; null and "" say nothing.
PART = Record({key: Key(one.kind) for key, one in {**_MACHINE, **_SECTION}.items()})
#: The contents of host.json.
FILE = Record({**PART.keys, **dict.fromkeys(OF_HOSTS, Key(PART))})
MACHINE: dict[str, Any] = Record(_MACHINE).defaults()
DEFAULTS: dict[str, Any] = Record(_SECTION).defaults()


def read_config(path: str, meminfo: str = MEMINFO) -> dict[str, Any]:
    """Return the configuration with its defaults; raise BadInput if it is missing or wrong.

    :param meminfo: path of the kernel's file with the machine's memory.
    :returns: the machine's settings; `lxc` and `kvm`, always, with all settings of each; and `offers`, the sections
        that the file has (a file without sections is for a host of containers).
    """
    said = read_file(path, FILE, SET_UP)
    sections = {kind: said.pop(kind) for kind in OF_HOSTS if kind in said}
    config: dict[str, Any] = {kind: {**copy.deepcopy(DEFAULTS), **said, **sections.get(kind, {})} for kind in OF_HOSTS}
    config.update({key: _of_machine(key, said, sections, path) for key in MACHINE}, offers=list(sections) or ["lxc"])
    for key in AMOUNTS:
        if config[key] is None:
            config[key] = _HAS[key](config, meminfo)
    return config


def _of_machine(key: str, said: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], path: str) -> Any:
    """Return what the file says of the machine, in whichever section, or the default."""
    given = {kind: section[key] for kind, section in sections.items() if key in section}
    values = list(given.values())
    if any(value != values[0] for value in values):
        what = f"{key} is {' and '.join(f'{value!r} for {kind}' for kind, value in given.items())}"
        raise BadInput(what, path, "the machine has it once: give roles gpu_lxc and kvm_guests the same")
    return next(iter(values), said.get(key, MACHINE[key]))


def tenants_paths(config: Mapping[str, Any]) -> list[str]:
    """Return folders that tenants write to, or whose files hold what tenants said. No image is imported from there."""
    return [config["state_folder"], config["run_folder"], *(config[kind][OF_HOSTS[kind].disks] for kind in OF_HOSTS)]


def capacity(config: Mapping[str, Any]) -> dict[str, int]:
    """Return what all instances together may have: {amount: value}, in the units of AMOUNTS."""
    return {key: config[key] for key in AMOUNTS}


def disk_gb(config: Mapping[str, Any]) -> int:
    """Return the GiB of the smallest file system with instances' disks. Disks are sparse, so more may be promised."""
    return _local_gb(config, MEMINFO)


def state_db(config: Mapping[str, Any]) -> str:
    """Return the path of the host's database."""
    return os.path.join(config["state_folder"], "host.db")


def state_db_here(path: str = CONFIG) -> str:
    """Return the path of this host's database, even if no role set it up: all who give devices away share one table."""
    return state_db(read_config(path) if os.path.exists(path) else MACHINE)


def _memory_mb(_config: Mapping[str, Any], meminfo: str) -> int:
    with naming(meminfo), open(meminfo, encoding="ascii") as file:
        total = next((line.split()[1] for line in file if line.startswith("MemTotal:")), None)
    if total is None or not total.isdigit():
        raise BadInput("has no MemTotal", meminfo, f"set memory_mb, then {SET_UP}")
    return int(total) // 1024


def _vcpus(_config: Mapping[str, Any], _meminfo: str) -> int:
    return os.cpu_count() or 1


def _local_gb(config: Mapping[str, Any], _meminfo: str) -> int:
    """Return the GiB of the smallest file system with instances' disks."""
    return min(file_system_gb(config[kind][OF_HOSTS[kind].disks]) for kind in config["offers"] or OF_HOSTS)


def file_system_gb(folder: str) -> int:
    """Return the size in GiB of the file system on which a folder lies or would lie."""
    folder = existing(folder)
    with naming(folder):
        found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize // 2**30


_HAS = {"memory_mb": _memory_mb, "vcpus": _vcpus, "local_gb": _local_gb}
