# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero reap`: ends the instances whose lease is over, as terminate does. Its timer is role tftp_proxy's.

A board that another verb works on, or that cannot be freed, keeps its claim, and the next turn tries again; so does one
whose lease is over only because the clock jumped (node_clock.py). All are freed together, by a process that may end as
nobody foresaw, of what a tenant left; then each is, by one of its own.
"""

from __future__ import annotations

import argparse
import re
import sys

from .. import node_clock
from ..boards.board_work import BoardWork, locked
from ..boards.lifecycle import Options
from ..boards.proxy import Proxy
from ..boards.release import release
from ..change import Change
from ..child import in_child
from ..deadline import Deadline
from ..errors import HeteroError
from ..instances import left
from .config import CONFIG, files_of

VERB = "reap"
#: How long a turn waits for the boards that others work on (seconds); there is a next one.
PATIENCE = 1.0
#: Of a board's newest events, among which one may say the same already.
RECENT = 50
#: Seconds for a process that frees boards: a day for their disks (wiping.Wish), and the boots before; each step has a
#: limit of its own.
LONGEST = 2 * 86400.0
UNFORESEEN = "see the traceback in the journal: systemctl status hetero-reap"
NUMBER = re.compile(r"[\d.]+")
#: What is done about a lease that is over by a clock which jumped.
HOLD = node_clock.HOLD.format(verb=VERB)


def reap(proxy, say, only=None):
    """End each claim whose lease is over; True where all of them could be ended.

    :param say: called with a text for each claim that was ended or could not be.
    :param only: the instance that is to be ended, if its lease is over; None for all.
    """
    clock = node_clock.look(proxy.store, VERB)
    now, change, works = clock.sure, Change(), []
    wanted = [claim for claim in proxy.store.claims() if only in (None, claim.instance)]
    claims = [claim for claim in wanted if _over(proxy, claim, now)]
    held = [claim for claim in wanted if claim not in claims and _over(proxy, claim, clock.now)]
    for claim in held:
        _failed(proxy, claim, f"{clock.fault}: {HOLD}", say)
    late = clock.behind and any(claim.expires is not None for claim in wanted)
    if late:
        say(f"{clock.fault}: leases end late: {node_clock.HOW.format(verb=VERB)}")
    node_clock.keep(clock, say)
    lost = [claim for claim in claims if claim.board not in proxy.boards]
    for claim in lost:
        _failed(proxy, claim, f"board{claim.board} is not in the boards file: add it, so that it can be freed", say)
    claims = [claim for claim in claims if claim not in lost]
    doubtful = {claim.board: error for claim in claims for error in _unreadable(proxy, claim)}
    for claim in claims:
        if claim.board in doubtful:
            _failed(proxy, claim, f"{doubtful[claim.board]} (playbook reconcile)", say)
    claims = [claim for claim in claims if claim.board not in doubtful]
    works = [BoardWork(proxy, proxy.board(claim.board), change, claim.instance) for claim in claims]
    with locked(works, VERB, Deadline(PATIENCE)):
        # Some may have been ended or extended while their lock was waited for.
        going = [not work.over and work.claim is not None and _over(proxy, work.claim, now) for work in works]
        release(proxy, [work for work, goes in zip(works, going) if goes], Options())
    for claim, work, goes in zip(claims, works, going):
        if work.failed:
            _failed(proxy, claim, work.error, say)
        elif goes:
            text = f"{claim.instance} of {claim.owner}: its lease is {left(claim.expires - now)}; off, cleaned, free"
            proxy.store.event(claim.board, VERB, text, instance=claim.instance)
            say(f"board{claim.board}: {text}")
    return not (held or late or lost or doubtful) and not any(work.failed for work in works)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog=f"hetero {VERB}", description="End the instances whose lease is over: board off, cleaned, free."
    )
    parser.add_argument("--config", default=CONFIG, help="the proxy's configuration (%(default)s)")
    parser.add_argument(node_clock.BY_WORD, action="store_true", help="end also what is over only since it jumped")
    options = parser.parse_args(arguments)
    files = files_of(options.config)
    if options.clock_is_right:
        node_clock.set_right(files["state_db"])
    return 0 if turn(files) else 1


def turn(files):
    """End all claims whose lease is over, whatever one of them does to the process that ends it."""
    with Proxy(files, VERB, create=False) as proxy:
        now = node_clock.look(proxy.store, VERB).sure
    try:
        return _apart(files, None, "all boards")
    except HeteroError as error:
        _say(f"{error}; each board is freed by itself")
    with Proxy(files, VERB, create=False) as proxy:
        claims = [claim for claim in proxy.store.claims() if _over(proxy, claim, now)]
    ended = [_alone(files, claim) for claim in claims]
    return all(ended)


def _alone(files, claim):
    try:
        return _apart(files, claim.instance, f"board{claim.board}")
    except HeteroError as error:
        with Proxy(files, VERB, create=False, write=True) as proxy:
            _failed(proxy, claim, error, _say)
        return False


def _apart(files, only, thing):
    """`reap` in a process of its own, which opens everything anew.

    :raises HeteroError: the process ended otherwise than by itself.
    """

    def work():
        with Proxy(files, VERB, create=False, write=True) as proxy:
            return reap(proxy, _say, only)

    return in_child(work, Deadline(LONGEST), thing, UNFORESEEN)


def _say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _over(proxy, claim, now):
    """Whether a lease is over: by the database, and by the claim's own record, which may be newer (adopting.py)."""
    if claim.expires is None or claim.expires > now:
        return False
    kept = None if _unreadable(proxy, claim) else proxy.store.kept(claim.board)
    ends = kept.claim.expires if kept and kept.claim.is_same(claim) else claim.expires
    return ends is not None and ends <= now


def _unreadable(proxy, claim):
    """The error of a claim's record that nobody can read, in a list: it may say that its lease was extended."""
    try:
        proxy.store.kept(claim.board)
    except HeteroError as error:
        return [error]
    return []


def _failed(proxy, claim, error, say):
    """Say it each time, but write it down once: a broken PDU would fill the events of its boards."""
    text = f"{claim.instance} of {claim.owner}: its lease is over, and it could not be ended: {error}"
    newest = [event.text for event in proxy.store.newest_events(claim.board, RECENT) if event.phase == VERB]
    # Seconds and process ids in it do not make it another error.
    if [NUMBER.sub("", said) for said in newest[-1:]] != [NUMBER.sub("", text)]:
        proxy.store.event(claim.board, VERB, text, instance=claim.instance)
    say(f"board{claim.board}: {text}; it is tried again")
