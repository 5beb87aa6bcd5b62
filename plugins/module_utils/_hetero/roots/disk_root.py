# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a board with its root on its own disk boots from: its image's archive, its own.tar, and its TFTP files.

The counterpart of provision.py for boot source disk; nothing is exported to such a board. boards/disk/disk_boot.py
brings the root to the disk.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Iterable, cast

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused, naming
from ..core.plays import play
from ..files.root_work import above, inside, read_file
from ..images.choice import check_arch, check_image
from ..images.image_root import root_of
from ..images.root_archive import archive_of, stored_archive
from ..site.boot_sources import DISK
from . import cloud_init
from .disk_files import Made
from .key_pairs import make_pair
from .machine_identity import (
    AUTHORIZED,
    FILES_TIME,
    HOST_KEY,
    HOSTNAME,
    MACHINE_ID,
    odd_place,
    parse_key,
    with_keys,
)
from .ownership import is_made, refuse_anothers, refuse_forgotten, token_of
from .place import Place
from .provision import NEW_ROOT, PHASE, prepare_files
from .ram import ram_image
from .reboot_key import reboot_line, wanted
from .seeds import may_have_booted, put_there, taken_out

if TYPE_CHECKING:
    from ..core.changes import Change
    from ..images.store import Image
    from .proxy_node import Report, RootClaim, RootsNode

ARCHIVES = "archives"
#: Folders that are for root alone, also where an image has them with another mode.
CLOSED = ("/root/.ssh", cloud_init.SEED)


def prepare_disk(
    place: Place,
    claim: RootClaim,
    image: Image,
    change: Change,
    deadline: Deadline,
    report: Report,
    user_data: str | None = None,
) -> dict[str, Any]:
    """Make ready what the board's root on its disk is made from; return the same result as provision.prepare.

    :param user_data: what cloud-init gets in a root from which no system ran yet; one that never had power is made anew
        where it has others. Empty: nothing; None: nothing is given, and what is there stays.
    :raises BadInput: the board has no disk, or no RAM image; this is checked before anything is made.
    """
    start, proxy, board = time.monotonic(), place.proxy, place.board
    check_arch(board, image)
    parse_key(claim.ssh_public_key)
    proxy.root_partition(board)
    ram_image(proxy, board)
    check_image(claim, image, board.name)
    restored: list[str] = []
    with change.step("archive"), naming(proxy.folder(ARCHIVES)):
        archive = stored_archive(proxy.folder(ARCHIVES), image)
        before, after = {"sha256": archive.sha256 if archive else None}, {"sha256": "the archive's"}
        if change.note(f"archive of {image.name}", before, before if archive else after):
            restored.append("archive")
            if not change.check:
                archive = archive_of(proxy.folder(ARCHIVES), image, deadline)
    before_it = place.disk.user_data()
    others = before_it is not None and user_data not in (None, before_it)
    with change.step("own"), naming(place.disk.folder):
        made = _own(place, claim, image, change, restored, user_data, others)
    with change.step("files"):
        prepare_files(place, image, DISK, change, restored)
    if archive and restored and not change.check:
        size = f"{archive.size / 1e6:.0f} MB, sha256 {archive.sha256[:12]}"
        done = f"root archive ready, {size}" if "root" in restored else f"{', '.join(restored)} restored"
        report(PHASE, done, time.monotonic() - start)
    said = _said_of(proxy, claim, user_data, before_it, "root" in restored, change)
    if said:
        report(PHASE, said, None)
    host_key = made.host_key if made else None
    return dict(
        root=None,
        export=None,
        pseudo=None,
        client=board.ip,
        files=[place.files.path(name) for name, source in place.wanted_files(image, DISK).items() if source],
        host_key=host_key,
        known_hosts=f"{board.ip} {host_key}" if host_key else None,
        archive=dict(sha256=archive.sha256, bytes=archive.size) if archive else None,
        restored=restored,
    )


def _said_of(
    proxy: RootsNode, claim: RootClaim, user_data: str | None, before: str | None, fresh: bool, change: Change
) -> str | None:
    """Return what is to be said of data for cloud-init; None for nothing.

    :param before: those that were in own.tar, as DiskFiles.user_data has them.
    :param fresh: whether own.tar was made just now, or in check mode would be.
    """
    if fresh and user_data:
        return put_there(change)
    if user_data in (None, before):
        return None
    if user_data:
        return cloud_init.SEEDED
    if not before or proxy.store.has_run(claim):
        return None
    return taken_out(change) if fresh else cloud_init.LEFT


def _own(
    place: Place,
    claim: RootClaim,
    image: Image,
    change: Change,
    restored: list[str],
    user_data: str | None,
    others: bool,
) -> Made | None:
    """Make own.tar anew where it is another instance's or another image's; return its Made, None in check mode.

    :param others: whether it has other user_data than are asked for; no matter once a system may have seen them.
    """
    proxy, disk, token = place.proxy, place.disk, token_of(claim)
    made = disk.made()
    # A claim without an image hash has no root yet: a root that is there is from before the claim's rebuild.
    # own.tar is no longer needed once its files were seen on the disk.
    whole = made is not None and (made.unpacked is not None or os.path.exists(disk.own))
    fresh = made is None or not whole or (made.claim, made.image, claim.image_hash) != (token, image.hash, image.hash)
    # One that lies on the disk had power, whatever the database knows of it.
    fresh = fresh or (others and made is not None and made.unpacked is None and not may_have_booted(proxy, claim))
    refuse_anothers(proxy, place.board, claim)
    if fresh and is_made(proxy, claim) and proxy.store.has_run(claim):
        what = f"{claim.instance} ran from its disk, and what is here of its root is not that claim's, or not whole"
        remedy = f"nothing is touched: {play('reconcile')} restores made.json where own.tar is whole; or {NEW_ROOT}"
        raise Refused(what, place.board.name, remedy)
    if fresh:
        refuse_forgotten(proxy, place.board, claim)
    before = {"claim": made.claim, "image": made.image} if made and whole else {}
    after = {"claim": token, "image": image.hash}
    if change.note(f"{place.board.name} root", before, dict(after, fresh=True) if fresh else before):
        restored.append("root")
        if change.check:
            return None
        proxy.store.put(claim.instance, image_hash=None, host_key=None)
        reboot = [reboot_line(proxy)] if wanted(proxy) else []
        own, host_key = _own_archive(image, claim, reboot, user_data)
        disk.create(own, Made(token, image.hash, hashlib.sha256(own).hexdigest(), host_key))
        made = disk.made()
        if made is None or made.host_key != host_key:
            raise HeteroError("is not there after it was made", disk.folder, "look who removes it")
    found = dict(host_key=cast(Made, made).host_key, image_hash=image.hash, boot_source=DISK)
    if fresh or any(getattr(claim, field) != value for field, value in found.items()):
        if not change.check:
            proxy.store.put(claim.instance, **found)
    return made


def _own_archive(image: Image, claim: RootClaim, reboot: list[str], user_data: str | None) -> tuple[bytes, str]:
    """Return (bytes of own.tar: host name, user's keys and data, host key; the public host key as a line)."""
    others = inside(root_of(image), lambda: read_file(AUTHORIZED) or "", Deadline(FILES_TIME)).splitlines()
    authorized = [*with_keys(others, claim.ssh_public_key), *reboot]
    with naming(tempfile.gettempdir()), tempfile.TemporaryDirectory(prefix="hetero-host-key-") as folder:
        pair = make_pair(os.path.join(folder, "key"), claim.instance, folder)
    files = {
        AUTHORIZED: ("".join(f"{line}\n" for line in authorized), 0o600),
        HOSTNAME: (f"{claim.instance}\n", 0o644),
        MACHINE_ID: ("", 0o444),
        HOST_KEY: (pair.private, 0o600),
        f"{HOST_KEY}.pub": (pair.public, 0o644),
        **(cloud_init.files(user_data, claim.instance) if user_data else {}),
    }
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders, places = _where(image, files)
        for name, mode in folders:
            _add(tar, name, mode)
        for name, (text, mode) in files.items():
            _add(tar, places[name], mode, text)
    return target.getvalue(), pair.line


def _where(image: Image, files: Iterable[str]) -> tuple[list[tuple[str, int]], dict[str, str]]:
    """Return ([(folder, mode)] that own.tar must have above files, {file: its path with no link in it}).

    The folders are those that the image lacks, and the closed ones; any other keeps its owner and mode.

    :raises HeteroError: the image has something else where a folder or a file is to be.
    """
    root, above_them = root_of(image), list(dict.fromkeys(folder for path in files for folder in above(path)))
    odd = odd_place(root, above_them, files)
    if odd:
        what = f"has {odd[0]}, which is {odd[1]}, where each instance has what is its own"
        raise HeteroError(what, f"image {image.name}", f"import it without {odd[0]}")

    def look() -> tuple[list[tuple[str, int]], dict[str, str]]:
        folders = {os.path.realpath(name): 0o700 if name in (*CLOSED, "/root") else 0o755 for name in above_them}
        closed = [os.path.realpath(name) for name in CLOSED]
        lacking = [(name, mode) for name, mode in folders.items() if name in closed or not os.path.isdir(name)]
        return lacking, {path: f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}" for path in files}

    return cast("tuple[list[tuple[str, int]], dict[str, str]]", inside(root, look, Deadline(FILES_TIME)))


def own_names(path: str) -> list[str]:
    """Return the names in an own.tar and of the folders above them, as `find .` prints what is unpacked of it."""
    with tarfile.open(path) as tar:
        names = tar.getnames()
    found = {str(one) for name in names for one in (name, *PurePosixPath(name).parents)} - {"."}
    return sorted(f"./{name}" for name in found)


def _add(tar: tarfile.TarFile, path: str, mode: int, text: str | None = None) -> None:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.mode, member.mtime = mode, int(time.time())
    if text is None:
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    else:
        data = text.encode("utf-8", "surrogateescape")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
