# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move an instance with its root from one board to another of the same proxy; what boots it there is not of this file.

1. The new board is kept for the instance: in state "shutting down", with a note. It must be off, and what nobody left
   there is removed.
2. The old one is switched off, which is read back; its export ends and the root is unmounted.
3. The claim, with its record, gets the new board, in one transaction, in which the old board comes to be kept for it.
4. The root's folder is renamed.
5. Once the instance runs (instances/kinds/board_moves.py), or is back, what is kept for it and not its own is freed.

Killed anywhere it goes on. Until 3 the instance has its old board, and from then on the new one. Between 3 and 4 the
root lies in the place of the old one: nobody gets that board, and nothing of it is removed (roots/misplaced_roots.py).
Boards that are kept are told by their notes; the lock of the old one is held until 5, so that reconcile, which frees
what nobody has, leaves it alone as long as this lasts.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused, naming
from ...drivers.boot.registry import BootDrivers
from ...roots import moved_root
from ...roots.ownership import is_of_claim
from ...roots.recorded_boards import is_recorded
from ...site import board_states
from ..image.board_images import clean
from ..power.last_outlet import Feeds
from ..power.outlet_power import outlet_power
from ..power.power_proof import lives
from ..records import console_logs
from ..records.board_records import CLAIM_PHASE, STATE_PHASE
from ..records.claim_records import Kept
from ..records.store import NOBODY, must_be_of
from ..records.suspect_boards import is_suspect
from ..work.board_locks import locked
from ..work.board_work import BoardWork, summary
from ..work.cut_off_moves import MOVES, PHASE
from ..work.each_board import board_of
from ..work.move_targets import Others, is_kept, must_be_movable, target_of, why_taken
from .lifecycle import switch_off
from .release import free_board, release

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .lifecycle import Options

TAKEN = "was taken meanwhile: {why}"
#: The note of a board out of use that the instance has left.
FAILED = "{note} (it was switched off since, and {name} has left it)"
#: The beginning of the event that says why a board is out of use that an instance is about to leave.
OUT_OF_USE = "is left, and is out of use: "
RUN_AGAIN = "run this again, which looks for another one"
NOT_OFF = "is not off: its outlet is {power}"
ANSWERS = "is off by its outlet, and something answers at {ip}"
SEE = "see who is at work there; or name another board (-e board=N)"


class Migration:
    """The move of one instance.

    :param claim: the claim, as it was looked up.
    :param options: the options of its verbs, with `instance` and `created` of the claim.
    :ivar fault: why the board that it left is out of use, which it then stays; None for one that is kept, and freed.
    """

    def __init__(self, proxy: Proxy, claim: Claim, options: Options) -> None:
        self.proxy, self.name, self.options = proxy, claim.instance, options
        self.fault: str | None = None
        self._found: str | None = None  # the same, as the board's own note has it
        self._made = claim
        self._held = ExitStack()

    @property
    def claim(self) -> Claim:
        """Return the claim as it is now.

        :raises Refused: it was ended meanwhile.
        """
        claim = self.proxy.store.claim_of(self.name)
        if claim is None or not claim.is_same(self._made):
            raise Refused("was ended meanwhile", self.name, "nothing more is done")
        return claim

    @property
    def board(self) -> Board:
        """Return the board that the instance has now."""
        return board_of(self.proxy, self.claim)

    @property
    def left(self) -> Board | None:
        """Return the board that the instance has left, where that is kept for it; else None."""
        note = board_states.LEFT.format(name=self.name)
        return next((board for board, record in self._kept() if record.note == note), None)

    @property
    def is_under_way(self) -> bool:
        """Return whether the instance came to its board by a move that is not over: it did not run there yet."""
        store, claim = self.proxy.store, self.claim
        newest = store.newest_told(CLAIM_PHASE, "%", claim.board)
        if newest is None or MOVES.partition("{")[0] not in newest.text:
            return False
        ran = store.first_since_claim(claim, STATE_PHASE, f"% → {board_states.RUNNING}%")
        failed = store.record(claim.board).state == board_states.ERROR
        return self.left is not None or (ran is None and not failed)

    def _kept(self) -> list[tuple[Board, Record]]:
        """Return the boards that are kept for the instance, and nobody is on by their own records."""
        proxy, records = self.proxy, self.proxy.store.records(sorted(self.proxy.boards))
        kept = {number: record for number, record in records.items() if is_kept(record, self.name)}
        return [(proxy.board(number), record) for number, record in kept.items() if not is_recorded(proxy, number)]

    def target(self, wanted: int | None) -> Board:
        """Return the board that it may move to.

        :raises Refused: what it has cannot move.
        :raises NoneFree: no board would do.
        """
        must_be_movable(self.proxy, self.claim, self.board, self.options.check)
        return target_of(self.proxy, self.claim, wanted)

    # ---- what a move that was killed has left

    def finish(self) -> dict[str, Any] | None:
        """Take up a move that was killed between the claim and the root, or before its claim was committed.

        :returns: the module's result; None where there is nothing of it.
        """
        claim, proxy = self.claim, self.proxy
        old = moved_root.lies_at(proxy, claim, claim.board)
        own = proxy.store.kept(claim.board)
        # Without its own record, or with one of the former board, which a move removes, the database may be older than
        # a move the other way: reconcile finds that out.
        is_cut_off = old in proxy.boards and own and own.claim.is_same(claim) and not is_recorded(proxy, old)
        if old is not None and is_cut_off:
            return self._on([proxy.board(old), self.board], self._bring_left)
        stale = [kept.claim.board for _path, kept in proxy.store.kept_anywhere() if kept.claim.is_same(claim)]
        stale = [number for number in stale if number != claim.board and number in proxy.boards]
        if not stale or not is_of_claim(proxy, self.board, claim):
            return None
        return self._on([self.board, proxy.board(stale[0])], self._forget_record)

    def _bring_left(self, old: BoardWork, new: BoardWork) -> None:
        """Bring the root after its claim."""
        must_be_of(old.claim, NOBODY, old.board.name)
        switch_off(self.proxy, [old], replace(self.options, ends=True, by_guess=True))
        if not old.failed and self._note(new, old.board, new.board):
            self._bring(old, new)

    def _forget_record(self, work: BoardWork, other: BoardWork) -> None:
        """Remove the record of a board that the instance did not get, and write that of its own where it is lost."""
        if other.claim is None and not work.change.check:
            with self.proxy.store.transaction():
                if self.proxy.store.kept(work.board.id) is None:
                    self.proxy.store.keep_anew(work.board.id)
                self.proxy.store.keep_anew(other.board.id)

    # ---- the move

    def move(self, target: Board) -> dict[str, Any]:
        """Move the instance to a board, and return the module's result; where that failed, it has its old board.

        The lock of the old one is held until `let_go`.
        """
        self._held.close()
        self._found, old = None, self.board
        try:
            return self._on([old, target], self._move, keeps=True)
        finally:
            self._put_out_of_use(old)

    def _move(self, old: BoardWork, new: BoardWork) -> None:
        store, claim = self.proxy.store, self.claim
        if not claim.is_same(old.claim):
            raise Refused(f"left {old.board.name} meanwhile", self.name, "run this again, which looks where it is")
        must_be_movable(self.proxy, claim, old.board, old.change.check)
        self._found = self._fault_of(old)
        self.fault = None if self._found is None else FAILED.format(note=self._found, name=self.name)
        if not self._note(old, old.board, new.board):
            return
        self._must_be_off(new)
        self._keep(new)
        if self._found is not None:  # a stop ends the state that says so
            store.event(old.board.id, PHASE, f"{OUT_OF_USE}{self._found}", instance=self.name)
        clean(self.proxy, new.board, None, new.change, new.say, Deadline(self.options.limit))
        switch_off(self.proxy, [old], replace(self.options, keep=True))
        if old.failed:
            return
        moved_root.let_go(self.proxy, old.board)
        with store.transaction():
            self._give(claim, old, new)
        self._bring(old, new)

    def _fault_of(self, old: BoardWork) -> str | None:
        """Return why the board that is left is out of use, also where a move that was cut off has stopped it since."""
        if old.state == board_states.ERROR:
            return old.record.note if is_suspect(old.record) else None
        store, claim = self.proxy.store, self.claim
        said = store.first_since_claim(claim, PHASE, f"{OUT_OF_USE}%", newest=True)
        began = store.first_since_claim(claim, STATE_PHASE, f"% → {board_states.BOOTING}%", newest=True)
        if said is None or old.state in board_states.AT_WORK or (began is not None and began.id > said.id):
            return None
        return said.text[len(OUT_OF_USE) :]

    def _put_out_of_use(self, board: Board) -> None:
        """Put a board that is out of use back into that state, where the instance did not leave it after all."""
        store = self.proxy.store
        record = store.record(board.id)
        if self._found is not None and record.state == board_states.POWER_OFF and self._made.is_same(record.claim):
            store.move(board.id, board_states.ERROR, self._found)

    def _note(self, work: BoardWork, old: Board, new: Board) -> bool:
        return work.note(f"{self.name} board", {"board": old.name}, {"board": new.name})

    def _keep(self, new: BoardWork) -> None:
        """Keep a free board, which was just seen off, for the instance."""
        store, note = self.proxy.store, board_states.GOES_THERE.format(name=self.name)
        feeds, others = Feeds(self.proxy), Others(self.proxy, self.claim)
        with store.transaction():  # a claim needs no lock of a board
            record = store.record(new.board.id)
            if is_kept(record, self.name):
                return
            why = why_taken(feeds, new.board, record)
            why = why or others.held({new.board.name: None}).get(new.board.name)
            if why:
                raise Refused(TAKEN.format(why=why), new.board.name, RUN_AGAIN)
            store.move(new.board.id, board_states.ERROR, note)
            store.move(new.board.id, board_states.SHUTTING_DOWN, note)
            store.power_seen(new.board.id, "off")

    def _must_be_off(self, new: BoardWork) -> None:
        """Raise Refused where a board that nobody has is on, or its address taken, before anything is done with it."""
        seen: dict[str, Any] = {"id": new.board.id}

        def tell(_pdu: str, text: str) -> None:
            new.say("wait", text)

        unread = "; ".join(outlet_power(self.proxy, [seen], Deadline(self.options.limit), tell=tell).values())
        if seen["power"] != "off":
            raise Refused(NOT_OFF.format(power=unread or seen["power"] or "not known"), new.board.name, SEE)
        if lives(BootDrivers(self.proxy).of(new.board), new.board):
            raise Refused(ANSWERS.format(ip=new.board.ip), new.board.name, SEE)

    def _give(self, claim: Claim, old: BoardWork, new: BoardWork) -> None:
        """Give the instance its new board, and keep the old one, unless it is out of use."""
        store, note = self.proxy.store, board_states.LEFT.format(name=self.name)
        if not claim.is_same(store.record(old.board.id).claim):
            raise Refused("was ended meanwhile", self.name, "nothing more is done")
        there = store.record(new.board.id)
        if not is_kept(there, self.name):
            raise Refused(TAKEN.format(why="it is not kept any more"), new.board.name, RUN_AGAIN)
        store.move(new.board.id, board_states.SHUTTING_DOWN, there.note)  # so that its record is written first
        kept = Kept(replace(claim, board=new.board.id), board_states.POWER_OFF, "", store.has_run(claim))
        store.adopt(kept, kept.state, "", MOVES.format(board=old.board.name))
        store.event(old.board.id, CLAIM_PHASE, f"{self.name} moved to {new.board.name}", instance=self.name)
        store.move(old.board.id, board_states.ERROR, self.fault or note)
        if self.fault is None:
            store.move(old.board.id, board_states.SHUTTING_DOWN, note)

    def _bring(self, old: BoardWork, new: BoardWork) -> None:
        """Bring the root after its claim."""
        moved_root.bring(self.proxy, self.claim, old.board, new.board)
        console_logs.ended(self.proxy.config, old.board, self.name)
        new.record = self.proxy.store.record(new.board.id)
        new.say(PHASE, f"{MOVES.format(board=old.board.name)}, which is off")

    # ---- afterwards

    def let_go(self) -> dict[str, Any] | None:
        """Free the boards that are kept for the instance; return the module's result, None where there are none."""
        self._held.close()
        kept, change = self._kept(), Change(self.options.check)
        if not kept:
            return None
        options = replace(self.options, instance=NOBODY, created=(), by_guess=True)
        works = [BoardWork(self.proxy, board, change, NOBODY) for board, _record in kept]

        def free(work: BoardWork) -> None:
            free_board(self.proxy, work)
            work.changed = True
            work.say(PHASE, "off and clean: anybody's")

        with locked(works, PHASE, Deadline(options.limit)):
            release(self.proxy, [work for work in works if is_kept(work.record, self.name)], options, free=free)
        return summary(works, change)

    def _on(
        self, boards: list[Board], act: Callable[[BoardWork, BoardWork], None], keeps: bool = False
    ) -> dict[str, Any]:
        """Act on two boards under their locks; return the module's result.

        :param keeps: hold the lock of the first one until `let_go`, where it did not fail.
        """
        change, options = Change(self.options.check), self.options
        works = [BoardWork(self.proxy, board, change) for board in boards]
        for work in works:
            work.wanted = self.name if self.proxy.store.record(work.board.id).claim else NOBODY
        first, second = works
        stack = locked(works, PHASE, Deadline(options.limit), stays=True)
        with ExitStack() as here:
            here.push(stack)
            if not (first.over or second.over):
                try:
                    with change.step(PHASE), naming(first.board.name):
                        act(first, second)
                except HeteroError as error:
                    first.fail(first.blame, error, **error.facts)
            if keeps and not (first.failed or second.failed):
                second.let_go()
                self._held.push(here.pop_all())  # only that of the first one is still held
        result = summary(works, change)
        return dict(result, boards=[board for board in result["boards"] if board["instance"] == self.name])
