# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's libraries inside a container, which must have the version of the host's driver.

They are found by the names that the dynamic linker looks for, and by the files to which these lead in the container.
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

#: Libraries that speak to the kernel module, which refuses any other version ("API mismatch"; "Driver/library version
#: mismatch" of nvidia-smi).
NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
#: Folders in which distributions and NVIDIA's installer put them. The compatibility package (cuda/compat), which is
#: made for older drivers, is left out.
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
#: Files that tell the linker of more folders.
LINKER = ("/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf")
VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)")
#: Seconds for a look into a root, which may lie on a slow disk.
PATIENCE = 10


@dataclass(frozen=True)
class Library:
    """A library inside a container: its name for programs, its file, and the version in the file's name."""

    name: str
    path: str
    version: str | None


def look(root: str, deadline: Deadline | None = None) -> list[Library]:
    """Return the libraries in the container whose root this is. No link in it leads out of it."""
    seen = inside(root, _seen, deadline or Deadline(PATIENCE))
    return [Library(**library) for library in seen]


def check(
    root: str, driver_version: str | None, thing: str | None = None, deadline: Deadline | None = None
) -> list[Library]:
    """Return the libraries in a container's root, if all have the version of the host's driver.

    :param thing: what an error names (default: the root).
    :raises Refused: one has another version.
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
    """Find the libraries from inside the container, whose root is this process's."""
    found: dict[str, dict[str, Any]] = {}
    for folder in _folders():
        for name in NAMES:
            path = os.path.realpath(os.path.join(folder, name))
            # the linker takes a link to nothing for a missing library
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
