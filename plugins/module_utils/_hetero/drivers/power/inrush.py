# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many outlets of a PDU, or of each of its banks, are switched on within one second: power supplies that charge at
the same time may trip a breaker, and then all that it feeds goes dark.

When outlets were last switched on lies in the run folder, so that a session keeps the pace of the one before. All names
of one device share that (pdu_places.py), and switch one after the other, for their sessions may be open at the same
time.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Tuple

from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, TimedOut
from ...core.json_file import read_text
from ...core.locks import taken
from ...files.whole_file import write_hint
from ...site.pdu_banks import NAMED, banks_of
from .fence import is_by_address
from .pdu_places import place

if TYPE_CHECKING:
    from .driver import Answer

#: Switches outlets on, all at once.
Switch = Callable[[List[str]], "dict[str, Answer]"]

Say = Callable[[str], None]

#: When an outlet was switched on (unix time), and which; of which bank it is each name of the PDU knows by itself.
Noted = Tuple[float, str]

#: The folders below the run folder that hold a file for each address of a PDU with a limit, and a lock for it.
FOLDER, LOCKS = "pdu-inrush", "pdu-inrush-locks"
#: Most characters of an address that name its file. Two that end alike keep one pace.
LONGEST = 200
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
    """The pace of one PDU.

    :param name: the PDU's name.
    :param settings: its settings; their `inrush` is the most outlets that are switched on within a second: of each of
        their `banks`, and of what is in none of these.
    :param say: is called with what is waited for.
    """

    def __init__(self, run_folder: str, name: str, settings: Mapping[str, Any], say: Say) -> None:
        limit = settings.get("inrush")
        if limit is not None and limit < 1:
            raise BadInput(f"its inrush {limit} lets no outlet be switched on", name, "give how many a second may be")
        self._run_folder, self._name, self._settings = run_folder, name, settings
        self._limit: int | None = limit
        banks = banks_of(settings.get("banks") or [])
        if banks is None:
            raise BadInput("its banks are none", name, f"give {NAMED}")
        self._banks = banks
        self._say = say
        self._files: list[str] | None = None  # names of the files of all names of this device
        self._times: list[Noted] = []  # of this session, for a run folder that cannot be written to

    def switch_on(self, outlets: list[str], switch: Switch, deadline: Deadline) -> dict[str, Answer]:
        """Have outlets switched on, as many at a time as may be, and return their answers.

        :raises NoTurn: some have not had their turn shortly before the deadline.
        """
        if self._limit is None:
            return switch(outlets)
        answers: dict[str, Answer] = {}
        left = outlets
        while left:
            with ExitStack() as turn:
                portion = self._wait(turn, left, self._limit, deadline)
                if not portion:
                    raise NoTurn(f"{WAITS.format(limit=self._limit)}, and their time was up", self._name, answers)
                left = [outlet for outlet in left if outlet not in portion]
                before = self._newest()
                self._keep(before, portion)  # for who comes after one that is killed
                try:
                    answers.update(switch(portion))
                finally:  # a PDU that hung up over it may have obeyed
                    self._keep(before, portion)
        return answers

    def _wait(self, turn: ExitStack, outlets: list[str], limit: int, deadline: Deadline) -> list[str]:
        """Wait until some of the outlets may be switched on, and return these, none where the deadline is near.

        :param turn: has the locks of the PDU then, which nobody has while outlets wait for the second to be over.
        """
        reading = min(READING, PART * deadline.seconds)
        while True:
            newest: list[Noted] = []
            if self._take(turn, Deadline(deadline.left - reading)):
                newest = self._newest()
                portion = self._portion(outlets, limit, newest)
                if portion:
                    return portion
            turn.close()
            if deadline.left <= reading:
                return []
            self._say(WAITS.format(limit=limit))
            deadline.nap(max(0.001, min((at for at, _outlet in newest), default=0.0) + SECOND - time.time()))

    def _portion(self, outlets: list[str], limit: int, newest: list[Noted]) -> list[str]:
        """Return, in their order, those of the outlets that may be switched on now: so many of each bank."""
        room: dict[str, int] = {}
        for _at, noted in newest:
            bank = self._bank(noted)
            room[bank] = room.get(bank, limit) - 1
        portion = []
        for outlet in outlets:
            bank = self._bank(outlet)
            room[bank] = room.get(bank, limit) - 1
            if room[bank] >= 0:
                portion.append(outlet)
        return portion

    def _bank(self, outlet: str) -> str:
        return self._banks.get(outlet, "")

    def _take(self, turn: ExitStack, deadline: Deadline) -> bool:
        """Take the locks that all names of the PDU share; return False where another has one until the deadline."""
        for path in self._paths(LOCKS):
            with suppress(OSError):
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                turn.callback(os.close, file)
                if not taken(file, deadline):
                    return False
        return True

    def _paths(self, folder: str) -> list[str]:
        if self._files is None:  # only where it has a limit, for a name server may be asked
            here = None if is_by_address(self._settings) else place(self._settings)
            self._files = [f"{key.replace('/', '_')[-LONGEST:]}.json" for key in (here.keys if here else [self._name])]
        return [os.path.join(self._run_folder, folder, name) for name in self._files]

    def _newest(self) -> list[Noted]:
        """Return when outlets were switched on within the last second. The clock may have been set back."""
        noted = [self._times]
        for path in self._paths(FOLDER):
            with suppress(OSError, HeteroError, ValueError, TypeError):
                noted.append([(float(at), str(outlet)) for at, outlet in json.loads(read_text(path))])
        now = time.time()
        newest = max(noted, key=lambda known: max((at for at, _outlet in known), default=0.0))
        return [(at, outlet) for at, outlet in newest if 0.0 <= now - at < SECOND]

    def _keep(self, before: list[Noted], switched: list[str]) -> None:
        self._times = before + [(time.time(), outlet) for outlet in switched]
        for path in self._paths(FOLDER):
            write_hint(path, json.dumps(self._times))
