# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of an NFS server: exports by id, each for one client. Each server is one file that implements it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Collection, Pattern

from ..core.command import command
from ..core.errors import HeteroError
from ..files.plain_file import read_at
from ..files.whole_file import remove_left

#: Ports to which a board may have only so many connections at a time, all ports together (filter.nft.j2): of the port
#: mapper, NFS and mountd.
PORTS = (111, 2049, 20048)
#: Most bytes of an export's file.
MOST = 1 << 20
#: Ends all connections of these ports with an address.
LET_GO = ["ss", "--kill", "--no-header", "--tcp", "--numeric"]
LET_GO += [f"( {' or '.join(f'sport = :{port}' for port in PORTS)} )", "and", "dst"]


def let_go(address: str) -> None:
    """End a client's connections to the NFS server.

    If that fails, they end in minutes, when nothing is heard of the client.
    """
    with suppress(HeteroError):
        command([*LET_GO, address], "ss")


@dataclass(frozen=True)
class Export:
    """A folder given to clients. `pseudo` is the name that they mount, `clients` are their addresses."""

    id: int
    path: str
    pseudo: str
    clients: tuple[str, ...]


class Exporter(ABC):
    """An NFS server. Its exports are read from the server itself and never from a file.

    :param restore_folder: holds one file for each export, from which it comes back when the server starts again.
    """

    name = ""
    #: The systemd unit whose restart has `hetero restore` mount the roots and tell the server what to export.
    unit = ""
    #: Whether boards can use access control lists on it.
    acls = True
    #: Finds the client in the text of an export's file.
    CLIENT: Pattern[str]

    def __init__(self, restore_folder: str) -> None:
        self.restore_folder = restore_folder

    def mounted_as(self, board_id: int, path: str) -> str:
        """Return the name by which a board mounts its root at `path`. It goes into the boot entry."""
        return f"/tftpboot/fs_{board_id}"

    @abstractmethod
    def add(self, export: Export) -> None:
        """Export it now, and whenever the server starts again."""

    @abstractmethod
    def remove(self, export_id: int) -> None:
        """End the export now and let go of its files. A missing one is no error."""

    @abstractmethod
    def get(self, export_id: int) -> Export | None:
        """Return the export of that id as the server has it, or None."""

    @abstractmethod
    def show(self) -> dict[int, Export]:
        """Return {id: Export} of all exports that the server has."""

    @abstractmethod
    def begin_with(self, exports: Collection[Export], run_folder: str) -> None:
        """Have the server, which is about to start, give exactly these exports from its first answer on."""

    @abstractmethod
    def restore_file(self, pseudo: str) -> str:
        """Return the path of the file from which the export of that name comes back. It is removed last."""

    @abstractmethod
    def text_of(self, export: Export) -> str:
        """Return the text of that file for this export; raise BadInput for a path that the server cannot take."""

    def restorable(self, export: Export) -> bool:
        """Return whether this export's file is there as it should be."""
        try:
            found = read_at(self.restore_file(export.pseudo), MOST)
        except OSError:
            return False  # it is written anew, or that fails with the reason
        return found == self.text_of(export).encode()

    def client(self, pseudo: str) -> str | None:
        """Return the client that an export's file names; None where there is no such file, or none of ours."""
        try:
            found = self.CLIENT.search(read_at(self.restore_file(pseudo), MOST).decode(errors="replace"))
        except OSError:
            return None
        return found[1] if found else None

    def forget(self, pseudo: str) -> None:
        """Remove an export's file. A missing one is no error."""
        path = self.restore_file(pseudo)
        if os.path.isdir(os.path.dirname(path)):
            remove_left(path)
        if os.path.lexists(path):
            os.unlink(path)
