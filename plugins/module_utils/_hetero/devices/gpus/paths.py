# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the kernel shows devices: /proc, /sys, /dev and /run of this machine, and small reads from them.

A device's name for people and containers is always its path below /dev, wherever it was looked at.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

from ...core.errors import naming


class Folders(Protocol):
    """Where the kernel shows devices: of this machine, or of a tree that is not this machine's own."""

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
        """The same folders of a tree that is not this machine's own."""
        return cls(*(os.path.join(root, name) for name in ("proc", "sys", "dev", "run")))


#: This machine's own.
HERE = Paths()


def text_of(*parts: str) -> str | None:
    """The text of a file of /proc or /sys without the white space around it; None where there is none.

    Of a process that ends while its file is read there is none either.
    """
    path = os.path.join(*parts)
    with naming(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return None


def names_in(*parts: str) -> list[str]:
    """The sorted names in a folder; none where there is no such folder."""
    path = os.path.join(*parts)
    with naming(path):
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []


def link_name(*parts: str) -> str | None:
    """The last name of what a link points to, as sysfs names drivers and groups; None where there is no link."""
    path = os.path.join(*parts)
    with naming(path):
        try:
            return os.path.basename(os.readlink(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
