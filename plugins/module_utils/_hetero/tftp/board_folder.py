# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's folder under the TFTP root, with its kernel, its initrd and its boot entry.

A file appears completely or not at all, because a board may ask at any time. The boot drivers know what is in a boot
entry. Links to what an administrator put into the TFTP root by hand are no files of the board; by_hand.py makes them.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
from contextlib import suppress
from typing import Iterator

from ..core.errors import naming
from ..files.removal import remove_tree
from ..files.walk import CHUNK
from ..files.whole_file import write_whole

#: The user of in.tftpd (in.tftpd(8), --user), and the mode of a board's folder, which that user's group may enter.
SERVER, FOLDER_MODE = "nobody", 0o750
#: Where a link to a file that was put into the TFTP root by hand leads. The server changes its root to the TFTP root
#: (--secure), so that no link leads out of that.
UP = "../{name}"
#: Bytes of a boot entry that are read; it has a few lines.
ENTRY_LIMIT = 1 << 16


class BoardFiles:
    """The files that one board is served: <tftp root>/<ip>/.

    :param ip: the board's address. The TFTP server's map file leads each client to the folder of its own address.
    """

    def __init__(self, tftp_root: str, ip: str) -> None:
        self.folder = os.path.join(tftp_root, ip)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def exists(self) -> bool:
        """Return whether the folder is there, and not only for links to files that were put there by hand."""
        return os.path.lexists(self.folder) and (bool(self.names()) or not self.by_hand())

    def names(self) -> list[str]:
        """Return the paths of all files from the folder on, sorted. A link counts as a file, but for those of by_hand.
        """
        return sorted(set(self._names()) - set(self.by_hand()))

    def by_hand(self) -> list[str]:
        """Return the names of the links that lead to files of these names in the TFTP root, sorted."""
        return sorted(name for name in self._names() if os.path.dirname(name) == "" and self._leads_up(name))

    def lead_to(self, name: str) -> None:
        """Have the board get the file of this name in the TFTP root, if it has none of its own."""
        path = self.path(name)
        with naming(path):
            _make_folder(self.folder)
            _close(self.folder)
            with suppress(FileExistsError):
                os.symlink(UP.format(name=name), path)

    def lead_no_more(self, name: str) -> None:
        """Remove the link that lead_to makes, and the folder with the last link. A file of the board's own stays."""
        if self._leads_up(name):
            with naming(self.path(name)):
                _unlink(self.path(name))
            self.remove_empty()

    def is_empty(self) -> bool:
        """Return whether the folder is there and has nothing in it."""
        with naming(self.folder):
            return os.path.isdir(self.folder) and not os.path.islink(self.folder) and not os.listdir(self.folder)

    def remove_empty(self) -> None:
        """Remove the folder if it has nothing in it: who removed the last of its files was cut off."""
        if self.is_empty():
            with naming(self.folder):
                os.rmdir(self.folder)

    def _names(self) -> list[str]:
        with naming(self.folder):
            return list(_below(self.folder)) if os.path.isdir(self.folder) else []

    def _leads_up(self, name: str) -> bool:
        path = self.path(name)
        return os.path.islink(path) and os.readlink(path) == UP.format(name=name)

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if there is none."""
        path = self.path(name)
        return os.lstat(path).st_size if os.path.lexists(path) else None

    def same(self, name: str, source: str) -> bool:
        """Return whether the file exists with the same content as `source`."""
        path = self.path(name)
        if os.path.islink(path) or not os.path.isfile(path):
            return False
        with naming(path):
            if os.path.samefile(path, source):
                return True
            return os.path.getsize(path) == os.path.getsize(source) and _equal(path, source)

    def place(self, name: str, source: str) -> None:
        """Put a file there: as a hard link if it is on the same file system, else as a copy."""
        path, new = self.path(name), self.path(f".{name}.new")
        with naming(path):
            _make_folder(self.folder)
            _close(self.folder)
            _unlink(new)
            try:
                os.link(source, new)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
                    raise
                shutil.copyfile(source, new)
                os.chmod(new, 0o444)
                _sync(new)
            if os.path.lexists(path) and os.path.samestat(os.lstat(new), os.lstat(path)):
                # rename(2) of two links to one file does nothing.
                _unlink(new)
            else:
                os.replace(new, path)

    def drop(self, name: str) -> None:
        with naming(self.path(name)):
            _unlink(self.path(name))

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        remove_tree(self.folder)


def _below(folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder, from the folder on."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from (os.path.join(entry.name, name) for name in _below(entry.path))
            else:
                yield entry.name


def read_entry(path: str) -> str | None:
    """Return the text of a boot entry, or None if there is none."""
    with naming(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(ENTRY_LIMIT)
        except FileNotFoundError:
            return None


def write_entry(path: str, text: str, mode: int = 0o644) -> None:
    """Write a boot entry in one step."""
    with naming(path):
        _make_folder(os.path.dirname(path))
        write_whole(path, text, mode)


def remove_entry(path: str) -> None:
    """Remove a boot entry. A missing one is no error."""
    with naming(path):
        _unlink(path)


def _make_folder(folder: str) -> None:
    """Make a folder that the server's user may enter, whatever this process's umask is."""
    if not os.path.isdir(folder):
        if not os.path.exists(os.path.dirname(folder)):
            _make_folder(os.path.dirname(folder))
        os.mkdir(folder)
        os.chmod(folder, 0o755)


def _close(folder: str) -> None:
    """Let only the server and root in: what a board is served may hold a key."""
    if os.geteuid() == 0 and stat.S_IMODE(os.stat(folder).st_mode) != FOLDER_MODE:
        os.chown(folder, 0, pwd.getpwnam(SERVER).pw_gid)
        os.chmod(folder, FOLDER_MODE)


def _equal(one: str, other: str) -> bool:
    with open(one, "rb") as first, open(other, "rb") as second:
        while True:
            left, right = first.read(CHUNK), second.read(CHUNK)
            if left != right:
                return False
            if not left:
                return True


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
