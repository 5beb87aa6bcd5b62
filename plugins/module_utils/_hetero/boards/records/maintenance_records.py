# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each maintenance or fault of a board that nobody has once more, in a file of its own, so that no older or new
database gives the board to anybody.

One folder for all boards, <state>/maintenance/boardN.json, beside the records of claims (claim_records.py), which tell
of boards that somebody has. A file is there from before the database says that the board is out of use until it is
about to say that it is not. A file names its board: what another board's says in its place is believed of neither, and
both are given to nobody by a database that calls them free.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from ...claims import record_files
from ...claims.record_files import LATEST
from ...core.errors import HeteroError
from ...core.json_file import read_object
from ...core.printable import brief
from ...core.typed_keys import is_text
from ...site.board_states import ERROR, MAINTENANCE
from .board_record_files import OTHERS, BoardRecordFiles

FOLDER = "maintenance"
#: Most characters of a reason: what a board last said may be in it.
LONGEST = 4000
#: The states of boards that are out of use. A file of an earlier release names none: it is of maintenance.
STATES = (MAINTENANCE, ERROR)
#: Text about a file that names another board. A file of an earlier release names none: it belongs to its place.
ANOTHERS = "{path} is a record of board{of}, not of board{board}, and nothing of it is believed"
#: Text about a board whose place has no file, and whose file lies elsewhere.
ELSEWHERE = "{path} is a record of board{board}, whose place has none"
REMOVE = "board{of} has its own: remove this one"
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


class MaintenanceRecords(BoardRecordFiles):
    """The files of all boards of a node that are out of use and that nobody has; root alone may read them."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        #: The contents of files that were read, by path, inode and times: for each board without a file all are read.
        self._said: dict[tuple[str, int, int], tuple[int, OutOfUse] | None] = {}

    def read(self, board: int) -> OutOfUse | None:
        """Return what a board's file says; None without a file. One that cannot be read counts as maintenance."""
        path = self.path(board)
        if not os.path.lexists(path):
            return None
        found = _read(path, board)
        if found is None:
            return OutOfUse(f"{path} cannot be read", 0.0)
        of, out = found
        return out if of == board else OutOfUse(ANOTHERS.format(path=path, of=of, board=board), 0.0, of=of)

    def named_in(self, board: int) -> int | None:
        """Return the other board that the file in a board's place names; None where there is none, or its own."""
        out = self.read(board)
        return out.of if out else None

    def has_own(self, board: int) -> bool:
        """Return whether the file in a board's place is its own, and can be read."""
        found = _read(self.path(board), board)
        return found is not None and found[0] == board

    def elsewhere(self, board: int) -> OutOfUse | None:
        """Return that a board's record lies elsewhere than in its place, and the state that it has; None for none."""
        there = self._elsewhere(board)
        if not there:
            return None
        path, out = there[0]
        return OutOfUse(ELSEWHERE.format(path=path, board=board), out.since, out.state)

    def misplaced(self, board: int) -> str | None:
        """Return what is said where another board's record lies in a board's place, or where the board's own lies
        elsewhere and its place has none, and what to do; else None.
        """
        out = self.read(board)
        if out is not None and out.of is not None:
            copy = self.has_own(out.of)
            return f"{out.reason}: {REMOVE.format(of=out.of) if copy else self.way_back(self.path(board), out.of)}"
        there = self._elsewhere(board) if out is None else []
        if not there:
            return None
        path = there[0][0]
        place = next(iter(self.place_of(path)), None)
        way = self.way_back(path, board) if place is None else OTHERS.format(first=place)
        return f"{ELSEWHERE.format(path=path, board=board)}: {way}"

    def write(self, board: int, out: OutOfUse) -> None:
        """Write a board's file, whole or not at all; keep another board's that lies there."""
        self.put_aside(board)
        fields = {name: value for name, value in asdict(out).items() if name != "of"}
        record_files.write(self.path(board), dict(fields, board=board))

    def remove(self, board: int) -> None:
        """Remove a board's file, for good, and what writers of it that were killed have left.

        Another board's that lies there is kept, under another name.
        """
        if not self.put_aside(board):
            record_files.remove(self.path(board))

    def forget(self, board: int, state: str) -> None:
        """Remove a board's records of a state that is over which lie elsewhere than in its place."""
        for path, out in self._elsewhere(board):
            if out.state == state:
                record_files.remove(path)

    def _elsewhere(self, board: int) -> list[tuple[str, OutOfUse]]:
        """Return [(path, OutOfUse)] of a board's records in other places than its own; what counts is the first."""
        found = []
        for path in [*map(self.path, self.boards()), *self.strays()]:
            known = self._known(path)
            if known and known[0] == board and path != self.path(board):
                found.append((path, known[1]))
        return sorted(found, key=lambda one: (one[1].state == MAINTENANCE, one[1].since), reverse=True)

    def _known(self, path: str) -> tuple[int, OutOfUse] | None:
        """Return what _read does, of a file that was not changed since from memory."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        key = (path, found.st_ino, found.st_ctime_ns)
        if key not in self._said:
            self._said[key] = _read(path)
        return self._said[key]


def _read(path: str, board: int | None = None) -> tuple[int, OutOfUse] | None:
    """Return (id of the board that a file names, what it says of it); None where it cannot be read.

    :param board: the board that a file of an earlier release is of, which names none.
    """
    try:
        found = read_object(path, "")
        state = found.get("state", MAINTENANCE)
        reason, since, of = found["reason"], float(found["since"]), found.get("board", board)
        if not is_text(reason) or not 0 <= since < LATEST or isinstance(of, bool) or not isinstance(of, int):
            return None
        return of, OutOfUse(brief(reason, LONGEST), since, state if state in STATES else MAINTENANCE)
    except (HeteroError, KeyError, TypeError, ValueError, OverflowError):
        return None
