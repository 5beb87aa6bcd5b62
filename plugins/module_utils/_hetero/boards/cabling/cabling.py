# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out which outlet feeds which board: switch on each free board's outlet and name the board that then boots.

Outlets are tested one at a time, so that the result is certain; each is off again, and read back, before the next.
Boards that somebody has are never switched. wiring_lines.py returns the lines for the corrected wiring.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Sequence

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused
from ...core.plays import play
from ...drivers.boot import blame
from ...drivers.boot.driver import FIRMWARE, NFS, SYSTEM, TFTP
from ...drivers.boot.registry import BootDrivers
from ...drivers.power.outlets import OutletsFailed, session, set_outlets
from ...site import board_states
from ..evidence.free_boards import left_by, told_if_served
from ..power import pdu_names, presence
from ..power.doubt import Doubt
from ..power.last_outlet import Feeds
from ..power.pdu_loop import PDU
from ..records.board_records import SWITCH, TO_BE
from ..records.claim_records import Fed
from ..records.store import why_not_free
from ..work.board_work import BoardWork, locked, unread_outlet
from .wiring_lines import OTHER, corrected, headline

if TYPE_CHECKING:
    from ...drivers.boot.driver import BootDriver
    from ...drivers.power.outlets import Session
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.proxy import Proxy

#: The requests of boards: {board id: {kind: monotonic time}}.
Requests = Dict[int, Dict[str, float]]

PHASE = "cabling"
#: Seconds after the first board's request within which others of the same outlet ask, too: they get power at the same
#: time, and the same firmware takes about the same time to ask.
SETTLE = 1.0
#: Until when a board is not tested: one that shows its key has power, so an outlet that is off does not feed it.
UNTIL = "tested while {who} runs and shows its key, for then an outlet that is off is another; or once {adopt}"
#: Seconds that a board takes beside the wait for it: two short PDU sessions, and the wait for another's session.
BESIDES = 30.0
#: What ends an outlet that is on while nobody has its board.
SEE = f"correct its wiring, or, where the outlet is this board's, {play('reconcile')} switches it off"
#: The text of the event before switching on. Where it is a board's newest, a check was cut off and left the outlet on.
OURS = f"{{outlet}} {TO_BE.format(state='on')} for the cabling check"

RIGHT, SEVERAL, NOTHING, ON = "right", "several", "nothing", "on"
UNSURE, SKIPPED, FAILED, UNTESTED = "unsure", "skipped", "failed", "not tested yet"
#: Verdicts with which the check as a whole fails.
WRONG = (OTHER, SEVERAL, NOTHING, ON, FAILED)


@dataclass(frozen=True)
class Options:
    """Options of the check.

    :param timeout: seconds from power on within which a board must ask to boot.
    :param check: switch nothing (check mode).
    """

    timeout: float
    check: bool = False

    def limit(self, boards: int) -> float:
        """Return the most seconds that the check of so many boards can take."""
        return boards * (self.timeout + SETTLE + BESIDES) + PDU


@dataclass
class Finding:
    """The result for one board: what its outlet turned out to feed."""

    work: BoardWork
    verdict: str = UNTESTED
    found: list[int] = field(default_factory=list)  # ids of the boards that came up
    text: str = ""
    seconds: float | None = None


class Seen:
    """Boot requests of all boards of the proxy since `begin`, and the boards whose consoles were written to."""

    def __init__(self, proxy: Proxy) -> None:
        logs = {board.id: proxy.wiring(board).console for board in proxy.boards.values()}
        self._consoles = {board: log for board, log in logs.items() if log}
        self._sizes: dict[int, int] = {}
        self._requests: Requests = {}
        self._change = threading.Condition()

    def request(self, board_id: int, kind: str, name: str, at: float, sender: str) -> None:
        """Record a request; the boot drivers' watches call it."""
        with self._change:
            if kind != NFS:
                self._requests.setdefault(board_id, {}).setdefault(kind, at)
                self._change.notify_all()

    def begin(self) -> None:
        with self._change:
            self._requests = {}
        self._sizes = {board: blame.console_size(path) for board, path in self._consoles.items()}

    def wait(self, deadline: Deadline, enough: Callable[[Requests], object]) -> Requests:
        """Wait until `enough(requests)` is true, or until the deadline; return the requests."""
        with self._change:
            self._change.wait_for(lambda: enough(self._requests), deadline.left)
            return {board: dict(kinds) for board, kinds in self._requests.items()}

    def consoles(self) -> list[int]:
        """Return the ids of boards whose console's log has grown since `begin`."""
        return [board for board, path in self._consoles.items() if blame.console_size(path) > self._sizes[board]]


class Cabling:
    """Test boards one after the other.

    :param works: BoardWork of each board to test.
    """

    def __init__(self, proxy: Proxy, works: Sequence[BoardWork], options: Options) -> None:
        self.proxy = proxy
        self.options = options
        self.findings = [Finding(work) for work in works]
        self.seen = Seen(proxy)
        self._drivers = BootDrivers(proxy)
        self._down: dict[str, HeteroError] = {}  # PDU that does not answer: its error
        #: Whether an outlet was switched, or in check mode would be.
        self.switched = False

    def run(self) -> None:
        with ExitStack() as stack:
            if not self.options.check:
                self._watch(stack)
            for finding in self.findings:
                work = finding.work
                with locked([work], PHASE, Deadline(PDU)):
                    if work.over:
                        self._say(finding, FAILED, str(work.error))
                    else:
                        self._test(finding)

    def _watch(self, stack: ExitStack) -> None:
        by_driver: dict[BootDriver, list[Board]] = {}
        for board in self.proxy.boards.values():
            by_driver.setdefault(self._drivers.of(board), []).append(board)
        for driver, boards in by_driver.items():
            stack.enter_context(driver.watch(boards, self.seen.request))

    def _say(self, finding: Finding, verdict: str, text: str, seconds: float | None = None) -> None:
        finding.verdict, finding.text, finding.seconds = verdict, text, seconds
        finding.work.say(PHASE, text, seconds)

    # ---- one board

    def _test(self, finding: Finding) -> None:
        work = finding.work
        record, name = work.record, work.outlet_name
        # A board in state error may be so because of its cable, so it is tested. One that somebody has, or that is in
        # maintenance, is not touched.
        if record.claim or record.state not in (board_states.POWER_OFF, board_states.ERROR):
            self._say(finding, SKIPPED, f"not tested: {why_not_free(record, time.time())}")
            return
        whose = self._left_by(work.board, record) or self._held(work)
        if whose:
            self._say(finding, SKIPPED, f"not tested: {whose}")
            return
        try:
            before = self._status(work)
            if before == "on" and not self._ours(work):
                text = f"{name} is on although this board is free: it feeds something, and is not switched; {SEE}"
                self._say(finding, ON, text)
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

    def _left_by(self, board: Board, record: Record) -> str | None:
        """Return why a board without a claim may be somebody's, whose system is not to be cut while it boots."""
        return left_by(self.proxy, board, record) or told_if_served(self.proxy, board)

    def _held(self, work: BoardWork) -> str | None:
        """Return why an outlet is known to feed another's board, which it would boot; None where it is not known to."""
        try:
            return Feeds(self.proxy).held_by(work.board)
        except HeteroError as error:
            return str(error)

    def _may_feed(self, work: BoardWork, power: str) -> str | None:
        """Return why an outlet may feed a board with a tenant whose recorded outlet is lost; None where it does not.

        :param power: the outlet's state as it was just read. An outlet that is off feeds no board that shows its key.
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

    def _look(self, finding: Finding) -> None:
        """Switch the outlet on, wait for boards that ask to boot, switch it off, and judge the result."""
        work = finding.work
        start = time.monotonic()
        self.seen.begin()
        self.proxy.store.event(work.board.id, SWITCH, self._to_be(work))
        try:
            self._switch(work, "on")
            powered = time.monotonic()
            work.say(PHASE, f"{work.outlet_name}: on, read back; who asks to boot?")
            requests = self._requests(Deadline(self.options.timeout))
            consoles = [board for board in self.seen.consoles() if board not in self._busy()]
        finally:
            self._off_again(work)
        self._judge(finding, requests, consoles, powered, time.monotonic() - start)

    def _requests(self, deadline: Deadline) -> dict[int, float]:
        """Return {board id: monotonic time of its boot request}; end at once where a board that somebody has asks."""

        def told(requests: Requests) -> dict[int, float]:
            busy = self._busy()
            return {
                board: min(kinds.values())
                for board, kinds in requests.items()
                # A board in use may renew its address or fetch files, so only its firmware's requests count.
                if FIRMWARE in kinds or (board not in busy and (TFTP in kinds or SYSTEM in kinds))
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
        self, finding: Finding, requests: dict[int, float], consoles: list[int], powered: float, seconds: float
    ) -> None:
        work = finding.work
        here, name = work.board.id, work.outlet_name
        came = sorted(requests)
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

    def _session(self, work: BoardWork) -> ContextManager[Session]:
        if work.pdu in self._down:
            raise self._down[work.pdu]
        settings, secrets = self.proxy.pdu(work.pdu)
        tell = None if self.options.check else partial(work.say, "wait")
        run_folder = self.proxy.config.run_folder
        return session(work.pdu, settings, secrets, Deadline(PDU), run_folder, self.proxy.actor, tell)

    def _status(self, work: BoardWork) -> str:
        with self._session(work) as pdu:
            outlets = pdu.status()
        error = unread_outlet(work, outlets)
        if error is not None:
            raise error
        work.power_seen(outlets[work.outlet])
        return outlets[work.outlet]

    def _switch(self, work: BoardWork, state: str) -> None:
        """Switch the outlet and read it back, in a short session: others may need the PDU while a board boots."""
        self.switched = True
        with self._session(work) as pdu:
            set_outlets(pdu, {work.outlet: state}, Deadline(PDU))
        work.power_seen(state)
        self._drivers.of(work.board).switched(work.board, state)

    def _off_again(self, work: BoardWork) -> None:
        """Switch the outlet off and read it back; put the board into state error where the outlet may still be on."""
        try:
            self._switch(work, "off")
        except HeteroError as error:
            work.move(board_states.ERROR, f"perhaps left on by the cabling check: {error}")
            raise
        self.proxy.store.event(work.board.id, SWITCH, f"{work.outlet_name} was switched off again")

    def _ours(self, work: BoardWork) -> bool:
        """Return whether a check that was cut off left on the very outlet that the wiring names now."""
        switched = [event for event in self.proxy.store.newest_events(work.board.id, 50) if event.phase == SWITCH]
        return bool(switched) and switched[-1].text == self._to_be(work)

    def _to_be(self, work: BoardWork) -> str:
        """Return the text of the event before switching on; it has the PDU's host, for a name may be reused later."""
        host = pdu_names.address(self.proxy.config.pdus.get(work.pdu, {}))
        known = host and not host.startswith("/")
        return OURS.format(outlet=f"{work.outlet_name} ({host})" if known else work.outlet_name)


def check(proxy: Proxy, ids: Sequence[int], options: Options) -> dict[str, Any]:
    """Test the boards of `ids`; return the module's result."""
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
    result["changed"] = cabling.switched
    result["lines"] = [*lines, *headline(findings, wrong, wiring)]
    if wrong:
        result["msg"] = "; ".join(f"{finding.work.board.name}: {finding.text}" for finding in wrong)
    return result


def _shown(finding: Finding) -> dict[str, Any]:
    work = finding.work
    return dict(
        board=work.board.id,
        name=work.board.name,
        pdu=work.pdu or None,
        outlet=work.outlet or None,
        verdict=finding.verdict,
        found=finding.found,
        text=finding.text,
        seconds=None if finding.seconds is None else round(finding.seconds, 2),
    )
