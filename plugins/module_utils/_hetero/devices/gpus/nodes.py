# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes as their drivers have them now: path, kind, major and minor, and whether the host's node is right.

Majors of dynamic drivers are read from /proc/devices each time, because a number may be another driver's after a
restart.
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

#: Documentation/admin-guide/devices.txt gives 195 to NVIDIA; 255 and 254 are from the driver's nv-chardev-numbers.h.
NVIDIA = 195
#: First minor that is no /dev/nvidiaN: the driver keeps the numbers from here on for itself.
NO_GPU = 253
NVIDIACTL = 255
NVIDIA_MODESET = 254
#: Nodes that all NVIDIA GPUs share: name below /dev, the driver's name in /proc/devices (None: NVIDIA's own major),
#: minor. Those of nvidia-uvm are from uvm_linux_ioctl.h: 0, and 1 for the tools.
SHARED = (
    ("nvidiactl", None, NVIDIACTL),
    ("nvidia-modeset", None, NVIDIA_MODESET),
    ("nvidia-uvm", "nvidia-uvm", 0),
    ("nvidia-uvm-tools", "nvidia-uvm", 1),
)


#: How a host's nodes are made. At boot hetero gpu-nodes does it.
MAKE = "run hetero gpu-nodes, or nvidia-modprobe"


@dataclass(frozen=True)
class DeviceNode:
    """A device node: its driver's numbers now, and the node at its path on the host.

    :param major: None while the driver, a dynamic one, is not loaded.
    :param mode: permission bits of the host's node, None if there is none.
    :param present: whether the host's node exists and has these numbers.
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
        """Return (kind, major, minor), by which a cgroup's rule and an open file identify the node."""
        return (self.kind, self.major, self.minor)


def majors(paths: Folders = HERE) -> dict[str, int]:
    """Return {name of a driver: its major for character devices}, as it is now."""
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
    """Return the node `name` (below /dev), whose driver's numbers are `major` and `minor`."""
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
    """Return the node that belongs to one GPU."""
    return look(f"nvidia{minor}", NVIDIA, minor, paths)


def nvidia_shared(paths: Folders = HERE) -> list[DeviceNode]:
    """Return the nodes that every container with a GPU needs, whichever GPU it has."""
    known = majors(paths)
    return [
        look(name, NVIDIA if driver is None else known.get(driver), minor, paths, driver=driver)
        for name, driver, minor in SHARED
    ]


def nvidia_caps(paths: Folders = HERE) -> list[DeviceNode]:
    """Return /dev/nvidia-caps/*, which open MIG instances and their management. Nobody gets them."""
    major = majors(paths).get("nvidia-caps")
    found = []
    for name in names_in(paths.dev, "nvidia-caps"):
        match = re.fullmatch(r"nvidia-cap(\d+)", name)
        if match:
            found.append(look(f"nvidia-caps/{name}", major, int(match[1]), paths, driver="nvidia-caps"))
    return found


def drm(device_folder: str, paths: Folders = HERE) -> list[DeviceNode]:
    """Return the graphics nodes (/dev/dri/…) of the PCI device with this sysfs folder."""
    found = []
    for name in names_in(device_folder, "drm"):
        match = re.fullmatch(r"(\d+):(\d+)", text_of(device_folder, "drm", name, "dev") or "")
        if match:
            found.append(look(f"dri/{name}", int(match[1]), int(match[2]), paths))
    return found


def kfd(paths: Folders = HERE) -> list[DeviceNode]:
    """Return /dev/kfd, AMD's compute node for all its GPUs; an empty list if the driver has none."""
    major = majors(paths).get("kfd")
    return [] if major is None else [look("kfd", major, 0, paths)]
