# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test what outlets feed, one at a time: switch one on, see who asks to boot, switch it off, and read back before the
next. What is on, or may be somebody's, is not switched.

cabling.py tests the outlets that the wiring names, and learning.py those of which nobody knows what they feed.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ContextManager, Generic, Iterable, Mapping, Sequence

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused
from ...core.locks import lock
from ...core.plays import play
from ...drivers.boot.driver import FILES, FIRMWARE, SYSTEM
from ...drivers.boot.registry import BootDrivers
from ...drivers.power.outlets import OutletsFailed, session, set_outlets
from ...site import board_states
from ..evidence.free_boards import left_by, told_if_served
from ..power import pdu_names, presence
from ..power.last_outlet import Feeds
from ..power.pdu_loop import PDU
from ..records.board_records import TO_BE
from ..records.store import why_not_free
from ..work.board_work import BoardWork
from .findings import FAILED, NOTHING, ON, SEVERAL, SKIPPED, UNSURE, UNTESTED, Finding, W
from .sightings import Sightings

if TYPE_CHECKING:
    from ...drivers.boot.driver import BootDriver
    from ...drivers.power.outlets import Session
    from ...site.boards_file import Board
    from ..records.board_records import Event, Record
    from ..records.proxy import Proxy
    from .sightings import Requests

PHASE = "cabling"
#: The name of the lock: two who test outlets at once would take each other's boards for theirs.
TURN = "cabling"
#: Seconds after the first board's request within which others of the same outlet ask, too: they get power at the same
#: time, and the same firmware takes about the same time to ask.
SETTLE = 1.0
#: Until when a board is not tested: one that shows its key has power, so an outlet that is off does not feed it.
UNTIL = "tested while {who} runs and shows its key, for then an outlet that is off is another; or once {adopt}"
#: Seconds that a board takes beside the wait for it: two short PDU sessions, and the wait for another's session.
BESIDES = 30.0
#: Seconds after a test was cut off within which another takes for its own what that left on. Later somebody may have
#: switched the outlet off and on again by hand, of which there is no event.
FRESH = 1800.0
#: The text of the event before switching on. Where it is a board's newest, a check was cut off and left the outlet on.
OURS = f"{{outlet}} {TO_BE.format(state='on')} for the cabling check"


@dataclass(frozen=True)
class Options:
    """Options of the tests.

    :param timeout: seconds from power on within which a board must ask to boot.
    :param check: switch nothing (check mode).
    """

    timeout: float
    check: bool = False

    def must_be_right(self) -> None:
        """Raise BadInput for options that nobody can mean."""
        if self.timeout < 1:
            raise BadInput(f"is {self.timeout:g}", "timeout", "give at least 1 s")

    def limit(self, boards: int) -> float:
        """Return the most seconds that the tests of so many outlets can take."""
        return boards * (self.timeout + SETTLE + BESIDES) + PDU


class OutletTests(ABC, Generic[W]):
    """Tests of outlets, one after the other.

    :param works: the work on each outlet.
    """

    #: What is said of an outlet that was found on.
    is_on: str

    def __init__(self, proxy: Proxy, works: Sequence[W], options: Options) -> None:
        self.proxy = proxy
        self.options = options
        self.findings = [Finding(work) for work in works]
        self.seen = Sightings(proxy)
        self._drivers = BootDrivers(proxy)
        self._down: dict[str, HeteroError] = {}  # PDU that does not answer: its error
        #: Ids of free boards that had power before an outlet was switched on: what they ask tells of no outlet.
        self.powered: set[int] = set()
        #: Whether an outlet was switched, or in check mode would be.
        self.switched = False

    # ---- what the outlets' kind says

    @abstractmethod
    def _turn(self, work: W) -> ContextManager[Any]:
        """Return a context in which nobody else works on what the outlet is known to feed."""

    @abstractmethod
    def _whose(self, work: W) -> str | None:
        """Return why the outlet is left as it is, before anything is asked; None for one that may be tested."""

    @abstractmethod
    def _unknown(self, feeds: Feeds, work: W) -> dict[int, str | None]:
        """Return {board id: its instance, None where that is not known} of boards that any outlet may feed."""

    @abstractmethod
    def _doubt(self, feeds: Feeds, work: W, unknown: Mapping[int, str | None]) -> object:
        """Return, in words, that an outlet may feed these boards."""

    @abstractmethod
    def _one(self, finding: Finding[W], board: Board, how: str) -> tuple[str, str]:
        """Return verdict and text of an outlet that one board came up by.

        :param how: the evidence, in words.
        """

    @abstractmethod
    def _unread(self, work: W, outlets: Mapping[str, str]) -> HeteroError | None:
        """Return the error of an outlet that its PDU does not have, or does not say on or off of; else None."""

    @abstractmethod
    def _newest(self, work: W) -> Event | None:
        """Return the newest event of a switching of the outlet, or of its board; None where there is none."""

    @abstractmethod
    def _note(self, work: W, text: str) -> None:
        """Write down what is done to an outlet, for a test that takes up where this one was killed."""

    def _switched(self, work: W, state: str) -> None:
        """Tell whoever acts on what the outlet feeds that it was switched."""

    # ---- all outlets

    def run(self) -> None:
        with ExitStack() as stack:
            if not self.options.check:
                folder, actor = self.proxy.config.run_folder, self.proxy.actor
                stack.enter_context(lock(folder, TURN, PHASE, actor, Deadline(PDU), self._waits))
                self._watch(stack)
            for finding in self._in_turn():
                work = finding.work
                with self._turn(work):
                    if work.over:
                        self._say(finding, FAILED, str(work.error))
                    else:
                        self._test(finding)

    def _waits(self, text: str) -> None:
        for finding in self.findings[:1]:
            finding.work.say("wait", text)

    def _in_turn(self) -> Iterable[Finding[W]]:
        """Return the outlets as they are tested, one after the other."""
        return self.findings

    def _watch(self, stack: ExitStack) -> None:
        for driver, boards in self._by_driver().items():
            stack.enter_context(driver.watch(boards, self.seen.request))

    def _by_driver(self) -> dict[BootDriver, list[Board]]:
        by_driver: dict[BootDriver, list[Board]] = {}
        for board in self.proxy.boards.values():
            by_driver.setdefault(self._drivers.to_watch(board), []).append(board)
        return by_driver

    def _say(self, finding: Finding[W], verdict: str, text: str, seconds: float | None = None) -> None:
        finding.verdict, finding.text, finding.seconds = verdict, text, seconds
        finding.work.say(PHASE, text, seconds)

    # ---- one outlet

    def _ours(self, work: W) -> bool:
        """Return whether a test that was cut off just before left on the very outlet."""
        newest = self._newest(work)
        return newest is not None and newest.text == self._to_be(work) and 0 <= time.time() - newest.time <= FRESH

    def _test(self, finding: Finding[W]) -> None:
        work = finding.work
        name, whose = work.outlet_name, self._whose(work)
        if whose:
            self._say(finding, SKIPPED, f"not tested: {whose}")
            return
        try:
            before = self._status(work)
            if before == "on" and not self._ours(work):
                self._say(finding, ON, self.is_on.format(name=name))
                return
            lost = self._may_feed(work, before)
            if lost:
                self._say(finding, SKIPPED, f"not tested: {lost}")
            elif self.options.check:
                self.switched = True
                self._say(finding, UNTESTED, f"{name} would be switched on until a board asks to boot, then off")
            else:
                if before == "on":
                    self._switch(work, "off")
                self._look(finding)
        except OutletsFailed as error:
            self._say(finding, FAILED, str(error))
        except HeteroError as error:
            if not isinstance(error, (BadInput, Refused)):  # those are of this outlet alone
                self._down.setdefault(work.pdu, error)
            self._say(finding, FAILED, str(error))

    def _taken(self, board: Board, record: Record) -> str | None:
        """Return why a board is not touched; None for a free one.

        A board in state error may be so because of its cable, so it is tested. One that somebody has, or that is in
        maintenance, is not touched.
        """
        if record.claim or record.state not in (board_states.POWER_OFF, board_states.ERROR):
            return why_not_free(record, time.time())
        return self._left_by(board, record)

    def _left_by(self, board: Board, record: Record) -> str | None:
        """Return why a board without a claim may be somebody's, whose system is not to be cut while it boots."""
        return left_by(self.proxy, board, record) or told_if_served(self.proxy, board)

    def _may_feed(self, work: W, power: str) -> str | None:
        """Return why an outlet may feed a board with a tenant whose recorded outlet is lost; None where it does not.

        :param power: the outlet's state as it was just read. An outlet that is off feeds no board that shows its key.
        """
        feeds = self._feeds()
        unknown = self._unknown(feeds, work)
        if power == "off":
            unknown = {board: name for board, name in unknown.items() if not self._runs(board)}
        if not unknown:
            return None
        who = "it" if len(unknown) == 1 else "each of them"
        return f"{self._doubt(feeds, work, unknown)}: {UNTIL.format(who=who, adopt=self._is_told(unknown))}"

    def _feeds(self) -> Feeds:
        return Feeds(self.proxy)

    def _is_told(self, unknown: Mapping[int, str | None]) -> str:
        """Return, in words, when it is known by which outlets these boards have their power."""
        names = [name for name in unknown.values() if name]
        if names:
            return f"{play('reconcile', adopt=','.join(names))} took the wiring's word"
        return f"{play('reconcile')} finds nothing wrong with the record"

    def _runs(self, number: int) -> bool:
        """Return whether a board shows the key of its claim just now."""
        if number not in self.proxy.boards:
            return False
        work = BoardWork(self.proxy, self.proxy.board(number), Change(self.options.check))
        work.record = self.proxy.store.record(number)
        with suppress(HeteroError):
            work.driver = self._drivers.of(work.board)
            return presence.shown(work) == presence.OWN_KEY
        return False

    def _look(self, finding: Finding[W]) -> None:
        """Switch the outlet on, wait for boards that ask to boot, switch it off, and judge the result."""
        work = finding.work
        start = time.monotonic()
        self.seen.begin()
        self._note(work, self._to_be(work))
        seen_on = False
        try:
            self._switch(work, "on")
            powered, seen_on = time.monotonic(), True
            work.say(PHASE, f"{work.outlet_name}: on, read back; who asks to boot?")
            requests = self._requests(Deadline(self.options.timeout))
            consoles = [board for board in self.seen.consoles() if board not in self._busy() | self.powered]
        finally:
            self._off_again(work, seen_on)
        self._judge(finding, requests, consoles, powered, time.monotonic() - start)

    def _requests(self, deadline: Deadline) -> dict[int, float]:
        """Return {board id: monotonic time of its boot request}; end at once where a board that somebody has asks."""

        def told(requests: Requests) -> dict[int, float]:
            busy = self._busy()
            return {
                board: min(kinds.values())
                for board, kinds in requests.items()
                # A board in use may renew its address or fetch files, so only its firmware's requests count.
                if board not in self.powered
                and (FIRMWARE in kinds or (board not in busy and kinds.keys() & {*FILES, SYSTEM}))
            }

        came = told(self.seen.wait(deadline, told))
        if came and not self._busy() & set(came):
            came = told(self.seen.wait(Deadline(SETTLE), lambda requests: self._busy() & set(told(requests))))
        return came

    def _busy(self) -> set[int]:
        """Return the ids of boards that somebody has by now."""
        records = self.proxy.store.records(list(self.proxy.boards))
        return {
            board for board, record in records.items() if record.claim or self._left_by(self.proxy.board(board), record)
        }

    def _judge(
        self, finding: Finding[W], requests: dict[int, float], consoles: list[int], powered: float, seconds: float
    ) -> None:
        name, came = finding.work.outlet_name, sorted(requests)
        how = f"boot request after {max(0.0, min(requests.values()) - powered):.1f} s" if requests else ""
        if not came:
            # A console alone is weaker evidence: it may be cabled wrongly itself.
            came, how = consoles, "no boot request, but its console's log grew"
        finding.found = came
        names = " and ".join(f"board{board}" for board in came)
        claims = [self.proxy.store.record(board).claim for board in came]
        owners = ", ".join(claim.instance for claim in claims if claim)
        if owners:
            text = f"{names} ({owners}) asked to boot meanwhile, perhaps by itself; off at once: run this again later"
            self._say(finding, UNSURE, text, seconds)
        elif len(came) == 1:
            self._say(finding, *self._one(finding, self.proxy.board(came[0]), how), seconds)
        elif came:
            self._say(finding, SEVERAL, f"{name} feeds {names}: {how}", seconds)
        else:
            self._say(finding, *self._none(finding), seconds)

    def _none(self, finding: Finding[W]) -> tuple[str, str]:
        """Return verdict and text of an outlet that no board came up by."""
        nothing = f"feeds nothing that boots: no boot request within {self.options.timeout:g} s"
        return NOTHING, f"{finding.work.outlet_name} {nothing}"

    # ---- its switching

    def _session(self, work: W) -> ContextManager[Session]:
        if work.pdu in self._down:
            raise self._down[work.pdu]
        settings, secrets = self._pdu(work.pdu)
        tell = None if self.options.check else partial(work.say, "wait")
        run_folder = self.proxy.config.run_folder
        return session(work.pdu, settings, secrets, Deadline(PDU), run_folder, self.proxy.actor, tell)

    def _pdu(self, name: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return settings and secrets of a PDU."""
        return self.proxy.pdu(name)

    def _status(self, work: W) -> str:
        with self._session(work) as pdu:
            outlets = pdu.status()
        error = self._unread(work, outlets)
        if error is not None:
            raise error
        work.power_seen(outlets[work.outlet])
        return outlets[work.outlet]

    def _switch(self, work: W, state: str) -> None:
        """Switch the outlet and read it back, in a short session: others may need the PDU while a board boots."""
        self.switched = True
        with self._session(work) as pdu:
            set_outlets(pdu, {work.outlet: state}, Deadline(PDU))
        work.power_seen(state)
        self._switched(work, state)

    def _off_again(self, work: W, seen_on: bool = True) -> None:
        """Switch the outlet off and read it back; a board whose outlet may still be on is kept out of use.

        :param seen_on: whether it was on by the test. If not, another test does not take for its own what is on later.
        """
        try:
            self._switch(work, "off")
        except HeteroError as error:
            if not seen_on:
                self._note(work, f"{work.outlet_name} was not seen on, and may be on by the test all the same")
            work.move(board_states.ERROR, f"perhaps left on by the cabling check: {error}")
            raise
        self._note(work, f"{work.outlet_name} was switched off again")

    def _to_be(self, work: W) -> str:
        """Return the text of the event before switching on; it has the PDU's host, for a name may be reused later."""
        host = pdu_names.address(self.proxy.config.pdus.get(work.pdu, {}))
        known = host and not host.startswith("/")
        return OURS.format(outlet=f"{work.outlet_name} ({host})" if known else work.outlet_name)
