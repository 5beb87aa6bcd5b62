# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of an NFS server to the rest: exports by id, each for one client. One server is one file behind it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass

from ..command import command
from ..errors import HeteroError
from ..whole_file import remove_left

#: The server's connections with an address. Nobody goes on by them, and boards may have so many at a time only.
LET_GO = ["ss", "--kill", "--no-header", "--tcp", "--numeric", "( sport = :2049 or sport = :20048 )", "and", "dst"]


def let_go(address):
    """End a client's connections to the NFS server; where that fails they end in minutes, when nothing is heard."""
    with suppress(HeteroError):
        command([*LET_GO, address], "ss")


@dataclass(frozen=True)
class Export:
    """A folder given to clients: `pseudo` is the name they mount, `clients` their addresses."""

    id: int
    path: str
    pseudo: str
    clients: tuple


class Exporter(ABC):
    """An NFS server. What it says it exports is read from the server itself, never from a file.

    :param restore_folder: holds what brings the exports back when the server starts again, one file each.
    """

    name = ""
    #: Whether boards can keep access control lists on it.
    acls = True

    def __init__(self, restore_folder):
        self.restore_folder = restore_folder

    def mounted_as(self, board_id, path):
        """The name by which a board mounts its root, which lies at `path`; it goes into the boot entry."""
        return f"/tftpboot/fs_{board_id}"

    @abstractmethod
    def add(self, export):
        """Export it now, and whenever the server starts again."""

    @abstractmethod
    def remove(self, export_id):
        """Stop that export now, which lets go of its files; one that is not there is no error."""

    @abstractmethod
    def get(self, export_id):
        """The Export of that id as the server has it, or None."""

    @abstractmethod
    def show(self):
        """{id: Export} of all that the server has."""

    @abstractmethod
    def begin_with(self, exports, run_folder):
        """Have the server, which is about to start, export just these from its first answer on."""

    @abstractmethod
    def restore_file(self, pseudo):
        """The file that brings an export of that name back; it is removed last."""

    @abstractmethod
    def text_of(self, export):
        """What stands in that file for this export; BadInput for a path that the server cannot be given."""

    def restorable(self, export):
        """Whether what brings this very export back is in place."""
        try:
            with open(self.restore_file(export.pseudo), encoding="utf-8") as file:
                return file.read() == self.text_of(export)
        except FileNotFoundError:
            return False

    def forget(self, pseudo):
        """Remove what brings an export back; nothing there is no error."""
        path = self.restore_file(pseudo)
        if os.path.isdir(os.path.dirname(path)):
            remove_left(path)
        if os.path.lexists(path):
            os.unlink(path)
