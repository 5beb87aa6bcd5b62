# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that are to run: what is done with each is decided once its outlet's state and its own answer are in.

Whether the boot entry is right was seen to before (verbs/lifecycle.py). Boots are switched on and followed in
boot_loop.py.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Iterable, Mapping, Set, Tuple

from ...core.deadline import Deadline
from ...drivers.boot import blame
from ...drivers.boot.ssh import WrongHostKey
from ...site import board_states
from ...site.instance import RUNS_ALREADY
from ..power import last_outlet, power_proof, presence
from ..power.presence import ANOTHERS, HOW_TO_CUT
from ..records.board_records import NO_USE_SEEN, NOBODYS, STATE_PHASE, SWITCH, TO_BE
from ..work.board_work import unread_outlet
from . import late_cuts
from .boot_loop import BootLoop
from .boot_progress import BEGINS, DECIDING, LISTENING
from .broken_drivers import is_broken
from .soft_reboot import SOFT
from .used_root import is_somebodys, may_be_used, note_unwatched, since_found

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from .boot_options import BootOptions
    from .boot_progress import Answer, Boot

#: A boot that another process began: unix time of power on, phases since.
UnderWay = Tuple[float, Set[str]]

#: How long a board that is on, and that nobody may be at work on (used_root.is_somebodys), may take to prove its key
#: before its power is cut (seconds).
SHORT_PATIENCE = 2.0
NOT_PROVEN = "a machine answers at its address {ip} and has not proven its key"
#: Seconds of a look without an answer until it is told.
TELL = 3.0
STILL_ASKED = (
    "its outlet is on, and it does not answer ssh yet: it is asked for up to {quiet:.0f} s, "
    "and where its port takes or refuses calls {longest:.0f} s"
)
SILENT_ON = "its outlet is on, and it does not answer ssh"
SILENT_AT_WORK = (
    "its outlet is on, and it does not answer ssh: its network may be cut, or its sshd, and its tenant's work goes on"
)
#: What a dry run asks of a board that has power (seconds), and what it says of one that proves nothing by then.
DRY_PATIENCE = 6.0
WOULD_ASK = (
    "{why} (asked for {asked:g} s): it would be asked for up to {longest:.0f} s, and left as it is if that stays so; "
    "{cut}"
)
ON_BY_NOW = "its outlet was off and is on by now: not switched, {name} may be at work there: run this again"
ON_OUT_OF_USE = (
    "its outlet is on, and it is in maintenance{note}: nothing is switched, for somebody may be at work there: once it "
    "is known that nobody is, switch {outlet} off (pdu_power)"
)


class Starting(BootLoop):
    """Bring boards to running.

    :param works, options: as of BootLoop.
    :param reboot: cut the power of a board that runs, too.
    """

    def __init__(self, proxy: Proxy, works: Iterable[BoardWork], options: BootOptions, reboot: bool = False) -> None:
        super().__init__(proxy, works, options)
        self.reboot = reboot

    def run(self) -> None:
        """Go on until each board runs or failed."""
        works = [boot.work for boot in self.boots.values()]
        last_outlet.settle(works, self._feeds)
        # What is told by ssh needs no outlet; whatever would switch it looks at the doubt by itself.
        if self.reboot and self.options.how != SOFT:
            last_outlet.refuse_doubted(works)
        for work in works:
            work.look_if_over()
        self.boots = {board: boot for board, boot in self.boots.items() if not boot.work.over}
        self._loop()

    def _begin(self, boot: Boot) -> None:
        self._open_line(boot.work.pdu)
        if not self.check:
            self._spawn(self._listen, boot)
        if boot.work.state == board_states.BOOTING and boot.work.claim and not self.reboot:
            self._look_at_root(boot)
        if not boot.work.system.host_key:
            boot.probe = False  # a dry run on a board that is not made ready
        elif not self.reboot and self._resumes(boot) is None:
            self._probe(boot)

    # ---- looks

    def _probe(self, boot: Boot) -> None:
        """Ask a board that may be on whether it runs what it is to run."""
        boot.is_probed, boot.probe = True, None
        if not is_somebodys(boot.work):
            self._wait_for_ssh(boot, Deadline(SHORT_PATIENCE), self._on_probe)
            return
        boot.cancelled = boot.watching = threading.Event()
        self._spawn(self._look, boot, boot.watching)
        if not self.check:
            teller = threading.Timer(TELL, self._post, (self._tell_look, boot))
            teller.daemon = True
            teller.start()

    @staticmethod
    def _tell_look(boot: Boot) -> None:
        if boot.stage == DECIDING and boot.outlet_now == "on" and boot.probe is None and not boot.work.over:
            quiet, longest = [seconds * presence.strain() for seconds in (presence.QUIET, presence.LONGEST)]
            boot.work.say("wait", STILL_ASKED.format(quiet=quiet, longest=longest))

    def _look(self, boot: Boot, watching: threading.Event) -> None:
        seen = presence.look(boot.work, watching, DRY_PATIENCE if self.check else None)
        self._post(self._on_ssh, boot, watching, self._on_probe, seen, time.monotonic())

    def _look_at_root(self, boot: Boot) -> None:
        boot.used, boot.root_at, boot.since = None, time.monotonic(), since_found(boot.work)
        self._spawn(self._look_into_root, boot, *boot.since)

    def _is_root_known(self, boot: Boot, since: float) -> bool:
        """Return whether it is known if its root is in use; else it is being looked at, and the answer decides.

        :param since: monotonic time of what else the board is judged by; an older look at its root does not count.
        """
        counts = not self._tells_by_root(boot) if boot.root_at is None else boot.root_at >= since - late_cuts.FRESH
        if boot.used is None or boot.used or counts:
            return boot.used is not None
        self._look_at_root(boot)
        return False

    @staticmethod
    def _tells_by_root(boot: Boot) -> bool:
        """Return whether only its root tells if somebody is at work on a board that was not booting, and is on."""
        work = boot.work
        at_rest = work.claim is not None and work.state not in board_states.AT_WORK
        return at_rest and (not work.came_up_before if is_somebodys(work) else work.ran)

    def _look_into_root(self, boot: Boot, since: float | None, phases: set[str]) -> None:
        self._post(self._on_root_seen, boot, may_be_used(boot.work, since, phases))

    def _on_root_seen(self, boot: Boot, used: bool) -> None:
        boot.used = used
        if not boot.work.over:
            self._decide(boot)

    # ---- what to do with a board

    def _on_status(self, pdu: str, outlets: Mapping[str, str]) -> None:
        super()._on_status(pdu, outlets)
        for boot in self._of(pdu):
            if boot.stage == DECIDING and not boot.work.over:
                error = unread_outlet(boot.work, outlets)
                if error is not None:
                    boot.work.fail(blame.PROXY, error)
                    continue
                boot.outlet_now, boot.outlet_at = outlets[boot.work.outlet], time.monotonic()
                if boot.work.as_rebuilt:
                    boot.outlet_now = "off"
                boot.work.power_seen(boot.outlet_now)
                cut_off = boot.work.state in (board_states.BOOTING, board_states.SHUTTING_DOWN) and not self.check
                if boot.outlet_now == "on":
                    boot.has_power.set()
                elif cut_off:
                    boot.work.driver.switched(boot.board, "off")  # by one that was killed before it told
                self._decide(boot)

    def _on_probe(self, boot: Boot, answer: Answer, at: float) -> None:
        answer = presence.OTHER_KEY if isinstance(answer, WrongHostKey) else answer
        left_alone = answer in (presence.ALIVE, presence.OTHER_KEY)
        boot.answered_at = at
        boot.probe = answer if left_alone else answer in (True, presence.OWN_KEY)
        self._decide(boot)

    def _decide(self, boot: Boot) -> None:
        """Decide what is done with a board, by what was observed rather than by its record.

        Nothing is cut before the outlet's state and the board's answer are in.

        A board that answered long before its outlet was read is asked once more, and its root is looked into again.
        """
        work = boot.work
        if boot.stage != DECIDING or boot.outlet_now is None or is_broken(work):
            return
        if work.only_from_off and boot.outlet_now == "on":
            work.fail(None, f"{work.board.name}: {self._why_not(work)}")
        elif self.reboot and boot.outlet_now == "on" and not self._was_ours(boot):
            self._leave_nobodys(boot)
        elif self.reboot:
            self._cold_start(boot)
        elif boot.outlet_now == "off":
            self._found_off(boot)
        elif (under_way := self._resumes(boot)) is not None:
            if self._is_root_known(boot, boot.outlet_at):
                self._resume(boot, under_way)
        elif boot.probe is None:
            if not boot.is_probed:  # the time of a boot that was under way ended since this began
                self._probe(boot)
        elif boot.answered_at is not None and boot.answered_at < boot.outlet_at - late_cuts.FRESH:
            self._probe(boot)
        elif self.check and boot.probe == presence.ALIVE and is_somebodys(work) and not self._may_hang(boot):
            self._would_ask(boot)
        elif boot.probe == presence.OTHER_KEY or (boot.probe == presence.ALIVE and not self._may_hang(boot)):
            note_unwatched(boot.work)
            self._leave(boot, NOT_PROVEN if boot.probe == presence.ALIVE else ANOTHERS)
        elif boot.probe is True:
            work.move(board_states.RUNNING)
            self._feeds.remember(work, False)
            work.line("running", RUNS_ALREADY)
            work.over = True
        elif work.stays_on:
            self._leave_on(boot, SILENT_ON)
        elif not self._is_root_known(boot, max(boot.outlet_at, boot.answered_at or 0.0)):
            return
        elif (work.came_up_before and is_somebodys(work)) or (boot.used and self._was_ours(boot)):
            if self.check:
                self._would_ask(boot)
                return
            note_unwatched(boot.work)
            self._leave(boot, NOT_PROVEN if boot.probe == presence.ALIVE else SILENT_AT_WORK)
        elif self._was_ours(boot):
            note_unwatched(boot.work, NO_USE_SEEN)
            self._cold_start(boot)
        else:
            self._leave_nobodys(boot)

    def _may_hang(self, boot: Boot) -> bool:
        """Return whether a board whose ports answer may hang in its initrd: it boots, and never ran. Its root tells."""
        return boot.work.state == board_states.BOOTING and not boot.work.came_up_before and self._was_ours(boot)

    @staticmethod
    def _would_ask(boot: Boot) -> None:
        """End a dry run's work on a board that is silent, or slow: it waits for none, and that is no failure."""
        work, longest = boot.work, presence.LONGEST * presence.strain()
        why = (NOT_PROVEN if boot.probe == presence.ALIVE else SILENT_ON).format(ip=boot.board.ip)
        cut = HOW_TO_CUT.format(name=work.instance)
        work.say("wait", WOULD_ASK.format(why=why, asked=DRY_PATIENCE, longest=longest, cut=cut))
        work.over = True

    def _leave_nobodys(self, boot: Boot) -> None:
        """Keep a board that is on for nobody out of use, and leave it as it is."""
        work = boot.work
        nobodys = NOBODYS.format(name=work.instance), ""
        why, remedy = (work.doubt.what, f": {work.doubt.remedy}") if work.doubt else nobodys
        if not self.check:
            work.quarantine(why, remedy, at_fault=False)
            return
        work.say("error", why)
        work.over = True

    @staticmethod
    def _leave(boot: Boot, why: str) -> None:
        work, why = boot.work, why.format(ip=boot.board.ip)
        work.say("error", f"the board is left as it is: {why}")
        work.fail(None, f"{work.board.name}: {why}: {HOW_TO_CUT.format(name=work.instance)}")

    def _was_ours(self, boot: Boot) -> bool:
        """Return whether the board has power for its claim; one that is on without that may be somebody's."""
        claim = boot.work.claim
        return claim is None or self.proxy.store.had_power(claim)

    def _listen(self, boot: Boot) -> None:
        """Look for signs of life of a board: as long as of one that is switched off where it had power, else once."""
        work, silence = boot.work, power_proof.Silence(boot.work)
        ran = work.state != board_states.POWER_OFF or (work.claim and self.proxy.store.has_run(work.claim))
        if ran:
            signs = silence.life(boot.has_power)
        else:
            signs = [power_proof.ANSWERS.format(ip=boot.board.ip)] if silence.lives() else []
        self._post(self._on_signs, boot, signs)

    def _found_off(self, boot: Boot) -> None:
        """Listen to a board whose outlet is off before it is switched on: where the board lives, that is another's."""
        if self.check:
            self._cold_start(boot)
            return
        note_unwatched(boot.work)
        boot.stage = LISTENING
        self._on_heard(boot)

    def _on_signs(self, boot: Boot, signs: list[str]) -> None:
        boot.signs, boot.signs_at = signs, time.monotonic()
        self._on_heard(boot)

    def _on_heard(self, boot: Boot) -> None:
        work = boot.work
        if work.over or boot.stage != LISTENING or boot.signs is None or is_broken(work):
            return
        if boot.signs_at < boot.outlet_at - late_cuts.FRESH:  # it may be off since then
            boot.signs = None
            self._spawn(self._listen, boot)
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

    @staticmethod
    def _why_not(work: BoardWork) -> str:
        """Return why a board that is on is not switched on from off."""
        if work.state != board_states.MAINTENANCE:
            return ON_BY_NOW.format(name=work.instance)
        note = work.record.note
        return ON_OUT_OF_USE.format(note=f": {note}" if note else "", outlet=work.outlet_name)

    def _cold_start(self, boot: Boot) -> None:
        """Switch a board off and on, each read back. One that was found off is only switched on."""
        work, before = boot.work, boot.outlet_now
        if work.doubt and not (work.off_by_all and before == "off"):
            last_outlet.refuse(work)
            return
        boot.cancelled.set()
        boot.watching = None
        boot.changed = work.changed
        if before == "off" and not self.check and not self._may_boot(boot):
            return
        way, after = ("on → off → on", "cycled") if before == "on" else ("off → on", "on")
        work.note(
            work.board.name, {"power": before, "state": work.state}, {"power": after, "state": board_states.RUNNING}
        )
        if self.check:
            work.say("power", f"{work.outlet_name} is {before}: {way}")
            work.over = True
        elif before == "on":
            self._off(boot, self._on)
        else:
            boot.cycled = True
            self._on(boot)

    def _found_in_use(self, boot: Boot, shown: str, used: bool) -> None:
        self._undo_note(boot)
        boot.spared += 1
        boot.stage, boot.used, boot.probe = DECIDING, used, shown
        if shown == presence.ALIVE and boot.spared == 1:
            self._probe(boot)
        else:
            self._on_probe(boot, shown, time.monotonic())

    def _undo_note(self, boot: Boot) -> None:
        work = boot.work
        as_found = {"power": "on", "state": work.began}
        work.change.note(work.board.name, as_found, as_found)
        work.changed = boot.changed
        if work.began == board_states.RUNNING:
            work.move(board_states.RUNNING)

    # ---- a boot that another process began

    def _resumes(self, boot: Boot) -> UnderWay | None:
        """Return (unix time of power on, phases since) of a boot under way that is still within its time, else None."""
        if boot.work.state != board_states.BOOTING or self.reboot:
            return None
        begun = self._begun(boot)
        return begun if begun and 0 <= time.time() - begun[0] < self.options.timeout else None

    def _begun(self, boot: Boot) -> UnderWay | None:
        """Return (unix time of power on, phases since) of the boot that was begun last; None where it went wrong."""
        begun: float | None = None
        phases: set[str] = set()
        for event in self.proxy.store.newest_events(boot.board.id, 50):
            if event.phase == SWITCH and event.text.endswith(TO_BE.format(state="on")):
                begun, phases = event.time, set()
            elif event.phase in (STATE_PHASE, SWITCH, "error"):
                begun = None
            elif event.phase in BEGINS and event.text.endswith(BEGINS[event.phase]):
                begun, phases = event.time, set()
            phases.add(event.phase)
        return None if begun is None else (begun, phases)

    def _resume(self, boot: Boot, under_way: UnderWay) -> None:
        begun, phases = under_way
        spent = time.time() - begun
        boot.tries = 1
        boot.take_up(phases, time.monotonic() - spent)
        if boot.used:
            note_unwatched(boot.work)
        if self.check:
            boot.work.say("running", f"boots since {spent:.0f} s; would wait for it")
            boot.work.over = True
            return
        self._count(boot)
        self._follow(boot, Deadline(self.options.timeout - spent))
