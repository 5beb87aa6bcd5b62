# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards on their way to running, all boards of a call in one loop (pdu_loop.py).

Whether the boot entry is right was seen to before (lifecycle.py); whose fault a stall is, blame.py says.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from ..boot.ssh import WrongHostKey
from ..deadline import Deadline
from ..errors import StepFailed
from ..plays import play
from . import blame, console, feeding, power_proof, presence, states
from .board_work import no_outlet
from .boot_entry import remove_entry
from .booting import ASKED, BEGINS, BOOTING, DECIDING, LISTENING, SWITCHING, Boot
from .pdu_loop import PduLoop
from .presence import ANOTHERS, HOW_TO_CUT
from .recorded import MAY_HAVE_RUN, STATE_PHASE, SWITCH, UNWATCHED
from .soft_reboot import SOFT

#: States of a board that somebody uses, or may use: its power is cut only when nobody is there (presence.py).
SOMEBODYS = (states.RUNNING, states.BOOTING)
#: How long any other board that is on may take to prove its key before its power is cut (seconds).
SHORT_PATIENCE = 2.0
NOT_PROVEN = "a machine answers at its address {ip} and has not proven its key"
NOBODYS = (
    "its outlet is on, and {name} was never started here: not switched, somebody may be at work there "
    f"({play('reconcile')} says who)"
)


class Starting(PduLoop):
    """Bring boards to running.

    :param works: BoardWork of each board, locked and read, its boot entry in place.
    :param options: lifecycle.Options.
    :param reboot: cut the power of a board that runs, too.
    """

    def __init__(self, proxy, works, options, reboot=False):
        super().__init__(proxy)
        self.options = options
        self.reboot = reboot
        self.check = options.check
        self.boots = {work.board.id: Boot(work) for work in works}
        self._feeds = feeding.Feeds(proxy)

    def run(self):
        """Until each board runs or failed."""
        works = [boot.work for boot in self.boots.values()]
        feeding.settle(works, self._feeds)
        # What is told by ssh needs no outlet; whatever would switch it looks at the doubt by itself.
        if self.reboot and self.options.how != SOFT:
            feeding.refuse_doubted(works)
        self.boots = {board: boot for board, boot in self.boots.items() if not boot.work.over}
        # Per board a look, a wait for ssh and one that is ending, or a self-test; a thread each PDU, and one that is
        # logging out.
        places = 1 + 4 * len(self.boots) + 2 * len({boot.work.pdu for boot in self.boots.values()})
        with ExitStack() as stack:
            for driver in {boot.work.driver for boot in self.boots.values()}:
                boards = [boot.board for boot in self.boots.values() if boot.work.driver is driver]
                stack.enter_context(driver.watch(boards, self._on_seen))
            self._threads = stack.enter_context(ThreadPoolExecutor(max_workers=places))
            stack.callback(self._end_threads)
            for boot in self.boots.values():
                self._open_line(boot.work.pdu)
                if not self.check:
                    self._spawn(self._listen, boot)
                if not boot.work.system.host_key:
                    boot.probe = False  # a dry run on a board that is not made ready
                elif not self.reboot and self._resumes(boot) is None:
                    self._probe(boot)
            while not all(boot.work.over for boot in self.boots.values()):
                self._turn()
                self._close_lines()

    # ---- threads

    def _end_threads(self):
        for boot in self.boots.values():
            boot.cancelled.set()
            boot.has_power.set()
        for line in self.lines.values():
            line.close()

    def _asks(self, pdu):
        return any(boot.stage not in (ASKED, BOOTING) and not boot.work.over for boot in self._of(pdu))

    def _of(self, pdu, outlet=None):
        return [
            boot
            for boot in self.boots.values()
            if boot.work.pdu == pdu and (outlet is None or boot.work.outlet == outlet)
        ]

    def _wait_for_ssh(self, boot, deadline, handler):
        boot.cancelled.set()
        boot.cancelled = boot.watching = threading.Event()
        self._spawn(self._ssh, boot, boot.watching, deadline, handler)

    def _ssh(self, boot, watching, deadline, handler):
        def report(phase, text):
            self._post(self._on_step, boot, watching, phase, text, time.monotonic())

        try:
            answer = boot.work.driver.answers(boot.board, boot.work.system, deadline, watching, report)
        except (WrongHostKey, StepFailed) as error:
            answer = error
        self._post(self._on_ssh, boot, watching, handler, answer, time.monotonic())

    def _on_step(self, boot, watching, phase, text, at):
        """A step of the driver's own is done."""
        if boot.watching is watching and boot.stage == BOOTING and not boot.work.over:
            boot.phase(phase, text, at)

    def _probe(self, boot):
        """Ask a board that may be on whether it runs what it is to run."""
        if boot.work.state not in SOMEBODYS:
            self._wait_for_ssh(boot, Deadline(SHORT_PATIENCE), self._on_probe)
            return
        boot.watching = boot.cancelled
        self._spawn(self._look, boot, boot.watching)

    def _look(self, boot, watching):
        seen = presence.look(boot.work, watching)
        self._post(self._on_ssh, boot, watching, self._on_probe, seen, time.monotonic())

    def _on_ssh(self, boot, watching, handler, answer, at):
        if boot.watching is watching and not boot.work.over:
            handler(boot, answer, at)

    # ---- what to do with a board

    def _on_status(self, pdu, outlets):
        for boot in self._of(pdu):
            if boot.stage == DECIDING and not boot.work.over:
                boot.outlet_now = outlets.get(boot.work.outlet)
                if boot.outlet_now is None:
                    boot.work.fail(blame.PROXY, no_outlet(boot.work, outlets))
                    continue
                if boot.work.as_rebuilt:
                    boot.outlet_now = "off"
                boot.work.power_seen(boot.outlet_now)
                cut_off = boot.work.state in (states.BOOTING, states.SHUTTING_DOWN) and not self.check
                if boot.outlet_now == "on":
                    boot.has_power.set()
                elif cut_off:
                    boot.work.driver.switched(boot.board, "off")  # by one that was killed before it told
                self._decide(boot)

    def _on_probe(self, boot, answer, at):
        answer = presence.OTHER_KEY if isinstance(answer, WrongHostKey) else answer
        left_alone = answer in (presence.ALIVE, presence.OTHER_KEY)
        boot.probe = answer if left_alone else answer in (True, presence.OWN_KEY)
        self._decide(boot)

    def _decide(self, boot):
        """Observed truth beats the record; nothing is cut before the outlet's state and the board's answer are in."""
        work = boot.work
        if boot.stage != DECIDING or boot.outlet_now is None:
            return
        if self.reboot:
            self._cold_start(boot)
        elif boot.outlet_now == "off":
            self._found_off(boot)
        elif self._resumes(boot) is not None:
            self._resume(boot, self._resumes(boot))
        elif boot.probe in (presence.ALIVE, presence.OTHER_KEY):
            self._leave(boot, NOT_PROVEN if boot.probe == presence.ALIVE else ANOTHERS)
        elif boot.probe:
            work.move(states.RUNNING)
            self._feeds.remember(work, False)
            work.line("running", "already running, ssh answers with its own host key")
            work.over = True
        elif boot.probe is not None and self._was_ours(boot):
            self._cold_start(boot)
        elif boot.probe is not None:
            nobodys = NOBODYS.format(name=work.instance), ""
            why, remedy = (work.doubt.what, f": {work.doubt.remedy}") if work.doubt else nobodys
            if not self.check:
                work.quarantine(why, remedy)
                return
            work.say("error", why)
            work.over = True

    @staticmethod
    def _leave(boot, why):
        work, why = boot.work, why.format(ip=boot.board.ip)
        work.say("error", f"the board is left as it is: {why}")
        work.fail(None, f"{work.board.name}: {why}: {HOW_TO_CUT.format(name=work.instance)}")

    def _was_ours(self, boot):
        """Whether the board has power for its claim: a board that is on for nobody is somebody's."""
        claim = boot.work.claim
        return claim is None or self.proxy.store.had_power(claim)

    def _listen(self, boot):
        """One that had power is listened to as long as one that is switched off; what is new there needs one look."""
        work, silence = boot.work, power_proof.Silence(boot.work)
        ran = work.state != states.POWER_OFF or (work.claim and self.proxy.store.has_run(work.claim))
        if ran:
            signs = silence.life(boot.has_power)
        else:
            signs = [power_proof.ANSWERS.format(ip=boot.board.ip)] if silence.lives() else []
        self._post(self._on_signs, boot, signs)

    def _found_off(self, boot):
        """An outlet that is off feeds nobody who is at work; where the board lives on, it is another's."""
        if self.check:
            self._cold_start(boot)
            return
        if boot.work.began == states.BOOTING and boot.work.claim:
            boot.work.say(UNWATCHED, MAY_HAVE_RUN.format(name=boot.work.instance))
        boot.stage = LISTENING
        self._on_heard(boot)

    def _on_signs(self, boot, signs):
        boot.signs = signs
        self._on_heard(boot)

    def _on_heard(self, boot):
        work = boot.work
        if work.over or boot.stage != LISTENING or boot.signs is None:
            return
        if not boot.signs:
            boot.stage = DECIDING
            self._cold_start(boot)
            return
        note = power_proof.contradiction(work, boot.signs)
        if not self._was_ours(boot):
            work.quarantine(note)
            return
        work.say("error", f"nothing is switched: {note}")
        work.fail(None, f"{work.board.name}: {note}")

    def _cold_start(self, boot):
        """Off, verified; then on, verified. A board found off is not cycled: it was just read as off."""
        work, before = boot.work, boot.outlet_now
        if work.doubt and not (work.off_by_all and before == "off"):
            feeding.refuse(work)
            return
        boot.cancelled.set()
        boot.watching = None
        way, after = ("on → off → on", "cycled") if before == "on" else ("off → on", "on")
        work.note(work.board.name, {"power": before, "state": work.state}, {"power": after, "state": states.RUNNING})
        if self.check:
            work.say("power", f"{work.outlet_name} is {before}: {way}")
            work.over = True
        elif before == "on":
            self._off(boot, self._on)
        else:
            boot.cycled = True
            self._on(boot)

    def _off(self, boot, then):
        if boot.work.doubt and not boot.work.power_proof:
            feeding.refuse(boot.work)  # another process began this boot
            return
        boot.stage, boot.then, boot.way = SWITCHING, then, "on → off → on"
        if boot.work.state == states.RUNNING and then == self._on:
            boot.work.move(states.BOOTING)
        self._ask(boot, "off")

    def _on(self, boot):
        boot.stage = SWITCHING
        boot.tries += 1
        boot.forget()
        boot.work.before_boot()
        if boot.work.over:
            return
        console.begin(self.proxy, boot.board)
        boot.work.move(states.BOOTING)
        self._ask(boot, "on")

    def _ask(self, boot, state):
        # Written down before it is done: whoever takes over must not take an earlier boot for the one that begins here.
        self.proxy.store.event(boot.board.id, SWITCH, f"{boot.work.outlet_name} is to be switched {state}")
        self._open_line(boot.work.pdu)
        self.lines[boot.work.pdu].ask(boot.work.outlet, state)

    def _on_switched(self, pdu, outlet, before, after, seconds):
        for boot in self._of(pdu, outlet):
            work = boot.work
            if boot.stage != SWITCHING or work.over:
                continue
            boot.outlet_now = after
            work.power_seen(after)
            work.driver.switched(boot.board, after)
            boot.switch_seconds += seconds
            if after == "off":
                boot.cycled = True
                boot.then(boot)
            else:
                self._powered(boot)

    def _powered(self, boot):
        work = boot.work
        boot.powered = time.monotonic()
        boot.stage = BOOTING
        work.phases["power"] = boot.switch_seconds
        work.power_proof = dict(pdu=f"{boot.way}, read back", board=None)
        work.say("power", f"{work.outlet_name}: {boot.way}, read back", boot.switch_seconds)
        boot.switch_seconds = 0.0
        self._follow(boot, Deadline(self.options.timeout))

    def _follow(self, boot, deadline):
        if not self.options.wait:
            boot.work.over = True
            return
        boot.progress()
        self._wait_for_ssh(boot, deadline, self._on_answer)

    # ---- a boot that another process began

    def _resumes(self, boot):
        """(unix time of power on, phases since) of a boot under way that is still within its time, else None."""
        work = boot.work
        if work.state != states.BOOTING or self.reboot:
            return None
        begun, phases = None, set()
        for event in self.proxy.store.newest_events(boot.board.id, 50):
            if event.phase in (STATE_PHASE, SWITCH, "error"):
                begun = None
            elif event.phase in BEGINS and event.text.endswith(BEGINS[event.phase]):
                begun, phases = event.time, set()
            phases.add(event.phase)
        if begun is None or not 0 <= time.time() - begun < self.options.timeout:
            return None
        return begun, phases

    def _resume(self, boot, under_way):
        begun, phases = under_way
        spent = time.time() - begun
        boot.tries = 1
        boot.take_up(phases, time.monotonic() - spent)
        if self.check:
            boot.work.say("running", f"boots since {spent:.0f} s; would wait for it")
            boot.work.over = True
            return
        self._follow(boot, Deadline(self.options.timeout - spent))

    # ---- phases

    def _on_seen(self, board_id, kind, name, at, sender):
        self.boots[board_id].work.seen(kind, name, sender)
        self._post(self._seen, board_id, kind, name, at)

    def _seen(self, board_id, kind, name, at):
        boot = self.boots[board_id]
        if boot.work.over or boot.stage == DECIDING or (boot.stage == SWITCHING and boot.outlet_now == "on"):
            return  # of an earlier boot
        boot.see(kind, name, at)

    def _on_answer(self, boot, answer, at):
        if answer is True:
            boot.work.came_up()
            boot.work.move(states.RUNNING)
            boot.phase(*boot.work.up, at)
            power_proof.of_running(boot)
            self._feeds.remember(boot.work, power_proof.is_by_its_outlet(boot))
            boot.work.over = True
        else:
            boot.failed_step = answer if isinstance(answer, StepFailed) else None
            self._stalled(boot, answer if isinstance(answer, WrongHostKey) else None)

    # ---- a boot that went wrong

    def _stalled(self, boot, wrong_key):
        if wrong_key and not boot.cycled:
            # Nobody here saw this board's power go: the answer may come from before.
            self._off(boot, self._on)
            return
        self._spawn(self._self_test, boot, wrong_key)

    def _self_test(self, boot, wrong_key):
        driver, seen = boot.work.driver, list(boot.strangers)
        faults = driver.self_test(boot.board)
        self._post(self._judge, boot, wrong_key, faults, [] if faults else driver.strangers(boot.board, seen))

    def _judge(self, boot, wrong_key, faults, strangers):
        work = boot.work
        spent = time.monotonic() - boot.powered
        who = blame.verdict(faults, boot.asked, wrong_key, boot.kinds, strangers)
        note = blame.failed_step(boot.failed_step, boot.kinds, boot.tries)
        root = work.system.root
        note = note or blame.stalled(boot.asked, boot.kinds, spent, boot.tries, boot.console, boot.flash, root)
        if wrong_key:
            note = blame.wrong_feed(boot.board, work.pdu, work.outlet)
        work.evidence = dict(
            seconds=round(spent, 1),
            tries=boot.tries,
            seen=sorted(boot.kinds),
            asked=boot.roles,
            console=boot.console,
            console_tail=blame.console_tail(boot.console, boot.console_from),
            self_test=faults,
            strangers=strangers,
            **(boot.failed_step.facts if boot.failed_step else {}),
        )
        if who == blame.PROXY:
            text = "; ".join(faults)
            work.say("error", f"the proxy's fault, the board is left as it is: {text}")
            work.fail(blame.PROXY, f"{work.board.name}: {note}; the proxy itself fails: {text}")
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
            boot.doomed = note
            self._off(boot, self._quarantine)

    def _prove_off(self, boot, end):
        self._spawn(lambda: self._post(self._give_back, boot, power_proof.Silence(boot.work).life(), end))

    def _give_back(self, boot, signs, end):
        """Not the board's fault: it is sound, off and without a boot entry; its claim waits for who asked."""
        if signs:
            boot.doomed = power_proof.contradiction(boot.work, signs)
            self._quarantine(boot)
            return
        end(boot.work)

    @staticmethod
    def _end_network(work, note, strangers):
        text = "; ".join(strangers)
        work.move(states.SHUTTING_DOWN, f"its network is not the proxy's alone: {text}")
        remove_entry(work)
        work.say("error", f"the network's fault, the board is switched off: {text}")
        what = f"{work.board.name}: {note}; not the board's fault, {text}"
        work.fail(blame.NETWORK, f"{what}: take that machine off the boards' network, then ask again")

    @staticmethod
    def _end_image(work, note):
        work.move(states.SHUTTING_DOWN, f"its image does not boot: {note}")
        remove_entry(work)
        tail = "\n".join(work.evidence["console_tail"])
        work.say("error", f"the image does not boot: {note}" + (f"\n{tail}" if tail else ""))
        work.fail(blame.IMAGE, f"{work.board.name}: {work.image_name} does not boot: {note}{blame.SLOW}")

    @staticmethod
    def _quarantine(boot):
        boot.work.quarantine(boot.doomed, blame.SLOW if boot.kinds else "")

    def _on_refused(self, pdu, outlet, error):
        """An outlet that does not obey: the board behind it cannot be relied on, whatever else was wrong."""
        for boot in self._of(pdu, outlet):
            if boot.stage == SWITCHING and not boot.work.over:
                boot.work.say("power", str(error))
                boot.doomed = f"{boot.doomed}; {error}" if boot.doomed else str(error)
                boot.work.evidence.update(error.facts)
                self._quarantine(boot)

    def _on_down(self, pdu, line, error):
        """The PDU cannot be talked to: its boards are left as they are, but for those found guilty already."""
        if self.lines.get(pdu) is not line:
            return  # it was done with before
        del self.lines[pdu]
        for boot in self._of(pdu):
            if boot.work.over or boot.stage in (ASKED, BOOTING):
                continue
            if boot.doomed:
                boot.doomed += f"; its outlet was not switched off ({error})"
                self._quarantine(boot)
                continue
            boot.work.say("error", f"the board is left as it is: {error}")
            boot.work.fail(blame.PROXY, error, **error.facts)
