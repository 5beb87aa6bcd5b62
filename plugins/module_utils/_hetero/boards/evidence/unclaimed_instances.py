# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances of which a root, or the record of a claim, lies on a proxy, and no claim is in its database: that was put
back from an older copy. Whoever asks for such a one is not to hear that there is none. Reads only.

What is taken over is adoption.py's; what lies here of boards that the boards file does not name, unnamed_boards.py's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...roots.made_json import is_unread
from ...roots.ownership import UNREADABLE, has_word, of_token, roots_there
from ...roots.provision import made_ready
from ...roots.roots import Root
from ...roots.used_disks import user_of
from ...site.board_states import POWER_OFF
from ...site.owners import is_of, number_of
from ..records.lost_database import way_by_copy
from ..records.misfiled_records import ADOPT as BY_ITS_WORD
from ..records.misfiled_records import way_of
from ..records.record_order import rank
from .adoption import PUT_BACK
from .unnamed_boards import LEFT, MOVED

NO_CLAIM = f"no claim of it is in the database of {THIS_NODE}, which may be older than that (put back from a copy)"
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
    :param text: what is seen of it, and what to do.
    :param harmless: whether that is a file which says nothing, and nothing else of an instance is there.
    """

    instance: str
    name: str
    text: str
    harmless: bool = False


def refuse_unclaimed(proxy, request, only=None):
    """Refused where something of an instance, or of instances of a request, lies here of which no claim is known.

    :param only: names of instances; what is another's, and what nobody can tell whose it is, counts for nothing then.
    :returns: lines on what is harmless, for whoever is told that there is none.
    """
    found = [one for one in unclaimed(proxy, request, only is not None) if only is None or one.instance in only]
    somebodys = [one for one in found if not one.harmless]
    if somebodys:
        raise Refused("; ".join(one.text for one in somebodys), request)
    return [dict(instance=request, node=one.name, phase="claim", text=one.text, seconds=None) for one in found]


def unclaimed(proxy, request, sure=False):
    """The Unclaimed of an instance, or of all instances of a request; one of which a claim is known is none.

    :param sure: without what nobody can tell whose it is.
    """
    # First: what is claimed meanwhile is seen below, and what ends meanwhile is known here.
    claims = {claim.instance: claim for claim in proxy.store.claims()}
    there = roots_there(proxy.config["state_folder"])
    records, roots = _records(proxy, request, claims), _roots(proxy, request, claims, there)
    found = [
        _told(proxy, instance, records.get(instance), roots.get(instance))
        for instance in sorted({*records, *roots})
        if proxy.store.claim_of(instance) == claims.get(instance)
    ]
    known = sure or any(is_of(vars(claim), request) for claim in claims.values())
    return found if found or known else _doubtful(proxy, request, {claim.board for claim in claims.values()}, there)


def _records(proxy, request, claims):
    """{instance: (path, Kept)} of records of claims that are not known and have not ended, the one to be believed."""
    found: dict = {}
    for path, kept in proxy.store.kept_anywhere():
        claim = kept.claim
        asked = (is_of(vars(claim), request) or _is_asked(claim.instance, request)) and kept.is_somebodys
        # What is in its place goes there with its claim; elsewhere it is what a hand has left.
        ended = path != proxy.store.path_of_kept(claim.board) and proxy.store.has_ended(claim)
        if asked and _is_newer(claim.created, claims.get(claim.instance)) and not ended:
            found.setdefault(claim.instance, []).append((path, kept))
    return {name: max(there, key=lambda one: rank(proxy, *one)) for name, there in found.items()}


def _roots(proxy, request, claims, there):
    """{instance: (board id, folder)} of roots that were made for claims that are not known."""
    found: dict = {}
    for board, folder, made in there:
        instance, created = of_token(made.claim) if made else ("", None)
        if _is_asked(instance, request) and board in proxy.boards and _is_newer(created, claims.get(instance)):
            found.setdefault(instance, (board, folder))
    return found


def _is_asked(instance, request):
    return instance == request or number_of(instance, request) is not None


def _is_newer(created, known):
    """Whether a claim that was made then is not known, but perhaps an older one of its name."""
    return known is None or (created is not None and created > known.created)


def _told(proxy, instance, record, root):
    number = record[1].claim.board if record else root[0]
    seen = [f"its root {root[1]}"] if root else []
    way = f"nothing is touched: {PUT_BACK}{way_by_copy(proxy, number)}"
    if record:
        path, kept = record
        own = proxy.store.path_of_kept(number)
        seen.append(f"the record of its claim {path} (by it {kept.state})")
        way = ADOPT.format(name=instance)
        if path != own:
            way = f"{MOVED.format(way=way_of(proxy, path, number), number=number)}; then {way}"
        elif number not in proxy.boards:
            way = LEFT.format(name=instance)
    text = f"{NO_CLAIM}, and board{number} has {' and '.join(seen)}: {way}"
    return Unclaimed(instance, f"board{number}", text)


def _doubtful(proxy, request, claimed, there):
    """What nobody can tell whose it is, on boards that nobody has by the database."""
    roots = {board: Root(proxy.config["state_folder"], board) for board, _folder, _made in there}
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


def _is_bare(proxy, board):
    """Whether nothing of an instance can be on a board: nothing to boot from is there, no disk holds what somebody
    wrote, and its outlet was seen off.
    """
    record = proxy.store.record(board.id)
    off = record.state == POWER_OFF and record.power == "off"
    try:
        return off and not made_ready(proxy, board) and user_of(proxy, board) is None
    except HeteroError:
        return False
