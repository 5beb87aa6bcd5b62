# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files that somebody else named into a tree below one folder, which no name and no link in it leads out of.

This file knows which kinds of files an image may hold, and copies and hashes folders by the same rules.
images/archive.py reads tar files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence

from ..core.errors import BadInput, HeteroError
from .removal import remove_tree

if TYPE_CHECKING:
    from io import RawIOBase

#: Bytes that are moved at once.
CHUNK = 1 << 20
#: The part of an image whose links are followed, and only by a board inside its root; never on the proxy.
ROOT = "root"
#: Kinds of files that an image may not hold.
REFUSED_KINDS = {
    stat.S_IFCHR: "device node",
    stat.S_IFBLK: "device node",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
}
#: `docker save` of releases before 25 packs a layer that it has packed already as a link to that one.
LAYER, SAME_LAYER = re.compile(r"[0-9a-f]{64}/layer\.tar"), re.compile(r"\.\./[0-9a-f]{64}/layer\.tar")
REPACK = "leave it out (tar --exclude=…; a board makes its own /dev)"
#: Errors that come from a name or a number and not from the disk.
NAME_ERRORS = (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.EMLINK)
#: Bytes of the longest name with its folders: the longest path (linux/limits.h: PATH_MAX) less a root's own path.
LONGEST = 4096 - 256
TOO_LONG = "has a name longer than a path can be"
FLATTEN = "pack it with fewer folders in each other"
MOVED, LEAVE_IT = "was moved while it was read", "import it when nothing writes to it"
#: Flags by which files are opened for reading: through no link, and without waiting for a named pipe's writer.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
            folder = _open_folder(last, here)
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
                    below = _open_folder(part, here)
                except FileNotFoundError:
                    if not make:
                        raise
                    os.mkdir(part, 0o755, dir_fd=here)
                    below = _open_folder(part, here)
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


def _open_folder(part: str, where: int) -> int:
    return os.open(part, FOLDER, dir_fd=where)


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


def walk(folder: str | int, leave_out: bool = False) -> Iterator[tuple[list[str], os.stat_result, int]]:
    """Yield (parts, stat, descriptor of the folder that holds it) of all below a folder, always in the same order.

    The walk goes down and up by two descriptors, so that it follows no link that is put in the place of a folder, and
    works at any depth. A descriptor is valid until the next item.

    :param folder: path or descriptor.
    :param leave_out: leave out what an image may not hold.
    :raises BadInput: the folder holds what an image may not hold.
    """
    here = os.open(".", FOLDER, dir_fd=folder) if isinstance(folder, int) else os.open(folder, FOLDER)
    try:
        parts, length, above = [], 0, []
        status = top = os.fstat(here)
        yield [], status, here
        left = _names(here)
        while True:
            if left:
                name = left.pop()
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                kind = stat.S_IFMT(status.st_mode)
                if kind in REFUSED_KINDS:
                    if leave_out:
                        continue
                    what = f"is a {REFUSED_KINDS[kind]}"
                    raise BadInput(what, "/".join([*parts, name]), "leave it out (a board makes its own /dev)")
                if length + len(os.fsencode(name)) > LONGEST:
                    raise BadInput(TOO_LONG, "/".join([*parts, name]), FLATTEN)
                yield [*parts, name], status, here
                if not stat.S_ISDIR(kind):
                    continue
                here = _step(name, here)
                parts.append(name)
                length += len(os.fsencode(name)) + 1
                above.append((status, left))
                left = _names(here)
                if status.st_dev != top.st_dev:
                    raise BadInput("is another file system, mounted there", "/".join(parts), "unmount it, or import it")
            elif above:
                here = _step("..", here)
                _status, left = above.pop()
                length -= len(os.fsencode(parts.pop())) + 1
                status = above[-1][0] if above else top
            else:
                return
            if not os.path.samestat(os.fstat(here), status):
                raise BadInput(MOVED, "/".join(parts), LEAVE_IT)
    finally:
        os.close(here)


def _step(part: str, here: int) -> int:
    """Open a folder of this name and close the one that it is in."""
    there = _open_folder(part, here)
    os.close(here)
    return there


def _names(folder: int) -> list[str]:
    """Return the names in a folder, sorted backwards."""
    return sorted(os.listdir(folder), reverse=True)


def _content(parts: list[str], where: int, status: os.stat_result) -> Iterator[bytes]:
    """Yield the bytes of a file that the walk reached."""
    file = os.open(parts[-1], FILE, dir_fd=where)
    try:
        if not os.path.samestat(os.fstat(file), status):
            raise BadInput(MOVED, "/".join(parts), LEAVE_IT)
        yield from _chunks(file)
    finally:
        os.close(file)


def _chunks(file: int) -> Iterator[bytes]:
    """Yield the bytes of an open file from its beginning."""
    os.lseek(file, 0, os.SEEK_SET)
    chunk = os.read(file, CHUNK)
    while chunk:
        yield chunk
        chunk = os.read(file, CHUNK)


def file_hash(path: str | int, name: str | None = None) -> str:
    """Return the sha256 of a file in hex. `path` is its path, or a descriptor of a file that errors call `name`."""
    digest = hashlib.sha256()
    try:
        file = os.dup(path) if isinstance(path, int) else os.open(path, FILE)
        try:
            for chunk in _chunks(file):
                digest.update(chunk)
        finally:
            os.close(file)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", name or str(path), "check the path") from error
    return digest.hexdigest()


def folder_hash(folder: str | int) -> str:
    """Return the sha256 over a folder's names, modes, owners and contents in hex; times and the folder itself do not
    count.

    :param folder: path or descriptor.
    """
    digest = hashlib.sha256()
    with _reading(folder):
        for parts, status, where in walk(folder):
            if not parts:
                continue
            content = ""
            if stat.S_ISREG(status.st_mode):
                of_file = hashlib.sha256()
                for chunk in _content(parts, where, status):
                    of_file.update(chunk)
                content = of_file.hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(parts[-1], dir_fd=where)
            fields = ("/".join(parts), f"{status.st_mode:o}", str(status.st_uid), str(status.st_gid), content)
            digest.update(b"\0".join(os.fsencode(field) for field in fields) + b"\0\n")
    return digest.hexdigest()


def copy_folder(source: str | int, folder: str, limit: int, below: Sequence[str] = (), leave_out: bool = False) -> None:
    """Copy a folder into an empty one with owners, modes, times and hard links, by the rules for archives.

    :param source: path or descriptor.
    :param limit: bytes that may be written.
    :param below: the folder in it that gets the files (as parts).
    :param leave_out: leave out what an image may not hold, instead of an error.
    """
    first: dict[tuple[int, int], list[str]] = {}
    with _reading(source, f"cannot be copied to {folder}"), Tree(folder, limit) as tree:
        for found, status, where in walk(source, leave_out):
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
                tree.place_file(parts, _content(found, where, status), status.st_size, mode, **owner)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                first.setdefault(inode, parts)
        tree.finish()


@contextmanager
def _reading(folder: str | int, what: str = "cannot be read") -> Iterator[None]:
    """Raise errors of the block with the path of the file in the folder that they are about.

    :param folder: path or descriptor.
    """
    path = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) else folder
    try:
        yield
    except BadInput as error:
        raise BadInput(error.what, os.path.join(path, error.thing or ""), error.remedy) from error
    except OSError as error:
        remedy = "check space and permissions there (owners need root)"
        raise HeteroError(f"{what} ({error.strerror or error})", path, remedy) from error
