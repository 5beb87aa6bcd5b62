# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot boards, all boards of a call in one loop (power/pdu_loop.py): switch them on, follow each until its system
answers, and give up those that do not. drivers/boot/blame.py tells whose fault that is.

starts.py handles boards that have power already.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Callable, Iterable

from ...core.deadline import Deadline
from ...core.errors import StepFailed
from ...core.plays import play
from ...drivers.boot import blame
from ...drivers.boot.ssh import WrongHostKey
from ...site import board_states
from ..power import last_outlet, power_proof
from ..power.bystanders import Bystanders
from ..records.board_records import AND_ON, SWITCH, TO_BE
from ..work import console
from . import power_marks
from .boot_entry import remove_entry
from .boot_progress import BOOTING, DECIDING, FROM_OFF, LOOKING, SWITCHING, Boot
from .broken_drivers import is_broken
from .late_cuts import LateCuts
from .left_on import LeftOn
from .proven_cuts import ProvenCuts
from .queued_boots import UNFOLLOWED
from .silent_boots import SilentBoots
from .wired_boots import WITHOUT_PDU

if TYPE_CHECKING:
    from ...core.errors import HeteroError
    from ..power.pdu_line import PduLine
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from .boot_options import BootOptions
    from .boot_progress import Answer

#: A function that takes a board's answer and its time; the next step for a boot; the end of the work on a board.
OnAnswer = Callable[["Boot", "Answer", float], None]
Step = Callable[["Boot"], None]
End = Callable[["BoardWork"], None]

#: Hint for a board that made no request at all.
CABLE = (
    "; see that its network cable (port of {mac}) and its plug ({outlet}) are in and feed this board: "
    f"{play('cabling')} proves the outlet"
)
#: Note on a board whose PDU was lost while its outlet was to be switched, and what is said of one that was cut by then.
UNREAD = "it is not known whether its outlet was switched: {error}"
CYCLED = "its outlet was switched off, and may not be on again"
ALONE = "take that machine off the boards' network"


class BootLoop(LeftOn, ProvenCuts, LateCuts, SilentBoots):
    """Boot boards, each until it runs or fails.

    :param works: BoardWork of each board, locked and read, its boot entry in place.
    :param options: lifecycle.Options.
    """

    def __init__(self, proxy: Proxy, works: Iterable[BoardWork], options: BootOptions) -> None:
        super().__init__(proxy)
        self.options = options
        self.check = options.check
        self.boots = {work.board.id: Boot(work) for work in works}
        self._feeds = last_outlet.Feeds(proxy)
        self._bystanders = Bystanders(proxy, self.boots)

    def _loop(self) -> None:
        """Loop until each board runs or failed."""
        # Threads for each board: two looks, a wait for ssh and one that is ending (or a self-test), and an early
        # self-test. For each PDU: its session, and one that is logging out. And two that listen for end requests, and
        # for places among the boards that boot.
        places = 3 + 6 * len(self.boots) + 2 * len({boot.work.pdu for boot in self.boots.values()})
        with ExitStack() as stack:
            for driver in {boot.work.driver for boot in self.boots.values()}:
                boards = [boot.board for boot in self.boots.values() if boot.work.driver is driver]
                stack.enter_context(driver.watch(boards, self._on_seen))
            self._threads = stack.enter_context(ThreadPoolExecutor(max_workers=places))
            stack.callback(self._end_threads)
            stack.enter_context(self._open_places())
            self._spawn(self._listen_for_ends)
            self._spawn(self._listen_for_places)
            for boot in self.boots.values():
                if not is_broken(boot.work):
                    self._begin(boot)
            self._take_turns(self._all_works())
        self._keep_measures()

    # ---- threads

    def _end_threads(self) -> None:
        self._ended.set()
        for boot in self.boots.values():
            boot.cancelled.set()
            boot.has_power.set()
        for line in self.lines.values():
            line.close()

    def _wait_for_ssh(self, boot: Boot, deadline: Deadline, handler: OnAnswer) -> None:
        boot.cancelled.set()
        boot.cancelled = boot.watching = threading.Event()
        self._spawn(self._ssh, boot, boot.watching, deadline, handler)

    def _ssh(self, boot: Boot, watching: threading.Event, deadline: Deadline, handler: OnAnswer) -> None:
        def report(phase: str, text: str) -> None:
            self._post(self._on_step, boot, watching, phase, text, time.monotonic())

        try:
            answer: Answer = boot.work.driver.answers(boot.board, boot.work.system, deadline, watching, report)
        except (WrongHostKey, StepFailed) as error:
            answer = error
        self._post(self._on_ssh, boot, watching, handler, answer, time.monotonic())

    def _on_step(self, boot: Boot, watching: threading.Event, phase: str, text: str, at: float) -> None:
        """Report a step of the boot driver that is done."""
        if boot.watching is watching and boot.stage == BOOTING and not boot.work.over:
            boot.phase(phase, text, at)

    def _on_ssh(self, boot: Boot, watching: threading.Event, handler: OnAnswer, answer: Answer, at: float) -> None:
        if boot.watching is watching and not boot.work.over:
            handler(boot, answer, at)

    # ---- power

    def _off(self, boot: Boot, then: Step) -> None:
        if is_broken(boot.work):
            return
        if boot.work.doubt and not boot.work.power_proof:
            last_outlet.refuse(boot.work)  # another process began this boot
            return
        boot.stage, boot.then, boot.way = SWITCHING, then, "on → off → on"
        if boot.work.state == board_states.RUNNING and then == self._on:
            boot.work.move(board_states.BOOTING)
        self._cut(boot)

    def _on(self, boot: Boot) -> None:
        boot.stage = SWITCHING
        boot.tries += 1
        console.begin_anew(self.proxy, boot.board)
        boot.forget()
        boot.work.before_boot()
        if boot.work.over:
            return
        self._places.take_free(boot.board.id)
        console.begin(self.proxy, boot.board)
        boot.work.move(board_states.BOOTING)
        self._ask(boot, "on")

    def _ask(self, boot: Boot, state: str) -> None:
        # Written before the switching, so that a process that takes over does not mistake an earlier boot for this one,
        # and knows where one was cut off (evidence/cut_boots.py).
        mark = power_marks.begins(self.proxy, boot.board) if state == "on" else None
        again = AND_ON if state == "off" and boot.then == self._on else ""
        on = f"{boot.work.outlet_name} {TO_BE.format(state=state)}"
        text = f"{self._bystanders.to_be_cut(boot.work)}{again}" if state == "off" else on
        self.proxy.store.event(boot.board.id, SWITCH, text)
        if mark is not None:
            self._then(mark)
        self._open_line(boot.work.pdu)
        last_look = self._last_look(boot) if state == "off" else None
        self._then(self.lines[boot.work.pdu].ask, boot.work.outlet, state, last_look)

    def _on_switched(self, pdu: str, outlet: str, before: str, after: str, seconds: float) -> None:
        for boot in self._of(pdu, outlet):
            work = boot.work
            if boot.stage != SWITCHING or work.over:
                continue
            boot.outlet_now = after
            work.power_seen(after)
            work.driver.switched(boot.board, after)
            boot.switch_seconds += seconds
            if after == "off":
                self._prove_cut(boot, boot.then)
            elif boot.undo:
                self._end_uncut(boot, boot.undo)
            else:
                self._powered(boot)

    def _powered(self, boot: Boot) -> None:
        work = boot.work
        boot.powered = time.monotonic()
        boot.stage = BOOTING
        work.phases["power"] = boot.switch_seconds
        work.power_proof = dict(pdu=f"{boot.way}, read back", board=None)
        work.say("power", f"{work.outlet_name}: {boot.way}, read back", boot.switch_seconds)
        boot.switch_seconds = 0.0
        self._follow(boot, Deadline(self.options.timeout))

    def _follow(self, boot: Boot, deadline: Deadline) -> None:
        if not self.options.wait:
            self._places.leave(boot.board.id, UNFOLLOWED)
            boot.work.over = True
            return
        boot.progress()
        self._wait_for_ssh(boot, deadline, self._on_answer)
        self._spawn(self._listen_for_requests, boot, boot.watching)

    # ---- phases

    def _on_seen(self, board_id: int, kind: str, name: str, at: float, sender: str) -> None:
        self.boots[board_id].work.seen(kind, name, sender)
        self._post(self._seen, board_id, kind, name, at)

    def _seen(self, board_id: int, kind: str, name: str, at: float) -> None:
        boot = self.boots[board_id]
        if boot.work.over or boot.stage == DECIDING or (boot.stage == SWITCHING and boot.outlet_now == "on"):
            return  # of an earlier boot
        boot.see(kind, name, at)
        self._count(boot)

    def _on_answer(self, boot: Boot, answer: Answer, at: float) -> None:
        if answer is True:
            boot.work.came_up()
            with self.proxy.store.transaction():  # so that its claim's record is written once
                boot.work.move(board_states.RUNNING)
                boot.phase(*boot.work.up, at)
                power_proof.of_running(boot)
                self._feeds.remember(boot.work, power_proof.is_by_its_outlet(boot))
            boot.work.over = True
        else:
            boot.answered_at = at
            boot.failed_step = answer if isinstance(answer, StepFailed) else None
            self._stalled(boot, answer if isinstance(answer, WrongHostKey) else None)

    # ---- a boot that went wrong

    def _stalled(self, boot: Boot, wrong_key: WrongHostKey | None) -> None:
        if wrong_key and not (boot.cycled or boot.work.stays_on or boot.may_be_at_work):
            # This call did not see the board's power off, so the answer may come from a system that ran before.
            self._off(boot, self._on)
            return
        self._spawn(self._self_test, boot, wrong_key)

    def _self_test(self, boot: Boot, wrong_key: WrongHostKey | None) -> None:
        driver, seen = boot.work.driver, list(boot.strangers)
        faults = driver.self_test(boot.board, boot.work.system)
        self._post(self._judge, boot, wrong_key, faults, [] if faults else driver.strangers(boot.board, seen))

    def _judge(self, boot: Boot, wrong_key: WrongHostKey | None, faults: list[str], strangers: list[str]) -> None:
        work = boot.work
        spent = time.monotonic() - boot.powered
        if boot.early and not (faults or boot.was_served) and boot.tries > self.options.retries:
            faults = boot.early  # the proxy may serve again by now, but did not when this board's firmware asked
        who = blame.verdict(faults, boot.asked, wrong_key, boot.kinds, strangers)
        note = blame.failed_step(boot.failed_step, boot.kinds, boot.tries)
        root = work.system.root
        note = note or blame.stalled(boot.asked, boot.kinds, spent, boot.tries, boot.console, boot.flash, root)
        note = blame.with_sign(note, boot.console, boot.console_from)
        if wrong_key:
            own = boot.may_be_at_work
            note = blame.own_root(boot.board) if own else blame.wrong_feed(boot.board, work.pdu, work.outlet)
        work.evidence = dict(
            boot.failed_step.facts if boot.failed_step else {},
            seconds=round(spent, 1),
            tries=boot.tries,
            seen=sorted(boot.kinds),
            asked=boot.roles,
            console=boot.console,
            console_tail=blame.console_tail(boot.console, boot.console_from),
            self_test=faults,
            strangers=strangers,
        )
        if who == blame.PROXY:
            text = "; ".join(faults)
            work.say("error", f"the proxy's fault, the board is left as it is: {text}")
            work.fail(blame.PROXY, f"{work.board.name}: {note}; the proxy itself fails: {text}")
        elif boot.may_be_at_work or (work.stays_on and not (wrong_key and boot.cycled)):
            alone = f"{note}; {'; '.join(strangers)}: {ALONE}"
            self._look_before_left(boot, alone if who == blame.NETWORK else note, who)
        elif who == blame.NETWORK and boot.tries > self.options.retries:
            self._off(boot, partial(self._prove_off, end=partial(self._end_network, note=note, strangers=strangers)))
        elif who == blame.NETWORK:
            work.say("error", f"{note}; {'; '.join(strangers)}; trying again")
            self._off(boot, self._on)
        elif who == blame.IMAGE:
            self._off(boot, partial(self._prove_off, end=partial(self._end_image, note=note)))
        elif not wrong_key and boot.tries <= self.options.retries:
            work.say("error", f"{note}; trying again")
            self._off(boot, self._on)
        else:
            boot.doomed, boot.unheard = note, not (boot.kinds or boot.asked or wrong_key)
            self._off(boot, self._quarantine)

    def _prove_off(self, boot: Boot, end: End) -> None:
        self._spawn(lambda: self._post(self._give_back, boot, power_proof.Silence(boot.work).life(), end))

    def _give_back(self, boot: Boot, signs: list[str], end: End) -> None:
        """End the work on a board that is off without a fault of its own; its claim stays for its owner.

        :param signs: signs of life; where there are any, the board goes to state error instead.
        :param end: ends the work.
        """
        if signs:
            boot.doomed = power_proof.contradiction(boot.work, signs)
            self._quarantine(boot)
            return
        end(boot.work)

    @staticmethod
    def _end_network(work: BoardWork, note: str, strangers: list[str]) -> None:
        text = "; ".join(strangers)
        work.move(board_states.SHUTTING_DOWN, f"its network is not the proxy's alone: {text}")
        work.proxy.store.commit()
        remove_entry(work)
        work.say("error", f"the network's fault, the board is switched off: {text}")
        what = f"{work.board.name}: {note}; not the board's fault, {text}"
        work.fail(blame.NETWORK, f"{what}: {ALONE}, then ask again")

    @staticmethod
    def _end_image(work: BoardWork, note: str) -> None:
        work.move(board_states.SHUTTING_DOWN, f"its image does not boot: {note}")
        work.proxy.store.commit()
        remove_entry(work)
        tail = "\n".join(work.evidence["console_tail"])
        work.say("error", f"the image does not boot: {note}" + (f"\n{tail}" if tail else ""))
        work.fail(blame.IMAGE, f"{work.board.name}: {work.image_name} does not boot: {note}{blame.SLOW}")

    @staticmethod
    def _quarantine(boot: Boot) -> None:
        cable = CABLE.format(mac=boot.board.mac, outlet=boot.work.outlet_name) if boot.unheard else ""
        boot.work.quarantine(boot.doomed, blame.SLOW if boot.kinds else cable)

    def _on_refused(self, pdu: str, outlet: str, error: HeteroError) -> None:
        """Put boards into state error whose outlet does not obey, whatever else was wrong with them."""
        for boot in self._of(pdu, outlet):
            if boot.stage == SWITCHING and not boot.work.over:
                boot.work.say("power", str(error))
                boot.doomed = f"{boot.doomed}; {error}" if boot.doomed else str(error)
                boot.work.evidence.update(error.facts)
                self._quarantine(boot)

    def _on_down(self, pdu: str, line: PduLine, error: HeteroError) -> None:
        """Fail the boards of a PDU that does not answer and leave them as they are; those with a fault go to error."""
        if self.lines.get(pdu) is not line:
            return  # this session was ended before
        del self.lines[pdu]
        for boot in self._of(pdu):
            if boot.work.over or boot.stage in WITHOUT_PDU:
                continue
            self._bystanders.lost(boot.work)
            if boot.stage == LOOKING:
                self._leave_unread(boot, error)
                continue
            if boot.doomed:
                boot.doomed += f"; its outlet was not switched {'on again' if boot.undo else 'off'} ({error})"
                self._quarantine(boot)
                continue
            left = "the board is left as it is"
            if boot.stage == SWITCHING:
                boot.work.move(boot.work.state, UNREAD.format(error=error))
                left = CYCLED if boot.outlet_now == "off" and boot.way != FROM_OFF else left
            boot.work.say("error", f"{left}: {error}")
            boot.work.fail(blame.PROXY, error, **error.facts)
