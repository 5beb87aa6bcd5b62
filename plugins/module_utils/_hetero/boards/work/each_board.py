# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One piece of work for many boards, each under its lock and by its claim; one board's failure is no other's.

What the work is, its caller says.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
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
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

    #: What is done with one board, by its claim: the fields that it adds to the board's result.
    Step = Callable[[Board, Claim | None, "Report"], dict[str, Any]]


@dataclass(frozen=True)
class Tenant:
    """Whose the boards of a call are to be; a board that is another's by now is refused.

    :param instance: name of an instance or request; None does not ask.
    :param created: when the claims were made that are meant (unix seconds); none does not ask.
    """

    instance: str | None = None
    created: Collection[float] = ()


#: Of boards that are worked on whoever has them.
EVERY_TENANT = Tenant()


@dataclass(frozen=True)
class Instances:
    """The instances that a call is about.

    :param request: the name of one instance, or of a request.
    :param owner: where given, another owner's are refused.
    :param numbers: where given, only these of its instances NAME-1 … NAME-N.
    :param created: when the claims were made that are meant (unix seconds); none does not ask.
    """

    request: str
    owner: str | None = None
    numbers: Collection[int] = ()
    created: Collection[float] = ()

    @property
    def tenant(self) -> Tenant:
        """Whose their boards are to be."""
        return Tenant(self.request, self.created)


class Report:
    """What is said of the work on one board: events, and lines of the result, which it adds to `lines`."""

    def __init__(
        self, proxy: Proxy, board: Board, instance: str | None, check: bool, lines: list[dict[str, Any]]
    ) -> None:
        self._proxy, self._board, self._instance, self._check = proxy, board, instance, check
        self._lines = lines

    def __call__(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Say it in an event and in a line; a dry run writes no event."""
        seconds = None if seconds is None else round(seconds, 3)
        if not self._check:
            self._proxy.store.event(self._board.id, phase, text, seconds, self._instance)
        self.line(phase, text, seconds)

    def line(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Say it in a line only."""
        said = dict(instance=self._instance, node=self._board.name, phase=phase, text=text, seconds=seconds)
        self._lines.append(said)


def each(
    proxy: Proxy,
    ids: Iterable[int],
    verb: str,
    one: Step,
    change: Change,
    deadline: Deadline,
    tenant: Tenant = EVERY_TENANT,
) -> dict[str, Any]:
    """Do `one(board, claim, report)` for each board.

    :param verb: what the lock, the events and the lines are named by.
    :returns: the module's result, with what each `one` returned.
    """
    results: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for board in [proxy.board(board_id) for board_id in ids]:
        result: dict[str, Any] = dict(board=board.id, name=board.name, instance=None, changed=False, failed=False)
        try:
            with _lock(proxy, board, verb, change, deadline):
                claim = proxy.store.record(board.id).claim
                must_be_of(claim, tenant.instance, board.name, tenant.created)
                result["instance"] = claim.instance if claim else None
                result.update(one(board, claim, Report(proxy, board, result["instance"], change.check, lines)))
        except HeteroError as error:
            result.update(failed=True, error=str(error), failure=error.failure)
        results.append(result)
    failed = [result["error"] for result in results if result["failed"]]
    done = dict(change.result, boards=results, lines=lines)
    return dict(done, failed=True, msg="; ".join(failed)) if failed else done


def must_own(claim: Claim, owner: str | None) -> None:
    """Refuse a claim of another owner; None asks for no owner.

    :raises Refused: it belongs to another owner.
    """
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
    """Return the ids of their boards; refuse, too, where the boards file does not name one of them."""
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
