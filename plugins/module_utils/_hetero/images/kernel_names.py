# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an image's kernels and initrds are called, and which of them a board boots. This works on names only.

DEFAULT is the one for all boards, a boot source the one for a system with its root there. `3` is the kernel of board 3,
`3.disk` that of board 3 with its root on its disk.
"""

from __future__ import annotations

import re
from typing import Collection

from ..site.boot_sources import BOOT_SOURCES

#: Name of the kernel or initrd for all boards and boot sources.
DEFAULT = "default"
#: Names of the kernels of boards; the group is the boot source.
BOARD = re.compile(rf"(?:0|[1-9][0-9]{{0,9}})(?:\.({'|'.join(BOOT_SOURCES)}))?")


def chosen(names: Collection[str], source: str, board: int | None = None) -> str | None:
    """Return the name of the kernel or initrd for a boot source; None: there is none for it.

    :param names: those that there are.
    :param board: the id of the board, whose own kernel comes first; None for an initrd.
    """
    own = [] if board is None else [f"{board}.{source}", f"{board}"]
    return next((name for name in (*own, source, DEFAULT) if name in names), None)


def shown(names: Collection[str], most: int = 12) -> str:
    """Return names as text, at most so many: those for all boards first, then those of boards."""
    listed = sorted(names, key=lambda name: (name != DEFAULT, name[:1].isdigit(), len(name), name))
    return ", ".join([*listed[:most], *([f"{len(listed) - most} more"] if len(listed) > most else [])]) or "none"
