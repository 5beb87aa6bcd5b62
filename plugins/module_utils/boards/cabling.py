# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which outlet feeds which board in truth: each free board's outlet is switched on, and whatever boots by it is named.

One outlet at a time, so that there is no doubt; the outlet is off again, and read back, before the next. Boards that
somebody has are never switched. What to write into the wiring afterwards is in rewiring.py.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

from ..boot.driver import FIRMWARE, NFS, SYSTEM, TFTP
from ..boot.registry import BootDrivers
from ..change import Change
from ..deadline import Deadline
from ..errors import BadInput, HeteroError
from ..plays import play
from ..power.outlets import OutletsFailed, session, set_outlets
from . import blame, presence, states
from .board_work import BoardWork, locked, no_outlet
from .claim_records import Fed
from .doubt import Doubt
from .feeding import Feeds
from .free import left_by
from .pdu_loop import PDU
from .recorded import SWITCH
from .rewiring import OTHER, corrected, headline
from .store import why_not_free

PHASE = "cabling"
#: How long others may come up after the first board (seconds): boards of one outlet start within a relay's bounce, and
#: like firmware asks after like time.
SETTLE = 1.0
#: A board that shows its key has its power by an outlet that is on.
UNTIL = "tested while {who} runs and shows its key, for then an outlet that is off is another; or once {adopt}"
#: What a board takes beyond the wait for it: two short PDU sessions, another's turn there (seconds).
BESIDES = 30.0
#: How the event before switching on ends; found as a board's newest, the check was cut off and the outlet is ours.
OURS = "for the cabling check"

RIGHT, SEVERAL, NOTHING, ON = "right", "several", "nothing", "on"
UNSURE, SKIPPED, FAILED, UNTESTED = "unsure", "skipped", "failed", "not tested yet"
#: Verdicts with which the check as a whole fails.
WRONG = (OTHER, SEVERAL, NOTHING, ON, FAILED)


@dataclass(frozen=True)
class Options:
    """How to do it.

    :param timeout: seconds from power on within which a board must show itself.
    """

    timeout: float
    check: bool = False

    def limit(self, boards):
        """The longest the check can take."""
        return boards * (self.timeout + SETTLE + BESIDES) + PDU


@dataclass
class Finding:
    """What a board's outlet turned out to feed."""

    work: BoardWork
    verdict: str = UNTESTED
    found: list = field(default_factory=list)  # ids of the boards that came up
    text: str = ""
    seconds: float | None = None


class Seen:
    """Boot requests of all boards of the proxy since `begin`, and which consoles were written to."""

    def __init__(self, proxy):
        self._consoles = {
            board.id: proxy.wiring(board)["console"]
            for board in proxy.boards.values()
            if "console" in proxy.wiring(board)
        }
        self._sizes = {}
        self._requests = {}
        self._change = threading.Condition()

    def request(self, board_id, kind, name, at, sender):
        """A driver's `seen`."""
        with self._change:
            if kind != NFS:
                self._requests.setdefault(board_id, {}).setdefault(kind, at)
                self._change.notify_all()

    def begin(self):
        with self._change:
            self._requests = {}
        self._sizes = {board: blame.console_size(path) for board, path in self._consoles.items()}

    def wait(self, deadline, enough):
        """Until `enough(requests)` or the deadline; {board id: {kind: when}}."""
        with self._change:
            self._change.wait_for(lambda: enough(self._requests), deadline.left)
            return {board: dict(kinds) for board, kinds in self._requests.items()}

    def consoles(self):
        """Boards whose console's log has grown since `begin`."""
        return [board for board, path in self._consoles.items() if blame.console_size(path) > self._sizes[board]]


class Cabling:
    """Test boards one after the other.

    :param works: BoardWork of each board to test.
    """

    def __init__(self, proxy, works, options):
        self.proxy = proxy
        self.options = options
        self.findings = [Finding(work) for work in works]
        self.seen = Seen(proxy)
        self._drivers = BootDrivers(proxy)
        self._down = {}  # PDU that does not answer: its error

    def run(self):
        with ExitStack() as stack:
            if not self.options.check:
                self._watch(stack)
            for finding in self.findings:
                work = finding.work
                with locked([work], PHASE, Deadline(PDU)):
                    if work.over:
                        self._say(finding, FAILED, work.error)
                    else:
                        self._test(finding)

    def _watch(self, stack):
        by_driver = {}
        for board in self.proxy.boards.values():
            by_driver.setdefault(self._drivers.of(board), []).append(board)
        for driver, boards in by_driver.items():
            stack.enter_context(driver.watch(boards, self.seen.request))

    def _say(self, finding, verdict, text, seconds=None):
        finding.verdict, finding.text, finding.seconds = verdict, text, seconds
        finding.work.say(PHASE, text, seconds)

    # ---- one board

    def _test(self, finding):
        work = finding.work
        record, name = work.record, work.outlet_name
        # A board kept out of use may be there for its cable; one that is somebody's, or in maintenance, is not touched.
        if record.claim or record.state not in (states.POWER_OFF, states.ERROR):
            self._say(finding, SKIPPED, f"not tested: {why_not_free(record, time.time())}")
            return
        whose = left_by(self.proxy, work.board, record) or self._held(work)
        if whose:
            self._say(finding, SKIPPED, f"not tested: {whose}")
            return
        try:
            before = self._status(work)
            if before == "on" and not self._ours(work):
                text = f"{name} is on although this board is free: it feeds something, and is not switched"
                self._say(finding, ON, text)
                return
            lost = self._may_feed(work, before)
            if lost:
                self._say(finding, SKIPPED, f"not tested: {lost}")
            elif self.options.check:
                self._say(finding, UNTESTED, f"{name} would be switched on until a board asks to boot, then off")
            else:
                if before == "on":
                    self._switch(work, "off")
                self._look(finding)
        except OutletsFailed as error:
            self._say(finding, FAILED, str(error))
        except HeteroError as error:
            if not isinstance(error, BadInput):
                self._down.setdefault(work.pdu, error)
            self._say(finding, FAILED, str(error))

    def _held(self, work):
        """Why an outlet is another's, on or off: it would boot what somebody has stopped."""
        try:
            return Feeds(self.proxy).held_by(work.board)
        except HeteroError as error:
            return str(error)

    def _may_feed(self, work, power):
        """Why an outlet may be that of a board somebody has stopped, whose record is lost; None where it is not.

        :param power: what it was read as just now. One that was off then is none of a board that shows its key.
        """
        feeds = Feeds(self.proxy)
        unknown = feeds.unknown(work.board)
        if power == "off":
            unknown = {board: name for board, name in unknown.items() if not self._runs(board)}
        if not unknown:
            return None
        names = [name for name in unknown.values() if name]
        adopt = f"{play('reconcile', adopt=','.join(names))} took the wiring's word"
        if not names:
            adopt = f"{play('reconcile')} finds nothing wrong with the record"
        doubt = Doubt(feeds, work.board, None, Fed(work.pdu, work.outlet), None, {}, unknown)
        return f"{doubt}: {UNTIL.format(who='it' if len(unknown) == 1 else 'each of them', adopt=adopt)}"

    def _runs(self, number):
        """Whether a board shows the key of its claim just now."""
        if number not in self.proxy.boards:
            return False
        work = BoardWork(self.proxy, self.proxy.board(number), Change(self.options.check))
        work.record = self.proxy.store.record(number)
        with suppress(HeteroError):
            work.driver = self._drivers.of(work.board)
            return presence.shown(work) == presence.OWN_KEY
        return False

    def _look(self, finding):
        """On, see who comes, off."""
        work = finding.work
        start = time.monotonic()
        self.seen.begin()
        self.proxy.store.event(work.board.id, SWITCH, f"{work.outlet_name} is to be switched on {OURS}")
        try:
            self._switch(work, "on")
            powered = time.monotonic()
            work.say(PHASE, f"{work.outlet_name}: on, read back; who asks to boot?")
            requests = self._requests(Deadline(self.options.timeout))
            consoles = [board for board in self.seen.consoles() if board not in self._busy()]
        finally:
            self._off_again(work)
        self._judge(finding, requests, consoles, powered, time.monotonic() - start)

    def _requests(self, deadline):
        """{board id: when it asked to boot}; ends at once when a board comes up that is somebody's."""

        def told(requests):
            busy = self._busy()
            return {
                board: min(kinds.values())
                for board, kinds in requests.items()
                # A machine in use may well renew its address or fetch files.
                if FIRMWARE in kinds or (board not in busy and (TFTP in kinds or SYSTEM in kinds))
            }

        came = told(self.seen.wait(deadline, told))
        if came and not self._busy() & set(came):
            came = told(self.seen.wait(Deadline(SETTLE), lambda requests: self._busy() & set(told(requests))))
        return came

    def _busy(self):
        """Boards that are somebody's, by now."""
        records = self.proxy.store.records(list(self.proxy.boards))
        return {
            board
            for board, record in records.items()
            if record.claim or left_by(self.proxy, self.proxy.board(board), record)
        }

    def _judge(self, finding, requests, consoles, powered, seconds):
        work = finding.work
        here, name = work.board.id, work.outlet_name
        came = sorted(requests)
        how = f"boot request after {max(0.0, min(requests.values()) - powered):.1f} s" if requests else ""
        if not came:
            # A console alone is weaker: it may be cabled wrongly itself.
            came, how = consoles, "no boot request, but its console's log grew"
        finding.found = came
        names = " and ".join(f"board{board}" for board in came)
        claims = [self.proxy.store.record(board).claim for board in came]
        owners = ", ".join(claim.instance for claim in claims if claim)
        if owners:
            text = f"{names} ({owners}) asked to boot meanwhile, perhaps by itself; off at once: run this again later"
            self._say(finding, UNSURE, text, seconds)
        elif came == [here]:
            self._say(finding, RIGHT, f"{name} feeds it: {how}", seconds)
        elif len(came) == 1:
            mac = self.proxy.board(came[0]).mac
            self._say(finding, OTHER, f"{name} feeds {names} ({mac}), not this board: {how}", seconds)
        elif came:
            self._say(finding, SEVERAL, f"{name} feeds {names}: {how}", seconds)
        else:
            text = f"{name} feeds nothing that boots: no boot request within {self.options.timeout:g} s"
            self._say(finding, NOTHING, text, seconds)

    # ---- its outlet

    def _session(self, work):
        if work.pdu in self._down:
            raise self._down[work.pdu]
        settings, secrets = self.proxy.pdu(work.pdu)
        tell = None if self.options.check else partial(work.say, "wait")
        run_folder = self.proxy.config["run_folder"]
        return session(work.pdu, settings, secrets, Deadline(PDU), run_folder, self.proxy.actor, tell)

    def _status(self, work):
        with self._session(work) as pdu:
            outlets = pdu.status()
        if work.outlet not in outlets:
            raise no_outlet(work, outlets)
        work.power_seen(outlets[work.outlet])
        return outlets[work.outlet]

    def _switch(self, work, state):
        """Switch and read back. A short session each time: others may want the PDU while a board boots."""
        with self._session(work) as pdu:
            set_outlets(pdu, {work.outlet: state}, Deadline(PDU))
        work.power_seen(state)
        self._drivers.of(work.board).switched(work.board, state)

    def _off_again(self, work):
        """Off, read back; a board whose outlet stays on is nobody's to have."""
        try:
            self._switch(work, "off")
        except HeteroError as error:
            work.move(states.ERROR, f"perhaps left on by the cabling check: {error}")
            raise
        self.proxy.store.event(work.board.id, SWITCH, f"{work.outlet_name} was switched off again")

    def _ours(self, work):
        """Whether a check that was cut off has left the outlet on."""
        switched = [event for event in self.proxy.store.newest_events(work.board.id, 50) if event.phase == SWITCH]
        return bool(switched) and switched[-1].text.endswith(OURS)


def check(proxy, ids, options):
    """Test the boards of `ids`; the module's result."""
    if options.timeout < 1:
        raise BadInput(f"is {options.timeout:g}", "timeout", "give at least 1 s")
    if len(set(ids)) != len(ids):
        raise BadInput("names a board twice", "boards", "name each once")
    change = Change(options.check)
    cabling = Cabling(proxy, [BoardWork(proxy, proxy.board(board), change) for board in ids], options)
    with change.step("cabling"):
        cabling.run()
    findings = cabling.findings
    wrong = [finding for finding in findings if finding.verdict in WRONG]
    wiring = corrected(proxy, findings)
    lines = [line for finding in findings for line in finding.work.lines]
    result = dict(change.result, boards=[_shown(finding) for finding in findings], wiring=wiring, failed=bool(wrong))
    result["lines"] = [*lines, *headline(findings, wrong, wiring)]
    if wrong:
        result["msg"] = "; ".join(f"{finding.work.board.name}: {finding.text}" for finding in wrong)
    return result


def _shown(finding):
    work = finding.work
    return dict(
        board=work.board.id,
        name=work.board.name,
        pdu=work.pdu,
        outlet=work.outlet,
        verdict=finding.verdict,
        found=finding.found,
        text=finding.text,
        seconds=None if finding.seconds is None else round(finding.seconds, 2),
    )
