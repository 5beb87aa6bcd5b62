# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private roots: a board's own view of an image, an overlay whose upper layer is a file system of the root's own.

This file knows what makes a root one tenant's: the claim that it was made for, its size, and the host name, keys and
host key in it. The exports (nfs/) say who may mount it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, cast
from uuid import UUID, uuid5

from ..core.errors import BadInput, HeteroError, Refused
from ..core.this_node import THIS_NODE
from ..files.file_system import has_errors, make_empty, mount_file, uuid_of
from ..files.links import must_be_no_link
from ..files.mounts import mount_overlay, mounts_below, unmount
from ..files.plain_file import read_at
from ..files.removal import remove_tree
from ..files.whole_file import write_whole
from ..images.image_root import FOLDER, root_of
from ..site.state_folder import OLDER, ROOT_FILE, ROOTS
from . import cloud_init, machine_identity
from .root_folder import must_hold_only

if TYPE_CHECKING:
    from ..core.deadline import Deadline
    from ..files.mounts import Mount
    from ..images.room import Room
    from ..images.store import Image

#: How long a file server may take to let go of an export's files (seconds); it takes 2 to 17 ms.
UNMOUNT_TIME = 10.0
#: The name of a private overlay in the table of mounts.
SOURCE = "fs_"
#: The name of a board's folder below ROOTS.
ROOT_NAME = re.compile(r"fs_\d+")
#: In a root's folder: whom it was made for.
MADE = "made.json"
#: Most bytes of it; ours have some 200.
MOST = 1 << 16
#: The name that made.json gets in the first step of a removal; it is removed last, with the folder.
REMOVED = "removed.json"
#: All that we put into a root's folder, also that of an earlier release.
PARTS = (MADE, REMOVED, ROOT_FILE, "layers", "root", "upper", "work", machine_identity.KEY_FOLDER)

#: Namespace of the UUIDs of roots' file systems (RFC 9562, version 5): a random one.
SPACE = UUID("6f0c1f54-2a3e-4c5b-9f0e-8d6a1b7c4e21")
ANOTHERS = "is the root of {other}, not of {name}"
MISPLACED = "is not the root of {name}, which lies in {place}"
SWAP = "nothing is touched: put each file back in its own folder, and a copy out of all of them; then run this again"


@dataclass(frozen=True)
class Made:
    """What made.json says: the claim that a root was made for, and the image it was made from.

    :param kind: "copy" for a root of the older layout that is no overlay.
    :param whole: True once all files were put into the root.
    """

    claim: str
    image: str
    kind: str = "overlay"
    whole: bool = False


class Root:
    """The private root of one board: <state>/board-roots/fs_N/{made.json,root.ext4,layers/,root/}.

    root.ext4 holds upper/ and work/ and nothing else. It is on layers/ only while the overlay is being mounted, which
    then keeps it: nfs-ganesha takes two mounts with one file system id for one, and before Linux 6.6 an overlay has its
    upper's.

    A root of the older layout, <state>/roots/fs_N/{made.json,upper/,work/,root/}, is used there until it is removed.
    """

    def __init__(self, state: str, number: int) -> None:
        if re.search(r"[,:\\\s]", state):
            raise BadInput("may not hold a comma, colon, backslash or blank", state, "choose another state_folder")
        self.name = f"{SOURCE}{number}"
        self._own = os.path.join(state, ROOTS, self.name)
        self._older = os.path.join(state, OLDER, self.name)

    @property
    def older(self) -> bool:
        """Return whether this board has a root of the older layout, in a file system shared with other roots.

        :raises HeteroError: that file system is not mounted, so that this cannot be told.
        """
        if os.path.lexists(self._older):
            return True
        shared = os.path.dirname(self._older)
        if os.path.exists(f"{shared}.ext4") and not os.path.ismount(shared):
            what = "is not mounted, and may hold this board's root of an older release"
            raise HeteroError(what, shared, f"mount {shared}.ext4 there, or restart {THIS_NODE}")
        return False

    @property
    def folder(self) -> str:
        return self._older if self.older else self._own

    @property
    def path(self) -> str:
        """Return where the root is mounted, and exported from."""
        return os.path.join(self.folder, "root")

    @property
    def file(self) -> str:
        """Return the file that holds the root's own file system."""
        return os.path.join(self._own, ROOT_FILE)

    @property
    def layers(self) -> str:
        """The folder of upper and work."""
        return self.folder if self.older else os.path.join(self._own, "layers")

    # ---- what is there

    def exists(self) -> bool:
        return os.path.lexists(self.folder)

    @property
    def is_half_removed(self) -> bool:
        """Return whether its removal was begun, or only an empty folder is left; a lost made.json is no sign of it."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else [MADE]
        return REMOVED in names or not names

    @property
    def is_file_lost(self) -> bool:
        """Return whether the root's folder is there, and the file of its file system is not."""
        return self.exists() and not self.older and not os.path.lexists(self.file)

    @property
    def is_mounted(self) -> bool:
        return self.path in self.mounts()

    @property
    def is_half_mounted(self) -> bool:
        """Return whether a mount of the root was cut off: only during a mount is its file system on layers/."""
        return not self.older and self.layers in self.mounts()

    def made(self) -> Made | None:
        """Return what made.json says; None where there is no root, or where made.json is missing or cannot be read."""
        return made_of(self.folder)

    def mounts(self) -> dict[str, Mount]:
        """Return the mounts in the root's folder, by mount point; not a disk that an operator mounted on it."""
        found = mounts_below(self.folder)
        found.pop(self.folder, None)
        return found

    def ready(self, image: Image, told: Made | None = None) -> bool:
        """Return whether the files of a root made from `image` are there to be exported.

        :param told: what made.json is about to say, where it is missing or cannot be read.
        """
        made = self.made() or told
        if made is None or made.image != image.hash or (not self.older and has_errors(self.file)):
            return False
        return (self.older and made.kind == "copy") or self.is_over(image)

    def is_over(self, image: Image) -> bool:
        """Return whether the root is mounted, as an overlay over this image's files."""
        found = self.mounts()
        root = found.get(self.path)
        return root is not None and root.lower == self._lower(image) and self.layers not in found

    def _lower(self, image: Image) -> str | None:
        return os.path.join(image.folder, FOLDER) if self.older else image.root

    def inspect(self, key: str) -> dict[str, Any]:
        """Return what is in the root (machine_identity.inspect)."""
        return machine_identity.inspect(self.path, key)

    def host_key(self) -> str | None:
        """Return the public host key in the root; None where there is none, or where the root is not mounted."""
        return machine_identity.host_key(self.path) if self.is_mounted or self.older else None

    def must_be_own(self, claim: str | None = None, known: Iterable[str] = ()) -> None:
        """Raise Refused if the file system in the root's file was made for another claim than the root.

        That of an earlier release has a random UUID, and may be anybody's, unless the root's own lies in another place;
        so may one that cannot be read.

        :param claim: whose root it is where no made.json says so (made_json.token_of).
        :param known: the claims of other boards; they are asked for only where the root is not seen to be its own.
        """
        made, found = self.made() or made_of(self.folder, REMOVED), None
        with suppress(HeteroError):
            found = None if self.older else uuid_of(self.file)
        claim = made.claim if made else claim
        own = uuid_for(claim) if claim else None
        if found in (None, own):
            return
        name = _name(claim) if claim else "who has its folder"
        folder = os.path.dirname(self._own)
        others = [os.path.join(folder, other) for other in sorted(os.listdir(folder)) if other != self.name]
        if UUID(found).version == 5:
            claims = [*(other.claim for other in map(made_of, others) if other), *known]
            whose = [_name(other) for other in claims if uuid_for(other) == found]
            if whose or made:
                what = ANOTHERS.format(other=whose[0] if whose else "another instance", name=name)
                raise Refused(what, self.file, SWAP)
        places = [other for other in others if own and _uuid_in(other) == own]
        if places:
            raise Refused(MISPLACED.format(name=name, place=os.path.join(places[0], ROOT_FILE)), self.file, SWAP)

    def must_be_removable(self, claim: str | None = None, known: Iterable[str] = ()) -> None:
        """Raise Refused where the removal of the root's folder would remove more than the root, or less.

        The parameters are those of must_be_own.
        """
        self._must_be_no_link()
        self.must_be_own(claim, known)
        must_hold_only(self.folder, PARTS)

    def _must_be_no_link(self) -> None:
        must_be_no_link(self.folder, self.file, self.path, self.layers)

    # ---- making and removing

    def create(self, image: Image, claim: str, room: Room, size: int) -> None:
        """Make the root anew from an image; made.json does not say yet that it is whole.

        :param claim: the text that names the claim (made_json.token_of).
        :param size: bytes of the root's file system, for which there must be room (room.Room).
        """
        lower = root_of(image)
        os.makedirs(self.folder, mode=0o700)
        os.chmod(os.path.dirname(self.folder), 0o700)
        self.write(Made(claim, image.hash))
        room.take(self.file, size)
        make_empty(self.file, uuid_for(claim))
        for folder in (self.layers, self.path):
            os.mkdir(folder, 0o700)
        with self._layers():
            for name in ("upper", "work"):
                os.mkdir(os.path.join(self.layers, name), 0o755)
            # The root's own folder has the mode and owner of the image's.
            upper, status = os.path.join(self.layers, "upper"), os.stat(lower)
            shutil.copystat(lower, upper)
            os.chown(upper, status.st_uid, status.st_gid)
            self._overlay(image)

    def mount(self, image: Image) -> None:
        """Mount the overlay of a root that was made from this image."""
        if self.older:
            self._overlay(image)
            return
        self._must_be_no_link()
        self.must_be_own()
        root_of(image)
        with self._layers():
            self._overlay(image)

    def take_up_mount(self) -> None:
        """Take a mount that was cut off to its end, or undo it: unmount layers/; an overlay on root/ stays."""
        if self.is_half_mounted:
            unmount(self.layers, detach=True)

    def mark_whole(self) -> None:
        """Write into made.json that all files are in the root; a root without this mark is made anew."""
        self.write(Made(**dict(asdict(cast(Made, self.made())), whole=True)))

    def unmount(self, deadline: Deadline) -> None:
        """Unmount everything in the root's folder, the latest mount first; retry until the deadline while it is busy.

        :raises HeteroError: something is still mounted; the text names the reason.
        """
        while True:
            points = list(reversed(self.mounts()))
            if not points:
                return
            number = unmount(points[0])
            if number == errno.EBUSY and not deadline.passed:
                deadline.nap(0.02)
            elif number and points[0] in self.mounts():
                what = f"cannot be unmounted, tried for {deadline.spent:.1f} s ({os.strerror(number)})"
                raise HeteroError(what, points[0], f"find who uses it: fuser -vm {points[0]}")

    def remove(self, deadline: Deadline | None = None) -> None:
        """Remove the root's folder; raise HeteroError where something is still mounted in it."""
        points = self.mounts()
        if points:
            raise HeteroError("is still mounted", sorted(points)[0], "unmount it first")
        self.must_be_removable()
        if os.path.isdir(self.folder):
            # Rename made.json first: what a killed removal leaves then looks neither like a whole root nor like a root
            # that lost its file.
            made, removed = (os.path.join(self.folder, name) for name in (MADE, REMOVED))
            if os.path.lexists(made):
                os.replace(made, removed)
            for name in sorted(set(os.listdir(self.folder)) - {REMOVED}):
                remove_tree(os.path.join(self.folder, name), deadline)
        remove_tree(self.folder, deadline)

    @contextmanager
    def _layers(self) -> Iterator[None]:
        mount_file(self.file, self.layers)
        try:
            yield
        finally:
            unmount(self.layers, detach=True)

    def _overlay(self, image: Image) -> None:
        """Mount the overlay so that it can be exported."""
        lower = self._lower(image)
        layers = f"lowerdir={lower},upperdir={self.layers}/upper,workdir={self.layers}/work"
        # xino gives all layers one device number. With lower and upper on two file systems and no xino, an NFS server
        # takes a file of the image for one of another file system and refuses it (EXDEV; nfs-ganesha 4.3).
        number = mount_overlay(self.name, self.path, f"index=on,nfs_export=on,xino=on,{layers}")
        if number:
            what = f"overlay cannot be mounted ({os.strerror(number)})"
            raise HeteroError(what, self.path, "the kernel's reason: dmesg")

    def write(self, made: Made) -> None:
        """Write made.json."""
        write_whole(os.path.join(self.folder, MADE), json.dumps(asdict(made)), 0o600)

    # ---- what is put in

    def settle(self, hostname: str) -> None:
        """Make a fresh root a machine of its own."""
        machine_identity.settle(self.path, hostname)

    def put_key(self, key: str) -> None:
        """Put the user's keys into root's authorized_keys beside what is there."""
        machine_identity.put_key(self.path, key)

    def put_own_line(self, wanted: str | None) -> None:
        """Put this line of the proxy's own key into authorized_keys in place of others of it; None removes all."""
        machine_identity.put_own_line(self.path, wanted)

    def put_seed(self, text: str, hostname: str) -> None:
        """Put a user's data for cloud-init into a fresh root."""
        cloud_init.put_seed(self.path, text, hostname)

    def has_seed(self, text: str) -> bool:
        """Return whether the user's data for cloud-init in the root are these."""
        return cloud_init.has_seed(self.path, text)

    def has_left_seed(self, image: Image) -> bool:
        """Return whether the root has data for cloud-init that a request gave it (cloud_init.is_left)."""
        return cloud_init.is_left(self.path, image)

    def take_seed_out(self, image: Image) -> None:
        """Have in the root what its image has in place of data for cloud-init that a request gave it."""
        cloud_init.take_out(self.path, image)

    def put_host_key(self, comment: str) -> None:
        """Put a fresh host key into the root."""
        machine_identity.put_host_key(self.path, comment, self.folder)


def uuid_for(claim: str) -> str:
    """Return the UUID of the file system of a root that is made for a claim.

    :param claim: the text that names it (made_json.token_of).
    """
    return str(uuid5(SPACE, claim))


def _uuid_in(folder: str) -> str | None:
    """Return the UUID of the file system in a root's folder; None where it cannot be read."""
    with suppress(HeteroError):
        return uuid_of(os.path.join(folder, ROOT_FILE))
    return None


def _name(claim: str) -> str:
    return claim.partition(" ")[0]


def made_of(folder: str, name: str = MADE) -> Made | None:
    """Return what made.json in a root's folder says; None where the file is missing or cannot be read."""
    try:
        made = Made(**json.loads(read_at(os.path.join(folder, name), MOST)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = isinstance(made.whole, bool) and all(isinstance(text, str) for text in (made.claim, made.image, made.kind))
    return made if texts else None


def sharing(state: str) -> dict[str, Made | None]:
    """Return {folder name: its Made, or None} of all roots of the older layout, which share one file system."""
    folder = os.path.join(state, OLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {name: made_of(os.path.join(folder, name)) for name in names if re.fullmatch(rf"{SOURCE}\d+", name)}
