# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free boards: stop them, remove what they boot from, wipe their disks, check that nothing is left, end their claims.

All that ends an instance or frees a board does so here: terminate, a request that is taken back, the end of a lease,
reconcile. The playbook repair does the same steps by modules of their own, so that a person sees each.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Mapping, Sequence

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused, naming
from ...core.plays import play
from ..disk.wipes import WipeRequest, wipe_beside
from ..evidence.free_boards import give_back, is_left_on
from ..image.board_images import clean, say_what_would_go
from ..records.disk_records import unwiped
from ..records.store import NOBODY, must_be_of
from ..work.board_locks import locked
from ..work.board_releases import RELEASE, end_claim, nothing_yet
from ..work.board_work import BoardWork, summary
from .lifecycle import switch_off, works_of

if TYPE_CHECKING:
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .lifecycle import Options

GONE = "its claim was ended meanwhile: nothing is touched"
#: How often an instance that is to end may move while its board is waited for: somebody moves it on purpose.
MOST_MOVES = 3
MOVED = "it has moved to {board} meanwhile, and ends there"
MOVES_ON = "got it again and again, as it moves, while another board was waited for"
#: The steps, for the result of one that failed.
STEPS = ("stop", "remove", "wipe", RELEASE)


def end(
    proxy: Proxy, ids: Sequence[int], request: WipeRequest, options: Options, at_fault: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """End the claims of boards: free the boards, each as soon as its own disks are wiped. An instance that moved while
    its board was waited for ends on the one that it has then.

    :param at_fault: {board id: why nobody is to get the board afterwards}.
    :returns: the module's result; in it `step`, the first step that failed, and `ended`, the names of instances whose
        claims ended.
    """
    works, change = works_of(proxy, ids, options)
    had, told, done = {claim.board: claim for claim in proxy.store.claims()}, nothing_yet(), list(works[:0])
    for _move in range(MOST_MOVES):
        if not works:
            break
        with locked(works, RELEASE, Deadline(options.limit), ends=not options.never_ran):
            _end(proxy, works, request, options, told, at_fault or {})
        at = {work.board.id: _moved_to(proxy, had.get(work.board.id), work.board.id) for work in works}
        done += [work for work in works if at[work.board.id] is None]
        had = {claim.board: claim for claim in at.values() if claim}
        works = [BoardWork(proxy, proxy.board(id), change, one.instance, (one.created,)) for id, one in had.items()]
        for work in works:
            work.record = proxy.store.record(work.board.id)
            work.say("wait", MOVED.format(board=work.board.name))
    for work in works:
        work.fail(None, Refused(MOVES_ON, work.board.name, play("terminate_instance", instance=str(work.wanted))))
    result, freed = summary([*done, *works], change), {board["board"]: board for board in told["boards"]}
    failed = [work.step or STEPS[0] for work in [*done, *works] if work.failed]
    return dict(
        result,
        boards=[freed.get(board["board"], board) for board in result["boards"]],
        lines=[*result["lines"], *told["lines"]],
        step=min(failed, key=STEPS.index, default=RELEASE),
        ended=[] if change.check else [board["instance"] for board in freed.values()],
    )


def _moved_to(proxy: Proxy, had: Claim | None, board: int) -> Claim | None:
    """Return the claim that a board had, where its instance has another board by now; else None."""
    now = proxy.store.claim_of(had.instance) if had else None
    return now if now and now.is_same(had) and now.board != board and now.board in proxy.boards else None


def _end(
    proxy: Proxy,
    works: Sequence[BoardWork],
    request: WipeRequest,
    options: Options,
    told: dict[str, Any],
    at_fault: Mapping[int, str],
) -> None:
    """Free boards whose locks are held, and end their claims; what that says goes to `told`."""

    def free(work: BoardWork) -> None:
        if work.claim:
            end_claim(proxy, work.claim, work.change, told, True, at_fault.get(work.board.id))
            work.changed = True

    for work in works:
        if not work.over and work.claim is None:  # another end was first; whose the board is now is not known
            work.line(RELEASE, GONE)
            work.over = True
            work.let_go()
    release(proxy, works, options, request, free=free)


def release(
    proxy: Proxy,
    works: Sequence[BoardWork],
    options: Options,
    request: WipeRequest | None = None,
    later: list[BoardWork] | None = None,
    once_off: Callable[[], object] | None = None,
    free: Callable[[BoardWork], object] | None = None,
) -> None:
    """Free boards. An error fails only its own work, and a next call goes on there.

    The lock of each board is released as soon as the board is free or its work failed.

    :param works: BoardWork of each board, locked and read; a work that is over is left alone.
    :param request: how disks are wiped; None for the proxy's way (tftp_proxy_wipe).
    :param later: the works whose boards are off and cleaned, but not wiped, are appended to this list and not freed,
        for a wipe may take hours. With None the disks are wiped now.
    :param once_off: is called once the outlets of these boards were switched off, before anything is removed or wiped.
    :param free: frees a clean board, whose work it gets; None for free_board.
    """
    works = [work for work in works if not work.over]
    nobodys = [work for work in works if work.claim is None]
    with _step(works, "stop", "power"):
        switch_off(proxy, works, replace(options, ends=True))
    if once_off:
        once_off()

    def must_be_as_seen(work: BoardWork) -> None:
        if work in nobodys:
            must_be_of(work.claim, NOBODY, work.board.name)  # a claim needs no lock
        elif work.claim is None:
            raise Refused(GONE, work.board.name, play("reconcile"))

    def remove(work: BoardWork) -> None:
        work.read()
        must_be_as_seen(work)
        if clean(proxy, work.board, work.claim, work.change, work.say, Deadline(options.limit)):
            work.changed = True
            if work.change.check:
                say_what_would_go(proxy, work.board, work.say)

    to_wipe = []
    for work in works:
        _do(work, "remove", remove)
        if later is not None:
            _do(work, "wipe", lambda work: later.extend([work] if _is_to_be_wiped(proxy, work) else []))
        if work.failed or work in (later or ()):
            work.let_go()
        else:
            to_wipe.append(work)

    def freed(work: BoardWork) -> None:
        _do(work, RELEASE, must_be_as_seen)
        _do(work, RELEASE, free or partial(free_board, proxy))
        work.let_go()

    with _step(to_wipe, "wipe", "wipe"):
        wipe_beside(proxy, to_wipe, request or WipeRequest.of(proxy), options, freed)


def _do(work: BoardWork, name: str, step: Callable[[BoardWork], object]) -> None:
    """Do a step of a work that has not failed; the work fails by an error of the step."""
    if not work.failed:
        work.step = name
        try:
            with naming(work.board.name):
                step(work)
        except HeteroError as error:
            work.fail(None, error, **error.facts)


def _step(works: Sequence[BoardWork], name: str, timed: str) -> ContextManager[None]:
    """Note the step to which works have come; its seconds are counted as those of step `timed`."""
    for work in works:
        work.step = name
    return works[0].change.step(timed) if works else nullcontext()


def _is_to_be_wiped(proxy: Proxy, work: BoardWork) -> bool:
    return bool(unwiped(proxy, work.board)) and not is_left_on(proxy, work.board, work.claim)


def free_board(proxy: Proxy, work: BoardWork) -> None:
    """Free a clean board whose lock is held, whoever had it; end its claim if there is one."""
    claim = work.claim
    if claim:
        work.note(f"{work.board.name} claim", {"instance": claim.instance, "owner": claim.owner}, {})
    if not work.change.check:
        give_back(proxy, work.board, claim, work.board.name, "look what holds it, then run this again", on=True)
        work.record = proxy.store.record(work.board.id)
