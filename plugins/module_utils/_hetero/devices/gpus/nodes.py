# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes as their drivers have them now: path, kind, major and minor, and whether the node on this host is right.

Majors of dynamic drivers are read from /proc/devices each time: after a restart a number may be another driver's.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .paths import HERE, names_in, text_of

if TYPE_CHECKING:
    from .paths import Folders

#: Documentation/admin-guide/devices.txt gives 195 to NVIDIA for good; 255 and 254 are nv-chardev-numbers.h's.
NVIDIA = 195
#: Minors of /dev/nvidiaN end below those that the driver keeps for itself; no machine has so many GPUs.
NO_GPU = 253
NVIDIACTL = 255
NVIDIA_MODESET = 254
#: Nodes that all NVIDIA GPUs share: name below /dev, the driver's name in /proc/devices, minor. nvidia-uvm's minors are
#: those of its uvm_linux_ioctl.h: 0 and, for the tools, 1.
SHARED = (
    ("nvidiactl", None, NVIDIACTL),
    ("nvidia-modeset", None, NVIDIA_MODESET),
    ("nvidia-uvm", "nvidia-uvm", 0),
    ("nvidia-uvm-tools", "nvidia-uvm", 1),
)


#: How a host's nodes come to be there; hetero gpu-nodes does it at boot.
MAKE = "run hetero gpu-nodes, or nvidia-modprobe"


@dataclass(frozen=True)
class DeviceNode:
    """A device node: what its driver's numbers are now, and what is on the host at its path.

    :param major: None while the driver is not loaded, which only a dynamic one can be.
    :param mode: permission bits of the host's node, None where it is not there.
    :param present: the host's node is there and has these numbers.
    :param why_absent: why it is not `present`, and what to do.
    """

    path: str
    kind: str
    major: int | None
    minor: int
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    present: bool = False
    why_absent: str | None = None

    @property
    def number(self) -> tuple[str, int | None, int]:
        """(kind, major, minor): what a cgroup rule and an open file tell it by."""
        return (self.kind, self.major, self.minor)


def majors(paths: Folders = HERE) -> dict[str, int]:
    """Name of a driver → its major for character devices, as of now."""
    found = {}
    text = text_of(paths.proc, "devices") or ""
    for line in text.partition("Block devices:")[0].splitlines():
        match = re.fullmatch(r"\s*(\d+) (\S+)", line)
        if match:
            found.setdefault(match[2], int(match[1]))
    return found


def look(
    name: str, major: int | None, minor: int, paths: Folders = HERE, kind: str = "c", driver: str | None = None
) -> DeviceNode:
    """The DeviceNode `name` (below /dev), whose driver's numbers are `major` and `minor`."""
    node: dict[str, Any] = dict(path=f"/dev/{name}", kind=kind, major=major, minor=minor)
    try:
        seen = os.stat(os.path.join(paths.dev, name))
    except (FileNotFoundError, NotADirectoryError):
        why = f"is not there: {MAKE}"
        if major is None:
            why = f"driver {driver} is not loaded: run modprobe {driver}"
        return DeviceNode(**node, why_absent=why)
    node.update(mode=stat.S_IMODE(seen.st_mode), uid=seen.st_uid, gid=seen.st_gid)
    if major is None:
        return DeviceNode(**node, why_absent=f"driver {driver} is not loaded: run modprobe {driver}")
    is_kind = stat.S_ISCHR(seen.st_mode) if kind == "c" else stat.S_ISBLK(seen.st_mode)
    if not is_kind:
        return DeviceNode(**node, why_absent=f"is no device: remove it, and {MAKE}")
    there = (os.major(seen.st_rdev), os.minor(seen.st_rdev))
    if there != (major, minor):
        why = f"is {there[0]}:{there[1]}, but its driver's is {major}:{minor} now: remove it, and {MAKE}"
        return DeviceNode(**node, why_absent=why)
    return DeviceNode(**node, present=True)


def nvidia_gpu(minor: int, paths: Folders = HERE) -> DeviceNode:
    """The node that is one GPU's own."""
    return look(f"nvidia{minor}", NVIDIA, minor, paths)


def nvidia_shared(paths: Folders = HERE) -> list[DeviceNode]:
    """The nodes that every container with a GPU needs, whichever GPU it has."""
    known = majors(paths)
    return [
        look(name, NVIDIA if driver is None else known.get(driver), minor, paths, driver=driver)
        for name, driver, minor in SHARED
    ]


def nvidia_caps(paths: Folders = HERE) -> list[DeviceNode]:
    """/dev/nvidia-caps/*: what opens MIG instances and their management. They are handed to nobody."""
    major = majors(paths).get("nvidia-caps")
    found = []
    for name in names_in(paths.dev, "nvidia-caps"):
        match = re.fullmatch(r"nvidia-cap(\d+)", name)
        if match:
            found.append(look(f"nvidia-caps/{name}", major, int(match[1]), paths, driver="nvidia-caps"))
    return found


def drm(device_folder: str, paths: Folders = HERE) -> list[DeviceNode]:
    """The graphics nodes (/dev/dri/…) of the PCI device whose sysfs folder this is."""
    found = []
    for name in names_in(device_folder, "drm"):
        match = re.fullmatch(r"(\d+):(\d+)", text_of(device_folder, "drm", name, "dev") or "")
        if match:
            found.append(look(f"dri/{name}", int(match[1]), int(match[2]), paths))
    return found


def kfd(paths: Folders = HERE) -> list[DeviceNode]:
    """/dev/kfd, AMD's compute node for all its GPUs; nothing where the driver has none."""
    major = majors(paths).get("kfd")
    return [] if major is None else [look("kfd", major, 0, paths)]
