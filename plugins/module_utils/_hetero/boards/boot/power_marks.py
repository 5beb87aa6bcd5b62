# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this node's clock was stepped since a board's boot began.

What a root tells of its use is read by the clock (used_root.py). One that was set back meanwhile makes what a tenant
wrote look older than the boot, long after it has passed that time again. The kernel counts seconds beside its clock;
how far the two are apart changes by nothing but a step. So that is written down before each boot, in the folder of what
is lost with the machine's boot, which the kernel's count is, too.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Iterator

from ...core.errors import BadInput, naming
from ...core.json_file import read_object
from ...files.whole_file import write_whole
from ...site.node_clock import BOOT_ID

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

#: Below the run folder, a file a board.
FOLDER = "powered"
#: How exactly two clocks are read together (seconds): the kernel answers each in less than a microsecond, and a process
#: that is interrupted between them reads them again.
EXACT = 1e-3
#: How often they are read for that.
READINGS = 5


@contextmanager
def begins(proxy: Proxy, board: Board) -> Iterator[None]:
    """Around the writing of the event with which a boot begins: mark how the clock goes with the kernel's count.

    Where the mark cannot be written, an older one stays or there is none: either vouches for no more than it did.
    """
    mark, path = _here(), _path(proxy, board)
    yield
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, json.dumps(mark), 0o600)


def was_stepped(proxy: Proxy, board: Board) -> bool:
    """Whether the clock may have been stepped since a board's newest mark; True where nobody can tell."""
    try:
        marked, here = read_object(_path(proxy, board), ""), _here()
        return marked["boot"] != here["boot"] or not abs(float(marked["apart"]) - here["apart"]) <= EXACT
    except (BadInput, KeyError, TypeError, ValueError, OverflowError):
        return True


def _path(proxy: Proxy, board: Board) -> str:
    return os.path.join(proxy.config["run_folder"], FOLDER, f"{board.name}.json")


def _here() -> dict[str, Any]:
    """The present boot of the machine, and by how many seconds its clock is ahead of what the kernel counted in it."""
    with naming(BOOT_ID), open(BOOT_ID, encoding="utf-8") as file:
        boot = file.read().strip()
    return {"boot": boot, "apart": min(_reading() for _reading_again in range(READINGS))[1]}


def _reading() -> tuple[float, float]:
    """(seconds that reading both clocks took, by how many seconds they are apart)."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = time.time()
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    return after - before, now - (before + after) / 2
