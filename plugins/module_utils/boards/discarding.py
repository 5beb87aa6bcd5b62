# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots and exports of boards that are gone for good, removed by an operator's word: no verb reaches them any more.

Only of a board that the boards file does not name and of which there is neither claim nor record.
"""

from __future__ import annotations

import os
import re

from ..deadline import Deadline
from ..errors import BadInput, HeteroError, Refused
from ..images.disk_files import DiskFiles
from ..images.exports import exporter
from ..images.provision import UNMOUNT_TIME
from ..images.roots import Root
from ..locks import lock

VERB = "reconcile"
NAME = re.compile(r"board(0|[1-9][0-9]*)")


def discard(proxy, names, change, deadline):
    """Remove what lies here of these boards; those of which there was something.

    :param names: such as board7.
    :raises BadInput: a name is none of a board.
    :raises Refused: the board may be somebody's; nothing of it is touched.
    """
    return [name for name in names if _discard(proxy, name, change, deadline)]


def _discard(proxy, name, change, deadline):
    number = NAME.fullmatch(name)
    if number is None:
        raise BadInput("is no name of a board", f"remove={name}", "give names such as board7")
    board = int(number[1])
    if board in proxy.boards:
        remedy = "terminate the instance that has it; module board_image with state=absent cleans one that nobody has"
        raise Refused("is in the boards file: nothing is removed", name, remedy)
    if change.check:
        return _remove(proxy, board, change)
    with lock(proxy.config["run_folder"], name, VERB, proxy.actor, deadline):
        return _remove(proxy, board, change)


def _remove(proxy, board, change):
    _must_be_nobodys(proxy, board)
    parts = _Parts(proxy, board)
    there = parts.there()
    if not change.note(f"board{board}, not in the boards file", {"there": there}, {"there": []}) or change.check:
        return bool(there)
    parts.remove()
    left = parts.there()
    if left:
        raise HeteroError(f"still there after it was removed: {'; '.join(left)}", f"board{board}", "look who uses it")
    proxy.store.event(board, VERB, f"removed by an operator's word: {'; '.join(there)}")
    return True


def _must_be_nobodys(proxy, board):
    claim = proxy.store.record(board).claim
    if claim:
        remedy = f"reconcile -e forget={claim.instance} ends its claim; then run this again"
        raise Refused(f"is claimed for {claim.instance}: nothing is removed", f"board{board}", remedy)
    if board in proxy.store.kept_boards():
        path = proxy.store.path_of_kept(board)
        remedy = "end the claim that it names (reconcile -e forget=NAME), or remove it; then run this again"
        raise Refused(f"has a record of a claim, {path}: nothing is removed", f"board{board}", remedy)


class _Parts:
    """What lies here of one board."""

    def __init__(self, proxy, board):
        self.server = exporter(proxy.config["exports"], proxy.folder("exports"))
        self.root = Root(proxy.config["state_folder"], board)
        self.disk = DiskFiles(proxy.folder("disks"), board)
        self.pseudo = self.server.mounted_as(board, self.root.path)

    def _exports(self):
        return [export for export in self.server.show().values() if export.path == self.root.path]

    def there(self):
        """In words."""
        found = [f"export {export.id} {export.pseudo}" for export in self._exports()]
        found += [f"folder {part.folder}" for part in (self.root, self.disk) if part.exists()]
        restore = self.server.restore_file(self.pseudo)
        return found + ([f"file {restore}"] if os.path.lexists(restore) else [])

    def remove(self):
        for export in self._exports():
            self.server.remove(export.id)
        self.root.unmount(Deadline(UNMOUNT_TIME))
        self.root.remove()
        self.disk.remove()
        self.server.forget(self.pseudo)
