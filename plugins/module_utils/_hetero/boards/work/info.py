# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards and claims as the modules return them, from the boards file and the database. This file only reads.

power/outlet_power.py asks the PDUs, so that only callers which need that load their drivers.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping

from ...core.errors import BadInput, HeteroError
from ...drivers.boot.registry import BootDrivers
from ...drivers.power import refusals
from ...images.choice import images_of
from ...images.room import room_of
from ...site import board_states
from ...site.owners import alike
from ..evidence.cut_boots import told_of_boot
from ..evidence.free_boards import RECONCILE, somebodys
from ..evidence.record_notes import told_of_record
from ..evidence.unclaimed_instances import unclaimed
from ..power.last_outlet import Feeds
from ..records.board_health import FULL
from ..records.energy import NOT_MEASURED
from . import checked_boards
from .board_queue import BoardQueue

if TYPE_CHECKING:
    from ...drivers.power.drawn import Drawn
    from ...site.boards_file import Board
    from ...site.proxy_config import Wire
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

#: Most events of a board that a call may ask for; a larger number is taken for a mistake.
MOST_EVENTS = 10000
#: What `offers` is to say where nobody asks for it.
NOBODY_ASKS: tuple[str, Mapping[str, dict[str, Any]]] = ("", {})
#: What is said of those who wait where only some boards are shown.
NOTHING_QUEUED: dict[str, Any] = {"queue": [], "reservations": [], "offers": {}}


def claim_fields(board: Board | None, record: Record, claim: Claim, ran: bool | None = None) -> dict[str, Any]:
    """Return the fields of a claim and of its board.

    :param board: None where the boards file does not name it any more.
    :param claim: the record's claim, or one that has just ended.
    :param ran: whether the instance ever ran there; None where that was not looked up.
    """
    return {
        **({} if ran is None else {"ran": ran}),
        "instance": claim.instance,
        "request": claim.request,
        "board": claim.board,
        "name": f"board{claim.board}",
        "ip": board.ip if board else None,
        "mac": board.mac if board else None,
        "owner": claim.owner,
        "flavor": claim.flavor.get("name"),
        "image": claim.image,
        "created": claim.created,
        "expires": claim.expires,
        "host_key": claim.host_key,
        "image_hash": claim.image_hash,
        "boot_source": claim.boot_source,
        "state": record.state,
    }


def board_fields(board: Board, record: Record, now: float, wiring: Wire) -> dict[str, Any]:
    """Return a board's columns, its record, its claim's main fields, and its outlet; None for what is not known."""
    claim = record.claim
    # A clock that was set back must not make a time span negative.
    seconds = None if record.since is None else round(max(0.0, now - record.since), 3)
    return dict(
        board.columns,
        name=board.name,
        arch=board.arch,
        geometry=board.geometry,
        state=record.state,
        since=record.since,
        since_seconds=seconds,
        note=record.note,
        error=record.note if record.state == board_states.ERROR else None,
        power=record.power,
        power_seen=record.power_seen,
        pdu=wiring.pdu,
        outlet=wiring.outlet,
        disks=wiring.disks,
        instance=claim.instance if claim else None,
        request=claim.request if claim else None,
        owner=claim.owner if claim else None,
        flavor=claim.flavor.get("name") if claim else None,
        image=claim.image if claim else None,
        created=claim.created if claim else None,
        expires=claim.expires if claim else None,
        lease_seconds=round(claim.expires - now, 3) if claim and claim.expires else None,
        host_key=claim.host_key if claim else None,
    )


def _feeds(proxy: Proxy) -> Feeds | None:
    try:
        return Feeds(proxy)
    except HeteroError:
        return None  # this user may not read the records of claims


def _withheld(
    proxy: Proxy, feeds: Feeds | None, boards: Iterable[Board], records: Mapping[int, Record]
) -> dict[int, str | None]:
    """Return {board id: why the node gives a board without a claim to nobody, None where nothing speaks against it}."""
    rewired = feeds is not None and _is_rewired(proxy, feeds)
    found: dict[int, str | None] = {}
    for board in boards:
        record = records[board.id]
        why = somebodys(proxy, board, record)
        if why is None and checked_boards.was_killed(proxy, record):
            why = checked_boards.KILLED
        is_free = why is None and record.claim is None and record.state == board_states.POWER_OFF
        found[board.id] = _fed(feeds, board) if feeds and rewired and is_free else why
    return found


def _is_rewired(proxy: Proxy, feeds: Feeds) -> bool:
    """Return whether an outlet fed a board last that its wiring does not name; else no free board's outlet feeds it."""
    for number in proxy.store.kept_boards():
        kept, board = feeds.kept(number), proxy.boards.get(number)
        fed = kept.fed if kept else None
        if fed and not (board and proxy.wiring(board).fed == (fed.pdu, fed.outlet)):
            return True
    return False


def _fed(feeds: Feeds, board: Board) -> str | None:
    try:
        why = feeds.feeds_another(board)
    except HeteroError:
        return None  # the wiring names no outlet: the error comes when the board is switched
    return f"{why} {RECONCILE}" if why else None


def _told(
    proxy: Proxy,
    feeds: Feeds | None,
    boards: Iterable[Board],
    records: Mapping[int, Record],
    withheld: Mapping[int, str | None],
) -> dict[int, Record]:
    """Return {board id: Record} with notes that explain what is wrong.

    A note says why a board without a claim is not free, why a board with one is not switched, and that the record of a
    claim is lost or cannot be read, or that of a board out of use is another board's.
    """
    told, lost = {}, {claim.board for claim in proxy.store.lost()} if feeds else set()
    for board in boards:
        record = records[board.id]
        note = record.note or withheld[board.id] or _doubt(feeds, board, record.claim)
        misplaced = proxy.store.anothers_out_of_use(board.id) if feeds else None
        of_record = told_of_record(proxy, board, record, lost) if feeds else None
        notes = filter(None, (note, None if misplaced == note else misplaced, of_record, told_of_boot(proxy, record)))
        told[board.id] = replace(record, note="; ".join(notes))
    return told


def _doubt(feeds: Feeds | None, board: Board, claim: Claim | None) -> str:
    try:
        return str((feeds.doubt(board, claim) if feeds and claim else None) or "")
    except HeteroError:
        return ""  # the wiring names no outlet: the error comes when the board is switched


def _health(proxy: Proxy, records: Mapping[int, Record], whole: bool) -> dict[int, dict[str, Any]]:
    """Return {board id: its health}; of one that never failed only its score, unless the whole history is asked for."""
    asked = [board for board, record in records.items() if whole or record.score < FULL]
    return {**{board: {"score": record.score} for board, record in records.items()}, **proxy.store.health(asked)}


def information(
    proxy: Proxy,
    ids: Collection[int] | None = None,
    instance: str | None = None,
    events: int = 0,
    asks: tuple[str, Mapping[str, dict[str, Any]]] = NOBODY_ASKS,
) -> dict[str, Any]:
    """Return the result of board_info: boards and claims, the space that roots may take, and the images.

    :param ids: only these boards; BadInput for one that does not exist.
    :param instance: only the boards of this instance or request.
    :param events: number of newest events to return with each board.
    :param asks: an owner, and {name: flavor} of those of which `offers` says how many that owner could have.
    """
    if not 0 <= events <= MOST_EVENTS:
        raise BadInput(f"is {events}", "events", f"give 0 to {MOST_EVENTS}")
    boards = [proxy.board(key) for key in (sorted(proxy.boards) if ids is None else ids)]
    claims = proxy.store.claims()
    if ids is not None:
        asked = {board.id for board in boards}
        claims = [claim for claim in claims if claim.board in asked]
    everybodys = claims
    if instance is not None:
        claims = [claim for claim in claims if instance in (claim.instance, claim.request)]
        asked = {claim.board for claim in claims}
        boards = [board for board in boards if board.id in asked]
    records = proxy.store.records({board.id for board in boards} | {claim.board for claim in claims})
    now = time.time()
    feeds = _feeds(proxy)
    withheld = _withheld(proxy, feeds, boards, records)
    told = _told(proxy, feeds, boards, records, withheld)
    found = [board_fields(board, told[board.id], now, proxy.wiring(board)) for board in boards]
    drivers, health = BootDrivers(proxy), _health(proxy, records, ids is not None or events > 0)
    energies = proxy.store.energies()
    for fields, board in zip(found, boards):
        fields.update(energies.get(fields.get("instance") or "", NOT_MEASURED).fields)
        fields.update(boot=drivers.means(board), withheld=withheld[board.id], health=health.get(board.id))
    of_all = ids is None and instance is None
    queued, following = _queued(proxy, boards, withheld, asks) if of_all else (NOTHING_QUEUED, {})
    for fields in found:
        fields["next"] = following.get(f"board{fields['id']}")
    pdus = sorted(filter(None, {proxy.wiring(board).pdu for board in boards}))
    for fields in found:
        newest = proxy.store.newest_events(fields["id"], events) if events else []
        fields["events"] = [dict(vars(event)) for event in newest]
    return {
        "boards": found,
        "claims": [claim_fields(proxy.boards.get(claim.board), records[claim.board], claim) for claim in claims],
        "roots": dict(room_of(proxy).fields, root_gb=proxy.config.root_gb),
        "images": images_of(proxy),
        "unclaimed": [] if instance is None else [dict(vars(one)) for one in unclaimed(proxy, instance)],
        "ended": [] if instance is None or claims else proxy.store.ended(instance),
        "alike": [] if instance is None or claims else alike(everybodys, instance),
        **queued,
        "pdu_errors": refusals.last(proxy.config.run_folder, pdus),
    }


def _queued(
    proxy: Proxy,
    boards: Iterable[Board],
    withheld: Mapping[int, str | None],
    asks: tuple[str, Mapping[str, dict[str, Any]]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return who waits, what is reserved and what could be had, of all boards; and {board name: who gets it next}."""
    queue = BoardQueue(proxy)
    queue.busy = {board.name: withheld[board.id] for board in boards}
    waits, following = queue.shown()
    return {"queue": waits, "reservations": queue.reserved(), "offers": queue.offers(*asks)}, following


def add_readings(proxy: Proxy, boards: Iterable[dict[str, Any]], meters: Mapping[int, Drawn]) -> None:
    """Bring what boards draw, and their claims have drawn, up to date by readings that nobody has written down.

    :param boards: of the result of board_info.
    :param meters: {board id: Drawn}.
    """
    energies, now = proxy.store.energies(), time.time()
    for board in boards:
        drawn = meters.get(board["id"])
        if drawn and board["instance"]:
            known = energies.get(board["instance"], NOT_MEASURED)
            board.update(known.after(f"{board['pdu']} outlet {board['outlet']}", drawn, now).fields)
        elif drawn:
            board["watts"] = drawn.watts
