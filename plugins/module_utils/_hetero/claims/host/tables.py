# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a compute host's database. store.py knows what their rows mean."""

from __future__ import annotations

import os

from ...core.backups import Rights, copies, how_to_restore
from ...core.database import Layout
from .. import tickets
from ..store import read_claim
from .allocation_rows import read_allocation
from .claim_records import TYPES
from .config import SET_UP


def _restore(path: str) -> str:
    """Return what a person does about a damaged database.

    Without a copy the kernel still knows who can open which GPU, and each container's files what it asked for.
    """
    way = how_to_restore(path, mark=mark_beside(path), rights=RIGHTS)
    return way if copies(path) else f"{way}; who owned which instance must be claimed again"


def mark_beside(path: str) -> str:
    """Return the path of the mark that a database was lost (compute_host/lost_database.py), which has its name."""
    return f"{os.path.splitext(path)[0]}.lost"


def claims_beside(path: str) -> str:
    """Return the path of the folder with the records of a database's claims (claim_records.py), which has its name."""
    return f"{os.path.splitext(path)[0]}.claims"


def marked_beside(path: str) -> str:
    """Return the path of the list of folders of containers that have had their mark (hypervisors/lxc/folders.py)."""
    return f"{os.path.splitext(path)[0]}.folders"


def marked_in(path: str) -> dict[str, str | None]:
    """Return {folder of containers that has had the mark of this collection: the mark's id, or None where none was
    noted yet}, by the list beside a database.
    """
    try:
        with open(marked_beside(path), encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.partition("\t") for line in file.read().splitlines()]
    except OSError:
        return {}
    return {folder: mark or None for folder, _tab, mark in lines}


#: By the rows of these tables memory, a container or a GPU is somebody's. A copy of an earlier release has no user ids,
#: no runs that move, or no departures.
RIGHTS: Rights = {
    "instances": lambda row: read_claim({"first_id": None, "mover": None, "departure": None, **row}, TYPES),
    "allocations": read_allocation,
}
ONE_RANGE = "CREATE UNIQUE INDEX one_range_of_ids ON instances (first_id)"
LAYOUT = Layout(
    schema=6,
    tables=(
        """CREATE TABLE instances (
            instance TEXT PRIMARY KEY, request TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL,
            flavor TEXT NOT NULL, image TEXT NOT NULL, ssh_public_key TEXT NOT NULL,
            memory_mb INTEGER NOT NULL, vcpus INTEGER NOT NULL, local_gb INTEGER NOT NULL,
            state TEXT NOT NULL, since REAL NOT NULL, note TEXT NOT NULL DEFAULT '', created REAL NOT NULL,
            expires REAL, container TEXT, address TEXT, host_key TEXT, image_hash TEXT, first_id INTEGER,
            mover TEXT, departure TEXT)""",
        # A last defence: no two containers share user ids.
        ONE_RANGE,
        """CREATE TABLE allocations (
            address TEXT NOT NULL, holder TEXT NOT NULL, uuid TEXT, share INTEGER NOT NULL, state TEXT NOT NULL,
            since REAL NOT NULL, wanted TEXT NOT NULL, nodes TEXT NOT NULL, persistent INTEGER NOT NULL,
            method TEXT NOT NULL,
            PRIMARY KEY (address, holder))""",
        # A last defence: one GPU is never exclusively two holders'.
        "CREATE UNIQUE INDEX one_exclusive_holder ON allocations (address) WHERE share = 0",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, actor TEXT NOT NULL, instance TEXT, address TEXT,
            phase TEXT NOT NULL, text TEXT NOT NULL, seconds REAL)""",
        *tickets.TABLES,
    ),
    # 2: each container has user ids of its own; the table has none for those made before.
    # 3: those who wait have places. 4: with each, how many others can give it at all. 5: which run moves an instance.
    # 6: of which departure its root is.
    upgrades={
        1: ("ALTER TABLE instances ADD COLUMN first_id INTEGER", ONE_RANGE),
        2: tickets.FIRST_TABLES,
        3: (tickets.OTHERS,),
        4: ("ALTER TABLE instances ADD COLUMN mover TEXT",),
        5: ("ALTER TABLE instances ADD COLUMN departure TEXT",),
    },
    set_up=SET_UP,
    restore=_restore,
)
