# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claim boards for a request (an instance by flavor): find boards that fit and are free, and report why others are not.

The store decides between requests at the same time. board_releases.py gives boards back.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from ...core.deadline import Deadline
from ...core.descriptors import make_room
from ...core.errors import HeteroError, NoneFree, Refused
from ...core.lines import line
from ...core.plays import play
from ...images.capacity import no_image, without_room
from ...images.choice import images_of
from ...images.room import room_of
from ...roots.recorded_boards import BY_RECORD
from ...scheduling.fit import describe, nodes_found, summary
from ...site import board_states
from ...site.leases import kept, later, over
from ...site.node_clock import begin_lease
from ..evidence.adoption import catch_up
from ..evidence.free_boards import RECONCILE, left_by, somebodys
from ..evidence.unclaimed_instances import refuse_unclaimed
from ..power.last_outlet import Feeds
from ..records.board_health import FULL
from ..records.board_records import Record
from ..records.store import ClaimTerms, why_not_free
from . import checked_boards
from .board_fit import root_sizes, unfit_boards
from .board_leases import REAPER
from .board_queue import BoardQueue
from .info import claim_fields
from .owner_limits import limits_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...images.capacity import Promises
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from ..records.store import Store
    from .board_fit import ClaimRequest

NO_SPACE = "the file system of the proxy's database is full: free space on it, or terminate what can go"
#: Phase of the event that says which boards were chosen for a request.
CHOICE = "choice"


def present(proxy: Proxy, request: ClaimRequest, change: Change) -> dict[str, Any]:
    """Claim what `request` asks for, or find it claimed; one transaction, which check mode takes back.

    Where boards are being checked that are held for nobody else, and the request would have all that it lacks with
    them, their checks end, and the request waits for that.

    :returns: boards (the claims), rejected, rejected_lines, lines.
    :raises NoneFree: the text says why each board was refused, as do `facts['rejected']` and `facts['rejected_lines']`.
    """
    deadline = Deadline(checked_boards.LONGEST)
    while True:
        try:
            return _present(proxy, request, change)
        except NoneFree as none:
            pool = [board for board in proxy.boards.values() if request.board in (None, board.id)]
            never = {**none.facts.get("unfit", {}), **none.facts.get("held", {})}
            could = [board for board in pool if board.name not in never]
            lacks, may = none.facts.get("lacks", 1), limits_of(proxy).may_have(request.owner, request.flavor["name"])
            checked = checked_boards.all_of(proxy, could)
            in_vain = len(checked) < lacks or (may is not None and may < none.facts.get("missing", 1))
            if change.check or in_vain or not checked_boards.given_way(proxy, request.request, could, lacks, deadline):
                raise


def _present(proxy: Proxy, request: ClaimRequest, change: Change) -> dict[str, Any]:
    request.check()
    if request.lease_hours:
        begin_lease(proxy.store, REAPER, change.check)
    make_room(len(request.instances))
    named = None if request.board is None else proxy.board(request.board)
    pool = [named] if named else [proxy.boards[key] for key in sorted(proxy.boards)]
    promises, sizes = room_of(proxy).promises, root_sizes(proxy, request, pool)
    unfit = unfit_boards(proxy, request, pool, promises, sizes)
    never = None if _takes_none(proxy.store, request) else limits_of(proxy).never(request)
    unfit = {name: why or ([never] if never else []) for name, why in unfit.items()}
    store, feeds, queue = proxy.store, Feeds(proxy), BoardQueue(proxy)
    queue.look()
    scores = store.scores()
    # Boards that failed least come first; equal ones in the order of their ids.
    fit = sorted((one for one in pool if not unfit[one.name]), key=lambda one: -scores.get(one.id, FULL))
    if not all(map(store.claim_of, request.instances)):
        refuse_unclaimed(proxy, request.request, set(request.instances))
    with store.transaction(dry=change.check):
        busy, open_to_all, held = _at_present(feeds, queue, request, fit, promises, sizes)
        free = sum(1 for why in busy.values() if why is None)
        rejected = {**unfit, **{name: [why] if why else [] for name, why in busy.items()}}
        rejected = {name: reasons for name, reasons in rejected.items() if reasons}
        names = set(request.instances)
        known = [claim for claim in store.claims() if claim.instance in names]
        known = [catch_up(proxy, claim) for claim in known]
        before = {claim.instance: claim for claim in known}
        _refuse_moved(proxy, before)
        try:
            moved = _claim_and_move(store, request, open_to_all, _no_other_image(proxy, request.image, known))
        except NoneFree as none:
            raise _no_node(request, len(before), free, rejected, unfit, held) from none
        # Read back, inside the transaction so that check mode sees what would be.
        after = [claim for claim in map(store.claim_of, request.instances) if claim is not None]
        for claim in after:
            old = before.get(claim.instance)
            change.note(claim.instance, shown(old) if old else {}, shown(claim))
        own = {f"board{claim.board}" for claim in after if claim.instance not in moved}
        rejected = {name: reasons for name, reasons in rejected.items() if name not in own}
        headline = _headline(request, pool, fit, free, before, after)
        queue.served(request, [claim for claim in after if claim.instance not in before])
        is_new = any(claim.instance not in before for claim in after)
        idle = not request.move and any(store.record(claim.board).state != board_states.RUNNING for claim in after)
        if is_new or idle:  # said before what is made of it; of what runs nothing is made
            store.event(None, CHOICE, headline, instance=request.request)
        return {
            "boards": [
                claim_fields(proxy.boards.get(claim.board), store.record(claim.board), claim, store.has_run(claim))
                for claim in after
            ],
            "rejected": rejected,
            "rejected_lines": summary(rejected),
            "lines": [line(request.request, "", "", headline), *_lines(store, request, before, after, moved)],
        }


def _at_present(
    feeds: Feeds,
    queue: BoardQueue,
    request: ClaimRequest,
    fit: Sequence[Board],
    promises: Promises,
    sizes: Mapping[str, int],
) -> tuple[dict[str, str | None], list[int], dict[str, str]]:
    """Return what keeps boards that fit from being given at present.

    Free boards may be held for others who wait, or be reserved.

    :returns: {board name: why it is not free, None for a free one}, the ids of the boards that nothing keeps but their
        records, which the store reads by itself, and {board name: why} of those that others are to get.
    """
    proxy, store, now = feeds.proxy, feeds.proxy.store, time.time()
    records = store.records([board.id for board in fit])
    others = {board.id: somebodys(proxy, board, records[board.id]) for board in fit}
    busy = {board.name: why_not_free(records[board.id], now) or others[board.id] for board in fit}
    held, size_held = queue.held(request, busy)
    busy.update(held)
    promises.take(size_held)
    # a board whose root has no room by itself serves no reservation, and one that is reserved uses up no room
    free = [name for name, why in busy.items() if why is None]
    full = dict.fromkeys(free, NO_SPACE) if store.is_short else {}
    full = full or {one: promises.why(sizes[one]) for one in free if sizes[one] and not promises.fits(sizes[one])}
    busy.update(full)
    # those that are checked last: they would be free for who may have them
    checked = [one.name for one in fit if one.name not in held and checked_boards.gives_way(proxy, records[one.id])]
    reserved = _reserved(queue, request, [*(board.name for board in fit if busy[board.name] is None), *checked])
    busy.update(reserved)
    full.update(without_room(promises, _free(busy, sizes)))
    busy.update(full)
    if not _takes_none(store, request):
        reserved.update(queue.without_room(request, _free(busy, sizes)))
        busy.update(reserved)
    held = {**held, **reserved}
    fed = _fed(feeds, [board for board in fit if busy[board.name] is None], len(request.instances))
    busy.update(fed)
    over = _over_limit(proxy, request, [board.name for board in fit if busy[board.name] is None])
    busy.update(over)
    open_to_all = [board.id for board in fit if not (board.name in {**held, **full, **fed, **over} or others[board.id])]
    return busy, open_to_all, held


def _free(busy: Mapping[str, str | None], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return {board name: bytes of its root} of the boards that nothing keeps from being given."""
    return {name: sizes[name] for name, why in busy.items() if why is None}


def _reserved(queue: BoardQueue, request: ClaimRequest, free: Sequence[str]) -> dict[str, str]:
    """Return {board name: why} of the free boards that a request does not get, as they are reserved.

    An instance that moves from a board that failed keeps its lease; one that has its board takes none.
    """
    store, until = queue.proxy.store, time.time() + 3600 * request.lease_hours if request.lease_hours else None
    if _takes_none(store, request):
        there = [claim for claim in map(store.claim_of, request.instances) if claim and request.move]
        if not there:
            return {}
        ends = [_end_of(store, claim) for claim in there]
        until = None if None in ends else max(end for end in ends if end is not None)
    return queue.kept_from(request.owner, until, free)


def _takes_none(store: Store, request: ClaimRequest) -> bool:
    """Return whether a request takes no board more than its owner has: an instance that moves leaves one."""
    there = list(map(store.claim_of, request.instances))
    return any(there) if request.move else all(there)


def _over_limit(proxy: Proxy, request: ClaimRequest, free: Sequence[str]) -> dict[str, str]:
    """Return {board name: why} of the free boards that are more than the request's owner may have at present."""
    limits, flavor = limits_of(proxy), request.flavor["name"]
    may = None if _takes_none(proxy.store, request) else limits.may_have(request.owner, flavor)
    return {} if may is None else dict.fromkeys(free[may:], limits.why_no_more(request.owner, flavor))


def _lines(
    store: Store,
    request: ClaimRequest,
    before: Mapping[str, Claim],
    after: Iterable[Claim],
    moved: Mapping[str, str | None],
) -> list[dict[str, Any]]:
    """Return the lines for people below the headline: which instances move, and what becomes of leases.

    :param before, after: the claims by their instances as they were, and the claims as they are.
    :param moved: {moved instance: why}.
    """
    boards_of, lines, now = {claim.instance: claim.board for claim in after}, [], time.time()
    for instance, why in moved.items():
        text = f"{why}; {instance} moves to board{boards_of[instance]}"
        lines.append(line(instance, f"board{before[instance].board}", "claim", text))
    # a further board after a failed boot is part of the request that has just given the lease
    for claim in () if request.move else before.values():
        expires = _end_of(store, claim)
        told = over(claim.instance, expires, now) or kept(claim.instance, request.lease_hours, expires, now)
        lines += [line(claim.instance, f"board{claim.board}", "lease", told)] if told else []
    return lines


def _fed(feeds: Feeds, boards: Iterable[Board], count: int) -> dict[str, str]:
    """Return {board name: why nobody gets it} of boards whose outlet feeds another board that somebody has.

    :param count: stop after so many boards whose outlet feeds none.
    """
    found: dict[str, str] = {}
    for board in boards:
        try:
            why = feeds.feeds_another(board)
        except HeteroError:
            why = None  # the wiring names no outlet: the error comes when the board is switched
        if why:
            found[board.name] = f"{why} {RECONCILE}"
        else:
            count -= 1
        if not count:
            break
    return found


def _refuse_moved(proxy: Proxy, claims: Mapping[str, Claim]) -> None:
    """Raise Refused where an instance moved after the database's backup: its record is on another board."""
    for number in proxy.store.kept_boards():
        try:
            kept = proxy.store.kept(number)
        except HeteroError:
            continue  # a board whose record cannot be read is given to nobody
        board, claim = proxy.boards.get(number), claims.get(kept.claim.instance) if kept else None
        if claim and claim.board != number and (board is None or left_by(proxy, board, Record(number))):
            what = BY_RECORD.format(board=number, name=claim.instance, number=claim.board)
            remedy = f"run {play('reconcile')}, which adopts what proves itself"
            if board is None:
                remedy = f"add board{number} to the boards file, then {remedy}"
            raise Refused(what, claim.instance, remedy)


def _no_other_image(proxy: Proxy, image: str, known: Iterable[Claim]) -> str | None:
    """Return why instances that are there could not be made anew of another image, or None if they could."""
    boards = [proxy.boards.get(claim.board) for claim in known if claim.image != image]
    images = images_of(proxy) if boards else {}
    return next(filter(None, (no_image(image, images, board.arch) for board in boards if board)), None)


def _claim_and_move(
    store: Store, request: ClaimRequest, fit: Sequence[int], no_other_image: str | None
) -> dict[str, str | None]:
    """Claim all instances; where it is asked for, move those on a board in error. Return {moved instance: why}.

    A call that moves some goes before all who wait, and past its owner's limit, so it claims nothing beside them.
    """
    moved: dict[str, str | None] = {}
    there = [name for name in request.instances if store.claim_of(name)] if request.move else []
    claims = store.claim(
        request.request,
        there or request.instances,
        ClaimTerms(request.owner, request.flavor, request.image, request.ssh_public_key, request.boot_source),
        fit,
        lease_hours=request.lease_hours,
        partial=request.partial,
        no_image=no_other_image,
    )
    for claim in claims:
        record = store.record(claim.board)
        if request.move and record.state == board_states.ERROR:
            store.move_claim(claim.instance, fit)
            moved[claim.instance] = why_not_free(record, time.time())
        elif request.board not in (None, claim.board):
            what = f"has board{claim.board}, not board{request.board}"
            as_it_is = dict(board=claim.board)
            raise Refused(what, claim.instance, "leave out option board, or terminate it first", as_it_is=as_it_is)
    return moved


def _end_of(store: Store, claim: Claim) -> float | None:
    """Return the end of a lease: of that by the database, which may be older, and that by the claim's record the later
    one. No lease ends before both are over."""
    with suppress(HeteroError):
        found = store.kept(claim.board)
        if found and found.claim.is_same(claim):
            return later(claim.expires, found.claim.expires)
    return claim.expires


def shown(claim: Claim) -> dict[str, Any]:
    """Return the fields of a claim that a diff shows."""
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(claim.expires)) if claim.expires else None
    return {
        "board": f"board{claim.board}",
        "request": claim.request,
        "owner": claim.owner,
        "flavor": claim.flavor.get("name"),
        "image": claim.image,
        "boot_source": claim.boot_source,
        "ssh_public_key": claim.ssh_public_key,
        "expires": expires,
    }


def _headline(
    request: ClaimRequest,
    pool: Sequence[Board],
    fit: Sequence[Board],
    free: int,
    before: Mapping[str, Claim],
    after: Sequence[Claim],
) -> str:
    """Return the first line for people, such as `wants tp64.8x8: 10 of 10 boards fit, board0 chosen`."""
    wants = f"wants {request.many}{request.flavor['name']}"
    old = {claim.board for claim in before.values()}
    chosen = [f"board{claim.board}" for claim in after if claim.board not in old]
    if not chosen:
        return f"{wants}: has {', '.join(f'board{claim.board}' for claim in after)}"
    fitting = f"{len(fit)} of {len(pool)} boards fit" + (f", {free} free" if free < len(fit) else "")
    asked = len(request.instances)
    short = f" ({len(after)} of {asked})" if len(after) < asked else ""
    return f"{wants}: {fitting}, {', '.join(chosen)} chosen{short}"


def _no_node(
    request: ClaimRequest,
    there: int,
    free: int,
    rejected: dict[str, list[str]],
    unfit: dict[str, list[str]],
    held: dict[str, str],
) -> NoneFree:
    """Return the error `bob wants tgx.8x8 (…): no node.` with the reason for each board.

    :param there: how many of the instances have their boards already.
    """
    wants = f"{request.request} wants {request.many}{describe(request.flavor['name'], request.flavor)}"
    # each board fits, and there are too few of them: a play that finds a reason says what would help
    few = f"there are {free + there} such boards in all" if not rejected and free + there else ""
    lines = summary(rejected) or [few or "the boards file names no boards"]
    rejected = rejected or ({"count": [few]} if few else {})
    found = nodes_found(free, len(request.instances), there, "boards")
    text = "\n".join([f"{wants}: {found}.", *(f"  {reason}" for reason in lines)])
    unfit = {name: reasons for name, reasons in unfit.items() if reasons}
    missing = 1 if request.partial else len(request.instances) - there
    error = NoneFree(text, rejected=rejected, rejected_lines=lines, unfit=unfit, held=held)
    error.facts.update(missing=missing, lacks=max(1, missing - free), room=free)
    return error
