# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many outlets of a PDU are switched on within one second: power supplies that charge at the same time may trip a
breaker, and then all that it feeds goes dark.

When outlets were last switched on lies in the run folder, so that a session keeps the pace of the one before.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, List

from ...core.errors import BadInput, HeteroError, TimedOut
from ...core.json_file import read_text
from ...files.whole_file import write_whole

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .driver import Answer

#: Switches outlets on, all at once.
Switch = Callable[[List[str]], "dict[str, Answer]"]

Say = Callable[[str], None]

#: The folder below the run folder that holds a file for each PDU with a limit.
FOLDER = "pdu-inrush"
#: Seconds to which a limit belongs. Power supplies charge within a tenth of one.
SECOND = 1.0
#: Seconds that are left for reading back what was switched, or this part of a shorter deadline.
READING, PART = 2.0, 0.3
WAITS = "outlets wait for their turn, as {limit} a second are switched on (inrush)"


class NoTurn(TimedOut):
    """The time of outlets was up before their turn came.

    :param answers: those of the others, which were switched.
    """

    def __init__(self, what: str, name: str, answers: dict[str, Answer]) -> None:
        super().__init__(what, name, "raise its inrush or the timeout, or ask for fewer at once")
        self.answers = answers


class Inrush:
    """The pace of one PDU. Who uses it holds the PDU's lock.

    :param name: the PDU's name.
    :param place: what the PDU is reached by, which is one for several names.
    :param limit: most outlets that are switched on within a second; None for no limit.
    :param say: is called with what is waited for.
    """

    def __init__(self, run_folder: str, name: str, place: str, limit: int | None, say: Say) -> None:
        if limit is not None and limit < 1:
            raise BadInput(f"its inrush {limit} lets no outlet be switched on", name, "give how many a second may be")
        self._path = os.path.join(run_folder, FOLDER, f"{place.replace('/', '_')}.json")
        self._name = name
        self._limit = limit
        self._say = say
        self._times: list[float] = []  # of this session, for a run folder that cannot be written to

    def switch_on(self, outlets: list[str], switch: Switch, deadline: Deadline) -> dict[str, Answer]:
        """Have outlets switched on, as many at a time as may be, and return their answers.

        :raises NoTurn: some have not had their turn shortly before the deadline.
        """
        if self._limit is None:
            return switch(outlets)
        answers: dict[str, Answer] = {}
        left = outlets
        while left:
            room = self._wait(self._limit, deadline)
            if not room:
                raise NoTurn(f"{WAITS.format(limit=self._limit)}, and their time was up", self._name, answers)
            portion, left = left[:room], left[room:]
            before = self._newest()
            self._keep(before, len(portion))  # for who comes after one that is killed
            try:
                answers.update(switch(portion))
            finally:  # a PDU that hung up over it may have obeyed
                self._keep(before, len(portion))
        return answers

    def _wait(self, limit: int, deadline: Deadline) -> int:
        """Wait until an outlet may be switched on; return how many may be, none where the deadline is near."""
        reading = min(READING, PART * deadline.seconds)
        while (room := limit - len(newest := self._newest())) <= 0:
            if deadline.left <= reading:
                return 0
            self._say(WAITS.format(limit=limit))
            deadline.nap(max(0.001, min(newest) + SECOND - time.time()))
        return room

    def _newest(self) -> list[float]:
        """Return when outlets were switched on within the last second (unix times). The clock may have been set back.
        """
        times: list[float] = []
        with suppress(OSError, HeteroError, ValueError, TypeError):
            times = [float(at) for at in json.loads(read_text(self._path))]
        now = time.time()
        newest = max(times, self._times, key=lambda known: max(known, default=0.0))
        return [at for at in newest if 0.0 <= now - at < SECOND]

    def _keep(self, before: list[float], switched: int) -> None:
        self._times = before + [time.time()] * switched
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            write_whole(self._path, json.dumps(self._times), 0o600)
