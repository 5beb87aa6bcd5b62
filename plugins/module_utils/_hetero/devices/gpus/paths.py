# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the kernel shows devices: /proc, /sys, /dev and /run of this machine, and small reads from them.

People and containers know a device by its path below /dev, wherever this process looks for it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

from ...core.errors import naming


class Folders(Protocol):
    """The folders in which the kernel shows devices, of this machine or of another tree."""

    @property
    def proc(self) -> str: ...
    @property
    def sys(self) -> str: ...
    @property
    def dev(self) -> str: ...
    @property
    def run(self) -> str: ...


@dataclass(frozen=True)
class Paths:
    proc: str = "/proc"
    sys: str = "/sys"
    dev: str = "/dev"
    run: str = "/run"

    @classmethod
    def below(cls, root: str) -> Paths:
        """Return the same folders below another root."""
        return cls(*(os.path.join(root, name) for name in ("proc", "sys", "dev", "run")))


#: The folders of this machine.
HERE = Paths()


def text_of(*parts: str) -> str | None:
    """Return the text of a file of /proc or /sys without surrounding white space, or None if it is not there.

    A file of a process that ends while it is read is not there either.
    """
    path = os.path.join(*parts)
    with naming(path):
        try:
            # newline: a tenant's text, such as a thread's name, may have other ends of a line
            with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
                return file.read().strip()
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return None


def names_in(*parts: str) -> list[str]:
    """Return the sorted names in a folder, or an empty list if there is no such folder."""
    path = os.path.join(*parts)
    with naming(path):
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []


def link_name(*parts: str) -> str | None:
    """Return the last part of a link's target, by which sysfs names drivers and groups, or None if there is no link."""
    path = os.path.join(*parts)
    with naming(path):
        try:
            return os.path.basename(os.readlink(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
