# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another image or key for an instance on its board: what is to be done, decided and written down.

Doing it is the usual verbs': stop the board, make its root, start it. A claim that says which image is wanted, and of
no root, has them make a new one whenever they are run.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, cast

from ...core.errors import BadInput, Refused
from ...core.plays import rebuild as rebuild_play
from ...drivers.boot.driver import DISK_ROOT
from ...drivers.boot.registry import BootDrivers
from ...images.choice import check_arch, image_store
from ...images.room import room_of, size_of
from ...roots.machine_identity import fingerprint, must_be_keys, parse_key
from ...roots.ownership import refuse_anothers, refuse_unproven
from ...roots.roots import Root
from ...site import board_states
from ...site.image_names import valid_image
from ...site.instance import NOTHING_TO_REBUILD, gibibytes, key_body
from ..evidence.adoption import must_know_the_lease
from ..power import last_outlet
from ..power.presence import ANOTHERS, HOW_TO_CUT, is_others
from ..work.board_work import BoardWork
from ..work.each_board import each, ids_of, must_own

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...images.store import Image
    from ...roots.proxy_node import Report
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

PHASE = "rebuild"


def rebuild(
    proxy: Proxy,
    request: str,
    owner: str | None,
    image: str | None,
    key: str | None,
    fresh: bool,
    created: Collection[float],
    change: Change,
    deadline: Deadline,
    numbers: Collection[int] = (),
) -> dict[str, Any]:
    """Write down what an instance, or all instances of a request, are to run; the module's result.

    :param owner: where given, another owner's instance is refused.
    :param image: name of an image in the store; None for the one that the claim names.
    :param key: the public keys that may log in; None for those of the claim.
    :param fresh: a new root although neither changes.
    :param created: when the claims were made that are meant; none does not ask.
    :param numbers: where given, only these of its instances NAME-1 … NAME-N.
    """
    if key:
        must_be_keys(key)
    if image:
        valid_image(image)
    feeds = last_outlet.Feeds(proxy)
    lines: list[dict[str, Any]] = []

    def one(board: Board, claim: Claim | None, report: Report) -> dict[str, Any]:
        if claim is None:
            raise Refused("was given back meanwhile", board.name, f"ask for {request} anew")
        must_own(claim, owner)
        record = proxy.store.record(board.id)
        if record.state in (board_states.ERROR, board_states.MAINTENANCE):
            what = f"is in {record.state}: {record.note or 'without a note'}"
            raise Refused(what, board.name, f"terminate {claim.instance} and ask for it anew")
        found = image_store(proxy).get(image or claim.image)
        check_arch(board, found)
        if not key:
            must_have_keys(proxy, board, claim)
        before = _shown(claim.image, claim.image_hash, claim.ssh_public_key)
        # The same key with another comment is the same key.
        same_key = not key or key_body(key) == key_body(claim.ssh_public_key)
        wanted_key = key if key and not same_key else claim.ssh_public_key
        after = _shown(found.name if image else claim.image, found.hash, wanted_key)
        if fresh:
            before, after = dict(before, root="as it is"), dict(after, root="a new one")
        if before != after:
            _must_be_its_own(proxy, board, record, change, feeds)
            if claim.boot_source != DISK_ROOT:
                # Before the board is stopped for it.
                root = Root(proxy.config["state_folder"], board.id)
                room_of(proxy).check(size_of(proxy, board, claim.flavor), instead=root.file)
            # No hash and no host key: the root is yet to be made, whatever is there.
            fields = dict(image=after["image"], ssh_public_key=wanted_key, image_hash=None, host_key=None)
            with proxy.store.transaction(dry=change.check):
                proxy.store.put(claim.instance, **fields)
                report(PHASE, f"{_text(claim, found, same_key)}; {_goes(proxy, board, claim)}")
            # What was refused, or could not be written down, has changed nothing.
            change.note(claim.instance, before, after)
        else:  # no event: it may be asked for each day
            text = NOTHING_TO_REBUILD.format(name=claim.instance, image=claim.image, hash=found.hash)
            lines.append(dict(instance=claim.instance, node=board.name, phase=PHASE, text=text, seconds=None))
        return dict(changed=before != after, image=after["image"])

    result = each(proxy, ids_of(proxy, request, numbers), PHASE, one, change, deadline, lines, request, created)
    return dict(result, to_rebuild=[board["board"] for board in result["boards"] if board["changed"]])


def _must_be_its_own(proxy: Proxy, board: Board, record: Record, change: Change, feeds: last_outlet.Feeds) -> None:
    """Refused where a board that is to be stopped for a new root shows another key, or may be fed by another outlet."""
    claim = cast("Claim", record.claim)
    refuse_anothers(proxy, board, claim)
    refuse_unproven(proxy, board, claim)
    must_know_the_lease(proxy, claim)
    work = BoardWork(proxy, board, change)
    work.record, work.driver = record, BootDrivers(proxy).of(board)
    if record.state in (board_states.RUNNING, board_states.BOOTING) and is_others(work):
        raise Refused(ANOTHERS.format(ip=board.ip), board.name, HOW_TO_CUT.format(name=claim.instance))
    work.pdu, work.outlet = proxy.outlet(board)
    last_outlet.settle([work], feeds)
    last_outlet.must_be_settled(work)


def rebuilt_claim(claim: Claim, image: str | None = None) -> Claim:
    """A claim as `rebuild` leaves it, for the dry runs that come after its own."""
    return replace(claim, image=image or claim.image, image_hash=None, host_key=None)


def must_have_keys(proxy: Proxy, board: Board, claim: Claim) -> None:
    """Refused where the keys of a claim are damaged: whoever would get in by them cannot be told."""
    if not _prints(claim.ssh_public_key):
        another = rebuild_play(claim.instance, ["ssh key"], {"image": claim.image})
        what = f"the ssh key of {claim.instance}'s claim in {proxy.store.path} is damaged"
        raise Refused(what, board.name, f"give a key ({another}), or terminate it")


def _shown(image: str, hash: str | None, key: str) -> dict[str, Any]:
    return {"image": image, "hash": hash, "keys": _prints(key)}


def _prints(key: str) -> list[str]:
    """The fingerprints of keys; none of what is damaged."""
    try:
        parse_key(key)
    except BadInput:
        return []
    return [fingerprint(line) for line in key.strip().splitlines()]


def _text(claim: Claim, image: Image, same_key: bool) -> str:
    if claim.image_hash == image.hash and same_key:
        return f"a fresh root from {image.name}"
    parts = [] if claim.image_hash == image.hash else [f"{claim.image} → {image.name} {image.hash[:12]}"]
    parts += [] if same_key else ["another key"]
    return ", ".join(parts)


def _goes(proxy: Proxy, board: Board, claim: Claim) -> str:
    """What a rebuild takes away, and what it leaves; said before it begins."""
    where = " on its own disk"
    if claim.boot_source != DISK_ROOT:
        try:
            size = 512 * os.stat(Root(proxy.config["state_folder"], board.id).file).st_blocks
            where = f" ({gibibytes(size)})"
        except OSError:
            where = ""
    return f"all that is in the root of {claim.instance}{where} goes; its name, {board.name}, address and lease stay"
