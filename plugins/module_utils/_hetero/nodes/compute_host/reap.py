# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero host reap`: ends the containers and guests whose lease is over, as terminate does. Roles gpu_lxc and
kvm_guests have a timer each, for their own kind.

One that another verb works on, or that cannot be ended, keeps its claim, and the next turn tries again; so does one
whose lease is over only because the clock jumped (site/node_clock.py). Each is ended by a process of its own: what a
tenant left, and nobody foresaw, keeps no other from its end.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Callable, Collection, Sequence

from ...claims.ended import REAP_PHASE, told
from ...claims.host.config import CONFIG
from ...compute_host.host import Host
from ...compute_host.lifecycle import absent, must_know_the_lease, work_of
from ...compute_host.roots_out_of_sight import must_be_seen
from ...compute_host.verb_options import Options
from ...core.changes import Change
from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...site import node_clock
from ...site.instance import age
from ...site.kinds import OF_HOSTS
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...claims.host.claim_records import Claim

VERB = "host reap"
DOES = "End the containers and guests whose lease is over, and free what they had."
#: Seconds for each instance: others' work on it, and its end by force.
PATIENCE = 60.0
#: Seconds for the process that ends one; each of its steps has a limit of its own, and is done long before.
LONGEST = 3600.0
#: What is done about a lease that is over by a clock which jumped.
HOLD = node_clock.HOLD.format(verb=VERB)
UNFORESEEN = "see the traceback in the journal: systemctl status hetero-gpu-reap (or hetero-guests-reap)"


def over(host: Host, kinds: Collection[str], now: float) -> list[tuple[Claim, float]]:
    """Return [(claim, end of its lease)] of the claims of these kinds whose lease is over at that time."""
    return [
        (claim, claim.expires)
        for claim in host.store.claims()
        if claim.kind in kinds and claim.expires is not None and claim.expires <= now
    ]


def reap(
    host: Host, say: Callable[[str], object], kinds: Collection[str] = tuple(OF_HOSTS), only: str | None = None
) -> bool:
    """End each instance of these kinds whose lease is over; return whether all of them could be ended.

    :param only: end only this instance.
    """
    ended, now = True, node_clock.look(host.store, VERB).sure
    for claim, end in over(host, kinds, now):
        if only not in (None, claim.instance):
            continue
        over_for = age(now - end)
        lease = f"{claim.instance} of {claim.owner}: its lease is over since {over_for}"
        doubt = _doubt(host, claim)
        if doubt:
            say(f"{lease} by the database, and it was not ended: {doubt}")
            ended = False
            continue
        result = absent(host, claim.instance, Options(timeout=PATIENCE, over=now), Change())
        there = host.store.claim_of(claim.instance)
        gone = there is None or there.created != claim.created
        if gone and result.get("failed"):
            say(f"{lease}; ended by another meanwhile")
        elif result.get("failed"):
            say(f"{lease}, and it could not be ended: {result['msg']}; it is tried again")
            ended = False
        elif gone:
            text = told(claim.instance, claim.owner, over_for, "ended, its devices are free")
            host.store.event(claim.instance, REAP_PHASE, text)
            say(text)
    return ended


def _doubt(host: Host, claim: Claim) -> HeteroError | None:
    """Return why nobody knows the end of a claim's lease, or that its root is not to be seen, else None; it is asked
    before any work, for the events of an instance would be full of it.
    """
    work = work_of(host, claim, Change(check=True), Deadline(PATIENCE), lambda *_said, **_more: None)
    try:
        must_know_the_lease(work)
        must_be_seen(work)
    except HeteroError as error:
        return error
    return None


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "host")
    words.add_argument("--kind", choices=sorted(OF_HOSTS), help="only containers (lxc) or guests (kvm)")
    words.add_argument(node_clock.BY_WORD, action="store_true", help=node_clock.BY_WORD_HELP)
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    kinds = [options.kind] if options.kind else list(OF_HOSTS)
    with Host(options.config, VERB, create=False) as host:
        if options.clock_is_right:
            node_clock.set_right(host.store.path)
        clock = node_clock.look(host.store, VERB)
        claims = [claim for claim, _end in over(host, kinds, clock.sure)]
        held = [claim for claim, _end in over(host, kinds, clock.now) if claim not in claims]
        late = node_clock.late(clock, [claim.expires for claim in host.store.claims()], VERB)
        node_clock.keep(clock, _say)
        _keep_missing(host)
    for claim in held:
        _say(f"{claim.instance} of {claim.owner}: its lease is over, but {clock.fault}: {HOLD}")
    if late:
        _say(late)
    ended = [_apart(options.config, claim) for claim in claims]
    return 0 if all(ended) and not held and not late else 1


def _keep_missing(host: Host) -> None:
    """Write the records of claims of an earlier release; say why where that fails, for leases end all the same."""
    try:
        host.store.keep_missing()
    except HeteroError as error:
        _say(str(error))


def _apart(config: str, claim: Claim) -> bool:
    """End an instance in a process of its own; return whether it could be ended."""

    def one() -> bool:
        with Host(config, VERB, create=False, write=True) as host:
            return reap(host, _say, only=claim.instance)

    try:
        return in_child(one, Deadline(LONGEST), claim.instance, UNFORESEEN)
    except HeteroError as error:
        text = f"its lease is over, and it could not be ended: {error}; it is tried again"
        with Host(config, VERB, create=False, write=True) as host:
            if not host.store.was_told(claim.instance, REAP_PHASE, text):
                host.store.event(claim.instance, REAP_PHASE, text)
        _say(f"{claim.instance} of {claim.owner}: {text}")
        return False


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
