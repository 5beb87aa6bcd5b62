# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of an NFS server to the rest: exports by id, each for one client. One server is one file behind it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Collection

from ..core.command import command
from ..core.errors import HeteroError
from ..files.whole_file import remove_left

#: Ports of which a board may have so many connections at a time only, all of them together (filter.nft.j2): the port
#: mapper's, NFS' own and mountd's.
PORTS = (111, 2049, 20048)
#: The connections of these ports with an address; nobody goes on by them.
LET_GO = ["ss", "--kill", "--no-header", "--tcp", "--numeric"]
LET_GO += [f"( {' or '.join(f'sport = :{port}' for port in PORTS)} )", "and", "dst"]


def let_go(address: str) -> None:
    """End a client's connections to the NFS server; where that fails they end in minutes, when nothing is heard."""
    with suppress(HeteroError):
        command([*LET_GO, address], "ss")


@dataclass(frozen=True)
class Export:
    """A folder given to clients: `pseudo` is the name they mount, `clients` their addresses."""

    id: int
    path: str
    pseudo: str
    clients: tuple[str, ...]


class Exporter(ABC):
    """An NFS server. What it says it exports is read from the server itself, never from a file.

    :param restore_folder: holds what brings the exports back when the server starts again, one file each.
    """

    name = ""
    #: Whether boards can keep access control lists on it.
    acls = True

    def __init__(self, restore_folder: str) -> None:
        self.restore_folder = restore_folder

    def mounted_as(self, board_id: int, path: str) -> str:
        """The name by which a board mounts its root, which lies at `path`; it goes into the boot entry."""
        return f"/tftpboot/fs_{board_id}"

    @abstractmethod
    def add(self, export: Export) -> None:
        """Export it now, and whenever the server starts again."""

    @abstractmethod
    def remove(self, export_id: int) -> None:
        """Stop that export now, which lets go of its files; one that is not there is no error."""

    @abstractmethod
    def get(self, export_id: int) -> Export | None:
        """The Export of that id as the server has it, or None."""

    @abstractmethod
    def show(self) -> dict[int, Export]:
        """{id: Export} of all that the server has."""

    @abstractmethod
    def begin_with(self, exports: Collection[Export], run_folder: str) -> None:
        """Have the server, which is about to start, export just these from its first answer on."""

    @abstractmethod
    def restore_file(self, pseudo: str) -> str:
        """The file that brings an export of that name back; it is removed last."""

    @abstractmethod
    def text_of(self, export: Export) -> str:
        """What stands in that file for this export; BadInput for a path that the server cannot be given."""

    def restorable(self, export: Export) -> bool:
        """Whether what brings this very export back is in place."""
        try:
            with open(self.restore_file(export.pseudo), encoding="utf-8") as file:
                return file.read() == self.text_of(export)
        except FileNotFoundError:
            return False

    def forget(self, pseudo: str) -> None:
        """Remove what brings an export back; nothing there is no error."""
        path = self.restore_file(pseudo)
        if os.path.isdir(os.path.dirname(path)):
            remove_left(path)
        if os.path.lexists(path):
            os.unlink(path)
