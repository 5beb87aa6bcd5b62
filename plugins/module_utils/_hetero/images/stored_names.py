# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of a store's images: a file each, with the hash of the image that the name stands for."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator

from ..files.whole_file import write_whole
from ..site.image_names import HASH, NAME

#: What the file of a name ends with, with a dot before it, while its image is removed.
LEAVING = ".leaving"


class StoredNames:
    """The names in a folder, which need not be there yet."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def all(self) -> dict[str, str]:
        """Return {name: hash} of all images."""
        if not os.path.isdir(self._folder):
            return {}
        found = {name: self.read(name) for name in sorted(os.listdir(self._folder)) if NAME.fullmatch(name)}
        return {name: hash for name, hash in found.items() if hash}

    def path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def read(self, name: str) -> str | None:
        """Return the hash that a name stands for; None where there is none, or it cannot be read."""
        try:
            with open(self.path(name), encoding="ascii", opener=_at_once) as file:
                hash = file.read(65).strip()
        except (OSError, UnicodeDecodeError):
            return None  # image_removal.foreign reports it
        return hash if HASH.fullmatch(hash) else None

    def write(self, name: str, hash: str) -> None:
        write_whole(self.path(name), f"{hash}\n")

    @contextmanager
    def leaving(self, name: str) -> Iterator[None]:
        """Have nobody find a name in the block, and remove it at its end; it is put back where the block fails."""
        aside = self.path(f".{name}{LEAVING}")
        os.rename(self.path(name), aside)
        try:
            yield
        except BaseException:
            os.rename(aside, self.path(name))
            raise
        os.unlink(aside)

    def put_back(self) -> None:
        """Put names back whose removal was killed."""
        for entry in os.listdir(self._folder):
            name = entry[1 : -len(LEAVING)]
            if entry == f".{name}{LEAVING}" and NAME.fullmatch(name):
                os.rename(self.path(entry), self.path(name))


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting for a named pipe's writer."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
