# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find instances that have a root or a record of their claim on a proxy, but no claim in its database.

The database was then put back from an older copy, and an answer that there is no such instance would be wrong. This
file only reads. adoption.py adopts claims; unnamed_boards.py handles boards that the boards file does not name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Collection, Container, Mapping, Optional, Tuple

from ...claims.lost_database import NO_CLAIM
from ...core.errors import HeteroError, Refused
from ...core.lines import line
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...roots.board_parts import root_of_board
from ...roots.made_json import is_unread
from ...roots.ownership import UNREADABLE, has_word, of_token, roots_there
from ...roots.provision import made_ready
from ...roots.used_disks import user_of
from ...site.board_states import POWER_OFF
from ...site.owners import is_of, number_of
from ..records.lost_database import way_by_copy
from ..records.misfiled_records import ADOPT as BY_ITS_WORD
from ..records.misfiled_records import way_of
from ..records.record_order import rank
from .adoption import PUT_BACK
from .unnamed_boards import LEFT, MOVED

if TYPE_CHECKING:
    from ...roots.ownership import AnyMade
    from ...site.boards_file import Board
    from ..records.claim_records import Claim, Kept
    from ..records.proxy import Proxy

    #: Claims of the database, by instance.
    Claims = Mapping[str, Claim]
    #: What roots_there returns: board id, folder, and what the folder's made.json says.
    There = Collection[Tuple[int, str, Optional[AnyMade]]]
    #: A record of a claim: its path and what it says.
    Stored = Tuple[str, Kept]

ADOPT = (
    f"nothing is touched: run {play('reconcile')}, which adopts what proves itself ({BY_ITS_WORD} takes the "
    "record's word where nothing speaks against it), then this again"
)
NOTHING_ELSE = "nothing else is there of {board}, which is off: {why}"
MAY_BE = f"no claim of it is in the database of {THIS_NODE}, and what lies there for {{board}} may be its: {{why}}"


@dataclass(frozen=True)
class Unclaimed:
    """Something of an instance without a claim.

    :param name: its board's name.
    :param text: what was found of it, and what to do.
    :param harmless: True where that is only a file that cannot be read, and the board has nothing else of an instance.
    """

    instance: str
    name: str
    text: str
    harmless: bool = False


def refuse_unclaimed(proxy: Proxy, request: str, only: Container[str] | None = None) -> list[dict[str, Any]]:
    """Raise Refused where an instance, or one of a request, has a root or a record here, but no claim.

    :param only: names of instances; only what is certainly theirs then counts.
    :returns: lines on what is harmless, to be shown with the answer that there is no such instance.
    """
    found = [one for one in unclaimed(proxy, request, only is not None) if only is None or one.instance in only]
    somebodys = [one for one in found if not one.harmless]
    if somebodys:
        raise Refused("; ".join(one.text for one in somebodys), request)
    return [line(request, one.name, "claim", one.text) for one in found]


def unclaimed(proxy: Proxy, request: str, sure: bool = False) -> list[Unclaimed]:
    """Return the Unclaimed of an instance, or of all instances of a request.

    :param sure: leave out things of which it is not certain whose they are.
    """
    # Claims are read first: a claim that ends meanwhile is known here, and one that is made meanwhile is seen below.
    claims = {claim.instance: claim for claim in proxy.store.claims()}
    there = roots_there(proxy.config.state_folder)
    records, roots = _records(proxy, request, claims), _roots(proxy, request, claims, there)
    found = [
        _of_record(proxy, instance, records[instance], roots.get(instance))
        if instance in records
        else _of_root(proxy, instance, roots[instance])
        for instance in sorted({*records, *roots})
        if proxy.store.claim_of(instance) == claims.get(instance)
    ]
    known = sure or any(is_of(vars(claim), request) for claim in claims.values())
    return found if found or known else _doubtful(proxy, request, {claim.board for claim in claims.values()}, there)


def _records(proxy: Proxy, request: str, claims: Claims) -> dict[str, Stored]:
    """Return {instance: (path, Kept)}: the most credible record of each claim that is not known and has not ended."""
    found: dict[str, list[Stored]] = {}
    for path, kept in proxy.store.kept_anywhere():
        claim = kept.claim
        asked = (is_of(vars(claim), request) or _is_asked(claim.instance, request)) and kept.is_somebodys
        # A record in its own place is removed when its claim ends; a person may have left a copy of it elsewhere.
        ended = path != proxy.store.path_of_kept(claim.board) and proxy.store.has_ended(claim)
        if asked and _is_newer(claim.created, claims.get(claim.instance)) and not ended:
            found.setdefault(claim.instance, []).append((path, kept))
    return {name: max(there, key=lambda one: rank(proxy, *one)) for name, there in found.items()}


def _roots(proxy: Proxy, request: str, claims: Claims, there: There) -> dict[str, tuple[int, str]]:
    """Return {instance: (board id, folder)} of roots whose claims are not known."""
    found: dict[str, tuple[int, str]] = {}
    for board, folder, made in there:
        instance, created = of_token(made.claim) if made else ("", None)
        if _is_asked(instance, request) and board in proxy.boards and _is_newer(created, claims.get(instance)):
            found.setdefault(instance, (board, folder))
    return found


def _is_asked(instance: str, request: str) -> bool:
    return instance == request or number_of(instance, request) is not None


def _is_newer(created: float | None, known: Claim | None) -> bool:
    """Return whether a claim is newer than the known one of its name, or none is known.

    :param created: unix time of the claim.
    """
    return known is None or (created is not None and created > known.created)


def _of_root(proxy: Proxy, instance: str, root: tuple[int, str]) -> Unclaimed:
    number, folder = root
    way = f"nothing is touched: {PUT_BACK}{way_by_copy(proxy, number)}"
    return Unclaimed(instance, f"board{number}", f"{NO_CLAIM}, and board{number} has its root {folder}: {way}")


def _of_record(proxy: Proxy, instance: str, record: Stored, root: tuple[int, str] | None) -> Unclaimed:
    path, kept = record
    number = kept.claim.board
    seen = [f"its root {root[1]}"] if root else []
    seen.append(f"the record of its claim {path} (by it {kept.state})")
    way = ADOPT.format(name=instance)
    if path != proxy.store.path_of_kept(number):
        way = f"{MOVED.format(way=way_of(proxy, path, number), number=number)}; then {way}"
    elif number not in proxy.boards:
        way = LEFT.format(name=instance)
    text = f"{NO_CLAIM}, and board{number} has {' and '.join(seen)}: {way}"
    return Unclaimed(instance, f"board{number}", text)


def _doubtful(proxy: Proxy, request: str, claimed: Container[int], there: There) -> list[Unclaimed]:
    """Return roots and records that cannot be read, on boards that have no claim in the database."""
    roots = {board: root_of_board(proxy, board) for board, _folder, _made in there}
    untold = [board for board, folder, made in there if not made and (has_word(folder) or is_unread(roots[board]))]
    why = dict.fromkeys(untold, f"{UNREADABLE}: {PUT_BACK}")
    for board in proxy.store.kept_boards():
        try:
            proxy.store.kept(board)
        except HeteroError as error:
            if not proxy.store.is_copy(error):
                why[board] = str(error)
    boards = [proxy.boards[board] for board in sorted(why) if board in proxy.boards and board not in claimed]
    harmless = {board.id: _is_bare(proxy, board) for board in boards}
    return [
        Unclaimed(
            request,
            board.name,
            (NOTHING_ELSE if harmless[board.id] else MAY_BE).format(board=board.name, why=why[board.id]),
            harmless[board.id],
        )
        for board in boards
    ]


def _is_bare(proxy: Proxy, board: Board) -> bool:
    """Return whether nothing of an instance can be on a board: it has no root, no used disk, and was last seen off."""
    record = proxy.store.record(board.id)
    off = record.state == POWER_OFF and record.power == "off"
    try:
        return off and not made_ready(proxy, board) and user_of(proxy, board) is None
    except HeteroError:
        return False
