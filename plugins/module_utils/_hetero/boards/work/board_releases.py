# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give boards back: end their claims once nothing of these is left on the boards.

This file only looks whether anything is left; verbs/release.py switches boards off and cleans them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Collection

from ...core.errors import HeteroError, Refused
from ...core.lines import line
from ...core.plays import play
from ...site import board_states
from ...site.instance import valid_instance
from ...site.key_prints import has_keys
from ...site.owners import is_of, must_be_made, must_own
from ..evidence.free_boards import give_back, in_the_way, left_by, refuse_somebodys
from ..evidence.unclaimed_instances import refuse_unclaimed
from .board_claims import shown
from .each_board import board_lock, board_of
from .info import claim_fields

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from .each_board import Instances

#: The remedy where a board is to be repaired that an instance has.
SOMEBODYS = (
    f"{play('stop_instance', instance='{name}')} and {play('start_instance', instance='{name}')} bring it up once the "
    f"fault is mended, {play('terminate_instance', instance='{name}')} ends it; then {play('repair', node='{board}')} "
    "takes the board"
)
#: The remedy where a board is not off, or something of it is left.
CLEAN_FIRST = "stop the board and remove its image first ({way} does both)"
#: The name of the verb for locks, and the phase of its lines.
RELEASE = "release"
GIVEN_BACK = "off and clean, given back"


def absent(
    proxy: Proxy,
    instances: Instances,
    change: Change,
    deadline: Deadline,
    board: int | None = None,
    left: Collection[int] = (),
    on: bool = False,
) -> dict[str, Any]:
    """Give back the boards of instances; each is checked to be clean first.

    :param board: where given, give back only this one of their boards.
    :param left: boards that stay claimed.
    :param on: also end a claim for which its board never had power while the board is on (free_boards.give_back).
    :returns: boards that were given back, lines; `failed`, `msg` and `errors` for those that were not.
    """
    request, numbers = instances.request, instances.numbers
    valid_instance(request)
    notes, result = refuse_unclaimed(proxy, request), nothing_yet()
    result["lines"] += notes
    for claim in proxy.store.claims():
        if not is_of(vars(claim), request, numbers) or board not in (None, claim.board) or claim.board in left:
            continue
        if not has_keys(claim, instances.only_key):
            continue
        try:
            must_own(claim, instances.owner)
            must_be_made(claim, instances.created)
            _release(proxy, claim, deadline, change, result, on)
        except HeteroError as error:
            result["errors"][claim.instance] = str(error)
            result["lines"].append(line(claim.instance, f"board{claim.board}", RELEASE, str(error)))
    if result["errors"]:
        result.update(failed=True, msg="\n".join(result["errors"].values()))
    return result


def make_free(proxy: Proxy, board: Board, change: Change, deadline: Deadline) -> dict[str, Any]:
    """Make a board free that nobody claims, that has left the state error, and that is switched off and cleaned by now.

    :returns: as `absent` does.
    :raises Refused: somebody has the board or may have it, or it is not off and clean.
    """
    result = nothing_yet()
    with board_lock(proxy, board, RELEASE, change, deadline, result["lines"]):
        record = proxy.store.record(board.id)
        if record.claim:
            remedy = SOMEBODYS.format(name=record.claim.instance, board=board.name)
            raise Refused(f"is claimed for {record.claim.instance}", board.name, remedy)
        refuse_somebodys(proxy, board, left_by(proxy, board, record))
        if change.note(board.name, {"state": record.state}, {"state": board_states.POWER_OFF}) and not change.check:
            remedy = CLEAN_FIRST.format(way=play("repair", node=board.name))
            give_back(proxy, board, None, board.name, remedy)
    return result


def _release(proxy: Proxy, claim: Claim, deadline: Deadline, change: Change, result: dict[str, Any], on: bool) -> None:
    """Give one board back, under its lock; add the outcome to `result`."""
    board = board_of(proxy, claim)
    with board_lock(proxy, board, RELEASE, change, deadline, result["lines"]):
        end_claim(proxy, claim, change, result, on)


def end_claim(
    proxy: Proxy,
    claim: Claim,
    change: Change,
    result: dict[str, Any],
    on: bool,
    out_of_use: str | None = None,
) -> None:
    """Give one board back whose lock the caller holds, as free_boards.give_back does; add the outcome to `result`."""
    board = board_of(proxy, claim)
    start, name, energy = time.monotonic(), board.name, proxy.store.energy_of(claim)
    if change.check:
        # In check mode the steps before this one (stop, remove) were not done: what is left is no error.
        text = "; ".join(in_the_way(proxy, board)) or "nothing is left"
        result["lines"].append(line(claim.instance, name, RELEASE, f"would be given back once clean ({text})"))
    else:
        if proxy.store.record(board.id).claim != claim:
            raise Refused("was changed by somebody else just now", claim.instance, "run this again")
        remedy = CLEAN_FIRST.format(way=play("terminate_instance", instance=claim.instance))
        give_back(proxy, board, claim, claim.instance, remedy, on, out_of_use)
        seconds = round(time.monotonic() - start, 3)
        text = _given_back(proxy, board) + ("" if energy.kwh is None else f"; it drew {energy.kwh:.3f} kWh")
        result["lines"].append(line(claim.instance, name, RELEASE, text, seconds))
    change.note(claim.instance, shown(claim), {})
    result["boards"].append(dict(claim_fields(board, proxy.store.record(board.id), claim), **energy.told))


def _given_back(proxy: Proxy, board: Board) -> str:
    """Return, in words, the state of a board whose claim was ended."""
    record = proxy.store.record(board.id)
    if record.state == board_states.ERROR:
        way = play("repair", node=board.name)
        return f"its claim is ended; {board.name} is kept out of use ({way} puts it back): {record.note}"
    left = left_by(proxy, board, record)
    return f"off and clean, and its claim is ended; nobody gets the board yet: {left}" if left else GIVEN_BACK


def nothing_yet() -> dict[str, Any]:
    """Return the result of `absent` before the first board is given back."""
    return {"boards": [], "lines": [], "errors": {}, "rejected": {}, "rejected_lines": []}
