# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's own folder under the TFTP root: its kernel, its initrd and its boot entry, and nothing else.

A file appears whole or not at all, since a board may ask at any time. What stands in a boot entry is for the boot
drivers.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
from typing import Iterator

from ..core.errors import naming
from ..files.removal import remove_tree
from ..files.tree import CHUNK
from ..files.whole_file import write_whole

#: As whom in.tftpd reads (in.tftpd(8), --user), and the mode of a board's folder, which its group may enter.
SERVER, FOLDER_MODE = "nobody", 0o750
#: A boot entry is a few lines.
ENTRY_LIMIT = 1 << 16


class BoardFiles:
    """The files one board is served: <tftp root>/<ip>/.

    :param ip: the board's address; the TFTP server's map file leads each client to the folder of its own address.
    """

    def __init__(self, tftp_root: str, ip: str) -> None:
        self.folder = os.path.join(tftp_root, ip)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def exists(self) -> bool:
        return os.path.lexists(self.folder)

    def names(self) -> list[str]:
        """All files in the folder and below it, by their names from there, sorted; a link is a file."""
        with naming(self.folder):
            return sorted(_below(self.folder)) if os.path.isdir(self.folder) else []

    def size(self, name: str) -> int | None:
        """Size of a file in bytes, None where there is none."""
        path = self.path(name)
        return os.lstat(path).st_size if os.path.lexists(path) else None

    def same(self, name: str, source: str) -> bool:
        """Whether a file is there with just the content of `source`."""
        path = self.path(name)
        if os.path.islink(path) or not os.path.isfile(path):
            return False
        with naming(path):
            if os.path.samefile(path, source):
                return True
            return os.path.getsize(path) == os.path.getsize(source) and _equal(path, source)

    def place(self, name: str, source: str) -> None:
        """Put a file there: a hard link where the file systems are one, else a copy."""
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
        """Remove the folder with all in it."""
        remove_tree(self.folder)


def _below(folder: str) -> Iterator[str]:
    """Names of all files below a folder, as they are called from there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from (os.path.join(entry.name, name) for name in _below(entry.path))
            else:
                yield entry.name


def read_entry(path: str) -> str | None:
    """The text of a boot entry, None where there is none."""
    with naming(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(ENTRY_LIMIT)
        except FileNotFoundError:
            return None


def write_entry(path: str, text: str, mode: int = 0o644) -> None:
    """Put a boot entry there, whole, readable for the TFTP server."""
    with naming(path):
        _make_folder(os.path.dirname(path))
        write_whole(path, text, mode)


def remove_entry(path: str) -> None:
    """Remove a boot entry that may not be there."""
    with naming(path):
        _unlink(path)


def _make_folder(folder: str) -> None:
    """The server's own user must get in, whatever the umask here is."""
    if not os.path.isdir(folder):
        if not os.path.exists(os.path.dirname(folder)):
            _make_folder(os.path.dirname(folder))
        os.mkdir(folder)
        os.chmod(folder, 0o755)


def _close(folder: str) -> None:
    """Let the server in, and no other account of this machine: what a board is served may hold a key."""
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
