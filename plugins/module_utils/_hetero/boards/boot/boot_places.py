# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many boards of a proxy node boot at the same time, all its plays together: a link and a TFTP server that too many
share serve each of them later than its firmware waits.

A place is a file with a flock, which the kernel drops with its process. Who waits has a ticket, a file of that kind
that is named for the seconds since the machine was started: the oldest one gets the next place, and whoever wants
another takes a new ticket. So a request for many boards does not make one for a single board wait for all of them.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

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
        return max(FEWEST, int(speed * 1e6 / 8 / RATE)) if speed > 0 else None
    return None


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
        self._drop_ticket()

    @property
    def held(self) -> list[int]:
        """The ids of the boards that have a place."""
        return list(self._held)

    def take(self, board: int) -> bool:
        """Take a place for a board, if one is free and nobody waits for longer; return whether it may boot.

        It may where no place can be written down, such as on a full disk.
        """
        if self._limit is None or board in self._held:
            return True
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if self._is_next():
                for number in range(self._limit):
                    place = _locked(os.path.join(self._folder, f"{PLACE}{number}"))
                    if place is not None:
                        self._held[board] = place
                        self._drop_ticket()
                        return True
            self._queue()
        except OSError:
            return True
        return False

    def leave(self, board: int) -> bool:
        """Give a board's place back; return False where it has none."""
        place = self._held.pop(board, None)
        if place is not None:
            os.close(place)
        return place is not None

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
        self._drop_ticket()
        name = f"{TICKET}{time.monotonic_ns():020d}-{os.getpid()}"
        ticket = _locked(os.path.join(self._folder, name))
        self._ticket = None if ticket is None else (name, ticket)

    def _drop_ticket(self) -> None:
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
