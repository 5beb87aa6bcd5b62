# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders with one file for each board, boardN.json, which names its board itself, so that one that lies in another
board's place is told, with a command for it which no other one undoes.
"""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import time
from abc import ABC, abstractmethod

from ...core.errors import naming
from ...core.this_node import THIS_NODE

NAME = re.compile(r"board(0|[1-9][0-9]*)\.json")
#: Names of temporary files while a record is written (files/whole_file.py).
SCRATCH = re.compile(r"\..*~")
#: Boards whose records lie in each other's places are put right by one command, which is said of the first of them.
OTHERS = "what is said of board{first} brings it to its place"


class BoardRecordFiles(ABC):
    """The files of all boards of a node in one folder, of which each kind knows what they say."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @abstractmethod
    def named_in(self, board: int) -> int | None:
        """Return the other board that the file in a board's place names; None where there is none, or its own."""

    @abstractmethod
    def has_own(self, board: int) -> bool:
        """Return whether the file in a board's place is its own, and can be read."""

    def misfiled_as(self, board: int) -> int | None:
        """Return the board whose record lies in a board's place instead of its own, and nowhere else, or None."""
        of = self.named_in(board)
        return None if of is None or self.has_own(of) else of

    def put_aside(self, board: int) -> bool:
        """Give the file in a board's place another name if it is another board's; return whether that was done.

        It may be the only record of that board, or the newest. If that board's own place has the same record, this file
        keeps its name.
        """
        path, of = self.path(board), self.named_in(board)
        if of is None:
            return False
        with naming(path):
            if self.has_own(of) and filecmp.cmp(path, self.path(of), shallow=False):
                return False
            os.rename(path, f"{path}.of-board{of}.{time.time_ns()}")
        return True

    def path(self, board: int) -> str:
        """Return the path of a board's file, whether it exists or not."""
        return os.path.join(self.folder, f"board{board}.json")

    def boards(self) -> list[int]:
        """Return the ids of the boards of which there is a file."""
        return sorted(int(found[1]) for found in map(NAME.fullmatch, self._names()) if found)

    def strays(self) -> list[str]:
        """Return the paths of other files in the folder, whose names are none of records and which nothing reads."""
        names = [name for name in self._names() if not (NAME.fullmatch(name) or SCRATCH.fullmatch(name))]
        return [os.path.join(self.folder, name) for name in sorted(names)]

    def place_of(self, path: str) -> list[int]:
        """Return [id of the board in whose place a record lies]; an empty list for a record in no board's place."""
        return [board for board in self.boards() if self.path(board) == path]

    def ring(self, path: str) -> list[int]:
        """Return boards whose places form a ring: each has the record of the next board, the last that of the first.

        :param path: where a record lies. No boards are returned if it goes to a place without another board's record.
        :returns: their ids, the lowest first.
        """
        start = next(iter(self.place_of(path)), None)
        found: list[int] = []
        board = start
        while board is not None and board not in found:
            found.append(board)
            board = self.misfiled_as(board)
        lowest = found.index(min(found)) if found and board == start else 0
        return found[lowest:] + found[:lowest] if found and board == start else []

    def way_back(self, path: str, board: int) -> str:
        """Return the command by which a person moves a board's record to its place; a file that lies there is kept.

        Where the places of several boards have each other's records in a ring, one command moves all of them. It is
        said of the first of them only.

        :param path: where the record lies.
        """
        ring, first = self.ring(path), self.misfiled_as(board)
        if ring and self.path(ring[0]) != path:
            return OTHERS.format(first=ring[0])
        if ring:
            spare = f"{path}.moved"
            places = [self.path(one) for one in ring]
            moves = [(path, spare), *zip(places[:0:-1], [path, *places[:1:-1]]), (spare, places[1])]
            return f"run on {THIS_NODE}: {' && '.join(_move(*move) for move in moves)}"
        own = self.path(board)
        if first is not None:
            return f"first see to {own}, which is a record of board{first}"
        return f"run on {THIS_NODE}: {_move(path, own)}"

    def _names(self) -> list[str]:
        with naming(self.folder):
            return os.listdir(self.folder) if os.path.isdir(self.folder) else []


def _move(path: str, to: str) -> str:
    return f"mv --backup=numbered {shlex.quote(path)} {shlex.quote(to)}"
