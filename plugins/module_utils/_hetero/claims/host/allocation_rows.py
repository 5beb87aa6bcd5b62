# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row of the table of allocations says. Copies of the database are judged by it too (tables.py)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping

from ..record_files import NONE, NUMBER, TEXT, of_other_columns
from .allocation import Allocation, GpuRequest

if TYPE_CHECKING:
    import sqlite3

#: {column of an allocation: the types that it may have}.
ALLOCATED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("address", "holder", "state", "wanted", "nodes", "method"), TEXT),
    **dict.fromkeys(("share", "persistent"), (int,)),
    "uuid": TEXT + NONE,
    "since": NUMBER,
}


def read_allocation(row: sqlite3.Row | Mapping[str, Any]) -> Allocation:
    """Return the allocation of a row; raise ValueError, TypeError or KeyError for a damaged one."""
    wrong = of_other_columns(row, ALLOCATED)
    if wrong:
        raise ValueError(", ".join(wrong))
    wanted = json.loads(row["wanted"])
    wanted["gpus"] = tuple(wanted["gpus"])
    more = dict(wanted=GpuRequest(**wanted), share=bool(row["share"]), persistent=bool(row["persistent"]))
    more["nodes"] = tuple((str(path), str(kind), major, minor) for path, kind, major, minor in json.loads(row["nodes"]))
    return Allocation(**dict(row, **more))
