# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this host has on a disk: mounts, swap, and what is stacked on it (LVM, RAID, encryption)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Collection

from ...core.kernel_text import lines_of, mount_table
from .sysfs import text

if TYPE_CHECKING:
    from .paths import Paths


def uses(disks: Collection[str], paths: Paths) -> list[str]:
    """Return in words what uses the block devices `disks` ("259:0"), through all that is stacked on them."""
    if not disks:
        return []
    found: list[str] = []
    mounted, swap = _mounted(paths), _swap(paths)
    stack, seen = list(disks), set()
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        folder = os.path.join(paths.sys, "dev/block", number)
        name = os.path.basename(os.path.realpath(folder))
        found += [f"{name} is mounted on {point}" for point in mounted.get(number, ())]
        found += [f"{name} is used as swap"] if number in swap else []
        for above in _names(os.path.join(folder, "holders")):
            stack.append(text(os.path.join(folder, "holders", above, "dev")))
            found.append(f"{name} is part of {above}")
    return found


def _mounted(paths: Paths) -> dict[str, list[str]]:
    """Return {major:minor: mount points}. btrfs and the like, whose number is no device's, are found by their source.
    """
    found: dict[str, list[str]] = {}
    for line in mount_table(paths.proc):
        for number in filter(None, {line.system, _number(line.source, paths)}):
            found.setdefault(number, []).append(line.point)
    return found


def _swap(paths: Paths) -> set[str | None]:
    return {_number(line.split()[0], paths) for line in lines_of(os.path.join(paths.proc, "swaps"))[1:]}


def _number(path: str, paths: Paths) -> str | None:
    """Return the number of the block device that a path names, or None for anything else."""
    if not path.startswith("/dev/"):
        return None
    name = os.path.basename(os.path.realpath(os.path.join(paths.dev, path[len("/dev/") :])))
    try:
        return text(os.path.join(paths.sys, "class/block", name, "dev"))
    except FileNotFoundError:
        return None


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
