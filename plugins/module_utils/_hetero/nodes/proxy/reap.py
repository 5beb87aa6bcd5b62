# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero reap`: ends the instances whose lease is over, as terminate does. Its timer is role tftp_proxy's.

A boot that is only waited for is let go of, as by terminate, so that no lease lasts for as long as somebody has its
board boot. A board that another verb works on, or that cannot be freed, keeps its claim, and the next turn tries again;
so does one whose lease is over only because the clock jumped (site/node_clock.py). All are freed together, by a process
that may end as nobody foresaw, of what a tenant left; then each is, by one of its own. A board whose disks are to be
wiped, which may take hours, has one of its own for that, and the leases of others go on ending meanwhile.

Boards that killed checks and moves have left are freed, too (boards/verbs/left_boards.py), so that none is out of use,
or on, for that.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Callable, Collection, Iterable, Mapping, Sequence

from ...boards.records.proxy import Proxy
from ...boards.verbs import left_boards
from ...boards.verbs.lifecycle import Options
from ...boards.verbs.release import release
from ...boards.work import console
from ...boards.work.board_locks import locked
from ...boards.work.board_work import BoardWork
from ...claims.ended import told
from ...core.changes import Change
from ...core.child import Child
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.plays import play
from ...core.readiness import readable
from ...roots.ownership import is_lost
from ...site import node_clock
from ...site.board_states import ERROR
from ...site.instance import age
from ...site.proxy_config import CONFIG, files_of
from ..verb_parser import verb_parser
from . import kernels

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim

VERB = "reap"
DOES = "End the instances whose lease is over: board off, cleaned, free."
#: How long a turn waits for the boards that others work on (seconds); there is a next one. A boot is let go of within
#: a quarter of a second (ended_boots.TICK), and who waits to boot the board anew has its lock for a moment each.
PATIENCE = 5.0
#: Of a board's newest events, among which one may say the same already.
RECENT = 50
#: Seconds for a process that frees boards: a day for their disks (wipes.WipeRequest), and the boots before; each step
#: has a limit of its own.
LONGEST = 2 * 86400.0
#: Boards whose disks are wiped at a time: each is a process of some 20 MB.
MOST = 16
#: While they are, how often leases are looked at (seconds): as often as the timer does (tftp_proxy_reap_interval).
EVERY = 60.0
UNFORESEEN = "see the traceback in the journal: systemctl status hetero-reap"
LEFT = (
    "board{board} is not in the boards file: add it, so that it can be freed; or, where it is gone for good, "
    f"{play('reconcile', forget='{name}')} ends the claim"
)
FREE = "off, cleaned, free"
#: A record that is gone may have said so as well as one that cannot be read.
LOST = "the record of its claim is lost, and the database may be older: its lease may have been extended"
NUMBER = re.compile(r"[\d.]+")
#: What is done about a lease that is over by a clock which jumped.
HOLD = node_clock.HOLD.format(verb=VERB)


def reap(
    proxy: Proxy,
    say: Callable[[str], object],
    only: str | None = None,
    but: Collection[str] = (),
    later: list[str] | None = None,
) -> bool:
    """End each claim whose lease is over, and return whether all of them could be ended.

    :param say: called with a text for each claim that was ended or could not be.
    :param only: the instance that is to be ended, if its lease is over; None for all.
    :param but: instances that are left alone.
    :param later: a list that gets the instances whose boards are off and cleaned, and whose disks are yet to be wiped;
        None has them wiped now.
    """
    clock = node_clock.look(proxy.store, VERB)
    now, change = clock.sure, Change()
    wanted = [claim for claim in proxy.store.claims() if only in (None, claim.instance) and claim.instance not in but]
    over = [claim for claim in wanted if _over(proxy, claim, now)]
    is_on_time = _tell_of_clock(proxy, wanted, over, clock, say)
    claims = _surely_over(proxy, over, say)
    works = [BoardWork(proxy, proxy.board(claim.board), change, claim.instance) for claim in claims]
    unwiped: list[BoardWork] = []
    with locked(works, VERB, Deadline(PATIENCE), True):
        # Some may have been ended or extended while their lock was waited for.
        going = [not work.over and work.claim is not None and _over(proxy, work.claim, now) for work in works]
        ending = [work for work, goes in zip(works, going) if goes]
        for work in works:
            if work not in ending:
                work.let_go()
        release(proxy, ending, Options(), later=None if later is None else unwiped)
    for claim, work, goes in zip(claims, works, going):
        if work.failed:
            _failed(proxy, claim, work.error, say)
        elif later is not None and work in unwiped:
            later.append(claim.instance)
        elif goes:
            out = work.state == ERROR
            done = f"its claim is ended, and the board is kept out of use: {work.record.note}" if out else FREE
            ends = now if claim.expires is None else claim.expires
            text = told(claim.instance, claim.owner, age(now - ends), done)
            proxy.store.event(claim.board, VERB, text, instance=claim.instance)
            say(f"board{claim.board}: {text}")
    return is_on_time and len(claims) == len(over) and not any(work.failed for work in works)


def _tell_of_clock(
    proxy: Proxy,
    wanted: Iterable[Claim],
    over: Collection[Claim],
    clock: node_clock.Clock,
    say: Callable[[str], object],
) -> bool:
    """Tell of leases that do not end, or end late, because the clock jumped; return whether there are none.

    :param over: the claims whose leases are over by a time that is sure.
    """
    held = [claim for claim in wanted if claim not in over and _over(proxy, claim, clock.now)]
    for claim in held:
        _failed(proxy, claim, f"{clock.fault}: {HOLD}", say)
    late = node_clock.late(clock, [claim.expires for claim in wanted], VERB)
    if late:
        say(late)
    node_clock.keep(clock, say)
    return not (held or late)


def _surely_over(proxy: Proxy, over: Iterable[Claim], say: Callable[[str], object]) -> list[Claim]:
    """Return the claims of which nothing contradicts that their leases are over; tell of the others why they stay."""
    found = []
    for claim in over:
        why = _why_it_stays(proxy, claim)
        if why:
            _failed(proxy, claim, why, say)
        else:
            found.append(claim)
    return found


def _why_it_stays(proxy: Proxy, claim: Claim) -> str | None:
    """Return why a claim stays whose lease is over by the database, which may be older; None where it is to end."""
    if claim.board not in proxy.boards:
        return LEFT.format(board=claim.board, name=claim.instance)
    doubts = [LOST] if proxy.store.is_record_lost(claim) and not _was_ended(proxy, claim) else []
    doubts += map(str, _unreadable(proxy, claim))
    return f"{doubts[-1]} ({play('reconcile')})" if doubts else None


def _was_ended(proxy: Proxy, claim: Claim) -> bool:
    """Return whether the end of a claim was begun and cut off before its last word: nothing of it is left to lose.

    That nothing is seen of it is not enough: what holds the roots may not be mounted.
    """
    return proxy.store.is_ending(claim) and is_lost(proxy, proxy.board(claim.board), claim)


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument(node_clock.BY_WORD, action="store_true", help=node_clock.BY_WORD_HELP)
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    files = files_of(options.config)
    if options.clock_is_right:
        node_clock.set_right(files["state_db"])
    killed = Child(partial(_take_up, files))  # a PDU may be slow
    ended = turn(files)
    freed = killed.answer(Deadline(LONGEST), "boards that were checked or left", UNFORESEEN)
    return 0 if _led_to_kernels(files) and ended and freed else 1


def _take_up(files: Mapping[str, str]) -> bool:
    with Proxy(files, VERB, create=False, write=True) as proxy:
        return left_boards.take_up(proxy, VERB, _say)


def _led_to_kernels(files: Mapping[str, str]) -> bool:
    """Lead free boards to kernels that were put there by hand since the last turn; say only what changed or failed."""
    said: list[str] = []
    with Proxy(files, VERB, create=False) as proxy:
        done = kernels.kernels(proxy, said.append)
    for text in said:
        if not done or text.endswith(kernels.NOW):
            _say(text)
    return done


def turn(files: Mapping[str, str]) -> bool:
    """End all claims whose lease is over, whatever one of them does to the process that ends it.

    :param files: as proxy_config.files_of has them.
    :returns: whether all of them could be ended.
    """
    wipes: dict[Child, tuple[str, Deadline]] = {}
    while True:
        ended, waiting = _look(files, wipes)
        again = Deadline(EVERY)
        while (waiting or wipes) and not again.passed:
            for instance in waiting[: MOST - len(wipes)]:
                wipes[_apart(files, instance)] = instance, Deadline(LONGEST)
                waiting.remove(instance)
            done = readable(list(wipes), again.left) or [one for one, (_name, limit) in wipes.items() if limit.passed]
            for child in done:
                instance, limit = wipes.pop(child)
                ended = _answer(files, child, instance, limit)[0] and ended
        if not waiting and not wipes:
            return ended


def _look(files: Mapping[str, str], wipes: Mapping[Child, tuple[str, Deadline]]) -> tuple[bool, list[str]]:
    """Free what is over and what nobody wipes, and set aside consoles' logs that have grown long.

    :returns: whether all of it could be freed, and the instances whose disks are to be wiped.
    """
    but = [instance for instance, _limit in wipes.values()]
    try:
        with Proxy(files, VERB, create=False, write=True) as proxy:
            now = node_clock.look(proxy.store, VERB).sure
            console.bound(proxy)
        try:
            return _answered(_apart(files, but=but, later=[]), Deadline(LONGEST), "all boards")
        except HeteroError as error:
            together = error
        with Proxy(files, VERB, create=False) as proxy:
            over = [claim.instance for claim in proxy.store.claims() if _over(proxy, claim, now)]
        _say(f"{together}; each board is freed by itself")
        answers = [_alone(files, instance) for instance in over if instance not in but]
    except HeteroError as error:
        if not wipes:
            raise
        _say(str(error))  # no wipe begins anew for it
        return False, []
    return all(ended for ended, _later in answers), [instance for _ended, later in answers for instance in later]


def _alone(files: Mapping[str, str], instance: str) -> tuple[bool, list[str]]:
    return _answer(files, _apart(files, instance, later=[]), instance, Deadline(LONGEST))


def _answer(files: Mapping[str, str], child: Child, instance: str, deadline: Deadline) -> tuple[bool, list[str]]:
    """Return what came of one instance, as _look does. Say so if its process was ended from outside."""
    try:
        return _answered(child, deadline, instance)
    except HeteroError as error:
        with Proxy(files, VERB, create=False, write=True) as proxy:
            claim = proxy.store.claim_of(instance)
            if claim:
                _failed(proxy, claim, error, _say)
        return False, []


def _answered(child: Child, deadline: Deadline, thing: str) -> tuple[bool, list[str]]:
    ended, later = child.answer(deadline, thing, UNFORESEEN)
    return ended, later


def _apart(
    files: Mapping[str, str], only: str | None = None, but: Collection[str] = (), later: list[str] | None = None
) -> Child:
    """Run `reap` in a process of its own, which opens everything anew; it answers what came of it, and `later`."""

    def work() -> tuple[bool, list[str]]:
        with Proxy(files, VERB, create=False, write=True) as proxy:
            return reap(proxy, _say, only, but, later), later or []

    return Child(work)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _over(proxy: Proxy, claim: Claim, now: float) -> bool:
    """Return whether a lease is over: by the database, and by the claim's own record, which may be newer
    (evidence/adoption.py).
    """
    if claim.expires is None or claim.expires > now:
        return False
    kept = None if _unreadable(proxy, claim) else proxy.store.kept(claim.board)
    ends = kept.claim.expires if kept and kept.claim.is_same(claim) else claim.expires
    return ends is not None and ends <= now


def _unreadable(proxy: Proxy, claim: Claim) -> list[HeteroError]:
    """Return the error of a claim's record that nobody can read, in a list: it may say that its lease was extended."""
    try:
        proxy.store.kept(claim.board)
    except HeteroError as error:
        return [error]
    return []


def _failed(proxy: Proxy, claim: Claim, error: object, say: Callable[[str], object]) -> None:
    """Say it each time, but write it down once: a broken PDU would fill the events of its boards."""
    name = f"board{claim.board}: "
    why = str(error)[len(name) :] if str(error).startswith(name) else str(error)
    text = f"{claim.instance} of {claim.owner}: its lease is over, and it could not be ended: {why}"
    newest = [event.text for event in proxy.store.newest_events(claim.board, RECENT) if event.phase == VERB]
    # Seconds and process ids in it do not make it another error.
    if [NUMBER.sub("", said) for said in newest[-1:]] != [NUMBER.sub("", text)]:
        proxy.store.event(claim.board, VERB, text, instance=claim.instance)
    say(f"{name}{text}; it is tried again")
