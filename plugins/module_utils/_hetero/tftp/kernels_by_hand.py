# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that an administrator put into the TFTP root by hand, as <tftp root>/vmlinux_N for board N.

The server looks for each name in the folder of the address that asks. So a board that has no kernel of its own there
gets a link to the one that was put there by hand. Nothing here writes, replaces or removes the file itself.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .board_folder import BoardFiles

#: What a board asks for by its id: its kernel, as OpenStack's blueprint HeterogeneousTileraSupport named it, and what
#: firmware that takes an initrd asks for after it.
NAMES = ("vmlinux_{id}", "initrd_{id}")


def names(board_id: int) -> list[str]:
    """Return the names of the files of a board that may be put there by hand."""
    return [name.format(id=board_id) for name in NAMES]


def put_there(tftp_root: str, board_id: int) -> dict[str, str]:
    """Return {name: why the server does not serve it} of what was put there by hand for a board; "" where it does."""
    found = {name: _fault(os.path.join(tftp_root, name)) for name in names(board_id)}
    return {name: why for name, why in found.items() if why is not None}


def lead(files: BoardFiles, wanted: set[str], check: bool = False) -> tuple[list[str], list[str]]:
    """Have a board's folder lead to these files, and to no others of the TFTP root.

    :param check: change nothing.
    :returns: the names that it leads to from now on, and those that it leads to no more.
    """
    there = set(files.by_hand())
    new, old = sorted(wanted - there), sorted(there - wanted)
    for name in () if check else old:
        files.lead_no_more(name)
    for name in () if check else new:
        files.lead_to(name)
    return new, old


def _fault(path: str) -> str | None:
    """Return why the server does not serve a file, "" where it serves it; None where no file is there."""
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(seen.st_mode):
        kind = "a link" if stat.S_ISLNK(seen.st_mode) else "a folder" if stat.S_ISDIR(seen.st_mode) else "no file"
        return f"is {kind}: put the file itself there"
    return "" if seen.st_mode & stat.S_IROTH else f"cannot be read by the TFTP server: chmod o+r {path}"
