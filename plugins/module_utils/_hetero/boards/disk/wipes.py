# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verb `wipe` for many boards: boot into RAM, wipe all disks at once, prove it, switch off; also look at the hardware.

wipe_disk.py wipes one disk. The lock of each board is held until its own wipe is over and its outlet is off. Whatever
happens here, a board is not free until records/disk_records.py has the proof.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Lost, Refused, StepFailed, TimedOut, naming
from ...core.plays import play
from ...core.typed_keys import as_said
from ...drivers.boot.blame import BOARD, PROXY
from ...drivers.boot.registry import BootDrivers
from ...drivers.boot.shell import NoProgram
from ...roots.ownership import must_never_have_run
from ...roots.provision import made_ready
from ...roots.ram import has_ram_image
from ...roots.used_disks import ACCEPT
from ...site import board_states
from ..boot.ram_boot import in_ram
from ..evidence.free_boards import is_left_on
from ..records import disk_records
from ..work.board_locks import locked
from ..work.board_work import BoardWork, must_be_each_once, summary
from . import wipe_disk
from .canaries import MOST, SAMPLES
from .disk_areas import areas
from .hardware import hardware, in_words
from .wipe_disk import DISCARD, NONE, SAMPLE

if TYPE_CHECKING:
    from ...drivers.boot.shell import Shell
    from ..records.proxy import Proxy
    from .disk_areas import Area
    from .wipe_options import WipeOptions

PHASE = "wipe"
#: Seconds for a look at the hardware, which reads a few files of /proc and /sys.
LOOK_TIME = 60.0
#: Errors that are no fault of a disk: a wrong request, a RAM image without a program, or a board that went away.
NO_DISK_FAULT = (BadInput, Lost, NoProgram, Refused, StepFailed, TimedOut)
#: Why a board is not wiped: a boot into RAM would cut its power, which others may use, and its claim never wrote to its
#: disks.
NOT_WIPED = "not wiped: its outlet is on, and {name} was never started here"


@dataclass(frozen=True)
class WipeRequest:
    """A request to wipe boards.

    :param method: one of wipe_disk.METHODS.
    :param verify: one of wipe_disk.PROOFS; a wipe without a proof frees no board.
    :param samples: number of canaries of a proof beside those at the disk's edges.
    :param inspect: also boot boards without a disk, where they have a RAM image, and report their hardware.
    :param limit: most seconds that one board's disks may take.
    """

    method: str = DISCARD
    verify: str = SAMPLE
    samples: int = SAMPLES
    inspect: bool = False
    limit: float = 86400.0

    @classmethod
    def of(cls, proxy: Proxy, **given: Any) -> WipeRequest:
        """Return the request of the given values, with this proxy's defaults (tftp_proxy_wipe) for those that are None.

        :raises BadInput: a value is not known, or is out of range.
        """
        usual = as_said(proxy.config.wipe)
        unknown = sorted(set(usual) - {"method", "verify", "samples"})
        if unknown:
            raise BadInput(f"has no {', '.join(unknown)}", "tftp_proxy_wipe", "it has method, verify and samples")
        request = cls(**dict(usual, **{name: value for name, value in given.items() if value is not None}))
        for name, known in (("method", wipe_disk.METHODS), ("verify", wipe_disk.PROOFS)):
            if getattr(request, name) not in known:
                what = f"no such {name}: {getattr(request, name)} (known: {', '.join(known)})"
                raise BadInput(what, "wipe", "correct it, or tftp_proxy_wipe")
        if not isinstance(request.samples, int) or not 1 <= request.samples <= MOST:
            raise BadInput(f"samples is {request.samples}", "wipe", f"give 1 to {MOST}, or verify full")
        return request


class Wipe(BoardWork):
    """One board's wipe."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.disks: list[dict[str, Any]] = []
        self.hardware: dict[str, Any] | None = None
        self.needed = False
        self.proof: dict[str, Any] | None = None

    def end(self) -> None:
        """Keep the proof for the result, and release the lock: who has the board next may withdraw the proof."""
        self.proof = disk_records.proof(self.proxy, self.board)
        self.let_go()

    def result(self) -> dict[str, Any]:
        return dict(super().result(), disks=self.disks, proof=self.proof, hardware=self.hardware)


def wipe(
    proxy: Proxy,
    ids: Sequence[int],
    request: WipeRequest,
    options: WipeOptions,
) -> dict[str, Any]:
    """Wipe all disks of those boards whose wipe is not proven yet; return the module's result.

    :param options: lifecycle.Options for the boots into RAM.
    """
    must_be_each_once(ids)
    change = Change(options.check)
    works = [Wipe(proxy, proxy.board(board_id), change, options.instance, options.created) for board_id in ids]
    with locked(works, PHASE, Deadline(options.limit + request.limit)), change.step("wipe"):
        wipe_held(proxy, works, request, options, Wipe.end)
    return summary(works, change)


def wipe_held(
    proxy: Proxy, works: Sequence[Wipe], request: WipeRequest, options: WipeOptions, ended: Callable[[Wipe], None]
) -> None:
    """Wipe boards whose locks the caller holds.

    :param works: a Wipe of each board, read; a work that fails, or has nothing to wipe, is over.
    :param ended: is called with each work as soon as it is over; the wipes of other boards may take hours more.
    """

    def settle(work: Wipe) -> None:
        _settle(work, request)
        ended(work)

    drivers, ready = BootDrivers(proxy, options.driver), []
    for work in works:
        if not work.over:
            _plan(work, request, drivers, options.never_ran)
        if work.over:
            ended(work)
            continue
        _take_out(work)
        if work.over:
            settle(work)
        else:
            ready.append(work)
    in_ram(proxy, ready, options, lambda work, shell: _act(work, shell, request), settle)


def wipe_beside(
    proxy: Proxy,
    works: Sequence[BoardWork],
    request: WipeRequest,
    options: WipeOptions,
    ended: Callable[[BoardWork], None],
) -> None:
    """Wipe boards that are to be given back, as part of other work on them; the caller holds the locks.

    :param works: BoardWork of each board; the work on a board whose disks cannot be wiped fails.
    :param ended: is called with each work as soon as the wipe of its own board is over.
    """
    wipes = [Wipe(proxy, work.board, work.change, work.wanted, work.created) for work in works]
    outer = dict(zip(wipes, works))

    def hand_over(own: Wipe) -> None:
        work = outer[own]
        work.record = own.record if own.is_read else work.record
        work.lines += own.lines
        work.changed = work.changed or own.changed
        if own.failed:
            work.fail(own.blame, str(own.error), **own.evidence)
        ended(work)

    for own in wipes:
        try:
            with naming(own.board.name):
                own.read()
        except HeteroError as error:
            own.fail(None, error, **error.facts)
    wipe_held(proxy, wipes, request, options, hand_over)


def _plan(work: Wipe, request: WipeRequest, drivers: BootDrivers, never_ran: bool) -> None:
    """Find out what is to be done with a board, and fail the work where somebody has the board.

    A dry run takes a board that runs or has a root, for dry runs of its stop and of the root's removal may come before.
    """
    proxy, board, check = work.proxy, work.board, work.change.check
    try:
        if never_ran:
            must_never_have_run(proxy, board, work.claim)
        lost = disk_records.unnamed(proxy, board)
        if lost:
            raise Refused(lost[0], board.name, "then run this again")
        work.needed = bool(disk_records.unwiped(proxy, board))
        if not work.needed and not (request.inspect and has_ram_image(proxy, board)):
            work.over = True
            return
        runs, ready = work.state in (board_states.BOOTING, board_states.RUNNING), made_ready(proxy, board)
        if runs and not check:
            raise Refused(f"is {work.state}", board.name, "stop it first: tilera_boot with state stopped")
        if ready and not check:
            what = f"is made ready for {work.instance or 'somebody'} ({'; '.join(ready)})"
            terminate = play("terminate_instance", instance=work.instance or "NAME")
            raise Refused(what, board.name, f"remove its image first ({terminate} does)")
        if is_left_on(proxy, board, work.claim):
            work.line(PHASE, NOT_WIPED.format(name=work.instance))
            work.over = True
            return
        work.driver = drivers.of(board)
        # Whoever has it on is not known here: an operator at work, or Nova.
        work.only_from_off = work.state == board_states.MAINTENANCE
        if work.needed:
            names = ", ".join(proxy.disks(board))
            work.note(f"{board.name} disks", {"wiped": False}, {"wiped": names, "method": request.method})
        if check:
            first = ", once it is off and nothing is made ready on it" if runs or ready else ""
            work.line(PHASE, f"would boot into RAM{f' and wipe {names}' if work.needed else ''}{first}")
            work.over = True
    except HeteroError as error:
        work.fail(None, error, **error.facts)


def _take_out(work: Wipe) -> None:
    """Put the board into a state in which nobody gets it, with a note that says why."""
    note = "its disks are being wiped" if work.needed else "its hardware is being looked at"
    try:
        with work.proxy.store.transaction():
            work.read()
            if work.state == board_states.POWER_OFF and not work.claim:
                work.move(board_states.ERROR, note)
            if work.state in (board_states.ERROR, board_states.SHUTTING_DOWN):
                work.move(board_states.SHUTTING_DOWN, note)
    except HeteroError as error:
        work.fail(None, error, **error.facts)


def _act(work: Wipe, shell: Shell, request: WipeRequest) -> None:
    """Look at a board that runs from RAM, wipe its disks, and write down what was proven."""
    if request.inspect:
        work.hardware = hardware(shell, Deadline(LOOK_TIME))
        work.say("ram", in_words(work.hardware))
    if not work.needed:
        return
    start, deadline, devices = time.monotonic(), Deadline(request.limit), work.proxy.disks(work.board)
    left, unseen = _left_out(work, shell, devices)

    def one(device: str) -> dict[str, Any] | HeteroError:
        def say(text: str) -> None:
            work.say(PHASE, text, time.monotonic() - start)

        try:
            return wipe_disk.wipe_disk(shell, device, request, deadline, say)
        except HeteroError as error:
            return error

    work.say(PHASE, f"{', '.join(devices)}: {request.method}")
    with ThreadPoolExecutor(max_workers=len(devices)) as threads:
        results = list(threads.map(one, devices))
    errors = [result for result in results if isinstance(result, HeteroError)]
    work.disks = [result for result in results if not isinstance(result, HeteroError)]
    if errors:
        _failed(work, errors)
        return
    record = dict(board=work.board.id, name=work.board.name, time=time.time(), actor=work.proxy.actor, disks=work.disks)
    record.update(asked=request.method, key=work.key_proof)
    record.update(not_wiped=[area.record for area in left], not_looked_for=unseen)
    disk_records.keep(work.proxy, work.board, record)
    done = "; ".join(wipe_disk.in_words(disk) for disk in work.disks)
    work.say(PHASE, done, time.monotonic() - start)


def _left_out(work: Wipe, shell: Shell, devices: list[str]) -> tuple[list[Area], list[str]]:
    """Return the places that the wipe does not reach and the operator accepts, and texts of what was not looked for.

    :raises Refused: there is a place that the operator does not accept; nothing was wiped yet.
    """
    found, unseen = areas(shell, devices, Deadline(LOOK_TIME))
    accepted = work.proxy.wiring(work.board).accept_unwiped or []
    unknown = [area for area in found if area.name not in accepted]
    if unknown:
        names = ", ".join(area.name for area in unknown)
        what = f"a wipe does not reach {', '.join(map(str, unknown))}"
        raise Refused(what, work.board.name, f"or accept it: {ACCEPT}: [{names}] in tftp_proxy_boards")
    for area in found:
        work.say(PHASE, f"not wiped, accepted: {area.name} ({area.text})")
    for text in unseen:
        work.say(PHASE, f"not looked for: {text}")
    return found, unseen


def _settle(work: Wipe, request: WipeRequest) -> None:
    """Note on a board that is to be freed how its wipe ended; the note stays until the board is given back."""
    work.over = True
    if work.record.state != board_states.SHUTTING_DOWN:
        return
    if work.failed:
        note = f"not wiped yet: {work.error}" if work.needed else str(work.error)
    elif work.needed:
        note = "wiped, not proven" if request.verify == NONE else "wiped, proven"
    else:
        note = "looked at"
    work.move(board_states.SHUTTING_DOWN, note)


def _failed(work: Wipe, errors: list[HeteroError]) -> None:
    """Put a board with a faulty disk into state error; for a lost board, or a missing method, only fail the work."""
    text = "; ".join(str(error) for error in errors)
    gone = any(isinstance(error, (Lost, TimedOut)) for error in errors)
    guilty = any(not isinstance(error, NO_DISK_FAULT) for error in errors)
    if guilty and work.state != board_states.MAINTENANCE:
        work.quarantine(f"its disk cannot be wiped: {text}")
    else:
        work.say("error", f"not wiped: {text}")
        work.fail(BOARD if gone else PROXY, f"{text}: run this again" if gone else text)
