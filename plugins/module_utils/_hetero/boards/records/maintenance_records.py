# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each maintenance of a board once more, in a file of its own, so that no older database gives the board to anybody.

One folder for all boards, <state>/maintenance/boardN.json, beside the records of claims (claim_records.py). A file is
there from before the database says that the board is in maintenance until it is about to say that it is not.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from ...core.errors import HeteroError, naming
from ...core.json_file import read_object
from ...files.whole_file import remove_left, sync_folder, write_whole

FOLDER = "maintenance"


@dataclass(frozen=True)
class OutOfUse:
    """An operator's word that a board is out of use: why, and since when (seconds since 1970)."""

    reason: str
    since: float


class MaintenanceRecords:
    """The files of all boards in maintenance of a node; root alone may read them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def path(self, board: int) -> str:
        return os.path.join(self.folder, f"board{board}.json")

    def read(self, board: int) -> OutOfUse | None:
        """Return what a board's file says; None without a file. One that cannot be read counts as maintenance."""
        path = self.path(board)
        if not os.path.lexists(path):
            return None
        try:
            found = read_object(path, "")
            return OutOfUse(str(found["reason"]), float(found["since"]))
        except (HeteroError, KeyError, TypeError, ValueError):
            return OutOfUse(f"{path} cannot be read", 0.0)

    def write(self, board: int, out: OutOfUse) -> None:
        """Write a board's file, whole or not at all."""
        with naming(self.path(board)):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            write_whole(self.path(board), json.dumps(asdict(out), sort_keys=True, indent=1), 0o600)

    def remove(self, board: int) -> None:
        """Remove a board's file, for good, and what writers of it that were killed have left."""
        with naming(self.path(board)):
            remove_left(self.path(board))
            os.unlink(self.path(board))
            sync_folder(self.folder)
