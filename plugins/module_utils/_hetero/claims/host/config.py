# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compute host's configuration file, as roles gpu_lxc and kvm_guests write it, and what the machine has where it
says nothing. Each role has a section of its own there, and a machine that has both offers containers and guests.

JSON because the system's Python has no YAML. Which GPUs there are is devices/gpus/discovery.py's business.
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
    """First and last, or none of either."""
    if not isinstance(value, list) or len(value) not in (0, 2):
        return None
    found: list[Any] = [address_of(one) for one in value]
    return value if None not in found and found == sorted(found) else None


#: What the machine has once, whatever runs on it, and what it is where no section says it; two must say the same.
_MACHINE = {
    "name": Key(NUMBERED, platform.node().split(".")[0]),  # for people
    "state_folder": Key(PATH, "/var/lib/hetero"),
    "run_folder": Key(PATH, "/run/hetero"),
    **dict.fromkeys(AMOUNTS, Key(whole(), None)),  # offered to instances; by default all that it has
}
#: What a section may leave out; what stands in the file outside of them holds for each.
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
#: What a part of the file says itself: without defaults, null and "" say nothing.
PART = Record({key: Key(one.kind) for key, one in {**_MACHINE, **_SECTION}.items()})
#: host.json.
FILE = Record({**PART.keys, **dict.fromkeys(OF_HOSTS, Key(PART))})
MACHINE: dict[str, Any] = Record(_MACHINE).defaults()
DEFAULTS: dict[str, Any] = Record(_SECTION).defaults()


def read_config(path: str, meminfo: str = MEMINFO) -> dict[str, Any]:
    """The configuration, with defaults for what it leaves out; BadInput where it is missing or wrong.

    :returns: what the machine has once, and `lxc` and `kvm`, which are there in any case, with all that is said of
        each; `offers` are those of them that the file has (one with none is of a host of containers).
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
    """What the file says of the machine, in whichever section; a default where it says nothing."""
    given = {kind: section[key] for kind, section in sections.items() if key in section}
    values = list(given.values())
    if any(value != values[0] for value in values):
        what = f"{key} is {' and '.join(f'{value!r} for {kind}' for kind, value in given.items())}"
        raise BadInput(what, path, "the machine has it once: give roles gpu_lxc and kvm_guests the same")
    return next(iter(values), said.get(key, MACHINE[key]))


def tenants_paths(config: Mapping[str, Any]) -> list[str]:
    """Folders in which tenants write, or files of ours hold what tenants said: no image is taken from there."""
    return [config["state_folder"], config["run_folder"], *(config[kind][OF_HOSTS[kind].disks] for kind in OF_HOSTS)]


def capacity(config: Mapping[str, Any]) -> dict[str, int]:
    """What instances may have together."""
    return {key: config[key] for key in AMOUNTS}


def disk_gb(config: Mapping[str, Any]) -> int:
    """What the smallest file system has that instances have their disks on; these are sparse, and may promise more."""
    return _local_gb(config, MEMINFO)


def state_db(config: Mapping[str, Any]) -> str:
    """Path of the host's database."""
    return os.path.join(config["state_folder"], "host.db")


def state_db_here(path: str = CONFIG) -> str:
    """Path of this host's database, also where no role has set it up: whoever gives devices away has one table."""
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
    """The smallest file system that instances have their disks on."""
    return min(file_system_gb(config[kind][OF_HOSTS[kind].disks]) for kind in config["offers"] or OF_HOSTS)


def file_system_gb(folder: str) -> int:
    """How much the file system has that a folder lies on (GiB); the folder may be yet to be made."""
    folder = existing(folder)
    with naming(folder):
        found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize // 2**30


_HAS = {"memory_mb": _memory_mb, "vcpus": _vcpus, "local_gb": _local_gb}
