# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each maintenance or fault of a board that nobody has once more, in a file of its own, so that no older or new
database gives the board to anybody.

One folder for all boards, <state>/maintenance/boardN.json, beside the records of claims (claim_records.py), which tell
of boards that somebody has. A file is there from before the database says that the board is out of use until it is
about to say that it is not.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from ...claims import record_files
from ...core.errors import HeteroError
from ...core.json_file import read_object
from ...core.printable import brief
from ...core.typed_keys import is_text
from ...site.board_states import ERROR, MAINTENANCE

FOLDER = "maintenance"
#: Above all times (seconds since 1970): no clock of a node shows the year 5138.
LATEST = 1e11
#: Most characters of a reason: what a board last said may be in it.
LONGEST = 4000
#: The states of boards that are out of use. A file of an earlier release names none: it is of maintenance.
STATES = (MAINTENANCE, ERROR)
WORDS = {
    MAINTENANCE: "an operator took it out of use by its own record ({reason})",
    ERROR: "it is kept out of use for a fault by its own record ({reason})",
}


@dataclass(frozen=True)
class OutOfUse:
    """A board that nobody has is out of use: why, since when (seconds since 1970), and by what.

    :ivar state: MAINTENANCE by an operator's word, ERROR by a fault that was seen.
    """

    reason: str
    since: float
    state: str = MAINTENANCE

    @property
    def told(self) -> str:
        """Return the finding on a board that somebody has by the database, which is older than this record."""
        return WORDS[self.state].format(reason=self.reason)


def agree(state: str, out: OutOfUse | None) -> bool:
    """Return whether the state of a board that nobody has, by the database, is what the board's own record says."""
    return state == out.state if out else state not in STATES


class MaintenanceRecords:
    """The files of all boards of a node that are out of use and that nobody has; root alone may read them."""

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
            state = found.get("state", MAINTENANCE)
            reason, since = found["reason"], float(found["since"])
            if not is_text(reason) or not 0 <= since < LATEST:
                raise ValueError
            return OutOfUse(brief(reason, LONGEST), since, state if state in STATES else MAINTENANCE)
        except (HeteroError, KeyError, TypeError, ValueError, OverflowError):
            return OutOfUse(f"{path} cannot be read", 0.0)

    def write(self, board: int, out: OutOfUse) -> None:
        """Write a board's file, whole or not at all."""
        record_files.write(self.path(board), asdict(out))

    def remove(self, board: int) -> None:
        """Remove a board's file, for good, and what writers of it that were killed have left."""
        record_files.remove(self.path(board))
