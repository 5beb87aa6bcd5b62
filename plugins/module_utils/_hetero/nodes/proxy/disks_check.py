# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of boards that the wiring names: whether there is a RAM image from which each could be wiped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ...core.plays import play
from ...site.proxy_config import NO_DISK

if TYPE_CHECKING:
    from ...core.findings import Findings
    from .setup_plan import Plan

DISK = re.compile(r"/dev/[a-z][a-z0-9]*")


def disks(plan: Plan, thing: str, wire: Mapping[str, Any], arch: str | None, found: Findings) -> str | None:
    """Check the disks of a board, which nobody could wipe where it cannot boot a RAM image; return its architecture if
    there is no such image for that.
    """
    disk = wire.get("disk")
    names = [] if disk == NO_DISK else [disk] if isinstance(disk, str) else disk or []
    if not all(DISK.fullmatch(name) for name in names):
        found.defect(thing, f"disk is no device name: {disk}", "write /dev/sda, a list of such, or none")
    elif names and wire.get("kernel_source") == "flash":
        what = "has a disk, and its kernel in flash: it boots no RAM image that could wipe the disk"
        found.defect(thing, what, "set kernel_source: tftp, or take the disk out and say disk: none")
    elif names and arch and arch.lower() not in {known.lower() for known in plan.ram_images}:
        return arch
    return None


def unwiped(without: Sequence[tuple[str, str]], found: Findings) -> None:
    """Report one defect for all boards of an architecture whose disks have no RAM image.

    :param without: (board id, architecture) of each of these boards.
    """
    for arch in dict.fromkeys(arch for _id, arch in without):
        ids = [board for board, its in without if its == arch]
        thing = f"tftp_proxy_boards, {'boards' if ids[1:] else 'board'} {', '.join(ids)}"
        what = f"there is no RAM image for {arch} to wipe disks from"
        remedy = f"name one in tftp_proxy_ram_images, as {{{arch}: NAME}}; {play('build_image')} makes some"
        found.defect(thing, what, remedy)
