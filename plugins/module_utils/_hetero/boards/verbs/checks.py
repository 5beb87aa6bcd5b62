# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verb `check`: boot free boards into RAM, test power, boot, console, memory, disks and network, and free them again.

Only a board that nobody has, or may have, is checked. While it is, it is in state "shutting down" with the note
CHECKING, as one whose hardware is looked at for a repair. A request that finds no other board asks for it, and its
check ends (core/end_requests.py). One that was killed leaves the note; ended_checks.py frees the board.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Collection, Mapping

from ...core import end_requests, locks
from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused
from ...drivers.boot.blame import BOARD, has_spoken
from ...drivers.boot.registry import BootDrivers
from ...roots.ram import ram_image
from ...site import board_states
from ...site.board_states import CHECKING
from ..boot.ram_boot import PHASE as IN_RAM
from ..boot.ram_boot import in_ram
from ..evidence.free_boards import somebodys
from ..power.last_outlet import Feeds
from ..records.board_health import CHECK
from ..records.store import NOBODY
from ..work.board_locks import locked
from ..work.board_work import BoardWork
from ..work.console import looked_at
from . import ended_checks, measures
from .lifecycle import Options
from .measures import Found, Limits

if TYPE_CHECKING:
    from ...drivers.boot.shell import Shell
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.proxy import Proxy

PHASE = "check"
#: Seconds that a check waits for a board's lock: who has it works on the board.
PATIENCE = 5.0
#: Seconds that tests take at most beside the boot: 1 GB of memory in pieces, and three places of some disks.
TESTS_TIME = 900.0
ENDED = "{name} wants it: its check ends"
IN_FLASH = "its kernel is in flash: it boots no RAM image"


@dataclass(frozen=True)
class CheckRequest:
    """A request to check boards.

    :param timeout: seconds from power on until the RAM system answers, for each try.
    :param check: say only what would be done.
    """

    limits: Limits = field(default_factory=Limits)
    timeout: float = 300.0
    check: bool = False

    @property
    def options(self) -> Options:
        return Options(timeout=self.timeout, check=self.check, instance=NOBODY, retries=0)

    @property
    def longest(self) -> float:
        """Return the most seconds that the check of a board takes."""
        return 2 * self.options.limit + TESTS_TIME


class Check(BoardWork):
    """One board's check."""

    gives_way = True

    def __init__(self, proxy: Proxy, board: Board, request: CheckRequest) -> None:
        super().__init__(proxy, board, Change(request.check), NOBODY)
        self.request = request
        self.only_from_off = True
        self.tests: dict[str, Found] = {}
        self.log = (0, 0)

    @property
    def wanted_by(self) -> str | None:
        """Return the request for which the check ended, or None."""
        return self.evidence.get("ends")

    def keep(self, name: str, found: Found) -> None:
        """Keep what came of a test, and say it."""
        self.tests[name] = found
        self.say(PHASE, f"{name}: {found.text}{' FAILED' if found.passed is False else ''}")

    def result(self) -> dict[str, Any]:
        tests = [dict(asdict(found), name=name) for name, found in self.tests.items()]
        return dict(super().result(), tests=tests, wanted_by=self.wanted_by)


def why_not(proxy: Proxy, feeds: Feeds, board: Board, record: Record) -> str | None:
    """Return why a board is not checked: somebody has it or may have it, it is out of use, or it boots no RAM image."""
    claim, own = record.claim, ended_checks.is_left(record)
    if claim:
        return f"{claim.instance} of {claim.owner} has it"
    if record.state != board_states.POWER_OFF and not own:
        return f"it is in state {record.state}{f' ({record.note})' if record.note else ''}"
    try:
        proxy.outlet(board)
        why = ended_checks.whose(proxy, board, record) if own else somebodys(proxy, board, record)
        why = why or feeds.feeds_another(board)
        means = BootDrivers(proxy).means(board)
        if why is None and means is not None and means["flash"]:
            why = IN_FLASH
        if why is None:
            ram_image(proxy, board)
    except HeteroError as error:
        return f"{error.what}: {error.remedy}" if error.thing == board.name else str(error)
    return why


def last_checks(proxy: Proxy) -> dict[int, float]:
    """Return {board id: unix time of its newest check}; of one that ended for no fault of the board, when it began."""
    ended, begun = proxy.store.checked(), proxy.store.checks_begun()
    return {board: max(ended.get(board, 0.0), begun.get(board, 0.0)) for board in {*ended, *begun}}


def idle(proxy: Proxy, ids: Collection[int] | None = None) -> tuple[list[int], dict[str, str]]:
    """Return the ids of boards that can be checked now, those checked longest ago first, and {name: why not} of others.

    :param ids: of these boards only.
    """
    boards = [proxy.board(one) for one in (sorted(proxy.boards) if ids is None else ids)]
    feeds, records, last = Feeds(proxy), proxy.store.records([board.id for board in boards]), last_checks(proxy)
    run = proxy.config.run_folder
    busy = {board: locks.held_by(run, board.name) for board in boards if not locks.is_ours(run, board.name)}
    whys = {board: busy.get(board) or why_not(proxy, feeds, board, records[board.id]) for board in boards}
    can = sorted((board.id for board, why in whys.items() if why is None), key=lambda one: last.get(one, 0.0))
    return can, {board.name: why for board, why in whys.items() if why is not None}


def check(proxy: Proxy, board_id: int, request: CheckRequest) -> dict[str, Any]:
    """Check one board; return its part of the module's result, with `lines`.

    A board whose outlet, boot or tests fail has `failed`; so has a board that cannot be checked. A board that a request
    wanted meanwhile has `wanted_by`, and counts neither as good nor as bad.
    """
    work = Check(proxy, proxy.board(board_id), request)
    with locked([work], PHASE, Deadline(PATIENCE)):
        if not (work.over or request.check) and ended_checks.is_left(work.record):
            _free(work)  # of a check that was killed, which may have left it on
        if not work.over:
            _begin(work)
        if not work.over:
            is_off = False
            try:
                in_ram(proxy, [work], replace(request.options, wait=True), partial(_act, request.limits))
                is_off = not work.failed
                _keep(work)
            finally:  # whatever nobody foresaw, the board is off and free
                _free(work, is_off)
    return dict(work.result(), lines=work.lines)


def _begin(work: Check) -> None:
    """Put a board that can be checked into the state of one that is; else the work is over."""
    proxy, board = work.proxy, work.board
    try:
        with proxy.store.transaction(dry=work.change.check):  # a claim needs no lock of a board
            work.read()
            why = why_not(proxy, Feeds(proxy), board, work.record)
            if why:
                raise Refused(f"is not checked: {why}", board.name, "check it once that is no longer so")
            work.driver = BootDrivers(proxy).of(board)
            if work.note(board.name, {"checked": False}, {"checked": True}) and work.state == board_states.POWER_OFF:
                proxy.store.move(board.id, board_states.ERROR, CHECKING)
                proxy.store.move(board.id, board_states.SHUTTING_DOWN, CHECKING)
        work.record = proxy.store.record(board.id)
    except HeteroError as error:
        work.fail(None, error, **error.facts)
    if work.change.check and not work.over:
        work.line(PHASE, "would boot into RAM, be tested, and be free again")
        work.over = True
    work.log = looked_at(proxy, board)


def _act(limits: Limits, work: Check, shell: Shell) -> None:
    """Test a board that runs from RAM."""
    seconds = work.ram_phases.get(IN_RAM, 0.0)
    power = work.ram_phases.get("power", 0.0)
    work.keep("power", Found(True, f"{work.outlet_name} on, read back", dict(seconds=round(power, 2))))
    slow = seconds > limits.boot_seconds
    text = f"ssh after {seconds:.1f} s" + (f", more than {limits.boot_seconds:g} s" if slow else "")
    work.keep("boot", Found(not slow, text, dict(seconds=round(seconds, 1))))
    work.keep("serial", _serial(work))
    go_on, devices = partial(_go_on, work), work.proxy.disks(work.board)
    tests: dict[str, Callable[[], Found]] = {
        "ram": lambda: measures.memory(shell, limits, go_on),
        "disk": lambda: measures.disks(shell, devices, limits, go_on),
        "network": lambda: measures.network(shell, limits, go_on),
    }
    for name, test in tests.items():
        go_on()
        work.step = name
        work.keep(name, measures.tried(test))


def _go_on(work: Check) -> None:
    """Raise Refused, with `ends`, where a request wants the board."""
    asked = end_requests.of(work.proxy.config.run_folder, work.board.name)
    if asked:
        what = ENDED.format(name=asked.instance)
        raise Refused(what, work.board.name, "run this again once the board is free", ends=asked.instance)


def _serial(work: Check) -> Found:
    log = work.proxy.wiring(work.board).console
    if not log:
        return Found(None, "not tested: its wiring names no console", {})
    inode, size = looked_at(work.proxy, work.board)
    begins = work.log[1] if inode == work.log[0] else 0
    said = size - begins
    if said <= 0 or not has_spoken(log, begins):
        return Found(False, f"it said nothing in {log}: see its cable, and what should write that log", dict(bytes=0))
    return Found(True, f"it said {said} bytes", dict(bytes=said))


def _keep(work: Check) -> None:
    """Write down what came of a check, unless the board is out of use by now."""
    proxy, board = work.proxy, work.board
    if work.wanted_by:
        work.say(PHASE, ENDED.format(name=work.wanted_by))
        work.failed, work.error, work.blame = False, None, None
    elif work.failed and work.tests and work.record.state != board_states.ERROR:
        # it went away within a test; a board that does not boot, or obey, is out of use by now, and that counts
        work.tests[work.step] = Found(False, str(work.error), {})
    bad = {name: found for name, found in work.tests.items() if found.passed is False}
    if work.tests and not work.wanted_by and work.record.state != board_states.ERROR:
        text = "; ".join(f"{name}: {found.text}" for name, found in bad.items())
        figures = {name: dict(found.figures, passed=found.passed) for name, found in work.tests.items()}
        proxy.store.outcome(board.id, CHECK, not bad, text, figures)
        if bad and not work.failed:
            work.fail(BOARD, f"{board.name} failed: {text}")
        done = sum(1 for found in work.tests.values() if found.passed is not None)
        work.say(PHASE, f"{done - len(bad)} of {done} tests passed")


def _free(work: Check, is_off: bool = False) -> None:
    """Free a board (ended_checks.py) that is not out of use by now, with the reason; this check fails where that does.

    :param is_off: whether this check has switched it off, read back.
    """
    work.record = work.proxy.store.record(work.board.id)
    if not ended_checks.is_left(work.record):
        return
    own = BoardWork(work.proxy, work.board, work.change, NOBODY)
    try:
        own.read()
    except HeteroError as error:
        own.fail(None, error, **error.facts)
    else:
        ended_checks.free(own, work.request.options, is_off)
    work.lines += own.lines
    if own.failed and not work.failed:
        work.fail(own.blame, str(own.error), **own.evidence)
    work.record = work.proxy.store.record(work.board.id)


def told(result: Mapping[str, Any]) -> str:
    """Return one line for a log: the board, and what came of its check."""
    if result["wanted_by"]:
        return f"{result['name']}: {ENDED.format(name=result['wanted_by'])}"
    if result["failed"]:
        return str(result["error"])
    tests = "; ".join(f"{one['name']}: {one['text']}" for one in result["tests"])
    return f"{result['name']}: sound ({tests})"
