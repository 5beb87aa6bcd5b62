# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide and write down that an instance on its board gets another image or key.

The usual verbs then do it: they stop the board, make its root and start it. A claim that names an image but no root has
them make a new root whenever they are run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ...core.errors import BadInput, HeteroError, Refused
from ...core.plays import rebuild as rebuild_play
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT
from ...drivers.boot.registry import BootDrivers
from ...images.choice import check_arch, check_delivery, image_store
from ...images.room import room_of, size_of
from ...roots.board_parts import root_of_board
from ...roots.machine_identity import fingerprint, must_be_keys, parse_key
from ...roots.misplaced_roots import refuse_to_remove
from ...roots.ownership import refuse_anothers, refuse_unproven
from ...site import board_states
from ...site.image_names import valid_image
from ...site.instance import NOTHING_TO_REBUILD, key_body, size_text
from ..evidence.changed_addresses import refuse_changed
from ..evidence.unknown_leases import must_know_the_lease
from ..power import last_outlet
from ..power.presence import ANOTHERS, HOW_TO_CUT, is_others
from ..work.board_work import BoardWork
from ..work.cut_off_moves import bring_after
from ..work.each_board import each, ids_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...images.store import Image
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy
    from ..work.each_board import Instances, Report

PHASE = "rebuild"
#: What a rebuild changes in a claim.
CHANGED = ("image", "ssh_public_key", "image_hash", "host_key")


@dataclass(frozen=True)
class RebuildRequest:
    """A request to rebuild instances.

    :param image: name of an image in the store; None for the one that the claim names.
    :param key: the public keys that may log in; None for those of the claim.
    :param fresh: make a new root although neither image nor key changes.
    """

    image: str | None = None
    key: str | None = None
    fresh: bool = False

    def check(self) -> None:
        """Raise BadInput where the request can never be fulfilled."""
        if self.key:
            must_be_keys(self.key)
        if self.image:
            valid_image(self.image)

    def key_of(self, claim: Claim) -> str:
        """Return the public keys that may log in; a key that differs only in its comment counts as the same."""
        if not self.key or key_body(self.key) == key_body(claim.ssh_public_key):
            return claim.ssh_public_key
        return self.key

    def fields(self, claim: Claim, image: Image) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the claim has, and what it is to have, as a diff shows it; without a difference nothing is done.

        :param image: the one that is wished for, or else the claim's.
        """
        before = _shown(claim.image, claim.image_hash, claim.ssh_public_key)
        after = _shown(image.name if self.image else claim.image, image.hash, self.key_of(claim))
        if self.fresh:
            return dict(before, root="as it is"), dict(after, root="a new one")
        return before, after


def rebuild(
    proxy: Proxy, instances: Instances, request: RebuildRequest, change: Change, deadline: Deadline
) -> dict[str, Any]:
    """Write down what instances are to run; return the module's result, with the boards that are `to_rebuild`."""
    request.check()
    feeds = last_outlet.Feeds(proxy)

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        claim = instances.must_have(board, claim)
        record = proxy.store.record(board.id)
        _must_be_in_use(board, claim, record)
        image = image_store(proxy).get(request.image or claim.image)
        check_arch(board, image)
        if not request.key:
            must_have_keys(proxy, board, claim)
        before, after = request.fields(claim, image)
        if before == after:
            text = NOTHING_TO_REBUILD.format(name=claim.instance, image=claim.image, hash=image.hash)
            report.line(PHASE, text)  # no event, for a user may ask for this each day
            return dict(changed=False, image=after["image"])
        check_delivery(proxy, board, image, BootDrivers(proxy).means(board), claim.boot_source or NFS_ROOT)
        bring_after(proxy, board, claim, change, report, deadline)
        _must_be_its_own(proxy, board, record, change, feeds)
        _must_have_room(proxy, board, claim)
        key = request.key_of(claim)
        with proxy.store.transaction(dry=change.check):
            # Without hash and host key the root counts as yet to be made, whatever is there.
            proxy.store.put(claim.instance, image=after["image"], ssh_public_key=key, image_hash=None, host_key=None)
            report(PHASE, f"{_text(claim, image, key == claim.ssh_public_key)}; {_goes(proxy, board, claim)}")
        if not change.check:
            _must_have_still(proxy, after["image"], image, claim)
        # Noted last: a rebuild that was refused, or could not be written down, has changed nothing.
        change.note(claim.instance, before, after)
        return dict(changed=True, image=after["image"])

    ids = ids_of(proxy, instances.request, instances.numbers, instances.only_key)
    result = each(proxy, ids, PHASE, one, change, deadline, instances.tenant)
    return dict(result, to_rebuild=[board["board"] for board in result["boards"] if board["changed"]])


def _must_have_still(proxy: Proxy, name: str, image: Image, old: Claim) -> None:
    """Raise HeteroError, with the claim as it was, where an image was removed or replaced since it was looked at.

    The claim names it by now, so that nobody removes it any more.
    """
    try:
        if image_store(proxy).get(name).hash != image.hash:
            raise Refused("was replaced meanwhile", f"image {name}", "run this again")
    except HeteroError:
        proxy.store.put(old.instance, **{field: getattr(old, field) for field in CHANGED})
        raise


def _must_be_in_use(board: Board, claim: Claim, record: Record) -> None:
    if record.state in (board_states.ERROR, board_states.MAINTENANCE):
        what = f"is in {record.state}: {record.note or 'without a note'}"
        raise Refused(what, board.name, f"terminate {claim.instance} and ask for it anew")


def _must_have_room(proxy: Proxy, board: Board, claim: Claim) -> None:
    """Refuse, before the board is stopped for it, a new root for which the proxy has no room."""
    if claim.boot_source != DISK_ROOT:
        root = root_of_board(proxy, board.id)
        room_of(proxy).check(size_of(proxy, board, claim.flavor), instead=root.file)


def _must_be_its_own(proxy: Proxy, board: Board, record: Record, change: Change, feeds: last_outlet.Feeds) -> None:
    """Raise Refused where a board that a rebuild stops shows another key, or may be fed by another outlet."""
    claim = cast("Claim", record.claim)
    refuse_anothers(proxy, board, claim)
    refuse_changed(proxy, board)
    refuse_unproven(proxy, board, claim)
    refuse_to_remove(proxy, board.id, claim)
    must_know_the_lease(proxy, claim)
    work = BoardWork(proxy, board, change)
    work.record, work.driver = record, BootDrivers(proxy).of(board)
    if record.state in (board_states.RUNNING, board_states.BOOTING) and is_others(work):
        raise Refused(ANOTHERS.format(ip=board.ip), board.name, HOW_TO_CUT.format(name=claim.instance))
    work.pdu, work.outlet = proxy.outlet(board)
    last_outlet.settle([work], feeds)
    last_outlet.must_be_settled(work)


def rebuilt_claim(claim: Claim, image: str | None = None) -> Claim:
    """Return a claim as `rebuild` leaves it, for the dry runs that follow its own."""
    return replace(claim, image=image or claim.image, image_hash=None, host_key=None)


def must_have_keys(proxy: Proxy, board: Board, claim: Claim) -> None:
    """Raise Refused where the keys of a claim are damaged, so that it is not known whom they would let in."""
    if not _prints(claim.ssh_public_key):
        another = rebuild_play(claim.instance, ["ssh key"], {})
        what = f"the ssh key of {claim.instance}'s claim in {proxy.store.path} is damaged"
        raise Refused(what, board.name, f"give a key ({another}), or terminate it")


def _shown(image: str, hash: str | None, key: str) -> dict[str, Any]:
    return {"image": image, "hash": hash, "keys": _prints(key)}


def _prints(key: str) -> list[str]:
    """Return the fingerprints of keys; an empty list for damaged keys."""
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
    """Return the text, reported before a rebuild begins, on what it removes and what stays."""
    where = " on its own disk"
    if claim.boot_source != DISK_ROOT:
        try:
            size = 512 * os.stat(root_of_board(proxy, board.id).file).st_blocks
            where = f" ({size_text(size)})"
        except OSError:
            where = ""
    return f"all that is in the root of {claim.instance}{where} goes; its name, {board.name}, address and lease stay"
