# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch boards off: outlet off and read back, boot entry removed, the claim untouched; at all PDUs at once.

A board's state is "shutting down" afterwards, until its claim is released (board_image, board_claim). One that lives
on is fed by another outlet, so its own, which may feed another tenant's board, is switched on again if it was on
before, and so is one that silences another tenant's board. Where a process was killed before it saw what it had cut,
the next one looks.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.plays import play
from ...drivers.boot import blame
from ...site import board_states
from ..power import last_outlet, power_proof, presence, unseen_cuts
from ..power.by_outlet import ByOutlet
from ..power.bystanders import SEEN_LATE, Bystanders
from ..power.pdu_loop import PduLoop
from ..power.presence import ANOTHERS, HOW_TO_CUT, is_others
from ..records.board_records import NOBODYS, POWER, SWITCH
from ..work.board_work import unread_outlet
from .boot_entry import remove_entry
from .broken_drivers import is_broken
from .late_cuts import FRESH, UNSEEN
from .undone_cuts import NOT_OFF, Undo, end_uncut, undo_of_cut
from .used_root import note_if_used

if TYPE_CHECKING:
    from ..power.pdu_line import PduLine
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from .boot_options import BootOptions

#: How a person ends an instance that never had its board's power, and switches the board off; {board} is its name.
WAYS_OUT = (
    f"{play('terminate_instance', instance='{name}')} ends it and leaves the outlet as it is; then "
    f"{play('repair', node='{board}')} switches it off, once it is known that nobody is at work there"
)
#: The same of a board that nobody has, which came up since it was seen as silent; {board} is its name.
NOBODYS_WAY = f"see who is at work there; then {play('repair', node='{board}')} switches it off"


class Stopping(PduLoop):
    """Switch boards off.

    :param works: BoardWork of each board, locked and read.
    :param options: lifecycle.Options.
    """

    def __init__(self, proxy: Proxy, works: Sequence[BoardWork], options: BootOptions) -> None:
        super().__init__(proxy)
        self.check = options.check
        self.keep, self.ends, self.by_guess = options.keep, options.ends, options.by_guess
        self.only_looks = options.only_looks
        self.works = works
        self.silences = {work.board.id: power_proof.Silence(work) for work in works}
        self._bystanders = Bystanders(proxy, self.silences)
        self._found_on: dict[int, str] = {}  # board id: the state that the board gets once it is off
        self._looked: dict[int, float] = {}  # board id: monotonic time when the look at it ended
        self._left: dict[int, str | None] = {}  # board id: why it is not to be cut by that look, or None
        self._states: dict[int, str] = {}  # board id: its state until its outlet was to be switched off
        self._shown: dict[int, str] = {}  # board id: what it showed while its outlet was off
        self._cut: dict[int, Deadline] = {}  # board id: counts from when its outlet was switched off, or found so
        self._dark: dict[int, float] = {}  # board id: seconds for which it was off when it was found so
        self._silent: dict[int, list[int]] = {}  # board id: others' boards that fell silent when it was
        self._unread: set[int] = set()  # ids of boards whose outlets were neither on nor off
        self._undone: dict[int, Undo] = {}  # board id: why its outlet is being switched on again
        self._doubted: set[int] = set()  # ids of boards that are refused, if in doubt, once it is seen what was cut

    def run(self) -> None:
        """Run until each board is off or failed."""
        self._feeds = last_outlet.Feeds(self.proxy)
        last_outlet.settle(self.works, self._feeds)
        # An instance that never had power ends without any switching, whatever board its outlet feeds.
        doubted = [work for work in self.works if not (self.ends and work.never_had_power)]
        # One whose outlet was switched off is refused once it is seen whom that cut.
        self._doubted = {work.board.id for work in doubted if self._is_unseen(work)}
        last_outlet.refuse_doubted([work for work in doubted if work.board.id not in self._doubted])
        for work in self.works:
            work.look_if_over()
        self.works = [work for work in self.works if not work.over]
        names = {work.pdu for work in self.works}
        # A thread for each PDU, and one for each board, which looks at it.
        with ThreadPoolExecutor(max_workers=max(1, len(names) + len(self.works))) as threads:
            self._threads = threads
            try:
                for work in [] if self.check else self.works:
                    self._spawn(self._look_before, work)
                for name in names:
                    self._open_line(name)
                self._take_turns(self.works)
            finally:
                for line in self.lines.values():
                    line.close()
        self._keep_measures()

    def _all_works(self) -> Sequence[BoardWork]:
        return self.works

    def _asking(self, pdu: str) -> list[BoardWork]:
        return self._of(pdu)

    def _asks(self, pdu: str) -> bool:
        return self._outlets.any(pdu, lambda work: not work.over)

    def _of(self, pdu: str, outlet: str | None = None) -> list[BoardWork]:
        return [work for work in self._outlets.of(pdu, outlet) if not work.over]

    @cached_property
    def _outlets(self) -> ByOutlet[BoardWork]:
        return ByOutlet(self.works, lambda work: (work.pdu, work.outlet))

    # ---- what the board shows

    def _is_unseen(self, work: BoardWork) -> bool:
        unseen = None if self.check else unseen_cuts.of(self.proxy, work.board.id)
        return unseen is not None and unseen.seconds is not None

    def _look_before(self, work: BoardWork) -> None:
        self._post(self._on_looked_before, work, self._why_left(work))

    def _why_left(self, work: BoardWork) -> str | None:
        """Look at a board, and return why it must not be cut, or None; for any thread."""
        silence, state = self.silences[work.board.id], self._states.get(work.board.id, work.state)
        silence.before()
        # The end of an instance cuts whatever its outlet feeds; a stop must not cut a board that shows another key.
        asks = self.keep and state != board_states.ERROR  # one out of use is stopped to be mended
        if silence.answered and self.by_guess and work.claim is None:
            return power_proof.ANSWERS.format(ip=work.board.ip)
        return ANOTHERS.format(ip=work.board.ip) if asks and silence.answered and is_others(work) else None

    def _on_looked_before(self, work: BoardWork, why: str | None) -> None:
        """Go on with a board that was looked at, where its outlet was already read as on."""
        self._looked[work.board.id] = time.monotonic()
        self._left[work.board.id] = why
        if not work.over and work.board.id in self._found_on:  # of one that is off, what answers is no reason
            self._judge(work)

    def _judge(self, work: BoardWork) -> None:
        """Switch off a board whose outlet is on, unless the look at it, which is not FRESH seconds old, forbids it."""
        why = self._left[work.board.id]
        if is_broken(work):
            return
        if why:
            self._leave(work, why)
        elif work.doubt:
            last_outlet.refuse(work)
        elif self._bystanders.find(work):
            self._spawn(self._look_around, work)
        else:
            self._switch_off(work)

    def _leave(self, work: BoardWork, why: str) -> None:
        work.say("error", f"the board is left as it is: {why}")
        way = HOW_TO_CUT.format(name=work.instance) if work.claim else NOBODYS_WAY.format(board=work.board.name)
        work.fail(None, f"{work.board.name}: {why}: {way}")

    def _look_around(self, work: BoardWork) -> None:
        self._bystanders.before(work)
        self._post(self._switch_off, work)

    def _switch_off(self, work: BoardWork) -> None:
        if work.over:
            return
        self._states[work.board.id] = work.state
        with self.proxy.store.transaction():
            work.move(self._found_on[work.board.id])
            work.power_seen("on")
            self.proxy.store.event(work.board.id, SWITCH, self._bystanders.to_be_cut(work))
        looked = self._looked[work.board.id]
        self._then(self.lines[work.pdu].ask, work.outlet, "off", partial(self._is_still_to_be_cut, work, looked))

    def _is_still_to_be_cut(self, work: BoardWork, looked: float) -> bool:
        """Look once more, in the session that is to switch the outlet, where its PDU was waited for since."""
        if time.monotonic() - looked <= FRESH:
            return True
        try:
            if self._bystanders.watched(work):
                self._bystanders.before(work)
            why = self._why_left(work)
        except (HeteroError, OSError) as error:
            self._post(self._on_unseen, work, error)
            return False
        if why:
            self._post(self._on_spared, work, why)
        return not why

    def _on_unseen(self, work: BoardWork, error: HeteroError | OSError) -> None:
        """Leave a board as it is that could not be looked at."""
        if not work.over:
            self._stay_on(work)
            work.fail(None, UNSEEN.format(board=work.board.name, error=error))

    def _on_spared(self, work: BoardWork, why: str) -> None:
        if not work.over:
            self._stay_on(work)
            self._leave(work, why)

    def _stay_on(self, work: BoardWork) -> None:
        work.move(self._states[work.board.id])
        self.proxy.store.event(work.board.id, SWITCH, f"{work.outlet_name} stays on")

    def _look_after(self, work: BoardWork, then: Callable[[BoardWork, list[str]], None]) -> None:
        signs = self.silences[work.board.id].life()
        if signs and then == self._on_silence:
            self._shown[work.board.id] = presence.shown(work)
        off = self._cut.get(work.board.id)
        if off and not self._lives(work, signs):
            self._silent[work.board.id] = self._bystanders.silent(work, off, not signs)
        elif not off and self._bystanders.recalled(work):
            self._silent[work.board.id] = self._bystanders.silent(work, Deadline(0), not signs)
        self._post(then, work, signs)

    def _lives(self, work: BoardWork, signs: list[str]) -> bool:
        return power_proof.are_its_own(signs, self._shown.get(work.board.id, presence.SILENT))

    # ---- its outlet

    def _on_status(self, pdu: str, outlets: Mapping[str, str]) -> None:
        for work in self._of(pdu):
            if work.board.id in self._cut:
                continue  # by a line that was opened to switch it on again
            error = unread_outlet(work, outlets)
            # At the end of an instance one that is neither on nor off is switched as one that is on: a board can make
            # its port tell so (uhubctl.py), and where it is gone its port searches for ever (snmp_tables.py).
            if error is not None and not (self.ends and work.outlet in outlets and not work.never_had_power):
                work.fail(blame.PROXY, error)
                continue
            if error is not None:
                self._unread.add(work.board.id)
            now = "on" if error else outlets[work.outlet]
            if now == "on" and self.only_looks:
                work.over = True
                continue
            if now == "on" and work.unproven:
                work.refuse_unproven()
                continue
            if now == "on" and work.never_had_power:
                self._leave_on(work)
                continue
            after = work.state if work.state == board_states.POWER_OFF else board_states.SHUTTING_DOWN
            told = board_states.POWER_OFF if self.keep or self.ends else after  # what the rest of the verb makes it
            work.note(work.board.name, {"power": now, "state": work.state}, {"power": "off", "state": told})
            if self.check:
                if now == "on":
                    work.say("power", f"{work.outlet_name} is on: on → off")
                self._off(work)
            elif now == "off":
                work.move(after)
                work.power_seen(now)
                work.driver.switched(work.board, now)  # a process that switched it may have been killed before this
                work.power_proof = dict(pdu="off, read", board=None)
                dark = self._bystanders.recall(work)
                if dark is not None:
                    self._cut[work.board.id], self._dark[work.board.id] = Deadline(0), dark
                self._spawn(self._look_after, work, self._on_silence)
            else:
                self._found_on[work.board.id] = after
                looked = self._looked.get(work.board.id)
                if looked is not None and looked < time.monotonic() - FRESH:
                    self._spawn(self._look_before, work)  # its PDU was waited for since
                elif looked is not None:
                    self._judge(work)

    def _leave_on(self, work: BoardWork) -> None:
        """Leave a board on whose outlet was never switched on for its claim: somebody else may be at work on it."""
        why = NOBODYS.format(name=work.instance)
        work.power_seen("on")
        if self.ends:
            work.say("power", f"{work.outlet_name}: {why}")
            self._off(work)
            return
        work.say("error", why)
        ways = WAYS_OUT.format(name=work.instance, board=work.board.name)
        work.fail(blame.INSTANCE, f"{work.board.name}: {why}: {ways}")

    def _off(self, work: BoardWork) -> None:
        note_if_used(work)  # it may have come up while its PDU was waited for
        if work.state in (board_states.POWER_OFF, board_states.SHUTTING_DOWN) and not self.check:
            self.proxy.store.move(work.board.id, work.state, work.record.note)  # so its claim's record says it, too
        work.over = True
        self._then(remove_entry, work)

    def _on_switched(self, pdu: str, outlet: str, before: str, after: str, seconds: float) -> None:
        for work in self._of(pdu, outlet):
            work.power_seen(after)
            work.driver.switched(work.board, after)
            work.phases["power"] = work.phases.get("power", 0.0) + seconds
            if work.board.id in self._undone:
                self._end_uncut(work)
                continue
            self._cut[work.board.id] = Deadline(0)
            work.power_proof = dict(pdu="on → off, read back", board=None)
            self._spawn(self._look_after, work, self._on_silence)

    def _undo(self, work: BoardWork, undo: Undo) -> None:
        """Switch the outlet of a board on again: what was on by it is not this board.

        At once, whatever becomes of what is written in this turn: somebody is without power.
        """
        self._undone[work.board.id] = undo
        self._open_line(work.pdu)
        self.lines[work.pdu].ask(work.outlet, "on")

    def _end_uncut(self, work: BoardWork) -> None:
        work.power_proof = dict(work.power_proof or {}, pdu="on → off → on, read back")
        self._say_undone(work)
        seconds = self._cut[work.board.id].spent + self._dark.get(work.board.id, 0.0)
        end_uncut(work, NOT_OFF, self._undone[work.board.id], seconds)

    def _say_undone(self, work: BoardWork) -> None:
        """Say why an outlet was switched on again; not before, for a process that is killed leaves that to the next."""
        work.say(POWER, self._undone[work.board.id].note, work.phases.get(POWER))

    def _end_off(self, work: BoardWork, error: HeteroError) -> None:
        """End the work on a board whose outlet could not be switched on again."""
        undo = self._undone[work.board.id]
        self._say_undone(work)
        note = f"{undo.note}; its outlet was not switched on again ({error})"
        work.quarantine(note, undo.learn(work), **dict(error.facts, power_proof=work.power_proof))

    def _on_silence(self, work: BoardWork, signs: list[str]) -> None:
        """End the work on a board whose outlet is off; put it into state error where the board still shows life."""
        silence, seconds = self.silences[work.board.id], work.phases.get("power")
        cut = self._bystanders.cut(work, self._silent.get(work.board.id, ()))
        if cut:
            undo = undo_of_cut(work, self._feeds, cut)
            work.shows(undo.shows)
            self._undo(work, undo)
            return
        unsure = self._bystanders.may_be_cut(work, self._silent.get(work.board.id, ()))
        if unsure:
            work.say(last_outlet.PHASE, unsure)
        if signs and is_broken(work):
            return
        if signs:
            work.shows(" and ".join(signs))
            note = power_proof.contradiction(work, signs)
            own = self._lives(work, signs)
            if own and work.board.id in self._cut:
                self._undo(work, Undo(note, " and ".join(signs), self._shown.get(work.board.id), self._feeds.belie))
                return
            work.say(POWER, note, seconds)
            work.quarantine(note, self._feeds.belie(work) if own else "", power_proof=work.power_proof)
            return
        if seconds is None:
            work.shows("silent")  # nothing was switched, so there is nothing to say
            if self._bystanders.recalled(work) and not unsure:
                work.say(POWER, SEEN_LATE.format(outlet=work.outlet_name))
        else:
            work.shows(silence.words or silence.unproven)
            work.say(POWER, f"{work.outlet_name}: on → off, read back; {silence.words or silence.unproven}", seconds)
        if work.board.id in self._doubted:
            last_outlet.refuse_doubted([work])
        if not work.over:
            self._off(work)

    def _on_refused(self, pdu: str, outlet: str, error: HeteroError) -> None:
        for work in self._of(pdu, outlet):
            if work.board.id in self._undone:
                self._end_off(work, error)
                continue
            work.power_proof = dict(pdu=error.what, board=None)
            self._spawn(self._look_after, work, partial(self._on_stuck, error=error))

    def _on_stuck(self, work: BoardWork, signs: list[str], error: HeteroError) -> None:
        """Put a board whose outlet stays on into state error, and record whether the board itself is still alive."""
        shown = " and ".join(signs) or "silent"
        work.shows(shown)
        work.say(POWER, f"{error}; the board: {shown}")
        if work.board.id in self._unread:  # its name may be wrong, and the board sound
            work.fail(blame.PROXY, error, **error.facts)
            return
        work.quarantine(str(error), **dict(error.facts, power_proof=work.power_proof))

    def _on_down(self, pdu: str, line: PduLine, error: HeteroError) -> None:
        if self.lines.get(pdu) is line:
            del self.lines[pdu]  # one that is to be on again gets a new session
        for work in self._of(pdu):
            if work.board.id in self._undone:
                self._end_off(work, error)
                continue
            if work.board.id in self._cut:
                continue  # it is off, and the look at it tells what follows
            self._bystanders.lost(work)
            work.say("error", f"the board is left as it is: {error}")
            work.fail(blame.PROXY, error, **error.facts)
