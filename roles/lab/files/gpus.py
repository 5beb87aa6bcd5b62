# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for NVIDIA GPUs in a lab node: what their driver and the kernel show of them in /proc and /sys.

There is no driver, so that no device opens: with ENXIO where the device cgroup lets one through, with EPERM where it
does not, which tells one from the other. /dev is left to the node, as a driver without nvidia-modprobe leaves it.
"""

from __future__ import annotations

import os

#: The last driver that knows Fermi.
VERSION = "390.157"
#: nvidia-uvm gets its major from the kernel, another one on another boot: counted down from 511 where 254 to 234 are
#: taken (Documentation/admin-guide/devices.txt). What else has one like that is there to be swapped with.
DRIVERS = {195: ("nvidia-frontend", "nvidia", "nvidiactl", "nvidia-modeset"), 510: ("nvidia-uvm",), 509: ("cec",)}
INFORMATION = """\
Model: \t\t {model}
IRQ:   \t\t {irq}
GPU UUID: \t {uuid}
Video BIOS: \t 70.10.46.00.05
Bus Type: \t PCIe
DMA Size: \t 40 bits
DMA Mask: \t 0xffffffffff
Bus Location: \t {address}
Device Minor: \t {minor}
"""


def lay(folder, gpus):
    """Make the files below `folder`, but keep a list of majors that is there: a test may have changed it.

    :returns: what is to be bound over what, as (source, target, kind).
    """
    driver, buses, devices = (os.path.join(folder, name) for name in ("driver", "pci", "devices"))
    _write(
        os.path.join(driver, "nvidia", "version"),
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Wed Oct 12 09:19:07 UTC 2022\n",
    )
    for number, gpu in enumerate(gpus):
        information = INFORMATION.format(irq=24 + number, **gpu)
        _write(os.path.join(driver, "nvidia", "gpus", gpu["address"], "information"), information)
        shown = dict(vendor="0x10de", device=gpu["device"], numa_node=str(gpu["numa_node"]))
        shown["class"] = "0x030200"  # a 3D controller
        for name, text in shown.items():
            _write(os.path.join(buses, gpu["address"], name), f"{text}\n")
        link = os.path.join(buses, gpu["address"], "driver")
        if not os.path.lexists(link):
            os.symlink("../../../../bus/pci/drivers/nvidia", link)
    if not os.path.exists(devices):
        _write(devices, _devices())
    return [(driver, "proc/driver", "dir"), (buses, "sys/bus/pci/devices", "dir"), (devices, "proc/devices", "file")]


def _devices():
    """/proc/devices of this machine with the drivers of GPUs in it."""
    with open("/proc/devices", encoding="ascii") as file:
        characters, block = file.read().split("\n\n", 1)
    ours = [f"{major:3} {name}" for major, names in sorted(DRIVERS.items()) for name in names]
    return "\n".join([characters, *ours]) + f"\n\n{block}"


def _write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
