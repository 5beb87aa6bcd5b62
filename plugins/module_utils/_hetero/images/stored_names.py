# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of a store's images: a file each, with the hash of the image that the name stands for."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator

from ..core.errors import TimedOut
from ..core.locks import holder_of, taken
from ..files.whole_file import write_whole
from ..site.image_names import HASH, NAME

if TYPE_CHECKING:
    from ..core.deadline import Deadline

#: The file of a name while its image is removed, which is locked (flock) as long: one that nobody has locked was left
#: by a removal that was killed, and its name stands.
LEAVING = ".{}.leaving"
ENTRY = re.compile(r"(?:\.(?P<left>.+)\.leaving|(?P<name>[^.].*))")


class StoredNames:
    """The names in a folder, which need not be there yet."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def all(self) -> dict[str, str]:
        """Return {name: hash} of all images."""
        if not os.path.isdir(self._folder):
            return {}
        entries = filter(None, map(ENTRY.fullmatch, os.listdir(self._folder)))
        names = {entry["left"] or entry["name"] for entry in entries}
        found = {name: self.read(name) for name in sorted(names) if NAME.fullmatch(name)}
        return {name: hash for name, hash in found.items() if hash}

    def path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def read(self, name: str) -> str | None:
        """Return the hash that a name stands for; None where there is none, or it cannot be read."""
        # the last one for a name that is put back between the two
        return self._read(self.path(name)) or self._read(self._aside(name), True) or self._read(self.path(name))

    def _read(self, path: str, aside: bool = False) -> str | None:
        try:
            with open(path, encoding="ascii", opener=_at_once) as file:
                if aside:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                hash = file.read(65).strip()
        except (OSError, UnicodeDecodeError):
            return None  # image_removal.foreign reports it
        return hash if HASH.fullmatch(hash) else None

    def unread(self) -> list[str]:
        """Return the files of names that cannot be read: nobody knows what these stand for."""
        entries = sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []
        names = [name for name in entries if NAME.fullmatch(name) and os.path.isfile(self.path(name))]
        return [self.path(name) for name in names if not self.read(name)]

    def _aside(self, name: str) -> str:
        return self.path(LEAVING.format(name))

    def write(self, name: str, hash: str) -> None:
        write_whole(self.path(name), f"{hash}\n")

    @contextmanager
    def leaving(self, name: str, deadline: Deadline) -> Iterator[None]:
        """Have nobody find a name in the block, and remove it at its end; it is put back where the block fails.

        :raises TimedOut: another process has the name's file locked until the deadline; the name stands.
        """
        path, aside = self.path(name), self._aside(name)
        with open(path, encoding="ascii", opener=_at_once) as file:
            if not taken(file.fileno(), deadline):
                what = f"is locked by {holder_of(file.fileno())}"
                raise TimedOut(what, path, "wait for it or end it, then run this again")
            os.rename(path, aside)
            try:
                yield
            except BaseException:
                os.rename(aside, path)
                raise
            os.unlink(aside)

    def put_back(self) -> None:
        """Put names back whose removal was killed. A name that somebody has given since stays."""
        for entry in filter(None, map(ENTRY.fullmatch, os.listdir(self._folder))):
            if entry["left"] and NAME.fullmatch(entry["left"]):
                if self._read(self.path(entry["left"])):
                    os.unlink(self.path(entry[0]))
                else:
                    os.rename(self.path(entry[0]), self.path(entry["left"]))


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting for a named pipe's writer."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
