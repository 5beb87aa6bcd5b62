# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State `migrated` of an instance on a board: it goes to another board of its proxy with its root, and runs there.

boards/verbs/migration.py moves root and claim. Where the new board does not bring it up, it goes back to the old one,
unless that is out of use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Sequence

from ...boards.verbs.migration import PHASE, Migration
from ...core.errors import HeteroError, Refused
from ...core.lines import line
from ...core.plays import play
from ...roots.board_parts import root_of_board
from ...site.board_states import AT_WORK, POWER_OFF

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...boards.records.proxy import Proxy
    from ...boards.verbs.lifecycle import Options
    from ...boards.work.steps import Steps

SEVERAL = "is {count} instances, and one at a time moves"
ONE = "name it, such as -e instance={name}"
STAYS = "{name} stays on {board}, and runs there again"
BACK = "{name} is back on {board}, and runs"
WHERE = "{name} has {board} now, with its root in {folder}, which is whole"
AGAIN = f"{play('migrate_instance', instance='{name}')} goes on, or, where {{board}} is at fault, takes another one"


class Request(Protocol):
    """What is used here of a request for boards (board.py)."""

    proxy: Proxy
    params: dict[str, Any]
    check: bool
    name: str
    steps: Steps

    @property
    def options(self) -> Options: ...

    def ids(self) -> list[int]:
        """Return the ids of the boards of its claims, and say whose lease ended."""

    def own_claims(self) -> list[Claim]:
        """Return its claims."""

    def bring_up(self, ids: Sequence[int]) -> bool:
        """Make ready what boards boot from, boot them, and return whether that did not fail."""


def migrated(request: Request) -> None:
    """Move an instance to another board, and bring it up there; one that is there already is only brought up."""
    request.ids()
    claims = request.own_claims()
    if len(claims) > 1:
        what = SEVERAL.format(count=len(claims))
        raise Refused(what, request.name, ONE.format(name=claims[0].instance))
    move = Migration(request.proxy, claims[0], request.options)
    try:
        _migrated(request, move, request.params["board"])
    finally:
        try:
            _after(request, move.let_go())
        except HeteroError as error:
            request.steps.broke_off(error)


def _migrated(request: Request, move: Migration, wanted: int | None) -> None:
    steps = request.steps
    left = move.finish()
    if left is not None and (not steps.took(left, PHASE) or request.check):
        return
    goes_on = move.is_under_way
    if wanted == move.board.id or (wanted is None and goes_on):
        if not request.bring_up([move.board.id]) and goes_on:
            _go_back(request, move)
        return
    old, new = move.board, move.target(wanted)
    at_work = request.proxy.store.record(old.id).state in AT_WORK
    if not steps.took(move.move(new), PHASE):
        if at_work and request.proxy.store.record(old.id).state == POWER_OFF and request.bring_up([old.id]):
            steps.add(STAYS.format(name=move.name, board=old.name))
        return
    if request.check:
        text = f"would be switched off, and its root exported to {new.name}, which would boot it"
        steps.say([line(move.name, old.name, PHASE, text)])
        steps.boards = [dict(one, board=new.id, name=new.name, ip=new.ip) for one in steps.boards]
    elif not request.bring_up([new.id]):
        _go_back(request, move)


def _go_back(request: Request, move: Migration) -> None:
    """Have the instance run again where it ran before, or say where all is; the migration has failed in any case."""
    if request.steps.being_ended:
        return
    steps, old = request.steps, move.left
    try:
        if old and steps.took(move.move(old), PHASE) and request.bring_up([old.id]):
            steps.add(BACK.format(name=move.name, board=old.name))
            return
    except HeteroError as error:
        steps.broke_off(error)
    here = move.board
    folder = root_of_board(request.proxy, here.id).folder
    steps.add(WHERE.format(name=move.name, board=here.name, folder=folder))
    steps.add(AGAIN.format(name=move.name, board=here.name))


def _after(request: Request, done: dict[str, Any] | None) -> None:
    """Add what freed the boards that were kept, without these boards: the result is the instance's."""
    if done is not None:
        boards, blame = request.steps.boards, request.steps.blame
        request.steps.took(done, "free")
        request.steps.boards, request.steps.blame = boards, blame
