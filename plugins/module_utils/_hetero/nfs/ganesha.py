# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports by nfs-ganesha through its DBus interface org.ganesha.nfsd.exportmgr (checked with 4.3, Debian 12).

The set-up role writes ganesha's own configuration, which includes the file START; that is written anew before each
start. Nothing reloads the server: at SIGHUP it drops all exports that are not in that file.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Collection

from ..core.command import command
from ..core.errors import BadInput, HeteroError, TimedOut
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..files.whole_file import write_whole
from .exporter import Export, Exporter

#: Seconds that busctl waits for an answer (they take 3 to 17 ms).
ANSWER_TIME = 10
CALL = [
    "busctl",
    "--system",
    "--json=short",
    f"--timeout={ANSWER_TIME}",
    "call",
    "org.ganesha.nfsd",
    "/org/ganesha/nfsd/ExportMgr",
    "org.ganesha.nfsd.exportmgr",
]
#: File in the run folder with the exports that the server starts with.
START = "exports.conf"
SILENT = "nfs-ganesha does not answer on DBus"
SET_UP = f"look at: systemctl status dbus nfs-ganesha; or run {play('proxy')}"
#: Words of busctl if nobody answers, or nobody in time.
NO_ANSWER = ("was not provided by any", "Failed to connect to bus", "timed out", "Could not activate remote peer")
#: ganesha's words for an unknown id.
NO_SUCH_ID = "Export id not found"

# Attr_Expiration_Time: boards must see at once what the proxy changes in a root. Access_Type None: for all but the
# client. Protocols: with NFSv4 the server would keep a descriptor for each file that a client says it has open.
TEXT = """EXPORT {{
  Export_Id = {id};
  Path = "{path}";
  Pseudo = "{pseudo}";
  Attr_Expiration_Time = 0;
  Access_Type = None;
  Squash = no_root_squash;
  Protocols = 3;
  SecType = sys;
  FSAL {{ Name = VFS; }}
  CLIENT {{ Clients = {clients}; Access_Type = RW; }}
}}
"""


class Ganesha(Exporter):
    """nfs-ganesha on the system bus of this machine."""

    name = "ganesha"
    unit = "nfs-ganesha"
    # It answers NFSv3's access control lists (NFSACL) with an I/O error, which makes cp -p, cp -a and install fail.
    acls = False
    CLIENT = re.compile(r"Clients = ([^,;\s]+)")

    def add(self, export: Export) -> None:
        path = self._keep(export)
        found = self.get(export.id)
        if found == export:
            return
        if found is not None:
            _call("RemoveExport", "q", str(export.id))
        _call("AddExport", "ss", path, f"EXPORT(Export_Id={export.id})")

    def remove(self, export_id: int) -> None:
        if self.get(export_id) is not None:
            _call("RemoveExport", "q", str(export_id))

    def get(self, export_id: int) -> Export | None:
        try:
            number, path, pseudo, tag, clients = _call("DisplayExport", "q", str(export_id))[:5]
        except HeteroError as error:
            if NO_SUCH_ID in error.what:
                return None
            raise
        return Export(number, path, pseudo, tuple(_address(client[0]) for client in clients))

    def show(self) -> dict[int, Export]:
        # [time, [[id, pseudo path, protocols, time], …]]; id 0 is the pseudo file system's own root.
        found = (self.get(entry[0]) for entry in _call("ShowExports")[1] if entry[0] != 0)
        return {export.id: export for export in found if export is not None}

    def begin_with(self, exports: Collection[Export], run_folder: str) -> None:
        for export in exports:
            if not self.restorable(export):  # an older release wrote another file
                self._keep(export)
        os.makedirs(run_folder, mode=0o700, exist_ok=True)
        write_whole(os.path.join(run_folder, START), "".join(self.text_of(export) for export in exports))

    def restore_file(self, pseudo: str) -> str:
        return os.path.join(self.restore_folder, f"{os.path.basename(pseudo)}.conf")

    def text_of(self, export: Export) -> str:
        if '"' in export.path or "\n" in export.path:
            raise BadInput("may not hold quotes or line breaks", export.path, "choose another state_folder")
        return TEXT.format(id=export.id, path=export.path, pseudo=export.pseudo, clients=", ".join(export.clients))

    def _keep(self, export: Export) -> str:
        os.makedirs(self.restore_folder, mode=0o700, exist_ok=True)
        path = self.restore_file(export.pseudo)
        write_whole(path, self.text_of(export))
        return path


def _address(text: str) -> str:
    """Return a client's address. ganesha shows a single address as a network of 32 bits."""
    address, slash, bits = text.partition("/")
    return address if bits in ("", "128" if ":" in address else "32") else text


def _call(method: str, *arguments: str) -> list[Any]:
    """Call a method of ganesha's export manager and return its answer."""
    try:
        answer = command([*CALL, method, *arguments], "nfs-ganesha", timeout=ANSWER_TIME + 5.0)
    except TimedOut as error:
        raise TimedOut(f"{SILENT} ({error.what})", THIS_NODE, SET_UP) from error
    except HeteroError as error:
        said = error.what.partition(" and said: ")[2] or error.what
        if any(text in said for text in NO_ANSWER):
            raise HeteroError(f"{SILENT} ({said})", THIS_NODE, SET_UP) from error
        remedy = "its reasons are in /var/log/ganesha/ganesha.log"
        what = f"nfs-ganesha refused {method} {' '.join(arguments)} ({said})"
        raise HeteroError(what, THIS_NODE, remedy) from error
    return json.loads(answer)["data"] if answer.strip() else []
