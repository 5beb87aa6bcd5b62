# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verb `wipe` for many boards: into RAM, all disks at once, proven, off again; and with it a look at the hardware.

How one disk is wiped is wipe_disk.py's. A board is kept from the free ones until its proof stands (disks.py), whatever
happens here.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..boot.registry import BootDrivers
from ..change import Change
from ..deadline import Deadline
from ..errors import BadInput, HeteroError, Lost, Refused, StepFailed, TimedOut
from ..images.provision import made_ready
from ..images.ram import has_ram_image
from . import disks, states
from .blame import BOARD, PROXY
from .board_work import BoardWork, locked, summary
from .hardware import hardware, in_words
from .ram_boot import in_ram
from .wipe_disk import DISCARD, wipe_disk

PHASE = "wipe"
#: A few files of /proc and /sys are read.
LOOK_TIME = 60.0
#: Errors that say nothing against a disk: what was asked for, and a board that went away.
NO_DISK_FAULT = (BadInput, Lost, Refused, StepFailed, TimedOut)


@dataclass(frozen=True)
class Wish:
    """What is to be done with the boards.

    :param method: one of wipe_disk.METHODS.
    :param verify: prove it; what is not proven frees no board.
    :param inspect: boot boards without a disk, too, where they have a RAM image, and say what they are made of.
    :param limit: the longest that one board's disks may take (seconds).
    """

    method: str = DISCARD
    verify: bool = True
    inspect: bool = False
    limit: float = 86400.0


class Wipe(BoardWork):
    """One board's wipe."""

    def __init__(self, *args):
        super().__init__(*args)
        self.disks = []
        self.hardware = None
        self.needed = False

    def result(self):
        proof = disks.proof(self.proxy, self.board)
        return dict(super().result(), disks=self.disks, proof=proof, hardware=self.hardware)


def wipe(proxy, ids, wish, options):
    """Wipe all disks of boards that no proof stands for; the module's result.

    :param options: lifecycle.Options for the boots into RAM.
    """
    if len(set(ids)) != len(ids):
        raise BadInput("names a board twice", "boards", "name each once")
    change = Change(options.check)
    works = [Wipe(proxy, proxy.board(board_id), change, options.instance) for board_id in ids]
    with locked(works, PHASE, Deadline(options.limit + wish.limit)), change.step("wipe"):
        wipe_held(proxy, works, wish, options)
    return summary(works, change)


def wipe_held(proxy, works, wish, options):
    """The same for whoever holds the boards' locks.

    :param works: a Wipe of each board, read; one that fails, or has nothing to be wiped, is over.
    """
    drivers = BootDrivers(proxy, options.driver)
    for work in works:
        if not work.over:
            _plan(work, wish, drivers)
    todo = [work for work in works if not work.over]
    for work in todo:
        _take_out(work)
    ready = [work for work in todo if not work.over]
    in_ram(proxy, ready, options, lambda work, shell: _act(work, shell, wish))
    for work in todo:
        _settle(work, wish)


def wipe_beside(proxy, works, options):
    """Wipe what stands in the way of giving boards back; part of other work on them, whose caller holds the locks.

    :param works: BoardWork of each board; one whose disks cannot be wiped fails.
    """
    wipes = [Wipe(proxy, work.board, work.change, work.wanted) for work in works]
    for own in wipes:
        own.read()
    wipe_held(proxy, wipes, Wish(), options)
    for work, own in zip(works, wipes):
        work.record = own.record
        work.lines += own.lines
        work.changed = work.changed or own.changed
        if own.failed:
            work.fail(own.blame, own.error, **own.evidence)


def _plan(work, wish, drivers):
    """What there is to do; a board that is somebody's is not touched."""
    proxy, board = work.proxy, work.board
    try:
        work.needed = bool(disks.unwiped(proxy, board))
        if not work.needed and not (wish.inspect and has_ram_image(proxy, board)):
            work.over = True
            return
        if work.state in (states.BOOTING, states.RUNNING):
            raise Refused(f"is {work.state}", board.name, "stop it first: tilera_boot with state stopped")
        ready = made_ready(proxy, board)
        if ready:
            what = f"is made ready for {work.instance or 'somebody'} ({'; '.join(ready)})"
            raise Refused(what, board.name, "remove its image first (playbook terminate_instance does)")
        work.driver = drivers.of(board)
        if work.needed:
            names = ", ".join(proxy.disks(board))
            work.note(f"{board.name} disks", {"wiped": False}, {"wiped": names, "method": wish.method})
        if work.change.check:
            work.line(PHASE, f"would boot into RAM{f' and wipe {names}' if work.needed else ''}")
            work.over = True
    except HeteroError as error:
        work.fail(None, error, **error.facts)


def _take_out(work):
    """Nobody gets the board meanwhile, and whoever looks sees why."""
    note = "its disks are being wiped" if work.needed else "its hardware is being looked at"
    try:
        with work.proxy.store.transaction():
            work.read()
            if work.state == states.POWER_OFF and not work.claim:
                work.move(states.ERROR, note)
            if work.state in (states.ERROR, states.SHUTTING_DOWN):
                work.move(states.SHUTTING_DOWN, note)
    except HeteroError as error:
        work.fail(None, error, **error.facts)


def _act(work, shell, wish):
    """On the board: look, wipe, and write down what was proven."""
    if wish.inspect:
        work.hardware = hardware(shell, Deadline(LOOK_TIME))
        work.say("ram", in_words(work.hardware))
    if not work.needed:
        return
    start, deadline, devices = time.monotonic(), Deadline(wish.limit), work.proxy.disks(work.board)

    def one(device):
        def say(text):
            work.say(PHASE, text, time.monotonic() - start)

        try:
            return wipe_disk(shell, device, wish.method, wish.verify, deadline, say)
        except HeteroError as error:
            return error

    work.say(PHASE, f"{', '.join(devices)}: {wish.method}")
    with ThreadPoolExecutor(max_workers=len(devices)) as threads:
        results = list(threads.map(one, devices))
    errors = [result for result in results if isinstance(result, HeteroError)]
    work.disks = [result for result in results if not isinstance(result, HeteroError)]
    if errors:
        _failed(work, errors)
        return
    record = dict(board=work.board.id, name=work.board.name, time=time.time(), actor=work.proxy.actor, disks=work.disks)
    disks.keep(work.proxy, work.board, dict(record, asked=wish.method))
    done = "; ".join(_in_words(disk) for disk in work.disks)
    work.say(PHASE, done, time.monotonic() - start)


def _settle(work, wish):
    """What there is to know of a board that is on its way to the free ones, until it is given back."""
    work.over = True
    if work.record.state != states.SHUTTING_DOWN:
        return
    if work.failed:
        note = f"not wiped yet: {work.error}" if work.needed else work.error
    elif work.needed:
        note = "wiped, proven" if wish.verify else "wiped, not proven"
    else:
        note = "looked at"
    work.move(states.SHUTTING_DOWN, note)


def _failed(work, errors):
    """A disk that fails costs its board; a board that went away, or a method that its disk has not, does not."""
    text = "; ".join(str(error) for error in errors)
    gone = any(isinstance(error, (Lost, TimedOut)) for error in errors)
    guilty = any(not isinstance(error, NO_DISK_FAULT) for error in errors)
    if guilty and work.state != states.MAINTENANCE:
        work.quarantine(f"its disk cannot be wiped: {text}")
    else:
        work.say("error", f"not wiped: {text}")
        work.fail(BOARD if gone else PROXY, f"{text}: run this again" if gone else text)


def _in_words(disk):
    seen = f"{disk['passes'][-1]['canaries']} canaries gone" if disk["proven"] else "not proven"
    return f"{disk['device']} {disk['serial']}: {disk['bytes'] >> 20} MB by {disk['method']}, {seen}".replace(" :", ":")
