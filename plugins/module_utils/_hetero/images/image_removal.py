# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of a store and their users, and the removal of one image, or of all, that nobody uses.

Users of an image are claims that name it or whose root was made from it, mounts of its files, and purposes in the
node's configuration. The caller knows the claims.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable

from ..core.changes import Change
from ..core.command import command
from ..core.deadline import Deadline
from ..core.errors import BadInput, Refused
from ..files.removal import remove_tree
from ..site.image_names import HASH
from .store import LEFT, OWN, ImageStore

if TYPE_CHECKING:
    from .proxy_node import ImageClaim

#: Seconds to add up the sizes of an image's files.
SIZE_TIME = 60.0
MAY_BE_MADE = "the root of {} is yet to be made, and may be being made of it"

MAY_NAME_ONE = (
    "{} cannot be read, and may be the name of one (import its image again under that name, with replace: true, or "
    "remove the file)"
)


def listed(store: ImageStore, claims: Iterable[ImageClaim], needed: dict[str, str]) -> list[dict[str, Any]]:
    """Return a row for each name of an image, and then for each image without a name.

    :param claims: the node's claims (`instance`, `image`, `image_hash`).
    :param needed: {name: what the node needs it for}.
    """
    names, claims = store.names(), list(claims)
    stored = store.hashes()
    rows: list[tuple[str | None, str]] = [(name, hash) for name, hash in names.items() if hash in stored]
    rows += [(None, hash) for hash in stored if hash not in names.values()]
    found = []
    for name, hash in rows:
        older = {
            claim.instance: claim.image_hash
            for claim in claims
            if name and claim.image == name and claim.image_hash and claim.image_hash != hash
        }
        found.append(dict(_row(store, name, hash, users(store, name, hash, claims, needed)), older=older))
    return found


def foreign(store: ImageStore) -> dict[str, str]:
    """Return {path: what it is} of entries of a store that are neither images nor names. They are left alone."""
    stored, names, found = store.hashes(), store.names(), {}
    for entry in _entries(store.folder):
        if entry not in stored and entry not in OWN and not LEFT.fullmatch(entry):
            found[os.path.join(store.folder, entry)] = "is no image"
    folder = os.path.join(store.folder, "names")
    for name in _entries(folder):
        # a name that begins with a dot is being written
        if name not in names and not name.startswith("."):
            found[os.path.join(folder, name)] = "is no name of an image, or cannot be read"
        elif name in names and names[name] not in stored:
            found[os.path.join(folder, name)] = f"stands for an image that is not there ({names[name][:12]})"
    return found


def _entries(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def users(
    store: ImageStore,
    name: str | None,
    hash: str,
    claims: Iterable[ImageClaim],
    needed: dict[str, str],
    last: bool = True,
) -> list[str]:
    """Return who uses an image, in words.

    :param last: whether this is the image's only name, so that users of its content count too.
    """
    found = [needed[name]] if name in needed else []
    for claim in claims:
        if claim.image == name or (last and claim.image_hash == hash):
            found.append(claim.instance)
    return found + (store.mounted(hash) if last and not found else [])


def unmade(claims: Iterable[ImageClaim]) -> list[str]:
    """Return the instances whose root is yet to be made.

    It may be being made right now, of an image that their image's name stood for until a moment ago.
    """
    return sorted(claim.instance for claim in claims if claim.image and not claim.image_hash)


def remove(
    store: ImageStore,
    name: str,
    claims: Callable[[], Iterable[ImageClaim]],
    needed: dict[str, str],
    change: Change,
    deadline: Deadline,
) -> dict[str, Any] | None:
    """Remove a name from the store, and its image if that has no other name.

    :param name: a name, or the hash of an image without one.
    :param claims: is called when no import runs any more, which may be long after this call.
    :returns: the image's row as `listed` has it, or None if there is no such image.
    :raises Refused: somebody uses it.
    """
    with store.kept_still(change.check, deadline):
        names = store.names()
        hash = names.get(name) or (name if name in store.hashes() else None)
        if hash is None:
            return None
        others = [other for other, its in names.items() if its == hash and other != name]
        if name == hash and others:
            raise BadInput(f"is image {', '.join(others)}", name, "remove it by that name")

        def must_be_unused() -> None:
            used = list(claims())
            by = users(store, name, hash, used, needed, last=not others)
            if not by and name == hash and unmade(used):
                raise Refused(MAY_BE_MADE.format(", ".join(unmade(used))), name, "try again when that is done")
            if by:
                remedy = "terminate or rebuild what runs it, or name another default"
                raise Refused(f"is used by {', '.join(by)}", name, remedy)

        must_be_unused()
        row = _row(store, None if name == hash else name, hash, [])
        change.note(f"image {name}", {"hash": hash, "stored": True}, {"hash": None, "stored": bool(others)})
        if not change.check:
            store.forget(name, None if others else hash, deadline, must_be_unused)
        return row


def collect(
    store: ImageStore,
    claims: Callable[[], Iterable[ImageClaim]],
    archives: str,
    change: Change,
    deadline: Deadline,
) -> list[dict[str, Any]]:
    """Remove the images that no name and no root uses, and the archives of images that are not in the store and of
    which no root was made.

    :param claims: as in `remove`.
    :param archives: folder with archives of images for disks (root_archive.py).
    :returns: `what` was removed (in check mode: would be) and the `bytes` that it took on the disk, of each; a row
        without bytes says what was not looked at, and why.
    """
    found: list[dict[str, Any]] = []
    with store.kept_still(change.check, deadline):
        named, used = set(store.names().values()), list(claims())
        unnamed = [hash for hash in store.hashes() if hash not in named]
        waits = [MAY_BE_MADE.format(", ".join(unmade(used)))] if unmade(used) else []
        waits = [*waits, *map(MAY_NAME_ONE.format, store.unread_names())] if unnamed else []
        if waits:
            found.append(dict(what=f"no image without a name is removed: {'; '.join(waits)}"))
        for hash in [] if waits else unnamed:
            if users(store, None, hash, used, {}):
                continue
            row = _row(store, None, hash, [])
            change.note(f"image {hash}", {"stored": True}, {"stored": False})
            if not change.check:
                store.forget(hash, hash, deadline)
            found.append(dict(what=f"sha256:{hash} ({row['arch']})", bytes=row["bytes"]))
        gone = {row["what"][7:71] for row in found if "bytes" in row}
        for name in _entries(archives):
            hash, rest = name[:64], name[64:]
            kept = (hash in store.hashes() and hash not in gone) or any(claim.image_hash == hash for claim in used)
            if not HASH.fullmatch(hash) or not rest.startswith(".tar.gz") or kept:
                continue
            path = os.path.join(archives, name)
            size = os.lstat(path).st_blocks * 512
            change.note(path, {"there": True}, {"there": False})
            if not change.check:
                remove_tree(path, deadline)
            if rest == ".tar.gz":
                found.append(dict(what=f"archive of sha256:{hash} for disks", bytes=size))
    return found


def _row(store: ImageStore, name: str | None, hash: str, by: list[str]) -> dict[str, Any]:
    """Return a row of `listed`. The arch of an image that is damaged or half removed says so."""
    wrong, ram, size, kernels = store.damage(hash), False, "0", []
    if wrong is None:
        image = store.get(hash)
        arch, ram, kernels = image.arch, image.ram, sorted(image.kernels)
    else:
        arch = f"damaged: {wrong}"
    if os.path.lexists(store.path_of(hash)):
        argv = ["du", "--summarize", "--one-file-system", "--block-size=1", store.path_of(hash)]
        size = command(argv, f"image {name or hash}", timeout=SIZE_TIME).split()[0]
    return dict(name=name, hash=hash, arch=arch, ram=ram, kernels=kernels, bytes=int(size), used_by=by)
