# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An accelerator host's configuration file, as roles gpu_lxc and kvm_guests write it, and what the machine has where it
says nothing.

JSON because the system's Python has no YAML. Which GPUs there are is gpus/discovery.py's business.
"""

from __future__ import annotations

import copy
import os
import platform

from ..errors import BadInput, naming
from ..flavors.hosts import LXC
from ..json_file import read_object

#: Where role gpu_lxc writes it.
CONFIG = "/etc/hetero/host.json"
SET_UP = "run the set-up playbook hetero.compute.gpu_host on this node"
MEMINFO = "/proc/meminfo"
#: What may be offered to instances; what the file leaves out is all that the machine has.
CAPACITY = ("memory_mb", "vcpus", "local_gb")
#: What host.json may leave out.
DEFAULTS = {
    "name": None,  # of the host, for people; its host name
    "state_folder": "/var/lib/hetero",
    "run_folder": "/run/hetero",
    "lxcpath": "/var/lib/lxc",
    "bridge": "hetero0",
    "prefix_length": 24,
    "gateway": None,
    "addresses": None,  # first and last that containers may get
    "unprivileged": True,
    "default_image": None,
    "gpu_overrides": {},
    "hypervisor": LXC,  # what it is in lists of hosts; a machine may have both
    "aliases": {},  # of PCI devices, as Nova's: name → vendor_id, product_id, device_type
    "guests_folder": "/var/lib/libvirt/hetero",  # where guests' disks are; libvirt's QEMU must get there
    "domain_type": None,  # kvm, or qemu (emulated); by default what libvirt has
    "libvirt_uri": "qemu:///system",
}


def read_config(path, meminfo=MEMINFO):
    """The configuration, with defaults for what it leaves out; BadInput where it is missing or wrong."""
    config = dict(copy.deepcopy(DEFAULTS), **read_object(path, SET_UP))
    config["name"] = config["name"] or platform.node().split(".")[0]
    for key in CAPACITY:
        if config.get(key) is None:
            config[key] = _HAS[key](config, meminfo)
        elif isinstance(config[key], bool) or not isinstance(config[key], int) or config[key] < 0:
            raise BadInput(f"{key} is {config[key]!r}", path, f"give a whole number of 0 or more, then {SET_UP}")
    return config


def capacity(config):
    """What instances may have together."""
    return {key: config[key] for key in CAPACITY}


def state_db(config):
    """Path of the host's database."""
    return os.path.join(config["state_folder"], "host.db")


def _memory_mb(_config, meminfo):
    with naming(meminfo), open(meminfo, encoding="ascii") as file:
        total = next((line.split()[1] for line in file if line.startswith("MemTotal:")), None)
    if total is None or not total.isdigit():
        raise BadInput("has no MemTotal", meminfo, f"set memory_mb, then {SET_UP}")
    return int(total) // 1024


def _vcpus(_config, _meminfo):
    return os.cpu_count() or 1


def _local_gb(config, _meminfo):
    """The file system of the containers, which may be yet to be made."""
    folder = config["lxcpath"]
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    with naming(folder):
        found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize // 2**30


_HAS = {"memory_mb": _memory_mb, "vcpus": _vcpus, "local_gb": _local_gb}
