# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn the wiring of a site that moves in: switch on each named outlet that no board is known to hang on, and see who
asks to boot.

What asks, answers or writes to its console before the first outlet is on has power by another: it tells of no outlet.
A board that asks by two outlets, or by another one than its wiring names, is said and not learned, and so is one that
does not ask again when its outlet is on once more.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, ContextManager, Iterator, Mapping, Sequence

from ...core import askers
from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused
from ...core.lines import line
from ...core.plays import play
from ...core.typed_keys import as_said
from ..power import presence
from ..power.last_outlet import MOST_LOOKED_AT
from ..power.outlet_holder import Holding, named
from ..power.pdu_names import plug
from ..power.power_proof import LINGER
from ..records.board_records import SWITCH
from ..records.claim_records import Fed
from .findings import FAILED, NOTHING, ON, OTHER, SEVERAL, SKIPPED, UNSURE, Finding
from .outlet_spans import LEARN, outlets
from .outlet_tests import PHASE, Options, OutletTests
from .wiring_lines import corrected, pasted

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ...site.boards_file import Board
    from ..power.last_outlet import Feeds
    from ..records.board_records import Event
    from ..records.proxy import Proxy

#: One board hangs there; it asked by another outlet, too; what is in no boards file does.
FOUND, TWICE, UNKNOWN = "found", "twice", "unknown"
#: Verdicts with which the whole fails: they contradict the wiring or each other, or could not be had.
WRONG = (OTHER, TWICE, FAILED)
#: The verdicts without a board to write down, for people.
REST = {
    NOTHING: "feed nothing that boots",
    SEVERAL: "feed several",
    UNKNOWN: "feed what is in no boards file",
    OTHER: "contradict the wiring",
    TWICE: "feed a board that has another outlet, too",
    ON: "were on, and feed something",
    UNSURE: "to be learned later",
    SKIPPED: "not tested",
    FAILED: "failed",
}
HAS_POWER = "{boards} {have} power already, by none of these outlets: what asks there, or answers, tells of none"


class NamedOutlet:
    """The work on an outlet of which no board is known. Its events are of no board, and name the outlet."""

    over, error = False, None

    def __init__(self, proxy: Proxy, pdu: str, outlet: str, change: Change) -> None:
        self.proxy, self.pdu, self.outlet, self.change = proxy, pdu, outlet, change
        self.lines: list[dict[str, Any]] = []
        #: Whether it may have been left on.
        self.left_on = False

    @property
    def outlet_name(self) -> str:
        return f"{self.pdu} outlet {self.outlet}"

    def say(self, phase: str, text: str, seconds: float | None = None) -> None:
        text = text if self.outlet_name in text else f"{self.outlet_name}: {text}"
        if seconds is not None:
            seconds = round(seconds, 2)
        if not self.change.check:
            self.proxy.store.event(None, phase, text, seconds)
        self.lines.append(line(None, None, phase, text, seconds))

    def power_seen(self, power: str) -> None:
        """Do nothing: no record has the state of an outlet that is no board's."""

    def move(self, state: str, note: str = "") -> None:
        self.left_on = True
        self.say(PHASE, note)


class Learning(OutletTests[NamedOutlet]):
    """Tests of outlets that no board is known to hang on."""

    is_on = "{name} is on: it feeds something, and is not switched; where it does not, switch it off by hand"

    def __init__(self, proxy: Proxy, works: Sequence[NamedOutlet], options: Options) -> None:
        super().__init__(proxy, works, options)
        self.lines: list[dict[str, Any]] = []
        self._states: dict[str, str] = {}  # by the outlet's name, as first read
        self._macs: set[str] = set()  # of newcomers, since the last outlet was begun
        self._noise: set[str] = set()  # of those that ask whatever is switched
        self._asker = askers.asker()  # from the first lock on it has begun, but each outlet is a thing of its own

    def run(self) -> None:
        self._read()
        super().run()

    def _in_turn(self) -> Iterator[Finding[NamedOutlet]]:
        """Return all outlets; and once more, one by one, those at which a board was found: it may have asked by itself,
        having power by another.
        """
        yield from self.findings
        came = Counter(board for finding in self.findings for board in finding.found)
        again = [one for one in self.findings if one.verdict == FOUND and came[one.found[0]] == 1]
        if again:
            Deadline(LINGER).nap(LINGER)  # the last one is off since a moment only
        for finding in again:
            board = f"board{finding.found[0]}"
            finding.work.say(PHASE, f"tested once more, for {board} may have asked by itself")
            yield finding
            if finding.verdict in (FOUND, NOTHING, UNKNOWN) and [f"board{id}" for id in finding.found] != [board]:
                text = f"{board} asked to boot while {finding.work.outlet_name} was on, and not once more by it"
                self._say(finding, UNSURE, f"{text}: perhaps by itself; learn it again later", finding.seconds)

    def _read(self) -> None:
        """Read the outlets of all PDUs once, so that one which is not there is said before anything is switched."""
        for pdu in dict.fromkeys(finding.work.pdu for finding in self.findings):
            works = [finding.work for finding in self.findings if finding.work.pdu == pdu]
            try:
                with self._session(works[0]) as opened:
                    states = opened.status()
            except HeteroError as error:
                self._down[pdu] = error
                continue
            there = {plug(outlet): outlet for outlet in states}
            lacking = [work.outlet for work in works if plug(work.outlet) not in there]
            if lacking:
                known = ", ".join(states) or "none"
                what = f"{pdu} has no outlet {', '.join(lacking)} (it has {known})"
                raise BadInput(what, LEARN, "name outlets that it has")
            for work in works:
                work.outlet = there[plug(work.outlet)]
                self._states[work.outlet_name] = states[work.outlet]

    # ---- before the first outlet is on

    def _watch(self, stack: ExitStack) -> None:
        super()._watch(stack)
        for driver in self._by_driver():
            stack.enter_context(driver.newcomers(list(self.proxy.boards.values()), self._macs.add))
        for finding in self.findings:
            self._take_up(finding.work)
        if "off" in self._states.values():
            self._listen()

    def _take_up(self, work: NamedOutlet) -> None:
        """Switch off what was left on by one that was cut off: its board may ask again while others are tested."""
        if self._states.get(work.outlet_name) != "on" or not self._ours(work) or self._whose(work):
            return
        with suppress(HeteroError):  # the outlet is tested later, or says then why it is not
            if not self._may_feed(work, "on"):
                self._off_again(work)
                self._states[work.outlet_name] = "off"
                work.say(PHASE, f"{work.outlet_name} was left on by a check that was cut off, and is off again")

    def _listen(self) -> None:
        """Find out which free boards, and whose machines, have power before an outlet is on."""
        self._tell(f"who asks, or answers, within {self.options.timeout:g} s has power already")
        self.seen.begin()
        busy = self._busy()
        free = [board for board in self.proxy.boards.values() if board.id not in busy]
        asked = self.seen.wait(Deadline(self.options.timeout), lambda _requests: False)
        # Only now, for one that was in the middle of its boot answers by now.
        with ThreadPoolExecutor(max_workers=MOST_LOOKED_AT) as threads:
            answers = threads.map(lambda board: self._drivers.to_look(board).alive(board, presence.CONNECT), free)
        alive = {board.id for board, answered in zip(free, answers) if answered}
        self.powered = {*asked, *self.seen.consoles(), *alive} - busy
        self._noise = set(self._macs)
        if self.powered:
            names = " and ".join(f"board{board}" for board in sorted(self.powered))
            self._tell(HAS_POWER.format(boards=names, have="has" if len(self.powered) == 1 else "have"))

    def _tell(self, text: str) -> None:
        self.proxy.store.event(None, PHASE, text)
        self.lines.append(line(None, None, PHASE, text))

    # ---- one outlet

    def _turn(self, work: NamedOutlet) -> ContextManager[Any]:
        return nullcontext()

    def _whose(self, work: NamedOutlet) -> str | None:
        if not askers.still_waits(self._asker):
            return askers.WHAT
        left_on = [finding.work.outlet_name for finding in self.findings if finding.work.left_on]
        if left_on:
            return f"{left_on[0]} may still be on, and what it feeds may ask again: see to it, then run this again"
        try:
            feeds = self._feeds()
        except HeteroError as error:
            return str(error)
        boards = [f"board{board}" for board in feeds.named_by(work.pdu, work.outlet)]
        if boards:
            way = play("cabling", node=",".join(boards))
            return f"{work.outlet_name} is that of {' and '.join(boards)} by the wiring: {way} tests it"
        holders = feeds.holders(None, work.pdu, work.outlet)
        held = Holding(self.proxy, Fed(work.pdu, work.outlet), holders)
        return f"{work.outlet_name}{held}" if holders else None

    def _unknown(self, feeds: Feeds, work: NamedOutlet) -> dict[int, str | None]:
        """Return {board id: its instance} of boards that any outlet may feed.

        Also those are among them that are not to be touched, and of which neither wiring nor record has an outlet.
        """
        unknown = feeds.unknown()
        for board, record in self.proxy.store.records(list(self.proxy.boards)).items():
            kept = feeds.kept(board)
            if board in unknown or self._is_wired(board) or (kept and kept.fed and not kept.fed.taken):
                continue
            if self._taken(self.proxy.board(board), record):
                unknown[board] = record.claim.instance if record.claim else None
        return unknown

    def _is_wired(self, board: int) -> bool:
        wire = self.proxy.config.boards.get(str(board))
        return bool(wire and wire.fed)

    def _doubt(self, feeds: Feeds, work: NamedOutlet, unknown: Mapping[int, str | None]) -> object:
        them = "it" if len(unknown) == 1 else "them"
        return f"{work.outlet_name} may feed {named(unknown)}, and what feeds {them} is not known"

    def _is_told(self, unknown: Mapping[int, str | None]) -> str:
        unwired = [f"board{board}" for board in unknown if not self._is_wired(board)]
        if not unwired:
            return super()._is_told(unknown)
        return f"tftp_proxy_boards names the outlet of {' and '.join(unwired)}, or nobody has or repairs that any more"

    def _look(self, finding: Finding[NamedOutlet]) -> None:
        self._macs.clear()
        super()._look(finding)

    def _judge(
        self,
        finding: Finding[NamedOutlet],
        requests: dict[int, float],
        consoles: list[int],
        powered: float,
        seconds: float,
    ) -> None:
        finding.macs = sorted(self._macs - self._noise)
        super()._judge(finding, requests, consoles, powered, seconds)

    def _one(self, finding: Finding[NamedOutlet], board: Board, how: str) -> tuple[str, str]:
        name, fed = finding.work.outlet_name, self.proxy.wiring(board).fed
        text = f"{name} feeds {board.name} ({board.mac})"
        if finding.macs:
            return SEVERAL, f"{text} and {' and '.join(finding.macs)}, which is in no boards file: {how}"
        if fed:
            way = f"{play('cabling', node=board.name)} says what that one feeds"
            return OTHER, f"{text}, whose wiring names {Fed(*fed).name}: {how}; {way}"
        others = [one for one in self.findings if one is not finding and board.id in one.found]
        before = [one.work.outlet_name for one in others]
        if before:
            return (
                TWICE,
                f"{text}, which asked by {' and '.join(before)}, too: {how}; see by which of them it has power",
            )
        return FOUND, f"{text}: {how}"

    def _none(self, finding: Finding[NamedOutlet]) -> tuple[str, str]:
        if not finding.macs:
            return super()._none(finding)
        text = f"{finding.work.outlet_name} feeds a machine that is in no boards file"
        way = "add it there, then learn this outlet again"
        return UNKNOWN, f"{text}: {' and '.join(finding.macs)} asked for an address: {way}"

    # ---- its switching

    def _pdu(self, name: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return settings and secrets of a PDU.

        A driver that cannot ask its PDU which outlets there are is told those that are named.
        """
        settings, secrets = super()._pdu(name)
        if "outlets" not in self.proxy.config.pdus[name]:
            asked = [finding.work.outlet for finding in self.findings if finding.work.pdu == name]
            settings = dict(settings, outlets=list(dict.fromkeys([*settings.get("outlets", ()), *asked])))
        return settings, secrets

    def _unread(self, work: NamedOutlet, outlets: Mapping[str, str]) -> HeteroError | None:
        state = outlets.get(work.outlet)
        if state in ("on", "off"):
            return None
        what, way = f"cannot be read: {state or 'its PDU does not tell of it'}", "look at the PDU"
        return Refused(what, work.outlet_name, f"{way}; where it feeds nothing, switch it off (pdu_power)")

    def _newest(self, work: NamedOutlet) -> Event | None:
        return self.proxy.store.newest_of_outlet(SWITCH, work.outlet_name)

    def _note(self, work: NamedOutlet, text: str) -> None:
        self.proxy.store.event(None, SWITCH, text)


def learn(proxy: Proxy, words: Sequence[str], options: Options) -> dict[str, Any]:
    """Learn which boards hang on the outlets that `words` name (outlet_spans.py); return the module's result."""
    options.must_be_right()
    change = Change(options.check)
    works = [NamedOutlet(proxy, pdu, outlet, change) for pdu, outlet in outlets(proxy.config.pdus, words)]
    learning = Learning(proxy, works, options)
    with change.step("cabling"):
        learning.run()
    found = learning.findings
    came = Counter(board for one in found for board in one.found)
    wiring = corrected(proxy, [one for one in found if all(came[board] == 1 for board in one.found)], FOUND)
    unwired = [board.id for board in proxy.boards.values() if not (options.check or proxy.wiring(board).fed)]
    lost = sorted(board for board in unwired if board not in came)
    wrong = [one for one in found if one.verdict in WRONG or one.work.left_on]
    lines = [*learning.lines, *(line for one in found for line in one.work.lines)]
    result = dict(change.result, outlets=list(map(_shown, found)), wiring=wiring, lost=lost, failed=bool(wrong))
    result.update(changed=learning.switched, tftp_proxy_boards=_all(proxy, wiring))
    missed = [f"  # {board}: no outlet was found that feeds board{board}" for board in lost]
    result["lines"] = [*lines, *_headline(found, wiring), *missed]
    if wrong:
        result["msg"] = "; ".join(one.text for one in wrong)
    return result


def _headline(found: Sequence[Finding[NamedOutlet]], wiring: Mapping[int, dict[str, Any]]) -> list[str]:
    tested = [one for one in found if one.seconds is not None]
    boards = "board" if len(wiring) == 1 else "boards"
    lines = [f"{len(tested)} of {len(found)} outlets tested: {len(wiring)} {boards} found"]
    for verdict, words in REST.items():
        names = [one.work.outlet_name for one in found if one.verdict == verdict]
        lines += [f"{words}: {', '.join(names)}"] if names else []
    if wiring:
        lines += [f"Put these into tftp_proxy_boards, then run {play('proxy')}:", *pasted(wiring)]
    return lines


def _all(proxy: Proxy, wiring: Mapping[int, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return tftp_proxy_boards as it is, with what was learned: a variable is replaced as a whole."""
    there = {board: as_said(wire) for board, wire in proxy.config.boards.items()}
    return {**there, **{str(board): wire for board, wire in wiring.items()}}


def _shown(finding: Finding[NamedOutlet]) -> dict[str, Any]:
    work = finding.work
    return dict(
        pdu=work.pdu,
        outlet=work.outlet,
        verdict=finding.verdict,
        found=finding.found,
        macs=finding.macs,
        text=finding.text,
        seconds=None if finding.seconds is None else round(finding.seconds, 2),
    )
