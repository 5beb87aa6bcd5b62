# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about this machine: the file system that a path lies on, and the packages that are installed."""

from __future__ import annotations

import os
from typing import Iterable

from .command import command
from .kernel_text import mount_table


def mount_of(path: str) -> tuple[str, str]:
    """Return (mount point, file system type) that `path` lies on."""
    path = os.path.realpath(path)
    best = ("/", "unknown")
    for line in mount_table():
        if (path + "/").startswith(line.point.rstrip("/") + "/") and len(line.point) >= len(best[0]):
            best = (line.point, line.kind)
    return best


def missing_packages(names: Iterable[str]) -> list[str]:
    """Return those of `names` that dpkg does not have installed, in their order."""
    if not names:
        return []
    said = command(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names], ok=(0, 1))
    installed = {line.split()[0] for line in said.splitlines() if line.endswith(" installed")}
    return [name for name in names if name not in installed]


def text_of(path: str) -> str:
    """Return the text of a file; an empty one where the file is missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
