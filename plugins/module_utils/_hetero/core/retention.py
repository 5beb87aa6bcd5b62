# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much is kept of what grows on a node of either kind: events, copies of its database, files of jobs.

Each rule counts as well as dates: a clock that jumps makes everything old at once, and the newest stay all the same.
"""

from __future__ import annotations

from typing import Sequence

#: Days for which events are kept, where the node's configuration says nothing.
EVENTS_DAYS = 90
#: Newest events of a board, or of a GPU, that stay whatever their age: more than any verb looks back (cut_boots.MANY).
EVENTS_OF_EACH = 60
#: Newest events of a node that stay whatever their age: an hour of 1,000 boards that are claimed ten times a day.
EVENTS_NEWEST = 10_000
#: Events that one transaction removes, at most: it takes no longer than one that claims a board.
STEP = 100
#: Seconds between two such transactions, in multiples of what one took: others who write find the database free.
REST = 9.0
#: Seconds after which no further step begins; the next turn goes on.
TURN = 300.0

#: Newest copies of a database that stay in any case.
COPIES_NEWEST = 6
#: The newest copy of each hour stays for so many hours, that of each day for so many days. Those without a copy are not
#: counted.
COPIES_HOURS, COPIES_DAYS = 24, 31
#: Characters of a copy's stamp (20261127T173638Z) that are its day and its hour.
DAY, HOUR = 8, 11
#: Seconds between two copies of which SQLite checks indexes too; each of the others has every page checked.
WHOLE_CHECK = 86400.0

#: Seconds after which the file of a job that has ended is removed.
JOBS_AGE = 86400.0
#: Bytes that the files of all jobs take, at most: the oldest go first, for they lie in memory (/run).
JOBS_BYTES = 32 << 20
#: Seconds for which the file of a job stays however many there are: whoever follows it touches it (askers.LOST).
JOBS_FOLLOWED = 600.0


def surplus(stamps: Sequence[str]) -> list[int]:
    """Return the positions of the copies of a database that need not stay.

    :param stamps: UTC times of all copies (20261127T173638Z), in the order in which they were made.
    """
    kept = {*range(len(stamps))[-COPIES_NEWEST:]}
    for length, most in ((HOUR, COPIES_HOURS), (DAY, COPIES_DAYS)):
        newest = {stamp[:length]: position for position, stamp in enumerate(stamps)}
        kept.update(sorted(newest.values())[-most:])
    return [position for position in range(len(stamps)) if position not in kept]


def outgrown(sizes: Sequence[int], most: int) -> int:
    """Return how many files, from the first on, are too many.

    :param sizes: bytes of the files, the oldest first.
    :param most: bytes that they may take together.
    """
    total, number = sum(sizes), 0
    while number < len(sizes) and total > most:
        total -= sizes[number]
        number += 1
    return number
