# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines and GPUs on which device nodes do not decide who has a GPU: MIG and NVSwitch. They are found and refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Mapping, Sequence

from ...core.errors import naming
from .paths import names_in
from .pci_devices import MELLANOX, NVIDIA

if TYPE_CHECKING:
    from .paths import Folders
    from .pci_devices import PciDevice

#: NVSwitches that are PCI devices, from pci.ids 2026.08.22, vendor 10de (A100 NVSwitch, H100 NVSwitch). Older ones are
#: known by their driver.
NVSWITCHES = frozenset((0x1AF1, 0x22A3))
NVSWITCH_DRIVER = "nvidia-nvswitch"
#: On HGX machines with Blackwell GPUs the switches are no PCI devices. ConnectX-7 functions (15b3:1021) that manage
#: them have SW_MNG in their vital product data, which NVIDIA's Fabric Manager looks for too.
MANAGING = (MELLANOX, 0x1021)
MANAGES = b"SW_MNG"
#: Bytes of vital product data at most (PCI specification: 15 bits of address).
VPD = 1 << 15


def mig(minor: int, paths: Folders) -> str | None:
    """Return why the GPU with this minor cannot be given as a whole, or None.

    The driver shows a folder gi<id> for each GPU instance. The folder mig alone exists with MIG off, too.
    """
    instances = names_in(paths.proc, "driver", "nvidia", "capabilities", f"gpu{minor}", "mig")
    if not instances:
        return None
    return (
        f"is cut into {len(instances)} MIG instances, which nvidia-caps nodes open: "
        f"once nobody needs these, switch MIG off (nvidia-smi -i {minor} -mig 0) to hand it over whole"
    )


def nvswitch(devices: Sequence[PciDevice]) -> str | None:
    """Return why no GPU of a machine with these devices can be given, or None."""
    switches = [
        device.address
        for device in devices
        if device.driver == NVSWITCH_DRIVER or (device.vendor == NVIDIA and device.device in NVSWITCHES)
    ]
    switches += [
        device.address for device in devices if (device.vendor, device.device) == MANAGING and _manages(device)
    ]
    if not switches:
        return None
    return (
        f"NVSwitch at {', '.join(switches)}: GPUs behind NVSwitches work only in partitions of the Fabric Manager, "
        "so one cannot be handed to a container alone: use this machine's GPUs without containers"
    )


def _manages(device: PciDevice) -> bool:
    path = os.path.join(device.folder, "vpd")
    with naming(path):
        try:
            with open(path, "rb") as file:
                return MANAGES in file.read(VPD)
        except FileNotFoundError:
            return False


def excluded(information: Mapping[str, str]) -> str | None:
    """Return why the driver does not use this GPU, or None (older drivers: "GPU Blacklisted")."""
    for field in ("GPU Excluded", "GPU Blacklisted"):
        if information.get(field) == "Yes":
            return "is excluded by the driver's option NVreg_ExcludedGpus: take it out of /etc/modprobe.d"
    return None
