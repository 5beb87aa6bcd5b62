# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a board boots from, as one thing: its root, the keys in it, its export, kernel and initrd.

Each part is looked at where it is (place.py: mounts, the NFS server, files), and only what is missing or wrong is made
anew. The caller holds the board's lock and decides whether the board may be touched. The boot driver writes the boot
entry, which is removed here with the rest.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Callable

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused, naming
from ..images.choice import check_arch, check_image, image_of
from ..images.room import room_of, size_of
from ..site.boot_sources import DISK, NFS
from ..site.instance import size_text
from ..tftp.board_folder import remove_entry
from ..tftp.kernels_by_hand import lead, put_there
from .console_log import is_own_log
from .machine_identity import parse_key
from .made_json import is_unread, remade, token_of, unread, why_unproven
from .misplaced_roots import refuse_to_remove
from .ownership import refuse_anothers, refuse_lost, refuse_to_replace, refuse_unproven
from .place import Place
from .root_keys import HOST_KEY, keeper, prepare_keys, prepare_own_line
from .roots import UNMOUNT_TIME

if TYPE_CHECKING:
    from ..core.changes import Change
    from ..images.store import Image
    from ..nfs.exporter import Export
    from ..site.boards_file import Board
    from .proxy_node import Keeps, Report, RootClaim, RootsNode
    from .roots import Made

PHASE = "image"
NEW_ROOT = "rebuild the instance for a new root, or terminate it"
AGAIN = "provision its instance again, or terminate it"


def prepare(
    proxy: RootsNode,
    board: Board,
    claim_fields: RootClaim,
    image: Image,
    change: Change,
    report: Report,
    proves: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Make everything ready from which the board boots as its claim's instance; leave what is in place as it is.

    :param claim_fields: the Claim (instance, created, ssh_public_key, image_hash).
    :param change: a Change; in check mode nothing is written.
    :param report: called with (phase, text, seconds) when something was done.
    :param proves: tells whether the board proves its claim's host key just now; None where the board is not asked.
    :returns: root, export, pseudo, client, files, host_key, known_hosts and `restored`, the names of what was missing.
    """
    start = time.monotonic()
    check_arch(board, image)
    parse_key(claim_fields.ssh_public_key)
    place = Place(proxy, board)
    restored = []
    with change.step("root"), naming(place.root.folder):
        keeps = keeper(proxy, board, claim_fields, report, proves)
        host_key = _prepare_root(proxy, place, claim_fields, image, change, restored, keeps)
    with change.step("export"), naming(place.restore_file):
        _prepare_export(place, change, restored)
    with change.step("files"):
        prepare_files(place, image, NFS, change, restored)
    if restored and not change.check:
        _check_ready(place, image)
        seconds = time.monotonic() - start
        ready = f"root ready, exported to {board.ip} only"
        report(PHASE, ready if "root" in restored else _said_of(restored), seconds)
    return dict(
        root=place.root.path,
        export=place.export.id,
        pseudo=place.export.pseudo,
        client=board.ip,
        files=[place.files.path(name) for name, source in place.wanted_files(image, NFS).items() if source],
        host_key=host_key,
        known_hosts=f"{board.ip} {host_key}" if host_key else None,
        restored=restored,
    )


def _said_of(restored: list[str]) -> str:
    """Return what was done, in words; a new host key is named as such, for users' known_hosts do not have it."""
    others = ", ".join(name for name in restored if name != HOST_KEY)
    parts = [f"{others} restored"] if others else []
    return "; ".join([*parts, *(["a new host key was made"] if HOST_KEY in restored else [])])


def put_back(proxy: RootsNode, board: Board, claim: RootClaim, change: Change) -> list[str]:
    """Restore the mount, export and files of a claim's root where they are missing; change nothing in the root.

    :returns: the names of what was missing.
    :raises Refused: there is no whole root of this claim.
    """
    place = Place(proxy, board)
    image, made, restored = image_of(proxy, claim), place.root.made(), []
    refuse_lost(proxy, board, claim)
    if claim.boot_source == DISK:
        if place.disk.made() is None:
            _put_word_back(place, claim, change, restored)
        prepare_files(place, image, DISK, change, restored)
        return restored
    if is_unread(place.root):
        made = _tell_anew(proxy, place, claim, change, restored)
    fresh = made is None or not made.whole or made.image != image.hash
    if made is not None:
        refuse_to_replace(proxy, board, claim, fresh, made)
    if fresh:
        raise Refused("has no whole root of its claim", board.name, AGAIN)
    if change.note(f"{board.name} root", {"mounted": place.root.ready(image, made)}, {"mounted": True}):
        restored.append("mount")
        if not change.check:
            place.unexport()
            place.root.unmount(Deadline(UNMOUNT_TIME))
            place.root.mount(image)
            with naming(place.restore_file):
                place.exporter.add(place.export)
    with naming(place.restore_file):
        _prepare_export(place, change, restored)
    prepare_files(place, image, NFS, change, restored)
    if restored and not change.check:
        _check_ready(place, image)
    return restored


def _put_word_back(place: Place, claim: RootClaim, change: Change, restored: list[str]) -> None:
    """Write a lost made.json of a root on the board's own disk anew, from own.tar.

    :raises Refused: own.tar is missing, or is not this claim's.
    """
    made = place.disk.remade(token_of(claim), claim)
    if made is None:
        what = f"what is known of the root on its disk cannot be read, and no own.tar of {claim.instance} is here"
        raise Refused(what, place.board.name, f"nothing is touched: {NEW_ROOT}")
    restored.append("made.json")
    if change.note(f"{place.board.name} made.json", {"claim": None}, {"claim": made.claim}) and not change.check:
        place.disk.write(made)


def _tell_anew(proxy: RootsNode, place: Place, claim: RootClaim, change: Change, restored: list[str]) -> Made:
    """Write a lost made.json of a root on this proxy anew, and return what it says.

    :raises Refused: nothing proves that the root is this claim's.
    """
    root = place.root
    refuse_anothers(proxy, place.board, claim)
    why = why_unproven(proxy, root, claim, change.check)
    if why:
        raise unread(root, place.board, why)
    made = remade(claim)
    restored.append("made.json")
    if change.note(f"{place.board.name} made.json", {"claim": None}, {"claim": made.claim}) and not change.check:
        with naming(root.folder):
            root.write(made)
    return made


def remove(proxy: RootsNode, board: Board, change: Change, report: Report) -> list[str]:
    """Remove everything from which the board boots, whatever is left of it, and check that it is gone.

    :returns: what there was, as `leftovers` returns it.
    :raises Refused: the root was made for another claim than the one that the board has, or may have been.
    """
    start = time.monotonic()
    place = Place(proxy, board)
    claim = proxy.store.record(board.id).claim
    refuse_anothers(proxy, board, claim)
    refuse_unproven(proxy, board, claim)
    refuse_to_remove(proxy, board.id, claim)
    there = leftovers(proxy, board)
    if there and claim and not change.check:
        proxy.store.begin_end(claim)
    with change.step("remove"), naming(place.root.folder):
        change.note(f"{board.name} export", _export_fields(place.exported()), {})
        if not change.check:
            # Also where the tenant's root lies on the board's own disk: any tenant can open connections to NFS.
            place.unexport()
        before = _root_fields(place.root.made()) if place.root.exists() else {}
        before.update({"mounts": sorted(place.root.mounts())} if before else {})
        if change.note(f"{board.name} root", before, {}) and not change.check:
            place.root.unmount(Deadline(UNMOUNT_TIME))
            place.root.remove()
        before = {"present": place.disk.exists()}
        if change.note(f"{board.name} archive", before, {"present": False}) and not change.check:
            place.disk.remove()
        before = {name: place.files.size(name) for name in place.files.names()}
        if place.files.exists():
            before["folder"] = place.files.folder
        if change.note(f"{board.name} files", before, {}) and not change.check:
            place.files.remove()
        if change.note(place.console_log, {"present": is_own_log(proxy, board)}, {"present": False}):
            if not change.check:
                remove_entry(place.console_log)
        before = {"present": os.path.lexists(place.restore_file)}
        change.note(place.restore_file, before, {"present": False})
        if not change.check:
            # Also where there is no such file: a writer that was killed has left a temporary one.
            place.exporter.forget(place.export.pseudo)
            with naming(place.files.folder):
                lead_to_by_hand(proxy, board)
    if there and not change.check:
        left = leftovers(proxy, board)
        if left:
            raise HeteroError(f"still there after it was removed: {'; '.join(left)}", board.name, "look who uses it")
        report(PHASE, "export, root and files removed", time.monotonic() - start)
    return there


def leftovers(proxy: RootsNode, board: Board) -> list[str]:
    """Return what is left of a board's export, mounts, root and files, a text each; an empty list where nothing is."""
    place = Place(proxy, board)
    found = made_ready(proxy, board)
    found += [f"file {place.files.path(name)}" for name in place.files.names()]
    found += [f"folder {place.files.folder}"] if place.files.exists() else []
    found += [f"file {place.restore_file}"] if os.path.lexists(place.restore_file) else []
    return found + ([f"file {place.console_log}"] if is_own_log(proxy, board) else [])


def lead_to_by_hand(proxy: RootsNode, board: Board, check: bool = False) -> tuple[list[str], list[str]]:
    """Have a board that has no boot files of its own get the kernel that was put into the TFTP root for it by hand.

    :param check: change nothing.
    :returns: the names of files that it gets from now on, and of those that it gets no more.
    """
    place = Place(proxy, board)
    made = place.root.exists() or place.disk.exists() or place.files.names()
    there = {} if made else put_there(proxy.config.tftp_root, board.id)
    return lead(place.files, {name for name, why in there.items() if not why}, check)


def made_ready(proxy: RootsNode, board: Board) -> list[str]:
    """Return what there is of a board's export, mounts and root, a text each; a board that has any is not free."""
    place = Place(proxy, board)
    exported = place.exported()
    found = [f"export {exported.id} {exported.pseudo} to {' '.join(exported.clients)}"] if exported else []
    found += [f"mount {point}" for point in sorted(place.root.mounts())]
    return found + [f"folder {place.folder}" for place in (place.root, place.disk) if place.exists()]


# ---- the parts


def _prepare_root(
    proxy: RootsNode, place: Place, claim: RootClaim, image: Image, change: Change, restored: list[str], keeps: Keeps
) -> str | None:
    """Make and mount the root with its keys; return the public host key, None where check mode cannot know it."""
    root, name = place.root, place.board.name
    check_image(claim, image, name)
    token = token_of(claim)
    told_anew = claim.image_hash and is_unread(root)
    made = _tell_anew(proxy, place, claim, change, restored) if told_anew else root.made()
    # A claim without an image hash has no root yet: a root that is there is from before the claim's rebuild.
    fresh = made is None or not made.whole or (made.claim, made.image, claim.image_hash) != (token, *2 * [image.hash])
    fresh = fresh or (root.is_file_lost and not root.is_mounted)
    refuse_to_replace(proxy, place.board, claim, fresh, made)
    ready = not fresh and root.ready(image, made)
    before = dict(_root_fields(made), mounted=ready) if root.exists() else {}
    after = {"claim": token, "image": image.hash, "whole": True, "mounted": True}
    room, size = room_of(proxy), size_of(proxy, place.board, claim.flavor)
    if fresh:
        before.update({"size": size_text(os.path.getsize(root.file))} if os.path.exists(root.file) else {})
        after["size"] = size_text(size)
    if change.note(f"{name} root", before, after):
        restored.append("root" if fresh else "mount")
        if fresh:
            room.check(size, instead=root.file)
        if not change.check:
            if fresh:
                # A root that is half removed or half made holds nobody's work: this claim has not run from it.
                proxy.store.put(claim.instance, image_hash=None, host_key=None)
            # The NFS server would go on to serve the folder as it was when the export was made.
            place.unexport()
            root.unmount(Deadline(UNMOUNT_TIME))
            if fresh:
                root.remove()
                root.create(image, token, room, size)
                root.settle(claim.instance)
            else:
                root.mount(image)
            ready = True
    if not ready and not fresh:
        # Check mode: what is in an overlay that is not mounted cannot be told.
        return claim.host_key
    host_key = prepare_keys(place, claim, change, restored, ready, keeps if not fresh else None)
    prepare_own_line(proxy, place, claim, change, restored, ready)
    if not change.check:
        found = dict(host_key=host_key, image_hash=image.hash, boot_source=NFS)
        if fresh:
            # Before the claim gets its hash: a claim with a hash whose root is not whole counts as damaged.
            root.mark_whole()
        if fresh or any(getattr(claim, field) != value for field, value in found.items()):
            proxy.store.put(claim.instance, **found)
    return host_key


def _prepare_export(place: Place, change: Change, restored: list[str]) -> None:
    wanted, found = place.export, place.exporter.get(place.export.id)
    if found is not None and found.pseudo != wanted.pseudo:
        what = f"export id {found.id} is taken by {found.pseudo}"
        raise HeteroError(what, place.board.name, "give that export another Export_Id")
    if change.check and {"root", "mount"} & set(restored):
        found = None  # outside check mode the export would have been removed with the root
    kept = place.exporter.restorable(wanted)
    changes = [
        change.note(f"{place.board.name} export", _export_fields(found), _export_fields(wanted)),
        change.note(place.restore_file, {"whole": kept}, {"whole": True}),
    ]
    if any(changes):
        restored.append("export")
        if not change.check:
            place.exporter.add(wanted)


def prepare_files(place: Place, image: Image, root: str, change: Change, restored: list[str]) -> None:
    """Put kernel and initrd into the board's TFTP folder; append the names of those that were missing to `restored`.

    :param root: where its root lies (site/boot_sources.py).
    """
    for name, source in place.wanted_files(image, root).items():
        size = place.files.size(name)
        before: dict[str, Any] = {} if size is None else {"size": size, "image": None}
        after = {"size": os.path.getsize(source), "image": image.hash} if source else {}
        if source and place.files.same(name, source):
            before = after
        if change.note(place.files.path(name), before, after):
            restored.append(name)
            if not change.check and source:
                place.files.place(name, source)
            elif not change.check:
                place.files.drop(name)


def _check_ready(place: Place, image: Image) -> None:
    """Raise HeteroError where root, export or a file is missing after it was made."""
    missing = [] if place.root.ready(image) else ["root"]
    missing += [] if place.exported() == place.export else ["export"]
    files = place.wanted_files(image, NFS).items()
    missing += [name for name, source in files if source and not place.files.same(name, source)]
    if missing:
        raise HeteroError(f"not there after it was made: {', '.join(missing)}", place.board.name, "look who removes it")


def _root_fields(made: Made | None) -> dict[str, Any]:
    if made is None:
        return {"claim": None, "image": None, "whole": False}
    return {"claim": made.claim, "image": made.image, "whole": made.whole}


def _export_fields(export: Export | None) -> dict[str, Any]:
    if export is None:
        return {}
    return {"id": export.id, "path": export.path, "pseudo": export.pseudo, "clients": list(export.clients)}
