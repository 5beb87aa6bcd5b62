# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a folder with all below it, through no link, whatever is put into the place of a folder or file meanwhile; and
hash folders and files. tree.py writes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import Iterable, Iterator, TypeVar

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError, TimedOut

#: Bytes that are moved at once.
CHUNK = 1 << 20
#: Kinds of files that an image may not hold.
REFUSED_KINDS = {
    stat.S_IFCHR: "device node",
    stat.S_IFBLK: "device node",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
}
#: Bytes of the longest name with its folders: the longest path (linux/limits.h: PATH_MAX) less a root's own path.
LONGEST = 4096 - 256
TOO_LONG = "has a name longer than a path can be"
FLATTEN = "pack it with fewer folders in each other"
MOVED, LEAVE_IT = "was moved while it was read", "import it when nothing writes to it"
#: What a person does where reading was over time.
RAISE = "raise timeout"
#: Flags by which files are opened for reading: through no link, and without waiting for a named pipe's writer.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Item = TypeVar("Item")


def in_time(items: Iterable[Item], deadline: Deadline | None, thing: str | None = None) -> Iterator[Item]:
    """Yield what is read; raise TimedOut, with `thing`, once a deadline has passed."""
    for item in items:
        if deadline is not None:
            check_time(deadline, thing)
        yield item


def check_time(deadline: Deadline, thing: str | None = None) -> None:
    """Raise TimedOut if a deadline has passed for what is read."""
    if deadline.passed:
        raise TimedOut(f"not read within {deadline.seconds:g} s", thing, RAISE)


def open_folder(part: str, where: int) -> int:
    """Return a descriptor of a folder in the folder of descriptor `where`; it follows no link."""
    return os.open(part, FOLDER, dir_fd=where)


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
    there = open_folder(part, here)
    os.close(here)
    return there


def _names(folder: int) -> list[str]:
    """Return the names in a folder, sorted backwards."""
    return sorted(os.listdir(folder), reverse=True)


def content_of(parts: list[str], where: int, status: os.stat_result) -> Iterator[bytes]:
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


def file_hash(path: str | int, deadline: Deadline, name: str | None = None) -> str:
    """Return the sha256 of a file in hex. `path` is its path, or a descriptor of a file that errors call `name`."""
    thing = name or str(path)
    digest = hashlib.sha256()
    try:
        file = os.dup(path) if isinstance(path, int) else os.open(path, FILE)
        try:
            for chunk in in_time(_chunks(file), deadline, thing):
                digest.update(chunk)
        finally:
            os.close(file)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", thing, "check the path") from error
    return digest.hexdigest()


def folder_hash(folder: str | int, deadline: Deadline) -> str:
    """Return the sha256 over a folder's names, modes, owners and contents in hex; times and the folder itself do not
    count.

    :param folder: path or descriptor.
    """
    digest = hashlib.sha256()
    with reading(folder):
        for parts, status, where in in_time(walk(folder), deadline):
            if not parts:
                continue
            content = ""
            if stat.S_ISREG(status.st_mode):
                of_file = hashlib.sha256()
                for chunk in in_time(content_of(parts, where, status), deadline):
                    of_file.update(chunk)
                content = of_file.hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(parts[-1], dir_fd=where)
            fields = ("/".join(parts), f"{status.st_mode:o}", str(status.st_uid), str(status.st_gid), content)
            digest.update(b"\0".join(os.fsencode(field) for field in fields) + b"\0\n")
    return digest.hexdigest()


@contextmanager
def reading(folder: str | int, what: str = "cannot be read") -> Iterator[None]:
    """Raise errors of the block with the path of the file in the folder that they are about.

    :param folder: path or descriptor.
    """
    path = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) else folder
    try:
        yield
    except (BadInput, TimedOut) as error:
        thing = os.path.join(path, error.thing) if error.thing else path
        raise type(error)(error.what, thing, error.remedy) from error
    except OSError as error:
        remedy = "check space and permissions there (owners need root)"
        raise HeteroError(f"{what} ({error.strerror or error})", path, remedy) from error
