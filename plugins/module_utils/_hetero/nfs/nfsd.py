# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports by the kernel's NFS server, through exportfs(8) of nfs-utils.

Each board's export is a file of its own in /etc/exports.d, so that it survives anybody's `exportfs -r`. Its fsid is the
export's id, so that file handles stay valid on any kernel and after any restart. Boards mount the path itself, because
the server has no other names.
"""

from __future__ import annotations

import os
import re
from typing import Collection

from ..core.command import command
from ..core.errors import BadInput, HeteroError
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..files.whole_file import write_whole
from .exporter import Export, Exporter

FILES = "/etc/exports.d"
#: The number of threads that the server runs (nfsd(7)). It does not run if that is 0 or there is no such file.
THREADS = "/proc/fs/nfsd/threads"
#: sync: a write is on the disk when the board hears of it. no_subtree_check: a renamed file stays the same file.
OPTIONS = "rw,sync,no_root_squash,no_subtree_check,sec=sys,fsid={id}"
PREFIX, SUFFIX = "hetero-", ".exports"
#: A line of `exportfs -s`: path, client(options).
LINE = re.compile(r"(?P<path>/\S*)\s+(?P<client>[^\s(]+)\((?P<options>[^)]*)\)")
SET_UP = f"look at: systemctl status nfs-server; or run {play('proxy')}"


class Nfsd(Exporter):
    """The NFS server of this machine's kernel."""

    name = "nfsd"
    unit = "nfs-server"
    CLIENT = re.compile(r"\s([^\s(]+)\(")

    def add(self, export: Export) -> None:
        self._keep(export)
        found = self.get(export.id)
        if found == export:
            return
        if found is not None:
            self.remove(export.id)
        for client in export.clients:
            _exportfs("-o", OPTIONS.format(id=export.id), f"{client}:{export.path}")

    def remove(self, export_id: int) -> None:
        found = self.get(export_id)
        if found is not None:
            for client in found.clients:
                _exportfs("-u", f"{client}:{found.path}")

    def get(self, export_id: int) -> Export | None:
        return self.show().get(export_id)

    def show(self) -> dict[int, Export]:
        _running()
        found: dict[int, Export] = {}
        for line in _exportfs("-s").splitlines():
            match = LINE.fullmatch(line.strip())
            if not match:
                continue
            options = dict(option.partition("=")[::2] for option in match["options"].split(","))
            if not options.get("fsid", "").isdigit():
                continue
            number, path = int(options["fsid"]), match["path"]
            clients = found[number].clients if number in found else ()
            found[number] = Export(number, path, path, tuple(sorted((*clients, match["client"]))))
        return found

    def begin_with(self, exports: Collection[Export], run_folder: str) -> None:
        wanted = {os.path.basename(self.restore_file(export.pseudo)): export for export in exports}
        for name in os.listdir(FILES) if os.path.isdir(FILES) else []:
            if name.startswith(PREFIX) and name not in wanted:
                os.unlink(os.path.join(FILES, name))
        for export in exports:
            if not self.restorable(export):
                self._keep(export)

    def restore_file(self, pseudo: str) -> str:
        # …/roots/fs_N/root
        return os.path.join(FILES, f"{PREFIX}{os.path.basename(os.path.dirname(pseudo))}{SUFFIX}")

    def mounted_as(self, board_id: int, path: str) -> str:
        return path

    def text_of(self, export: Export) -> str:
        if re.search(r"[\s\"\\#:]", export.path):
            what = "may not hold blanks, quotes, backslashes, # or :"
            raise BadInput(what, export.path, "choose another state_folder")
        options = OPTIONS.format(id=export.id)
        return "".join(f"{export.path} {client}({options})\n" for client in export.clients)

    def _keep(self, export: Export) -> None:
        os.makedirs(FILES, mode=0o755, exist_ok=True)
        # exportfs reads only names that end with .exports
        write_whole(self.restore_file(export.pseudo), self.text_of(export))


def _running() -> None:
    try:
        with open(THREADS, encoding="ascii") as file:
            threads = int(file.read())
    except FileNotFoundError:
        threads = 0
    if not threads:
        raise HeteroError("the kernel's NFS server does not run", THIS_NODE, SET_UP)


def _exportfs(*arguments: str) -> str:
    try:
        return command(["exportfs", *arguments], "exportfs", "its reasons are in the journal: journalctl -u nfs-server")
    except HeteroError as error:
        what = f"exportfs {' '.join(arguments)} failed ({error.what})"
        raise HeteroError(what, THIS_NODE, error.remedy) from error
