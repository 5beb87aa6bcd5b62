# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files that somebody else named into a tree below one folder, which no name and no link in it leads out of.

This file knows which names and links an image may hold, and copies folders by the same rules. walk.py reads folders,
images/archive.py reads tar files.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence

from ..core.errors import BadInput
from .removal import remove_tree
from .walk import FLATTEN, LONGEST, TOO_LONG, content_of, in_time, open_folder, reading, walk

if TYPE_CHECKING:
    from io import RawIOBase

    from ..core.deadline import Deadline

#: The part of an image whose links are followed, and only by a board inside its root; never on the proxy.
ROOT = "root"
#: `docker save` of releases before 25 packs a layer that it has packed already as a link to that one.
LAYER, SAME_LAYER = re.compile(r"[0-9a-f]{64}/layer\.tar"), re.compile(r"\.\./[0-9a-f]{64}/layer\.tar")
REPACK = "leave it out (tar --exclude=…; a board makes its own /dev)"
#: Errors that come from a name or a number and not from the disk.
NAME_ERRORS = (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.EMLINK)


def parts_of(name: str) -> list[str]:
    """Return a name as a list of plain parts; raise BadInput if it could lead out of the folder."""
    if name.startswith("/"):
        raise BadInput("has an absolute name", name, REPACK)
    if "\0" in name:
        raise BadInput("has a zero byte in its name", name, REPACK)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadInput("leads out of the archive by '..'", name, REPACK)
    if len(os.fsencode("/".join(parts))) > LONGEST:
        raise BadInput(TOO_LONG, name, FLATTEN)
    return parts


def check_symlink(parts: list[str], target: str) -> None:
    """Raise BadInput for a symbolic link that leads out of root/.

    An absolute target is allowed: only a board follows it, and from its own root.
    """
    name = "/".join(parts)
    if LAYER.fullmatch(name) and SAME_LAYER.fullmatch(target):
        return
    if parts[0] != ROOT or len(parts) == 1:
        raise BadInput("is a symbolic link outside root/", name, "put the file itself there instead of a link")
    if not target or "\0" in target:
        raise BadInput("is a symbolic link to nowhere", name, REPACK)
    if target.startswith("/"):
        return
    depth = len(parts) - 2
    for part in target.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            raise BadInput(f"is a symbolic link that leads out of root/ ({target!r})", name, REPACK)


class Tree:
    """Writes files below one folder. Each part of a path is opened without following symbolic links.

    :param limit: bytes that may be written. A file counts as at least one block of 4 KiB.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.written = 0
        self._times: dict[tuple[str, ...], float] = {}
        self._base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._base)

    def place_folder(self, parts: list[str], mode: int, uid: int, gid: int, mtime: float) -> None:
        if not parts:
            return
        with self._place(parts, 0) as (here, last):
            try:
                os.mkdir(last, 0o700, dir_fd=here)
            except FileExistsError as error:
                if not stat.S_ISDIR(os.lstat(last, dir_fd=here).st_mode):
                    raise BadInput("is a folder and something else at once", "/".join(parts), REPACK) from error
            folder = open_folder(last, here)
            try:
                os.fchown(folder, uid, gid)
                os.fchmod(folder, mode)
            finally:
                os.close(folder)
        self._times[tuple(parts)] = mtime

    def place_file(
        self, parts: list[str], chunks: Iterable[bytes], size: int, mode: int, uid: int, gid: int, mtime: float
    ) -> None:
        """Write a file. `chunks` yields its bytes; chunks of zeros become holes."""
        with self._place(parts, size) as (here, last):
            _clear(parts, here, last)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(last, flags, 0o600, dir_fd=here), "wb", buffering=0) as file:
                for chunk in chunks:
                    _write(file, chunk)
                file.truncate(file.tell())
                # Owner before mode: a change of owner clears set-uid (chown(2)).
                os.fchown(file.fileno(), uid, gid)
                os.fchmod(file.fileno(), mode)
                os.utime(file.fileno(), (mtime, mtime))

    def place_symlink(self, parts: list[str], target: str, uid: int, gid: int, mtime: float) -> None:
        check_symlink(parts, target)
        with self._place(parts, 0) as (here, last):
            _clear(parts, here, last)
            os.symlink(target, last, dir_fd=here)
            os.chown(last, uid, gid, dir_fd=here, follow_symlinks=False)
            os.utime(last, (mtime, mtime), dir_fd=here, follow_symlinks=False)

    def place_hard_link(self, parts: list[str], target: list[str]) -> None:
        """Make a hard link. `target` are the parts of a file that was placed before."""
        name = "/".join(parts)
        with self._place(parts, 0) as (here, last), self._parent(target) as (there, first):
            try:
                kind = os.lstat(first, dir_fd=there).st_mode
            except FileNotFoundError as error:
                what = f"is a hard link to {'/'.join(target)!r}, which does not come before it"
                raise BadInput(what, name, REPACK) from error
            if stat.S_ISDIR(kind):
                raise BadInput("is a hard link to a folder", name, REPACK)
            if parts == target:
                return
            if stat.S_ISLNK(kind):
                # The same target may lead elsewhere from the new place.
                check_symlink(parts, os.readlink(first, dir_fd=there))
            _clear(parts, here, last)
            os.link(first, last, src_dir_fd=there, dst_dir_fd=here, follow_symlinks=False)

    def finish(self) -> None:
        """Set the times of folders, at the end because placing files changes them."""
        for parts, mtime in self._times.items():
            if not self._is_folder([*parts]):
                continue
            with self._blamed([*parts]), self._parent([*parts]) as (here, last):
                os.utime(last, (mtime, mtime), dir_fd=here, follow_symlinks=False)

    def _is_folder(self, parts: list[str]) -> bool:
        """Return whether a folder that was placed is still there, and not removed with one above it."""
        try:
            return self.kind(parts) == stat.S_IFDIR
        except BadInput:  # what is above it now is a link or a file
            return False

    def kind(self, parts: list[str]) -> int | None:
        """Return the kind of what was placed under a name (stat.S_IFMT), or None."""
        try:
            with self._blamed(parts), self._parent(parts, make=False) as (here, last):
                return stat.S_IFMT(os.lstat(last, dir_fd=here).st_mode)
        except FileNotFoundError:
            return None

    def remove(self, parts: list[str]) -> None:
        """Remove what was placed under a name, with all below it."""
        if self.kind(parts) is None:
            return
        with self._blamed(parts), self._parent(parts, make=False) as (here, last):
            remove_tree(f"/proc/self/fd/{here}/{last}")

    def empty(self, parts: list[str]) -> None:
        """Remove all that was placed below a folder."""
        if self.kind(parts) != stat.S_IFDIR:
            return
        with self._parent([*parts, "."], make=False) as (here, _last):
            names = os.listdir(here)
        for name in names:
            self.remove([*parts, name])

    @contextmanager
    def _place(self, parts: list[str], size: int) -> Iterator[tuple[int, str]]:
        """Yield what _parent does, after the size is counted against the limit."""
        name = "/".join(parts)
        self.written += max(size, 4096)
        if self.written > self.limit:
            what = f"makes the image larger than the {self.limit >> 20} MiB there is room for"
            raise BadInput(what, name, "make room, or the image smaller", room=self.limit)
        with self._blamed(parts), self._parent(parts) as found:
            yield found

    @contextmanager
    def _blamed(self, parts: list[str]) -> Iterator[None]:
        """Raise errors of names or numbers that no file can have as the input's fault."""
        name = "/".join(parts)
        try:
            yield
        except (ValueError, OverflowError) as error:
            raise BadInput(f"has a name or number no file can have ({error})", name, REPACK) from error
        except OSError as error:
            if error.errno in NAME_ERRORS:
                raise BadInput(f"cannot be made ({error.strerror})", name, REPACK) from error
            raise

    @contextmanager
    def _parent(self, parts: list[str], make: bool = True) -> Iterator[tuple[int, str]]:
        """Yield (descriptor of the folder with the last part, last part). Missing folders are made, or an error."""
        here = os.dup(self._base)
        try:
            for part in parts[:-1]:
                try:
                    below = open_folder(part, here)
                except FileNotFoundError:
                    if not make:
                        raise
                    os.mkdir(part, 0o755, dir_fd=here)
                    below = open_folder(part, here)
                except (NotADirectoryError, OSError) as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    what = f"lies below {part!r}, which is a link or a file"
                    raise BadInput(what, "/".join(parts), REPACK) from error
                os.close(here)
                here = below
            yield here, parts[-1]
        finally:
            os.close(here)


def _clear(parts: list[str], here: int, last: str) -> None:
    """Remove an earlier entry of this name: as in tar, the later one counts."""
    try:
        os.unlink(last, dir_fd=here)
    except FileNotFoundError:
        return
    except IsADirectoryError as error:
        raise BadInput("is a folder and something else at once", "/".join(parts), REPACK) from error


def _write(file: RawIOBase, chunk: bytes) -> None:
    if chunk.count(0) == len(chunk):
        file.seek(len(chunk), os.SEEK_CUR)
        return
    view = memoryview(chunk)
    while view:
        view = view[file.write(view) :]


def copy_folder(
    source: str | int,
    folder: str,
    limit: int,
    below: Sequence[str] = (),
    leave_out: bool = False,
    deadline: Deadline | None = None,
) -> None:
    """Copy a folder into an empty one with owners, modes, times and hard links, by the rules for archives.

    :param source: path or descriptor.
    :param limit: bytes that may be written.
    :param below: the folder in it that gets the files (as parts).
    :param leave_out: leave out what an image may not hold, instead of an error.
    :param deadline: None: the caller ends the copy.
    """
    first: dict[tuple[int, int], list[str]] = {}
    with reading(source, f"cannot be copied to {folder}"), Tree(folder, limit) as tree:
        for found, status, where in in_time(walk(source, leave_out), deadline):
            parts = [*below, *found]
            owner: dict[str, Any] = dict(uid=status.st_uid, gid=status.st_gid, mtime=status.st_mtime)
            mode = stat.S_IMODE(status.st_mode)
            inode = (status.st_dev, status.st_ino)
            if stat.S_ISDIR(status.st_mode):
                tree.place_folder(parts, mode, **owner)
            elif inode in first:
                tree.place_hard_link(parts, first[inode])
            elif stat.S_ISLNK(status.st_mode):
                tree.place_symlink(parts, os.readlink(found[-1], dir_fd=where), **owner)
            else:
                chunks = in_time(content_of(found, where, status), deadline)
                tree.place_file(parts, chunks, status.st_size, mode, **owner)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                first.setdefault(inode, parts)
        tree.finish()
