# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets made on, off or cycled, in one session with a PDU, and read back; one process at a time.

The PDU's driver knows how to speak to it, and boards/records/proxy.py which board an outlet feeds.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Iterator, List, Mapping, Optional, TypeVar

from ...core.deadline import LOOK_AGAIN
from ...core.errors import BadInput, Busy, HeteroError, Lost, TimedOut
from ...core.locks import lock
from ...core.printable import brief
from . import refusals
from .drawn import told
from .driver import Answer
from .inrush import Inrush, NoTurn
from .registry import driver_of
from .wait_notes import QUIET, Waiting

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .drawn import Drawn
    from .driver import PowerDriver

#: Result for an outlet: before, after, seconds.
Result = Dict[str, Any]
#: Is called with (outlet, before, after, seconds) when an outlet is done. `after` is None if it was not read back.
Report = Callable[[str, str, Optional[str], float], None]
#: Is called with outlets that are about to be switched; returns those that still are to be.
Still = Callable[[List[str]], List[str]]
T = TypeVar("T")

#: Seconds that an outlet has to show its new state. A PDU switches the relays of a batch one after another.
WINDOW = 10.0
#: Most outlets that a PDU may tell of: more than a rack of chained ones, or a group of BMCs, has.
MOST_OUTLETS = 10000
#: Most characters of an outlet's name or state: an address is such a name.
LONGEST = 200
#: In place of the answer that was lost.
OBEYED = Answer(True, "its session was lost over that")
#: Seconds between two attempts to log in, doubled from the first to the last value.
PAUSES = (0.1, 1.0)


class OutletsFailed(HeteroError):
    """Some outlets of a batch did not do what they should; the others did.

    :param results: {outlet: {before, after, seconds}} of the outlets that are as wanted.
    :param errors: {outlet: HeteroError} of the others.
    :param before: {outlet: state} of all outlets of the PDU before.
    """

    def __init__(self, results: dict[str, Result], errors: dict[str, HeteroError], before: dict[str, str]) -> None:
        self.results = results
        self.errors = errors
        self.before = before
        # A reason that holds for many outlets (a PDU that hangs) is said once.
        texts = dict.fromkeys(str(error) for error in errors.values())
        super().__init__("; ".join(texts), outlets={outlet: error.failure for outlet, error in errors.items()})


class Session:
    """A driver that is logged in. A busy PDU is waited for; one that hung or hung up is tried again until the deadline.

    :param turn: takes the PDU's lock, which is held to the end of the session.
    :param waiting: reports what is waited for.
    :param keep: makes a context in which what the PDU refuses is kept (refusals.py).
    :param inrush: keeps the pace in which outlets are switched on.
    """

    #: Is asked directly before each order, also before one that is repeated after a lost session.
    still: Still | None = None
    given = False  #: whether the last order was given, be it obeyed or not

    def __init__(
        self,
        driver: PowerDriver,
        deadline: Deadline,
        turn: Callable[[], object],
        waiting: Waiting,
        keep: Callable[[], ContextManager[None]] = nullcontext,
        inrush: Inrush | None = None,
    ) -> None:
        self._driver, self._deadline, self._keep, self._inrush = driver, deadline, keep, inrush
        self._turn: Callable[[], object] | None = turn
        self.waiting = waiting
        self._pause = PAUSES[0]
        self._said: HeteroError | None = None  #: the last error, of those since it last did what it was asked
        self.name = driver.name

    @property
    def dialect(self) -> str | None:
        return self._driver.dialect

    @property
    def window(self) -> float:
        """Return the seconds that an outlet has to show its new state."""
        return WINDOW if self._driver.window is None else self._driver.window

    @property
    def stuck(self) -> str:
        return self._driver.stuck

    def status(self) -> dict[str, str]:
        """Return {outlet: "on" | "off"}, read now."""
        with self._keep():
            status = self._ask("reading its outlets", self._driver.status)
            if len(status) > MOST_OUTLETS or any(len(outlet) > LONGEST for outlet in status):
                what = f"tells of {len(status)} outlets, or of one with a name that is longer than {LONGEST} characters"
                raise HeteroError(what, self.name, "see what answers at its address")
        return {outlet: brief(state, LONGEST) for outlet, state in status.items()}

    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        """Switch outlets and return {outlet: Answer}. It is repeated after a lost session, which does no harm.

        An outlet that is not to be switched any more (`still`) has no answer, and is not asked about again. One that
        follows an order over which the session was lost has obeyed it.
        """
        what = f"switching outlet{'s' * (len(outlets) > 1)} {', '.join(outlets)} {state}"
        left, self.given = outlets, False

        def order() -> dict[str, Answer]:
            nonlocal left
            seen = self._driver.status() if self.given else {}
            obeyed = [outlet for outlet in left if seen.get(outlet) == state]
            rest = [outlet for outlet in left if outlet not in obeyed]
            rest = self.still(rest) if self.still and rest else rest
            left, self.given = [*obeyed, *rest], self.given or bool(rest)
            answers = self._order(rest, state) if rest else {}
            return {outlet: answers[outlet] if outlet in rest else OBEYED for outlet in left}

        return self._ask(what, order)

    def drawn(self, outlets: list[str]) -> dict[str, Drawn]:
        """Return {outlet: Drawn} of what is known of them (drawn.py), which never fails."""
        return told(self._driver, self._deadline, outlets)

    def _order(self, outlets: list[str], state: str) -> dict[str, Answer]:
        if state == "off" or self._inrush is None:
            return self._driver.switch(outlets, state)
        return self._inrush.switch_on(outlets, lambda some: self._driver.switch(some, state), self._deadline)

    def take_turn(self) -> None:
        """Take the PDU's lock. States that were read before may come from another process's half-done work."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn()

    def begin(self) -> None:
        """Log in for the first time."""
        try:
            self.log_in()
        except HeteroError:
            with self._keep():
                raise

    def log_in(self) -> None:
        # A login after a lost session is the same wait: some drivers' logins ask nothing, and always succeed.
        if self._said is None:
            self.waiting.begin()
        while True:
            try:
                with self.waiting.long("the login"):
                    return self._driver.login()
            except TimedOut as error:
                raise self._given_up(error) from error
            except (Busy, Lost) as error:
                self._wait(error)

    def log_out(self) -> None:
        self._driver.logout()

    def _ask(self, what: str, question: Callable[[], T]) -> T:
        while True:
            try:
                with self.waiting.long(what):
                    answer = question()
                self._said = None
                return answer
            except TimedOut as error:
                raise self._given_up(error) from error
            except (Busy, Lost) as error:
                self._wait(error)
            self.log_in()

    def _wait(self, error: HeteroError) -> None:
        """Leave the PDU alone for a while, longer each time; raise TimedOut at the deadline."""
        # An error that the deadline caused says less than an earlier one. A wait may end a little before the deadline.
        if self._said is None or self._deadline.left >= LOOK_AGAIN:
            self._said = error
        self._driver.logout()
        self.waiting.say(self._said.what)
        pause = self._deadline.within(self._pause)
        while not pause.passed:
            pause.nap()
        self._pause = min(2 * self._pause, PAUSES[1])
        if self._deadline.passed:
            raise self._given_up(error) from error

    def _given_up(self, error: HeteroError) -> TimedOut:
        """Return the error after the deadline: what the PDU said last, rather than that it was cut off."""
        said = self._said if self._said and self._deadline.left < LOOK_AGAIN else error
        if isinstance(said, TimedOut):
            return said
        what = f"{said.what} (gave up after {self._deadline.seconds:g} s)"
        return TimedOut(what, said.thing, said.remedy, **said.facts)


@contextmanager
def session(
    name: str,
    settings: dict[str, Any],
    secrets: Mapping[str, Any],
    deadline: Deadline,
    run_folder: str,
    actor: str = "outlets",
    tell: Callable[[str], None] | None = None,
) -> Iterator[Session]:
    """Open the one session with a PDU: take its lock on this machine, log in, and log out at the end.

    A PDU that several can read at once is locked only to switch something.

    :param name: the PDU's name.
    :param settings, secrets: as of PowerDriver.
    :param run_folder: the lock lies below it.
    :param actor: whom other processes are told to wait for.
    :param tell: is called, from any thread, with what is waited for, if that takes long.
    :raises TimedOut: the lock or the PDU was not free before the deadline; the holder is named if it is known.
    """
    spoken = driver_of(str(settings.get("driver", "apc")), name)(name, settings, secrets, deadline)
    spoken.run_folder = run_folder
    waiting = Waiting(name, tell, deadline.seconds)
    place = f"pdu-{name.replace('/', '_')}"
    turn = lock(run_folder, place, "power", actor, deadline, waiting.say_at_once, QUIET)
    with ExitStack() as held:
        keep = partial(refusals.kept, run_folder, name, spoken.masked)
        inrush = Inrush(run_folder, name, settings, waiting.say)
        opened = Session(spoken, deadline, lambda: held.enter_context(turn), waiting, keep, inrush)
        if not spoken.readers:
            opened.take_turn()
        try:
            opened.begin()
            yield opened
        finally:
            opened.log_out()


def set_outlets(
    opened: Session,
    wanted: Mapping[str, str],
    deadline: Deadline,
    check: bool = False,
    report: Report | None = None,
    verify: bool = True,
    window: float | None = None,
) -> dict[str, Result]:
    """Make outlets "on", "off" or "cycled".

    Cycled is off read back and then on read back, never the PDU's own reboot, which leaves an off outlet off.

    :param opened: the session.
    :param wanted: {outlet: "on" | "off" | "cycled"}.
    :param check: only read, and return what would be.
    :param report: is called with (outlet, before, after, seconds) as each outlet is done.
    :param verify: read back. Without it `after` is None; the off of a cycle is read back in any case.
    :param window: seconds that an outlet has to show its new state; None for the driver's own.
    :returns: {outlet: {"before", "after", "seconds"}}, without outlets that the session leaves as they are (`still`).
    :raises OutletsFailed: some failed; the others were done, and their results are in it.
    """
    if not check:
        opened.take_turn()
    batch = _Batch(opened, deadline, report, opened.window if window is None else window)
    to_off, to_on = batch.plan(wanted, check)
    batch.switch(to_off, "off", verify, halfway=to_on)
    batch.switch([outlet for outlet in to_on if outlet not in batch.errors], "on", verify)
    if batch.errors:
        raise OutletsFailed(batch.results, batch.errors, batch.before)
    return batch.results


class _Batch:
    """The outlets of one PDU on their way to what is wanted."""

    def __init__(self, opened: Session, deadline: Deadline, report: Report | None, window: float) -> None:
        self._opened, self._deadline, self._report, self._window = opened, deadline, report, window
        self._start = time.monotonic()
        self.before = opened.status()
        self.results: dict[str, Result] = {}
        self.errors: dict[str, HeteroError] = {}

    def plan(self, wanted: Mapping[str, str], check: bool) -> tuple[list[str], list[str]]:
        """Return (outlets to turn off, outlets to turn on).

        A cycled one is in both. Others are done already, or wrong.
        """
        to_off, to_on = [], []
        for outlet, state in wanted.items():
            before = self.before.get(outlet)
            if before is None:
                what = f"no such outlet (it has {', '.join(self.before)})"
                self.errors[outlet] = BadInput(what, self._thing(outlet), "correct the outlet")
            elif before == state or check:
                self._done(outlet, "off" if state == "off" else "on")
            else:  # an outlet that is neither on nor off (pending) is switched like one in the other state
                if state != "on" and before != "off":
                    to_off.append(outlet)
                if state != "off":
                    to_on.append(outlet)
        return to_off, to_on

    def switch(self, outlets: list[str], state: str, verify: bool, halfway: list[str] | tuple[str, ...] = ()) -> None:
        """Switch outlets at once and read back until each shows it. Those of `halfway` are not done by that."""
        if not outlets:
            return
        waiting, answers, status, at = list(outlets), None, None, 0.0
        self._opened.waiting.begin()
        ordered = self._deadline.within(self._deadline.left)
        try:
            try:
                answers = self._opened.switch(waiting, state)
            except NoTurn as error:
                answers = error.answers
                self.errors.update({outlet: error for outlet in waiting if outlet not in answers})
            waiting = [outlet for outlet in waiting if outlet in answers]
            limit = self._deadline.within(self._window)
            if not verify:
                for outlet in set(waiting) - set(halfway):
                    waiting.remove(outlet)
                    self._done(outlet, None)
            while waiting:
                began, status, at = limit.spent, self._opened.status(), ordered.spent
                # Without time for another reading the last one counts, rather than one that the deadline would cut off.
                late = limit.left < LOOK_AGAIN + 2 * (limit.spent - began)
                for outlet in list(waiting):
                    seen = status.get(outlet)
                    if seen == state and outlet not in halfway:
                        self._done(outlet, state)
                    elif seen != state and (late or not answers[outlet].accepted):
                        self.errors[outlet] = self._not_switched(outlet, seen, state, at, limit, answers[outlet])
                    elif seen != state:
                        continue
                    waiting.remove(outlet)
                if waiting:
                    self._opened.waiting.say(f"not yet read as {state}: outlet {', '.join(waiting)}")
                    limit.nap()
        except HeteroError as error:
            # The session is over for good, so all outlets that were not read back have failed.
            if answers is None and self._opened.given and isinstance(error, TimedOut):
                busy = isinstance(error.__cause__, Busy)  # and obeyed nothing
                error = error if busy else self._unknown(waiting, state, error)
            for outlet in waiting:
                self.errors[outlet] = error
                if answers and self._deadline.passed and isinstance(error, TimedOut):
                    seen = None if status is None else status.get(outlet)
                    self.errors[outlet] = self._not_read(outlet, seen, state, at, answers[outlet])

    def _done(self, outlet: str, after: str | None) -> None:
        seconds = round(time.monotonic() - self._start, 3)
        self.results[outlet] = {"before": self.before[outlet], "after": after, "seconds": seconds}
        if self._report is not None:
            self._report(outlet, self.before[outlet], after, seconds)

    def _not_switched(
        self, outlet: str, seen: str | None, state: str, at: float, limit: Deadline, answer: Answer
    ) -> HeteroError:
        if answer.error is not None:
            return answer.error
        what = f"still {seen} {round(at, 1):g} s after '{state}' (PDU said {answer.words or 'nothing'})"
        remedy = self._opened.stuck if answer.accepted else "check what this account may do"
        if limit.seconds < self._window:
            remedy += ", or raise timeout"
        return HeteroError(what, self._thing(outlet), remedy, seen=seen)

    def _not_read(self, outlet: str, seen: str | None, state: str, at: float, answer: Answer) -> TimedOut:
        """Return the error of a reading that the deadline cut off: what was read before counts.

        :param seen: the state in the last complete reading, `at` seconds after the command; None if there was none.
        """
        said, remedy = f"(PDU said {answer.words or 'nothing'})", "raise timeout, or look at the PDU"
        if seen is None:
            what = f"was {self.before[outlet]} before '{state}' {said}, and not read again when the time was up"
        else:
            what = f"still {seen} {round(at, 1):g} s after '{state}' {said}, when the time was up"
        return TimedOut(what, self._thing(outlet), remedy, seen=seen or self.before[outlet])

    def _unknown(self, outlets: list[str], state: str, error: TimedOut) -> TimedOut:
        """Return the one error of all outlets if the PDU was lost during the command."""
        what = f"'{state}' may have been carried out or not, as the PDU was lost over it: {error.what}"
        thing = f"outlet{'s' * (len(outlets) > 1)} {', '.join(outlets)} of {self._opened.name}"
        return TimedOut(what, thing, error.remedy, **error.facts)

    def _thing(self, outlet: str) -> str:
        return f"outlet {outlet} of {self._opened.name}"
