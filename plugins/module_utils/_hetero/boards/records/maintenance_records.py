# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each maintenance or fault of a board that nobody has once more, in a file of its own, so that no older or new
database gives the board to anybody.

One folder for all boards, <state>/maintenance/boardN.json, beside the records of claims (claim_records.py), which tell
of boards that somebody has. A file is there from before the database says that the board is out of use until it is
about to say that it is not. A file names its board: what another board's says in its place is believed of neither.
"""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import asdict, dataclass

from ...claims import record_files
from ...claims.record_files import LATEST
from ...core.errors import HeteroError, naming
from ...core.json_file import read_object
from ...core.printable import brief
from ...core.this_node import THIS_NODE
from ...core.typed_keys import is_text
from ...site.board_states import ERROR, MAINTENANCE

FOLDER = "maintenance"
#: Most characters of a reason: what a board last said may be in it.
LONGEST = 4000
#: The states of boards that are out of use. A file of an earlier release names none: it is of maintenance.
STATES = (MAINTENANCE, ERROR)
#: What is said of a file that names another board. One of an earlier release names none, and is its place's.
ANOTHERS = "{path} is a record of board{of}, not of board{board}, and nothing of it is believed"
WORDS = {
    MAINTENANCE: "an operator took it out of use by its own record ({reason})",
    ERROR: "it is kept out of use for a fault by its own record ({reason})",
}


@dataclass(frozen=True)
class OutOfUse:
    """A board that nobody has is out of use: why, since when (seconds since 1970), and by what.

    :ivar state: MAINTENANCE by an operator's word, ERROR by a fault that was seen.
    :ivar of: the other board that the file names; None for a board's own record.
    """

    reason: str
    since: float
    state: str = MAINTENANCE
    of: int | None = None

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
            of = found.get("board", board)
            if isinstance(of, bool) or not isinstance(of, int):
                raise ValueError
            if of != board:
                return OutOfUse(ANOTHERS.format(path=path, of=of, board=board), 0.0, of=of)
            return OutOfUse(brief(reason, LONGEST), since, state if state in STATES else MAINTENANCE)
        except (HeteroError, KeyError, TypeError, ValueError, OverflowError):
            return OutOfUse(f"{path} cannot be read", 0.0)

    def misplaced(self, board: int) -> str | None:
        """Return what is said where another board's record lies in a board's place, and what to do; else None."""
        out = self.read(board)
        if out is None or out.of is None:
            return None
        here, there = self.path(board), self.path(out.of)
        beside = self.read(out.of)
        if beside is not None and beside.of == board:
            moves = [(here, f"{here}.moved"), (there, here), (f"{here}.moved", there)]
        elif beside is None or beside.of is not None:
            moves = [(here, there)]
        else:
            return f"{out.reason}: board{out.of} has its own: remove this one"
        typed = " && ".join(f"mv --backup=numbered {shlex.quote(one)} {shlex.quote(to)}" for one, to in moves)
        return f"{out.reason}: run on {THIS_NODE}: {typed}"

    def write(self, board: int, out: OutOfUse) -> None:
        """Write a board's file, whole or not at all; keep another board's that lies there."""
        self._put_aside(board)
        fields = {name: value for name, value in asdict(out).items() if name != "of"}
        record_files.write(self.path(board), dict(fields, board=board))

    def remove(self, board: int) -> None:
        """Remove a board's file, for good, and what writers of it that were killed have left.

        Another board's that lies there is kept, under another name.
        """
        if not self._put_aside(board):
            record_files.remove(self.path(board))

    def _put_aside(self, board: int) -> bool:
        """Rename the file in a board's place if it is another board's, whose only one it may be; return whether."""
        path, out = self.path(board), self.read(board)
        if out is None or out.of is None:
            return False
        with naming(path):
            os.rename(path, f"{path}.of-board{out.of}.{time.time_ns()}")
        return True
