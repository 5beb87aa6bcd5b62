# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do a piece of work, which the caller gives, on many boards, each under its lock and with its claim.

The failure of one board does not stop the others. Boards are worked on one after another (`each`), or some at the same
time (`side_by_side`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterable

from ...core.changes import Change
from ...core.errors import HeteroError, Refused
from ...core.lines import line
from ...core.locks import lock
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...drivers.power.wait_notes import QUIET
from ...site.instance import valid_instance
from ...site.key_prints import must_have_keys, with_keys
from ...site.owners import is_of, must_own
from ..evidence.unclaimed_instances import refuse_unclaimed
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

    #: A function that works on one board with its claim, and returns fields for the board's result. What it changes it
    #: notes in the board's own Change.
    Step = Callable[[Board, "Claim | None", "Report", Change], dict[str, Any]]

#: An instance that moves leaves its board in the same way as one that ends.
LEFT = "was left by {request} meanwhile, which ended, or moved to another board"
LOOK = "run this again, which looks up where {request} is"
#: Boards that are worked on at the same time where that pays. A root takes some 50 ms of the processor, and waits as
#: long for programs and the disk.
AT_ONCE = 8


@dataclass(frozen=True)
class Tenant:
    """The tenant that must have the boards of a call; a board that another one has by now is refused.

    :param instance: name of an instance or request; None for any.
    :param created: unix times of the claims that are meant; none for any.
    """

    instance: str | None = None
    created: Collection[float] = ()


#: For boards that are worked on whoever has them.
EVERY_TENANT = Tenant()


@dataclass(frozen=True)
class Instances:
    """The instances that a call is about.

    :param request: the name of one instance, or of a request.
    :param owner: where given, instances of another owner are refused.
    :param numbers: where given, only these of the instances NAME-1 … NAME-N.
    :param created: unix times of the claims that are meant; none for any.
    :param only_key: where given, instances that were claimed with another ssh key are passed over.
    """

    request: str
    owner: str | None = None
    numbers: Collection[int] = ()
    created: Collection[float] = ()
    only_key: str | None = None

    @property
    def tenant(self) -> Tenant:
        """Return the Tenant that must have their boards."""
        return Tenant(self.request, self.created)

    def must_have(self, board: Board, claim: Claim | None) -> Claim:
        """Return the claim of a board that one of the instances had when the call began.

        :raises Refused: the instance has left the board since, or is another's.
        """
        if claim is None:
            raise Refused(LEFT.format(request=self.request), board.name, LOOK.format(request=self.request))
        must_own(claim, self.owner)
        must_have_keys(claim, self.only_key)
        return claim


class Report:
    """Reports the work on one board: by events, and by lines of the result, which it adds to `lines`."""

    def __init__(
        self, proxy: Proxy, board: Board, instance: str | None, check: bool, lines: list[dict[str, Any]]
    ) -> None:
        self._proxy, self._board, self._instance, self._check = proxy, board, instance, check
        self._lines = lines

    def __call__(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Report by an event and a line; a dry run writes no event."""
        seconds = None if seconds is None else round(seconds, 3)
        if not self._check:
            self._proxy.store.event(self._board.id, phase, text, seconds, self._instance)
        self.line(phase, text, seconds)

    def line(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Report by a line only."""
        self._lines.append(line(self._instance, self._board.name, phase, text, seconds))


def each(
    proxy: Proxy,
    ids: Iterable[int],
    verb: str,
    one: Step,
    change: Change,
    deadline: Deadline,
    tenant: Tenant = EVERY_TENANT,
) -> dict[str, Any]:
    """Do `one(board, claim, report, change)` for each board, one after another.

    :param verb: the name for the lock, the events and the lines.
    :returns: the module's result, with what each `one` returned.
    """
    works = [_Work(proxy, proxy.board(board_id), change.check) for board_id in ids]
    for work in works:
        work.do(verb, one, deadline, tenant)
    return _result(works, change)


def side_by_side(
    proxy: Proxy,
    ids: Iterable[int],
    verb: str,
    one: Step,
    change: Change,
    deadline: Deadline,
    tenant: Tenant = EVERY_TENANT,
) -> dict[str, Any]:
    """Do the same for AT_ONCE boards at a time; `one` is called by several threads, and the result is in their order.

    A thread holds no lock but that of the board that it works on, so that two calls never wait for each other.
    """
    works = [_Work(proxy, proxy.board(board_id), change.check) for board_id in ids]
    if len(works) > 1:
        with ThreadPoolExecutor(min(AT_ONCE, len(works))) as pool:
            for done in [pool.submit(work.do, verb, one, deadline, tenant) for work in works]:
                done.result()
    else:
        for work in works:
            work.do(verb, one, deadline, tenant)
    return _result(works, change)


class _Work:
    """The work on one board, with what it changed and said, and the board's part of the result."""

    def __init__(self, proxy: Proxy, board: Board, check: bool) -> None:
        self._proxy, self._board, self.change = proxy, board, Change(check)
        self.lines: list[dict[str, Any]] = []
        self.result: dict[str, Any] = dict(board=board.id, name=board.name, instance=None, changed=False, failed=False)

    def do(self, verb: str, one: Step, deadline: Deadline, tenant: Tenant) -> None:
        proxy, board, result = self._proxy, self._board, self.result
        try:
            with board_lock(proxy, board, verb, self.change, deadline, self.lines):
                claim = proxy.store.record(board.id).claim
                must_be_of(claim, tenant.instance, board.name, tenant.created)
                result["instance"] = claim.instance if claim else None
                report = Report(proxy, board, result["instance"], self.change.check, self.lines)
                result.update(one(board, claim, report, self.change))
        except HeteroError as error:
            result.update(failed=True, error=str(error), failure=error.failure)


def _result(works: Iterable[_Work], change: Change) -> dict[str, Any]:
    results, lines = [], []
    for work in works:
        change.take(work.change)
        results.append(work.result)
        lines += work.lines
    failed = [result["error"] for result in results if result["failed"]]
    done = dict(change.result, boards=results, lines=lines)
    return dict(done, failed=True, msg="; ".join(failed)) if failed else done


def claims_of(proxy: Proxy, request: str, numbers: Collection[int] = (), only_key: str | None = None) -> list[Claim]:
    """Return the claims of an instance, or of the instances of a request.

    :param numbers: the numbers of the instances NAME-1 … NAME-N that are meant; none for all.
    :param only_key: a key that those have which are meant; None for any.
    :raises Refused: there is no claim, none has that key, or an instance has a root or record here but no claim in the
        database.
    """
    valid_instance(request)
    refuse_unclaimed(proxy, request)
    claims = [claim for claim in proxy.store.claims() if is_of(vars(claim), request, numbers)]
    if not claims:
        remedy = f"{play('status')} shows who has what"
        raise Refused(f"no such instance on {THIS_NODE}", request, remedy)
    return with_keys(claims, only_key)


def ids_of(proxy: Proxy, request: str, numbers: Collection[int] = (), only_key: str | None = None) -> list[int]:
    """Return the ids of an instance's or request's boards, as claims_of finds them.

    :raises Refused: as claims_of, and where the boards file lacks one of the boards.
    """
    return [board_of(proxy, claim).id for claim in claims_of(proxy, request, numbers, only_key)]


def board_of(proxy: Proxy, claim: Claim) -> Board:
    """Return the board of a claim; raise Refused where the boards file does not name it."""
    board = proxy.boards.get(claim.board)
    if board is None:
        forget = play("reconcile", forget=claim.instance)
        remedy = f"add it, so that it can be checked; or, where it is gone for good, {forget} ends the claim"
        raise Refused(f"has board{claim.board}, which is not in the boards file", claim.instance, remedy)
    return board


def board_lock(
    proxy: Proxy, board: Board, verb: str, change: Change, deadline: Deadline, lines: list[dict[str, Any]]
) -> ContextManager[Any]:
    """Return the board's lock; an empty context in check mode, which changes nothing.

    :param lines: get what is waited for, and so do the events of the board, if that takes longer than a moment.
    """
    if change.check:
        return ExitStack()
    claim = proxy.store.record(board.id).claim
    report = Report(proxy, board, claim.instance if claim else None, change.check, lines)
    return lock(proxy.config.run_folder, board.name, verb, proxy.actor, deadline, partial(report, "wait"), QUIET)
