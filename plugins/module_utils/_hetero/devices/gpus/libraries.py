# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's libraries inside a container against the driver of its host: they must be of one version.

Found by the names that the dynamic linker looks for, and by what these names lead to inside the container's root.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from ...core.deadline import Deadline
from ...core.errors import Refused
from ...files.root_work import inside, read_file

#: Libraries that speak to the kernel module, which refuses any other version than its own ("API mismatch", and
#: "Driver/library version mismatch" of nvidia-smi).
NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
#: Where distributions and NVIDIA's installer put them. Folders of the compatibility package (cuda/compat), which is
#: made for older drivers, are left out.
FOLDERS = (
    "/usr/lib/*-linux-gnu",
    "/usr/lib/*-linux-gnu/nvidia/current",
    "/usr/lib/nvidia*",
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/lib",
    "/lib/*-linux-gnu",
    "/lib64",
    "/lib",
    "/usr/local/lib",
    "/usr/local/nvidia/lib*",
)
#: Where the linker is told of more.
LINKER = ("/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf")
VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)")
#: Seconds for a look into a root, which may lie on a slow disk.
PATIENCE = 10


@dataclass(frozen=True)
class Library:
    """A library inside: the name that programs ask for, the file it leads to, and the version in that file's name."""

    name: str
    path: str
    version: str | None


def look(root: str, deadline: Deadline | None = None) -> list[Library]:
    """The Libraries in the container whose root this is; no link in it leads out of it."""
    seen = inside(root, _seen, deadline or Deadline(PATIENCE))
    return [Library(**library) for library in seen]


def check(
    root: str, driver_version: str | None, thing: str | None = None, deadline: Deadline | None = None
) -> list[Library]:
    """The Libraries in a container's root, all of which fit the host's driver; none where it has none.

    :param thing: what an error names (default: the root).
    :raises Refused: one has another version than the driver.
    """
    found = look(root, deadline)
    wrong = [library for library in found if driver_version and library.version not in (None, driver_version)]
    if wrong:
        listed = ", ".join(f"{library.path} is {library.version}" for library in wrong)
        raise Refused(
            f"NVIDIA's libraries inside do not fit the host's driver {driver_version}: {listed}",
            thing or root,
            f"install version {driver_version} of them inside, or bind the host's libraries in their place",
            driver_version=driver_version,
            libraries=[asdict(library) for library in found],
        )
    return found


def _seen() -> list[dict[str, Any]]:
    """Runs inside: every path is the container's."""
    found: dict[str, dict[str, Any]] = {}
    for folder in _folders():
        for name in NAMES:
            path = os.path.realpath(os.path.join(folder, name))
            # a link that leads to nothing is a library that is not there, as the linker sees it
            if path not in found and os.path.isfile(path):
                version = VERSION.search(os.path.basename(path))
                found[path] = asdict(Library(name, path, version[1] if version else None))
    return list(found.values())


def _folders() -> list[str]:
    folders = [folder for pattern in FOLDERS for folder in sorted(glob.glob(pattern))]
    for pattern in LINKER:
        for path in sorted(glob.glob(pattern)):
            lines = [line.split("#")[0].strip() for line in (read_file(path) or "").splitlines()]
            folders += [line for line in lines if line.startswith("/") and "compat" not in line]
    return folders
