# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the outlet that fed a claim's board last with the one that its wiring names, so that nothing is switched off
by a wiring that was changed by mistake.

The outlet is written into the claim's own record (records/claim_records.py) once the board has shown its key. Another
outlet in the wiring counts where it is proven: the old outlet is off and the board shows its key, or both are off. Else
nothing is switched until the wiring is corrected or an operator confirms it (verbs/reconciliation.py).

A board that lives on while its outlet is off is fed by another one. Its record keeps that (Fed.belied), or an event
where that is lost, and its outlet is not switched for it again until the wiring or the plug is right.

A board whose record is lost, cannot be read, is of an earlier claim or was belied may be fed by any outlet. While there
is one, a board whose own record does not name the outlet of its wiring is not switched off either. A copy of another
board's good record counts for nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Collection, Iterable, Sequence

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...roots.board_parts import disk_of_board, root_of_board
from ...site import board_states
from ..records.claim_records import Fed
from . import pdu_names, presence, unseen_cuts
from .doubt import Doubt
from .outlet_power import statuses
from .power_proof import Silence
from .recorded_feeds import RecordedFeeds

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .board_views import PowerLook, PowerWork

#: The phase of the event that another outlet is now known to feed a board.
PHASE = "wiring"
#: Most seconds to wait for PDUs whose only session others have, as in pdu_loop.py.
LONGEST = 90.0
#: Most boards that are looked at at the same time.
MOST_LOOKED_AT = 64
#: States in which a board may show its key, which tells by which outlet it runs.
ON = (board_states.RUNNING, board_states.BOOTING)
UNKNOWN = "what feeds it was not known"
#: The key alone proves nothing there: by a wiring that was changed by mistake another outlet may be on as well.
SAY = (
    "what feeds it is not known, as its claim's record was lost or could not be read: once it is known that the wiring "
    f"is right, {play('reconcile', adopt='{name}')} takes its word; no outlet is switched off meanwhile that may be its"
)
#: What follows where a board lived on while its outlet was off.
KEPT = (
    "; it is not switched for {name} again before plug or wiring is right: then "
    f"{play('reconcile', adopt='{name}')} takes the wiring's word"
)
#: What follows where another instance's board fell silent with that outlet; {names} is that instance.
TOOK = (
    "; neither is switched off again before plugs or wiring are right; where {names} went off by itself just then, "
    f"{play('reconcile', adopt='{adopt}')} takes the wiring's word"
)
#: The texts of the events of that, and of the end of it.
WIRED = "{outlet}, which the wiring names for it"
BELIED, PROVEN = f"did not lose its power with {WIRED}", f"has its power by {WIRED}"
LOST_POWER = "lost its power for a moment by {outlet}, which the wiring names for {board}"
UNWRITTEN = "; that could not be written down: {error}"
#: An operator's word answers one question in each run.
TWICE = (
    "it has a record again, which names no outlet yet: once it is known that the wiring is right, run it again: "
    f"{play('reconcile', adopt='{name}')}"
)


class Feeds(RecordedFeeds):
    """What the records of all claims, and the database, say of outlets; the records are read once for a call.

    :raises HeteroError: none of them can be looked at.
    """

    proxy: Proxy

    def __init__(self, proxy: Proxy) -> None:
        #: The instance of each claim, by its board, once it was asked for.
        self._names: dict[int, str] | None = None
        #: Switchings of which nobody saw what they cut, once they were asked for; each call reads them once.
        self._cuts: dict[int, unseen_cuts.UnseenCut] | None = None
        #: Times of claims, read before their records, so that no claim which is made meanwhile counts as without one.
        self._begun = proxy.store.begun()
        super().__init__(proxy)

    def _is_of_before(self, claim: Claim) -> bool:
        return claim.created < self._begun.get(claim.board, claim.created)

    def _is_stray(self, board: int, error: HeteroError) -> bool:
        """Return whether a board's place has a copy of another's record, and nothing else is known of the board.

        No record of the board was lost then.
        """
        proxy = self.proxy
        if not proxy.store.is_copy(error) or proxy.store.record(board).claim:
            return False
        roots = root_of_board(proxy, board), disk_of_board(proxy, board)
        return not any(root.exists() for root in roots)

    def of(self, board: Board, claim: Claim | None) -> Fed | None:
        """Return the outlet that last fed a board of this claim, or None where that is not known.

        Where the board's record is lost or cannot be read, the events tell whether its wiring was found wrong.
        """
        fed = super().of(board, claim)
        if fed is None and claim is not None and self.is_unknown(board):
            wired = self._wired(*self.proxy.outlet(board))
            either = f"%{WIRED.format(outlet=wired.name)}"
            told = self.proxy.store.first_since_claim(claim, PHASE, either, newest=True)
            if told and told.text == BELIED.format(outlet=wired.name):
                return replace(wired, belied=True)
        return fed

    def _wired(self, pdu: str, outlet: str) -> Fed:
        return Fed(pdu, outlet, pdu_names.address(self.proxy.config.pdus.get(pdu, {})))

    def named_by(self, pdu: str, outlet: str) -> list[str]:
        """Return the ids of boards whose wiring names, or may name, an outlet."""
        wires = self.proxy.config.boards.items()
        return [board for board, wire in wires if wire.fed and self.may_be_at(self._wired(*wire.fed), pdu, outlet)]

    def feeds_another(self, board: Board) -> str | None:
        """Return why a free board must not be given away: its outlet fed another tenant's board last; else None."""
        holders = self.holders(board, *self.proxy.outlet(board))
        if not any(record.power != "off" for record in self.proxy.store.records(holders).values()):
            return None
        return self.held_by(board)

    def held_by(self, board: Board) -> str | None:
        """Return, in words, which other tenant's board a board's outlet fed last, on or off; None where it fed none."""
        holders = self.holders(board, *self.proxy.outlet(board))
        return str(Doubt(self, board, None, Fed(*self.proxy.outlet(board)), None, holders, {})) if holders else None

    def unknown(self, board: Board | None = None) -> dict[int, str | None]:
        """Return {board id: its instance, None where that is not known} of other boards that any outlet may feed."""
        others = super().unknown(board)
        if others and self._names is None:
            self._names = {claim.board: claim.instance for claim in self.proxy.store.claims()}
        names = self._names or {}
        return {other: names.get(other) for other in others}

    def remember(self, work: PowerWork, proven: bool) -> None:
        """Write down the outlet of a board that has shown its key.

        :param proven: the board came up by this outlet, so it feeds no other board that had it. Without that, an outlet
            that another board has is not written down.
        """
        board, place = work.board, (work.pdu, work.outlet)
        if not work.change.check:
            if self._cuts is None:
                self._cuts = unseen_cuts.all_of(self.proxy)
            unseen_cuts.lives(self.proxy, [board.id], self._cuts)
        fed = self._wired(*place)
        holders = list(self.holders(board, *place))
        last = self.of(board, work.claim)
        known = work.claim is None or last == fed
        doubted = bool(holders or work.doubt or (last and last.belied))
        if work.change.check or (known and not holders) or (doubted and not proven):
            return
        with self.proxy.store.transaction():
            self._read(holders)  # their own verbs may have changed them
            for other, kept in self.holders(board, *place).items():
                if kept.fed:
                    self.proxy.store.feed(other, replace(kept.fed, taken=board.name))
            if work.claim:
                self.proxy.store.feed(board.id, fed)
                if last and last.belied:
                    self.proxy.store.event(board.id, PHASE, PROVEN.format(outlet=fed.name))
        self._read([board.id, *holders])
        work.doubt = None

    def adopt(self, work: PowerWork) -> None:
        """Write down the outlet that a board's wiring names, by an operator's word that the wiring is right.

        So no other outlet feeds it: one that was said to, and is that of another board's wiring, is that board's again.
        """
        self.remember(work, True)
        if work.change.check:
            return
        with self.proxy.store.transaction():
            self._read(self._freed(work))  # their own verbs may have changed them
            freed = self._freed(work)
            for other, fed in freed.items():
                self.proxy.store.feed(other, replace(fed, taken=None))
        self._read(freed)

    def _freed(self, work: PowerWork) -> dict[int, Fed]:
        """Return {board id: the outlet of its wiring} of boards whose outlet was said to feed a work's board."""
        found = {}
        for other, kept in self._kept.items():
            fed = kept.fed if kept else None
            if fed is None or fed.taken != work.board.name or other not in self.proxy.boards:
                continue
            wired = self.proxy.wiring(self.proxy.boards[other]).fed
            if wired and self.is_at(fed, *wired) and not self.is_at(fed, work.pdu, work.outlet):
                found[other] = fed
        return found

    def belie(self, work: PowerWork) -> str:
        """Write down that a board lived on while the outlet of its wiring was off; return, in words, what follows.

        There is nothing to write into for a board that nobody has.
        """
        if work.claim is None:
            return ""
        fed = self._wired(work.pdu, work.outlet)
        try:
            with self.proxy.store.transaction():
                self.proxy.store.feed(work.board.id, replace(fed, belied=True))
                self.proxy.store.event(work.board.id, PHASE, BELIED.format(outlet=fed.name))
            self.proxy.store.commit()
        except HeteroError as error:
            return UNWRITTEN.format(error=error)
        self._read([work.board.id])
        return KEPT.format(name=work.instance)

    def took(self, work: PowerWork, others: Collection[Record]) -> str:
        """Write down that the outlet of a board's wiring feeds the boards of others; return, in words, what follows.

        :param others: the records of those boards.
        """
        fed = self._wired(work.pdu, work.outlet)
        names = [record.claim.instance for record in others if record.claim]
        boards = [record.board for record in others]
        own = self.of(work.board, work.claim) or (fed if work.claim and not names else None)
        try:
            with self.proxy.store.transaction():
                for board in boards:
                    self.proxy.store.feed(board, fed)
                    self.proxy.store.event(board, PHASE, LOST_POWER.format(outlet=fed.name, board=work.board.name))
                if own and self.is_at(own, work.pdu, work.outlet):
                    self.proxy.store.feed(work.board.id, replace(own, taken=f"board{boards[0]}"))
            self.proxy.store.commit()
        except HeteroError as error:
            return UNWRITTEN.format(error=error)
        self._read([work.board.id, *boards])
        adopt = names or ([work.instance] if work.instance else [])
        names = names or [f"board{board}" for board in boards]
        return TOOK.format(names=" and ".join(names), adopt=",".join(adopt)) if adopt else ""


def settle(works: Iterable[PowerWork], feeds: Feeds) -> None:
    """Find out, once for each work, whether its board may be switched by the wiring.

    `doubt` of a work becomes the error where it may not, else None; with `off_by_all` it may still be switched on.

    :param works: of each board, locked and read, with its driver.
    """
    works = [work for work in works if not work.over and not work.wiring_seen]
    found = [(work, feeds.doubt(work.board, work.claim)) for work in works]
    doubts = {work: doubt for work, doubt in found if doubt}

    def tell(pdu: str, text: str) -> None:
        for work, doubt in doubts.items():
            if pdu in doubt.pdus and not work.change.check:
                work.say("wait", text)

    ask(feeds.proxy, doubts.values(), tell)
    with ThreadPoolExecutor(max_workers=MOST_LOOKED_AT) as threads:
        seen = list(threads.map(lambda work: _seen(work, doubts[work]), doubts))
    for work in works:
        work.wiring_seen = True
    for (work, doubt), sure in zip(doubts.items(), seen):
        work.off_by_all = sure and doubt.is_off
        if sure and doubt.key_proves:
            work.say(PHASE, doubt.rewired)
            feeds.remember(work, True)
        else:
            work.doubt = Refused(str(doubt), work.board.name, doubt.remedy)


def refuse_doubted(works: Iterable[PowerWork]) -> None:
    """End the work on boards that may not be switched."""
    for work in works:
        if work.doubt and not work.off_by_all and not work.over:
            refuse(work)


def must_be_settled(work: PowerWork) -> None:
    """Raise Refused where the board may not be switched."""
    if work.doubt and not work.off_by_all:
        raise work.doubt


def refuse(work: PowerWork) -> None:
    """End the work on a board that may not be switched."""
    if work.doubt:
        work.say("error", work.doubt.what)
        work.fail(None, work.doubt)


def ask(proxy: Proxy, doubts: Collection[Doubt], tell: Callable[[str, str], None] | None = None) -> None:
    """Ask the PDUs of boards in doubt for both outlets.

    :param tell: is called with (PDU name, what is waited for), from any thread.
    """
    pdus = {name for doubt in doubts for name in doubt.pdus}
    answers = statuses(proxy, pdus, Deadline(LONGEST), tell) if pdus else {}
    for doubt in doubts:
        doubt.see(answers)


def compare(proxy: Proxy, looks: Sequence[PowerLook], names: Collection[str]) -> None:
    """Note of boards that somebody has which outlets feed them, and say what is not proven (verbs/reconciliation.py).

    :param looks: of each board, whose outlet and which itself was asked already.
    :param names: instances whose wiring is right by an operator's word.
    """
    feeds = Feeds(proxy)
    doubts = {look: feeds.doubt(look.work.board, look.work.claim) for look in looks}
    ask(proxy, [doubt for doubt in doubts.values() if doubt])
    alive = {look.work.board.id for look in looks if look.lives_without_power}
    for look, doubt in doubts.items():
        work = look.work
        belied = sorted(alive & {work.board.id, *(doubt.holders if doubt else ())})
        # An operator's word answers one question in each run, and none that observation has answered already.
        named = work.instance in names and not belied
        by_word, again = named and not look.found, TWICE.format(name=work.instance) if named and look.found else None
        if doubt is None:
            if feeds.is_unknown(work.board) and by_word:
                feeds.remember(work, True)
                look.mend(UNKNOWN, f"{'would be ' if work.change.check else ''}noted, by an operator's word")
            elif feeds.is_unknown(work.board) and again:
                look.note(again)
            elif look.power == "on" and look.ssh == presence.OWN_KEY:
                if feeds.is_unknown(work.board):
                    look.note(SAY.format(name=work.instance))
                else:
                    feeds.remember(work, False)
        elif by_word or (doubt.key_proves and work.state in ON and look.ssh == presence.OWN_KEY):
            done = "would be noted" if work.change.check else "noted"
            if by_word:
                feeds.adopt(work)
            else:
                feeds.remember(work, True)
            look.mend(doubt.rewired, f"{done}, by an operator's word" if by_word else done)
        elif doubt.is_off and look.ssh is None:
            start = play("start_instance", instance=work.instance)
            look.note(f"{doubt}: it is off, and {start} takes the outlet that its wiring names")
        else:
            doubt.alive = belied
            look.note(f"{doubt}: {again or doubt.remedy}")
            look.left = look.left or not again


def _seen(work: PowerWork, doubt: Doubt) -> bool:
    """Return whether the board itself shows that its wiring is right, or that it is off."""
    if doubt.is_off:
        return not Silence(work).life()
    if doubt.is_off_by_wiring and Silence(work).lives():
        doubt.alive = [work.board.id]
    return doubt.key_proves and work.state in ON and presence.shown(work) == presence.OWN_KEY
