# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's images: each is imported once, checked, kept read-only under its hash, and found by name.

This file knows what an image consists of and imports it completely or not at all. roots/roots.py makes a board's root
from one.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Callable, Iterable, Iterator

from ..core.command import command
from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError, Refused, TimedOut
from ..core.kernel_text import mount_table
from ..core.locks import holder_of, taken
from ..core.plays import play
from ..files.file_system import PACK_TIME, pack
from ..files.mounts import mounts_below, unmount
from ..files.removal import remove_tree
from ..files.scratch import KEEP_FREE
from ..files.walk import RAISE
from ..site.image_names import HASH, IMPORT, NAME, checksum_of, valid_image
from .content import about_of, check_content, damage, note_sizes
from .forms import ANY, Machine, complete
from .image_root import FILE, FOLDER, POINT, is_whole
from .kernel_names import DEFAULT
from .kernels import initrds_in, kernels_in
from .room import Room
from .sources import Local, Remote, image_hash, opened
from .stored_image import Image
from .stored_names import StoredNames

if TYPE_CHECKING:
    from ..core.changes import Change

#: Seconds for a slow download and unpacking, for callers without a deadline.
IMPORT_TIME = 1800.0
#: Names of entries of the store that only a killed import or removal leaves.
LEFT = re.compile(r"[0-9a-f]{64}\.tmp\.[0-9]+(\.archive)?")
#: Entries of the store that are neither images nor foreign.
OWN = ("names", ".lock", "lost+found")
MEND = f"have an operator import it again, or remove it ({play('image')} lists them)"
REPLACE = "give this one a name of its own, or add -e replace=true (in a task: replace: true)"
#: Stands in the scratch name of an image that is being removed, where that of an import has its process id.
OUT = 0


class ImageStore:
    """Images below a folder (for root only, 0700): <sha256>/ and names/<name>.

    :param kernels: whether the images are for boards: then each has a kernel, and its files lie on a file system of
        their own, all of which boards may read. Those for containers and guests have their files in a folder that is
        copied.
    :param closed: folders and files with tenants' data, from which nothing is imported.
    """

    def __init__(self, folder: str, kernels: bool = True, closed: Iterable[str] = ()) -> None:
        self.folder = folder
        self.kernels = kernels
        self.closed = tuple(closed)
        self._names = StoredNames(os.path.join(folder, "names"))

    def names(self) -> dict[str, str]:
        """Return {name: hash} of all images."""
        return self._names.all()

    def unread_names(self) -> list[str]:
        """Return the files of names of which nobody knows what they stand for."""
        return self._names.unread()

    def get(self, name: str) -> Image:
        """Return the image of that name or hash; raise BadInput, with the known names, if there is none."""
        hash = name if HASH.fullmatch(name) else NAME.fullmatch(name) and self._names.read(name)
        if not hash or not os.path.isdir(self._path(hash)):
            known = ", ".join(self.names()) or "none"
            raise BadInput(f"no such image in the store (known: {known})", name, f"give one of these; {IMPORT}")
        return self._image(hash, name)

    def import_image(
        self,
        source: str,
        name: str,
        checksum: str | None = None,
        machine: Machine = ANY,
        change: Change | None = None,
        deadline: Deadline | None = None,
        replace: bool = False,
    ) -> Image | None:
        """Import an image under a name. One whose hash is in the store, and whole, only gets the name.

        :param source: file or folder of one of the forms (forms.py), or http, https or file URL of a file.
        :param checksum: "sha256:…"; a URL needs it.
        :param replace: let a name that stands for another image stand for this one.
        :param machine: what is to boot it. It makes another image of the same archive.
        :param change: in its check mode nothing is fetched or written.
        :param deadline: for all of it (default: IMPORT_TIME).
        :returns: the Image, or None if check mode cannot show what does not exist yet.
        """
        deadline = deadline or Deadline(IMPORT_TIME)
        valid_image(name)
        arch, giver = machine.arch, self._giver(machine.kernel_of) if machine.kernel_of else None
        expected = checksum_of(checksum)
        with opened(source, expected, self.closed, deadline) as found:
            if expected and found.content != expected:
                what = f"has sha256 {found.content}, not {expected}"
                raise BadInput(what, source, "check the file, or the checksum")
            hash = image_hash(found.content, arch, giver.hash if giver else None)
            before = self._may_stand_for(name, hash, replace)
            stored = before is not None and self.damage(before) is None
            after = {"hash": hash, "stored": True}
            changed = change is None or change.note(f"image {name}", {"hash": before, "stored": stored}, after)
            if changed:
                self._may_be_taken_in(hash, name)
            if change is not None and change.check:
                return None if self.damage(hash) else self._image(hash, name)
            if changed:
                with _writing(self.folder), self._locked(deadline):
                    # another import may have used this name meanwhile
                    self._may_stand_for(name, hash, replace)
                    if self.damage(hash):
                        # nor may the image be gone that gives its kernel
                        if giver:
                            self.must_be_whole(giver)
                        self._may_be_taken_in(hash, name)
                        self._take_in(found, hash, source, arch, giver, deadline)
                    self._names.write(name, hash)
        return self.get(name)

    def _giver(self, name: str) -> Image:
        """Return the image that gives its kernel to another one; raise BadInput if it is missing or damaged."""
        giver = self.get(name)
        self.must_be_whole(giver)
        return giver

    def must_be_whole(self, image: Image) -> None:
        """Raise BadInput if an image was removed since it was read, or is damaged by its sizes."""
        if not os.path.isdir(image.folder):
            raise BadInput("was removed meanwhile", f"image {image.name}", "give another one")
        wrong = self.damage(image.hash)
        if wrong:
            raise BadInput(f"is damaged ({wrong})", f"image {image.name}", MEND)

    def _may_stand_for(self, name: str, hash: str, replace: bool) -> str | None:
        """Return the hash that a name stands for, or None; raise Refused if that is another image and must stay."""
        before, path = self._names.read(name), self._names.path(name)
        if before is None and os.path.lexists(path) and not os.path.isfile(path):
            raise Refused(f"its name is taken: {path} is there, and is no file", name, "see whose it is; move it away")
        if before is None and path in self.unread_names() and not replace:
            what = f"its name cannot be read: {path} does not say which image it stands for"
            raise Refused(what, name, REPLACE)
        if before not in (None, hash) and not replace:
            what = f"stands for image {before[:12]} in the store, and this is {hash[:12]}"
            raise Refused(what, name, REPLACE)
        return before

    def _may_be_taken_in(self, hash: str, name: str) -> None:
        """Raise Refused if something else is in an image's place, or if files that are in use would be replaced."""
        there = self._path(hash)
        if os.path.lexists(there) and (os.path.islink(there) or not os.path.isdir(there)):
            raise Refused(
                f"its place is taken: {there} is there, and is no image", name, "see whose it is; move it away"
            )
        if not self.kernels and is_whole(os.path.join(there, FILE)):
            what = "is in the store as one for boards, and has one form there"
            raise Refused(what, name, "give arch too, and a name of its own: that makes another image of it")
        if self._root_stays(hash):
            return
        by = self.mounted(hash)
        if by:
            what = f"is damaged ({self.damage(hash)}), and {', '.join(by)} is made of it"
            raise Refused(what, f"image {name}", "terminate or rebuild what runs it, then import it again")

    def _root_stays(self, hash: str) -> bool:
        """Return whether the files below roots are whole. Roots fit to no other copy, even of the same archive."""
        older, file = (os.path.join(self._path(hash), name) for name in (FOLDER, FILE))
        return self.kernels and (os.path.isdir(older) or is_whole(file))

    # ---- taking in

    def _take_in(
        self,
        found: Local | Remote,
        hash: str,
        source: str,
        arch: str | None,
        giver: Image | None,
        deadline: Deadline,
    ) -> None:
        folder = self._path(f"{hash}.tmp.{os.getpid()}")
        room = self._room()
        try:
            os.mkdir(folder, 0o700)
            found.put(folder, room, deadline)
            complete(folder, source, room, deadline, arch, giver)
            check_content(folder, source, arch, self.kernels)
            if self.kernels and os.path.isdir(os.path.join(folder, FOLDER)):
                seconds = min(PACK_TIME, max(1.0, deadline.left))
                pack(os.path.join(folder, FOLDER), os.path.join(folder, FILE), seconds)
                remove_tree(os.path.join(folder, FOLDER), deadline)
            note_sizes(folder)
            os.chmod(folder, 0o555)
            command(["sync", "-f", folder], folder, "check the disk", timeout=max(1.0, deadline.left))
            self._put_in_place(folder, hash, deadline)
        except (HeteroError, OSError) as error:
            why = self._without_room(error, source, room) or _over_time(error, source, deadline)
            if why is None:
                raise
            raise why from error
        finally:
            # what cannot be removed now is removed by the next import, and the first failure is the one to show
            with suppress(HeteroError):
                remove_tree(folder)

    def _put_in_place(self, folder: str, hash: str, deadline: Deadline) -> None:
        """Put a whole image under its hash. If a damaged one is there, its files stay if they are whole."""
        there = self._path(hash)
        if not os.path.lexists(there):
            os.rename(folder, there)
        elif not self._root_stays(hash):
            out = self._set_aside(hash)
            os.rename(folder, there)
            remove_tree(out, deadline)
        else:
            # image.json comes last: an image whose import was killed here still counts as damaged
            for name in sorted(set(os.listdir(folder)) - {FILE}, key="image.json".__eq__):
                path = os.path.join(there, name)
                if os.path.isdir(path):
                    remove_tree(path, deadline)
                os.replace(os.path.join(folder, name), path)
            note_sizes(there)

    def _without_room(self, error: HeteroError | OSError, source: str, room: int) -> HeteroError | None:
        """Return the error of an image that did not fit, with the store and its room; None for another error."""
        if isinstance(error, BadInput) and "room" in error.facts:
            return BadInput(f"{error.what} in {self.folder}", error.thing, error.remedy, **error.facts)
        if os.strerror(errno.ENOSPC) in str(error):
            what = f"did not fit into {self.folder}: its disk is full, and had room for {room >> 20} MiB before"
            return HeteroError(what, source, "see who fills it, make room there, then import it again")
        return None

    def _room(self) -> int:
        there = os.statvfs(self.folder)
        free = there.f_bavail * there.f_frsize - KEEP_FREE
        # What roots are promised stays theirs, unless more is promised than there is.
        promised = Room(os.path.dirname(self.folder)).open_promise if self.kernels else 0
        room = max(0, free - promised if promised <= free else free)
        # While the files are packed they lie there twice.
        return room // 2 if self.kernels else room

    @contextmanager
    def _locked(self, deadline: Deadline) -> Iterator[None]:
        """Let one import run at a time. Unfinished files that lie there were left by a killed one and are removed."""
        os.makedirs(os.path.join(self.folder, "names"), mode=0o700, exist_ok=True)
        os.chmod(self.folder, 0o700)
        lock = os.open(self._path(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(lock, self.folder, deadline)
            for entry in os.listdir(self.folder):
                if LEFT.fullmatch(entry):
                    self._unmount(self._path(entry))
                    remove_tree(self._path(entry), deadline)
            self._names.put_back()
            yield
        finally:
            os.close(lock)

    # ---- taking out

    @contextmanager
    def kept_still(self, check: bool, deadline: Deadline) -> Iterator[None]:
        """Keep imports and removals from running during the block. In check mode nothing is locked."""
        if check or not os.path.isdir(self.folder):
            yield
            return
        with _writing(self.folder), self._locked(deadline):
            yield

    def forget(
        self, name: str, hash: str | None, deadline: Deadline, check: Callable[[], object] = lambda: None
    ) -> None:
        """Remove a name, and the image of that hash if one is given. The caller has checked that nobody uses it.

        :param check: checks that once more, when nobody can get the image any more; where it raises, the name stays.
        """
        # In this order, so that wherever this is killed the image is whole or gone, and a name that is left can be
        # removed.
        with nullcontext() if HASH.fullmatch(name) else self._names.leaving(name, deadline):
            check()
            out = self._set_aside(hash) if hash is not None and os.path.lexists(self._path(hash)) else None
        if out is not None:
            remove_tree(out, deadline)

    def _set_aside(self, hash: str) -> str:
        """Rename an image so that it counts as none any more. Return the folder that is to be removed."""
        out = self._path(f"{hash}.tmp.{OUT}")
        self._unmount(self._path(hash))
        os.rename(self._path(hash), out)
        return out

    def _unmount(self, folder: str) -> None:
        """Unmount what is mounted in a folder of the store."""
        for point in sorted(mounts_below(folder), reverse=True):
            number = unmount(point)
            if number:
                what = f"cannot be unmounted ({os.strerror(number)})"
                raise HeteroError(what, point, "see who uses it: fuser -vm")

    # ---- what is there

    def hashes(self) -> list[str]:
        """Return the hashes of all images, also of those without a name."""
        entries = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return sorted(entry for entry in entries if HASH.fullmatch(entry) and os.path.isdir(self._path(entry)))

    def damage(self, hash: str) -> str | None:
        """Return in words why the image of a hash is not whole or not there, or None."""
        return damage(self._path(hash), self.kernels)

    def mounted(self, hash: str) -> list[str]:
        """Return in words what is mounted elsewhere from an image's files (roots)."""
        own, found = self._path(hash), []
        for line in mount_table():
            ours = any(own in part for part in (line.root, line.source, *line.options))
            if ours and not line.point.startswith(os.path.join(self.folder, "")):
                found.append(f"what is mounted at {line.point}")
        return found

    def path_of(self, hash: str) -> str:
        """Return the folder of an image."""
        return self._path(hash)

    def _path(self, entry: str) -> str:
        return os.path.join(self.folder, entry)

    def _image(self, hash: str, name: str) -> Image:
        folder = self._path(hash)
        try:
            about = about_of(folder, folder)
        except BadInput as error:
            raise BadInput(f"is damaged ({error.what})", f"image {name}", MEND) from error
        kernels, initrds = kernels_in(folder, about), initrds_in(folder, about)
        return Image(
            hash=hash,
            name=name,
            arch=about["arch"],
            cmdline=about.get("cmdline", ""),
            kernel=kernels.get(DEFAULT),
            initrd=initrds.get(DEFAULT),
            root=None if about.get("ram") else os.path.join(folder, POINT if self.kernels else FOLDER),
            folder=folder,
            console_key=about.get("console_key", False),
            kernels=kernels,
            initrds=initrds,
        )


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    """Raise OSErrors of the block as errors that name the store."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        raise HeteroError(what, folder, "check space and permissions there") from error


def _over_time(error: HeteroError | OSError, source: str, deadline: Deadline) -> HeteroError | None:
    """Return the error of an import that was over time in one of its steps; None for another one, or if it says so."""
    if not isinstance(error, TimedOut) or error.remedy == RAISE or not deadline.passed:
        return None
    return TimedOut(f"not imported within {deadline.seconds:g} s", source, RAISE)


def _take(lock: int, folder: str, deadline: Deadline) -> None:
    if not taken(lock, deadline):
        what = f"another import ({holder_of(lock)}) still runs after {deadline.seconds:g} s"
        raise TimedOut(what, folder, "wait for it, or raise timeout")
