# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much disk space the roots of a proxy may take: the size of each, what all are promised, and what there is.

A root's file is sparse, so its size is a promise. If more is promised than there is (over-commit, an operator's
choice), a full disk stops all roots and the proxy's database.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator

from ..core.errors import BadInput, Refused
from ..files.paths import existing
from ..site.instance import size_text as shown
from ..site.state_folder import OLDER, ROOT_FILE, ROOTS
from .capacity import GIB, Promises, root_size

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import ProxyNode

#: Bytes of the state folder's file system that are kept for the database and for an import.
SPARE = 1 * GIB
#: In the state folder: the file system that roots of older releases share.
SHARED = f"{OLDER}.ext4"


def size_of(proxy: ProxyNode, board: Board, flavor: dict[str, Any]) -> int:
    """Return the bytes of a root: local_gb of its flavor, else of its board, else the proxy's root_gb."""
    return root_size(flavor, board.local_gb, proxy.config.root_gb)


class Room:
    """The room for the roots of one proxy.

    :param state: path of the state folder.
    :param overcommit: how many times the existing space may be promised.
    """

    def __init__(self, state: str, overcommit: float = 1.0) -> None:
        self.state = state
        self.overcommit = overcommit

    @property
    def fields(self) -> dict[str, Any]:
        """Bytes that are promised, that there are for roots, and that roots take; and the overcommit."""
        promised, taken = self._roots()
        free = os.statvfs(existing(self.state))
        there = max(0, free.f_bavail * free.f_frsize + taken - SPARE)
        return dict(promised=promised, there=there, taken=taken, overcommit=self.overcommit)

    @property
    def promises(self) -> Promises:
        """Return the Promises, which tell how much space may still be promised to roots."""
        fields = self.fields
        return Promises(fields["promised"], fields["there"], self.overcommit)

    @property
    def open_promise(self) -> int:
        """Bytes that roots are promised and do not take yet."""
        promised, taken = self._roots()
        return max(0, promised - taken)

    def check(self, size: int, instead: str | None = None) -> None:
        """Raise Refused if a root of that size would promise too much.

        :param instead: path of the file of a root that will be removed.
        """
        promises = self.promises
        promises.take(-os.path.getsize(instead) if instead and os.path.exists(instead) else 0)
        if not promises.fits(size):
            thing = f"{os.path.join(self.state, ROOTS)} of {os.uname().nodename}"
            raise Refused(promises.why(size), thing, promises.remedy(size))

    def take(self, path: str, size: int) -> None:
        """Make a sparse file of that size if there is room for it.

        Callers at the same time are counted one after another.
        """
        with self._locked():
            self.check(size)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                try:
                    file.truncate(size)
                except OSError as error:
                    if error.errno not in (errno.EFBIG, errno.EINVAL):
                        raise
                    what = f"no file of {shown(size)} can be made there"
                    raise BadInput(what, path, "take a flavor with less local_gb") from error

    def _roots(self) -> tuple[int, int]:
        """Return (bytes that the files of roots may take, bytes that they take)."""
        folder, promised, taken = os.path.join(self.state, ROOTS), 0, 0
        paths = [os.path.join(folder, name, ROOT_FILE) for name in os.listdir(folder)] if os.path.isdir(folder) else []
        for path in [*paths, os.path.join(self.state, SHARED)]:
            try:
                status = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            promised += status.st_size
            taken += status.st_blocks * 512
        return promised, taken

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(os.path.join(self.state, ROOTS, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # held for one look and one empty file
            yield
        finally:
            os.close(lock)


def room_of(proxy: ProxyNode) -> Room:
    """Return the room of a proxy."""
    return Room(proxy.config.state_folder, proxy.config.roots_overcommit)
