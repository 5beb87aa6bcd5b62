# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One piece of work for many boards, each under its lock and by its claim; one board's failure is no other's.

What the work is, its caller says.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterable

from ...core.errors import HeteroError, Refused
from ...core.locks import lock
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...site.instance import valid_instance
from ...site.owners import is_of
from ..evidence.unclaimed_instances import refuse_unclaimed
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...roots.proxy_node import Report
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

    #: What is done with one board, by its claim: the fields that it adds to the board's result.
    Step = Callable[[Board, Claim | None, Report], dict[str, Any]]


def each(
    proxy: Proxy,
    ids: Iterable[int],
    verb: str,
    one: Step,
    change: Change,
    deadline: Deadline,
    lines: list[dict[str, Any]],
    instance: str | None = None,
    created: Collection[float] = (),
) -> dict[str, Any]:
    """`one(board, claim, report)` for each board; the module's result, with what each `one` returned.

    :param verb: what the lock, the events and the lines are named by.
    :param lines: grows by what is reported.
    :param instance: the instance or request that the boards are to be of; None does not ask.
    :param created: when the claims were made that they are to be of; none does not ask.
    """
    results: list[dict[str, Any]] = []
    for board in [proxy.board(board_id) for board_id in ids]:
        result: dict[str, Any] = dict(board=board.id, name=board.name, instance=None, changed=False, failed=False)
        try:
            with _lock(proxy, board, verb, change, deadline):
                claim = proxy.store.record(board.id).claim
                must_be_of(claim, instance, board.name, created)
                result["instance"] = claim.instance if claim else None
                result.update(one(board, claim, _reporter(proxy, board, result["instance"], change, lines)))
        except HeteroError as error:
            result.update(failed=True, error=str(error), failure=error.failure)
        results.append(result)
    failed = [result["error"] for result in results if result["failed"]]
    done = dict(change.result, boards=results, lines=lines)
    return dict(done, failed=True, msg="; ".join(failed)) if failed else done


def must_own(claim: Claim, owner: str | None) -> None:
    """Refused where a claim is another owner's; None asks nobody."""
    if owner is not None and owner != claim.owner:
        raise Refused(f"belongs to {claim.owner}", claim.instance, f"have {claim.owner} do it")


def claims_of(proxy: Proxy, request: str, numbers: Collection[int] = ()) -> list[Claim]:
    """Claims of an instance, or of the instances of a request.

    :param numbers: which of NAME-1 … NAME-N are meant; none for all.
    :raises Refused: there is none, or something of one is there of which the database knows no claim.
    """
    valid_instance(request)
    refuse_unclaimed(proxy, request)
    claims = [claim for claim in proxy.store.claims() if is_of(vars(claim), request, numbers)]
    if not claims:
        remedy = f"{play('status')} shows who has what"
        raise Refused(f"no such instance on {THIS_NODE}", request, remedy)
    return claims


def ids_of(proxy: Proxy, request: str, numbers: Collection[int] = ()) -> list[int]:
    """The boards' ids of the same; refused, too, where the boards file does not name one of them."""
    return [board_of(proxy, claim).id for claim in claims_of(proxy, request, numbers)]


def board_of(proxy: Proxy, claim: Claim) -> Board:
    """The board of a claim; refused where the boards file does not name it."""
    board = proxy.boards.get(claim.board)
    if board is None:
        forget = play("reconcile", forget=claim.instance)
        remedy = f"add it, so that it can be checked; or, where it is gone for good, {forget} ends the claim"
        raise Refused(f"has board{claim.board}, which is not in the boards file", claim.instance, remedy)
    return board


def _lock(proxy: Proxy, board: Board, verb: str, change: Change, deadline: Deadline) -> ContextManager[Any]:
    """The board's lock; none in check mode, which changes nothing."""
    if change.check:
        return ExitStack()
    return lock(proxy.config["run_folder"], board.name, verb, proxy.actor, deadline)


def _reporter(proxy: Proxy, board: Board, instance: str | None, change: Change, lines: list[dict[str, Any]]) -> Report:
    def report(phase: str, text: str, seconds: float | None = None) -> None:
        seconds = None if seconds is None else round(seconds, 3)
        if not change.check:
            proxy.store.event(board.id, phase, text, seconds, instance)
        lines.append(dict(instance=instance, node=board.name, phase=phase, text=text, seconds=seconds))

    return report
