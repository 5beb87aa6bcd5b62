# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which outlet a claim's board had its power last, against the one that its wiring names: nothing is switched off by
a wiring that was changed by mistake.

The outlet is remembered in the claim's own record (records/claim_records.py) once the board was seen by its key. A
wiring that names another one counts where that is proven: the old outlet is off and the board shows its key, or it is
off by both. Else nothing is switched, until the wiring is corrected or an operator gives their word
(verbs/reconciliation.py).

A record that is lost, or cannot be read, may name any outlet: a board whose own record does not name the one of its
wiring is not switched off then either. A copy of another board's good record says nothing new, and counts for nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...roots.disk_files import DiskFiles
from ...roots.roots import Root
from ...site import board_states
from ..records.claim_records import Fed
from . import pdu_names, presence
from .doubt import Doubt
from .outlet_power import statuses
from .power_proof import Silence

#: Phase of the event that another outlet is known to feed a board.
PHASE = "wiring"
#: Longest wait for PDUs whose one session others have (seconds), as in pdu_loop.py.
LONGEST = 90.0
#: Boards that are looked at at one time.
MOST_LOOKED_AT = 64
#: States of a board whose key says by which outlet it runs; one that is off shows none.
ON = (board_states.RUNNING, board_states.BOOTING)
UNKNOWN = "what feeds it was not known"
#: The key alone proves nothing there: by a wiring that was changed by mistake another outlet may be on as well.
SAY = (
    "what feeds it is not known, as its claim's record was lost or could not be read: once it is known that the wiring "
    f"is right, {play('reconcile', adopt='{name}')} takes its word; no outlet is switched off meanwhile that may be its"
)
#: A word answers one question a run.
TWICE = (
    "it has a record again, which names no outlet yet: once it is known that the wiring is right, run it again: "
    f"{play('reconcile', adopt='{name}')}"
)


class Feeds:
    """What the records of all claims say of outlets, read once for a call.

    :raises HeteroError: none of them can be looked at.
    """

    def __init__(self, proxy):
        self.proxy = proxy
        self._kept: dict = {}
        self._names: Any = None
        #: Boards that any outlet may feed, for all that is known.
        self._lost = set(self._gone())
        self._read(proxy.store.kept_boards())

    def _gone(self):
        return {claim.board for claim in self.proxy.store.lost()}

    def _read(self, boards):
        gone = self._gone()
        for board in boards:
            try:
                kept = self._kept[board] = self.proxy.store.kept(board)
                lost = kept.anew if kept else board in gone
            except HeteroError as error:
                self._kept[board], lost = None, not self._is_stray(board, error)
            (self._lost.add if lost else self._lost.discard)(board)

    def _is_stray(self, board, error):
        """Whether what lies in a board's place is a copy of another's record, of which nobody is known: nothing of the
        board was lost for it.
        """
        proxy = self.proxy
        if not proxy.store.is_copy(error) or proxy.store.record(board).claim:
            return False
        roots = Root(proxy.config["state_folder"], board), DiskFiles(proxy.folder("disks"), board)
        return not any(root.exists() for root in roots)

    def kept(self, board_id):
        """A board's record of its claim; None where there is none, or none that can be read."""
        return self._kept.get(board_id)

    def of(self, board, claim):
        """What fed a board of this claim last; None where nobody knows."""
        kept = self._kept.get(board.id)
        return kept.fed if kept and kept.claim.is_same(claim) else None

    def holders(self, board, pdu, outlet):
        """{board id: Kept} of other boards that had their power by this outlet last."""
        return {
            other: kept
            for other, kept in self._kept.items()
            if kept and kept.fed and other != board.id and not kept.fed.taken and self.may_be_at(kept.fed, pdu, outlet)
        }

    def feeds_another(self, board):
        """Why a board that nobody has is not to be had: its outlet feeds another's, for all that was seen last; None
        where it does not.
        """
        holders = self.holders(board, *self.proxy.outlet(board))
        if not any(record.power != "off" for record in self.proxy.store.records(holders).values()):
            return None
        return self.held_by(board)

    def held_by(self, board):
        """Whose outlet the one of a board was last, in words, on or off; None where it was nobody else's."""
        holders = self.holders(board, *self.proxy.outlet(board))
        return str(Doubt(self, board, None, Fed(*self.proxy.outlet(board)), None, holders, {})) if holders else None

    def unknown(self, board):
        """{board id: its instance, None where that is not known} of other boards that any outlet may feed."""
        others = sorted(self._lost - {board.id})
        if others and self._names is None:
            self._names = {claim.board: claim.instance for claim in self.proxy.store.claims()}
        return {other: self._names.get(other) for other in others}

    def is_unknown(self, board):
        """Whether any outlet may feed a board."""
        return board.id in self._lost

    def is_at(self, fed, pdu, outlet):
        """Whether that is this outlet, whatever its PDU is called now."""
        return pdu_names.is_at(self.proxy.config["pdus"], fed, pdu, outlet)

    def may_be_at(self, fed, pdu, outlet):
        """The same, also where only one of two settings of one host names a port: it may be another's outlet then."""
        return pdu_names.may_be_at(self.proxy.config["pdus"], fed, pdu, outlet)

    def names(self, fed):
        """Names that its PDU has now, its own first; none where it is gone."""
        return pdu_names.now(self.proxy.config["pdus"], fed)

    def doubt(self, board, claim):
        """The Doubt of a board; None where its wiring names what is known, or nothing is known."""
        pdu, outlet = self.proxy.outlet(board)
        known, holders = self.of(board, claim), self.holders(board, pdu, outlet)
        proven = known is not None and not known.taken and self.is_at(known, pdu, outlet)
        unknown = {} if proven else self.unknown(board)
        as_known = proven or known is None
        if as_known and not holders and not unknown:
            return None
        return Doubt(self, board, claim, Fed(pdu, outlet), None if as_known else known, holders, unknown)

    def remember(self, work, proven):
        """Note the outlet of a board that showed its key.

        :param proven: it came up by this outlet, so another board that had its power there has it no more. Without
            that, an outlet that another board has is not noted.
        """
        board, place = work.board, (work.pdu, work.outlet)
        fed = Fed(*place, pdu_names.address(self.proxy.config["pdus"].get(work.pdu, {})))
        holders = list(self.holders(board, *place))
        known = work.claim is None or self.of(board, work.claim) == fed
        if work.change.check or (known and not holders) or ((holders or work.doubt) and not proven):
            return
        with self.proxy.store.transaction():
            self._read(holders)  # their own verbs may have changed them
            for other, kept in self.holders(board, *place).items():
                self.proxy.store.feed(other, replace(kept.fed, taken=board.name))
            if work.claim:
                self.proxy.store.feed(board.id, fed)
        self._read([board.id, *holders])
        work.doubt = None


def settle(works, feeds):
    """Look whether boards may be switched by the wiring, once a work.

    `doubt` of each becomes the error where it may not, else None; with `off_by_all` it may be switched on all the same.

    :param works: BoardWork of each board, locked and read, with its driver.
    """
    works = [work for work in works if not work.over and not work.wiring_seen]
    doubts = {work: feeds.doubt(work.board, work.claim) for work in works}
    doubted = [work for work in works if doubts[work]]

    def tell(pdu, text):
        for work in doubted:
            if pdu in doubts[work].pdus and not work.change.check:
                work.say("wait", text)

    ask(feeds.proxy, [doubts[work] for work in doubted], tell)
    with ThreadPoolExecutor(max_workers=MOST_LOOKED_AT) as threads:
        seen = list(threads.map(lambda work: _seen(work, doubts[work]), doubted))
    for work in works:
        work.wiring_seen = True
    for work, sure in zip(doubted, seen):
        doubt = doubts[work]
        work.off_by_all = sure and doubt.is_off
        if sure and doubt.key_proves:
            work.say(PHASE, doubt.rewired)
            feeds.remember(work, True)
        else:
            work.doubt = Refused(str(doubt), work.board.name, doubt.remedy)


def refuse_doubted(works):
    """End the work on boards that may not be switched."""
    for work in works:
        if work.doubt and not work.off_by_all and not work.over:
            refuse(work)


def must_be_settled(work):
    """:raises Refused: the board may not be switched."""
    doubt: Refused | None = work.doubt
    if doubt and not work.off_by_all:
        raise doubt


def refuse(work):
    """End the work on a board that may not be switched."""
    work.say("error", str(work.doubt))
    work.fail(None, work.doubt)


def ask(proxy, doubts, tell=None):
    """Ask the PDUs of boards in doubt for both outlets."""
    pdus = {name for doubt in doubts for name in doubt.pdus}
    answers = statuses(proxy, pdus, Deadline(LONGEST), tell) if pdus else {}
    for doubt in doubts:
        doubt.see(answers)


def compare(proxy, looks, names):
    """Note of boards that somebody has which outlets feed them, and say what is not proven (verbs/reconciliation.py).

    :param looks: looks.Look of each, its outlet and the board asked already.
    :param names: instances whose wiring is right by an operator's word.
    """
    feeds = Feeds(proxy)
    doubts = {look: feeds.doubt(look.work.board, look.work.claim) for look in looks}
    ask(proxy, [doubt for doubt in doubts.values() if doubt])
    alive = {look.work.board.id for look in looks if look.lives_without_power}
    for look, doubt in doubts.items():
        work = look.work
        belied = sorted(alive & {work.board.id, *(doubt.holders if doubt else ())})
        # A word answers one question a run, and none that what is seen answers already.
        named = work.instance in names and not belied
        by_word, again = named and not look.found, TWICE.format(name=work.instance) if named and look.found else None
        if doubt is None:
            if feeds.is_unknown(work.board) and by_word:
                look.mend(UNKNOWN, f"{'would be ' if work.change.check else ''}noted, by an operator's word")
                feeds.remember(work, True)
            elif feeds.is_unknown(work.board) and again:
                look.note(again)
            elif look.power == "on" and look.ssh == presence.OWN_KEY:
                if feeds.is_unknown(work.board):
                    look.note(SAY.format(name=work.instance))
                else:
                    feeds.remember(work, False)
        elif by_word or (doubt.key_proves and work.state in ON and look.ssh == presence.OWN_KEY):
            done = "would be noted" if work.change.check else "noted"
            look.mend(doubt.rewired, f"{done}, by an operator's word" if by_word else done)
            feeds.remember(work, True)
        elif doubt.is_off and look.ssh is None:
            start = play("start_instance", instance=work.instance)
            look.note(f"{doubt}: it is off, and {start} takes the outlet that its wiring names")
        else:
            doubt.alive = belied
            look.note(f"{doubt}: {again or doubt.remedy}")
            look.left = look.left or not again


def _seen(work, doubt):
    """Whether the board itself says that its wiring is right, or that it is off."""
    if doubt.is_off:
        return not Silence(work).life()
    return doubt.key_proves and work.state in ON and presence.shown(work) == presence.OWN_KEY
