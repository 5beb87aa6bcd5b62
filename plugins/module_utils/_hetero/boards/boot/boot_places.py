# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many boards of a proxy node boot at the same time, all its plays together: a link and a TFTP server that too many
share serve each of them later than its firmware waits.

A place is a file with a flock, which the kernel drops with its process. Who waits has a ticket, a file of that kind
that is named for the seconds since the machine was started: the oldest one gets the next place, and whoever wants
another takes a new ticket. So a request for many boards does not make one for a single board wait for all of them.
A play that does not follow its boards writes into a place until when it is theirs.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from typing import Collection

#: The folder below the run folder.
FOLDER = "boots"
PLACE, TICKET = "place-", "ticket-"
#: Bytes a second that a board loads by TFTP where it has the link for itself: 32 MB in 3.18 s, measured on the lab.
RATE = 10e6
#: Fewest boards that are let in by the speed of a link: some are silent, and load nothing.
FEWEST = 4
#: The kernel's file with a network interface's speed in Mbit/s; -1 or an error where it has none.
SPEED = "/sys/class/net/{interface}/speed"


def usual(interface: str) -> int | None:
    """Return how many boards fill the link of an interface, FEWEST at least; None where its speed is not known."""
    with suppress(OSError, ValueError), open(SPEED.format(interface=interface), encoding="ascii") as file:
        speed = int(file.read())
        return filling(speed) if speed > 0 else None
    return None


def filling(speed: int) -> int:
    """Return how many boards fill a link of so many Mbit/s, FEWEST at least."""
    return max(FEWEST, int(speed * 1e6 / 8 / RATE))


class BootPlaces:
    """The places that one loop has, and its ticket for the next one.

    :param limit: most boards that boot at the same time; None for no limit.
    """

    def __init__(self, run_folder: str, limit: int | None) -> None:
        self._folder = os.path.join(run_folder, FOLDER)
        self._limit = limit
        self._held: dict[int, int] = {}  # {board id: descriptor}
        self._ticket: tuple[str, int] | None = None  # (name, descriptor)

    def __enter__(self) -> BootPlaces:
        return self

    def __exit__(self, *exc: object) -> None:
        for board in list(self._held):
            self.leave(board)
        self.leave_line()

    @property
    def held(self) -> Collection[int]:
        """The ids of the boards that have a place."""
        return self._held.keys()

    def take(self, board: int) -> bool:
        """Take a place for a board, if one is free and nobody waits for longer; return whether it may boot.

        It may where no place can be written down, such as on a full disk.
        """
        if self._limit is None or board in self._held:
            return True
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if self._is_next() and self._take_free(board, self._limit):
                self.leave_line()
                return True
            self._queue()
        except OSError:
            return True
        return False

    def take_free(self, board: int) -> None:
        """Take a free place for a board that boots in any case, whoever waits."""
        if self._limit is not None and board not in self._held:
            with suppress(OSError):
                os.makedirs(self._folder, mode=0o700, exist_ok=True)
                self._take_free(board, self._limit)

    def leave(self, board: int, seconds: float = 0.0) -> bool:
        """Give a board's place back; return False where it has none.

        :param seconds: for so long nobody else has it, for the board boots on and nobody follows it.
        """
        place = self._held.pop(board, None)
        if place is None:
            return False
        with suppress(OSError):
            if seconds:
                os.pwrite(place, b"%d" % (time.monotonic_ns() + int(seconds * 1e9)), 0)
        os.close(place)
        return True

    def _take_free(self, board: int, limit: int) -> bool:
        """Take one of the first places; return False where none is free, those of a higher limit of before included."""
        places = [int(name[len(PLACE) :]) for name in os.listdir(self._folder) if name.startswith(PLACE)]
        if any(self._is_used(number) for number in places if number >= limit):
            if sum(self._is_used(number) for number in places) >= limit:
                return False
        for number in range(limit):
            place = self._free(number)
            if place is not None:
                self._held[board] = place
                return True
        return False

    def _is_used(self, number: int) -> bool:
        place = self._free(number)
        if place is not None:
            os.close(place)
        return place is None

    def _free(self, number: int) -> int | None:
        """Return the descriptor of a place that is this process's by now; None where it is another one's."""
        place = _locked(os.path.join(self._folder, f"{PLACE}{number}"))
        if place is None:
            return None
        until = os.pread(place, 20, 0)
        if until.isdigit() and int(until) > time.monotonic_ns():
            os.close(place)
            return None
        return place

    def _is_next(self) -> bool:
        """Return whether no ticket is older than this loop's, of those whose process lives."""
        own = self._ticket[0] if self._ticket else None
        for name in sorted(name for name in os.listdir(self._folder) if name.startswith(TICKET)):
            if name == own:
                return True
            ticket = _locked(os.path.join(self._folder, name), create=False)
            if ticket is None:
                return False
            with suppress(FileNotFoundError):  # its process has ended
                os.unlink(os.path.join(self._folder, name))
            os.close(ticket)
        return True

    def _queue(self) -> None:
        """Take a ticket, unless there is one that nobody took for a dead process's before it had its lock."""
        if self._ticket is not None and os.fstat(self._ticket[1]).st_nlink:
            return
        self.leave_line()
        name = f"{TICKET}{time.monotonic_ns():020d}-{os.getpid()}"
        ticket = _locked(os.path.join(self._folder, name))
        self._ticket = None if ticket is None else (name, ticket)

    def leave_line(self) -> None:
        """Let others go first: nothing of this loop waits."""
        if self._ticket is not None:
            name, ticket = self._ticket
            self._ticket = None
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, name))
            os.close(ticket)


def _locked(path: str, create: bool = True) -> int | None:
    """Return the descriptor of a file whose flock this process has now; None where another one has it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
