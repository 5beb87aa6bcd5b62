# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a running container, from the host's side: no link that its root made leads out of it.

Paths are the container's. device_nodes.py knows what is put there.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Sequence, Tuple

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import HeteroError
from . import kernel

if TYPE_CHECKING:
    from typing import Self

    from .liblxc import Container

#: Seconds for a child that finds a folder if the kernel cannot (openat2 came with Linux 5.6), or could not just now.
FIND_TIME = 5.0
#: Errors of a path that leads to no folder, whatever links the container's root put there.
NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
GONE = "start it, or see why it ended"


#: Descriptor of a folder, and a name in it.
Place = Tuple[int, str]


class ContainerRoot:
    """The root of a running container, kept open; a context manager.

    It is for a child that is ended at a time limit, for a file system of the container's own may never answer. Who asks
    such a one cannot be ended. So one asks at a time, and who comes after it waits for its lock instead, and can be.
    """

    def __init__(self, container: Container, pid: int | None = None) -> None:
        self.thing = container.thing
        self._container = container  # whose configuration may be gone, which is no matter to who only looks
        self.pid = pid or container.init_pid
        if self.pid is None:
            raise HeteroError("does not run", self.thing, GONE)
        try:
            # which no account can open, and all who look here have the same of
            self._turn = os.open(f"/proc/{self.pid}/fd", os.O_RDONLY | os.O_DIRECTORY)
            self._root = os.open(f"/proc/{self.pid}/root", os.O_PATH | os.O_DIRECTORY)
        except OSError as error:
            raise HeteroError("has ended just now", self.thing, GONE) from error
        fcntl.flock(self._turn, fcntl.LOCK_EX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._root)
        os.close(self._turn)

    @contextmanager
    def folder(self, path: str, make: bool = False) -> Iterator[Place | None]:
        """Yield (descriptor of the folder that holds `path`, its last part), or None if there is no such folder.

        :param make: make missing folders, as the container's root.
        """
        parts = [part for part in path.split("/") if part]
        found = self._open("/".join(parts[:-1]) or "/")
        if found is None and make:
            for depth in range(1, len(parts)):
                self._make(parts[:depth])
            found = self._open("/".join(parts[:-1]))
        try:
            yield (found, parts[-1]) if found is not None else None
        finally:
            if found is not None:
                os.close(found)

    @contextmanager
    def as_owner(self) -> Iterator[None]:
        """Make files as the container's root. This machine's root may be no user in the container (EOVERFLOW)."""
        kernel.act_as(*self._container.root_owner)
        try:
            yield
        finally:
            kernel.act_as(0, 0)

    def _make(self, parts: Sequence[str]) -> None:
        found = self._open("/".join(parts))
        if found is not None:
            os.close(found)
            return
        above = self._open("/".join(parts[:-1]) or "/")
        if above is None:
            raise HeteroError(f"/{'/'.join(parts[:-1])} is no folder in it", self.thing, "take away what is there")
        try:
            with self.as_owner():
                os.mkdir(parts[-1], 0o755, dir_fd=above)
        except FileExistsError as error:
            raise HeteroError(
                f"/{'/'.join(parts)} is no folder in it", self.thing, "take away what is there"
            ) from error
        finally:
            os.close(above)

    def _open(self, path: str) -> int | None:
        flags = os.O_PATH | os.O_DIRECTORY
        try:
            return kernel.open_in_root(self._root, path, flags)
        except OSError as error:
            # EAGAIN: a path with ".." while something on this machine was renamed or mounted (openat2(2))
            if error.errno in (errno.ENOSYS, errno.EAGAIN):
                return self._open_by_child(path, flags)
            if error.errno in NO_FOLDER:
                return None
            raise

    def _open_by_child(self, path: str, flags: int) -> int | None:
        """Open a path by a child with the container's root, which passes the descriptor on; for kernels before 5.6."""
        ours, its = socket.socketpair()

        def find() -> bool:
            os.fchdir(self._root)
            os.chroot(".")
            try:
                found = os.open(f"/{path}", flags | os.O_CLOEXEC)
            except OSError:
                return False
            its.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [found]))])
            return True

        with ours, its:
            if not in_child(find, Deadline(FIND_TIME), self.thing, "see its files"):
                return None
            data = ours.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)[1][0][2]
        return array.array("i", data)[0]
