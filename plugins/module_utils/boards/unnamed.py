# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies on a proxy for boards that the boards file does not name: claims, records, roots, boot files, exports.

Only a person can say what it is: it is said, and goes by an operator's word alone.
"""

from __future__ import annotations

import os
import re

from ..errors import HeteroError
from ..images.exports import exporter
from ..images.roots import OLDER, ROOT_NAME, ROOTS

UNREAD = "add the board to the boards file; or, where it is gone for good, remove {}"
LEFT = "add it to the boards file; or, where it is gone for good, reconcile -e forget={name} ends it"
#: Folders of boards under the TFTP root, by name.
FILES_NAME = re.compile(r"\d+(\.\d+){3}")


def let_go(proxy, names, change):
    """End the claims of these instances on boards that the boards file does not name; the names of those ended.

    What else is said of such a board, by a record that is another's or cannot be read, stays.
    """
    ended = []
    for board, name, claim in _left(proxy):
        if name in names and change.note(name, {"board": f"board{board}"}, {}):
            ended.append(name)
            if claim and not change.check:
                proxy.store.forget(claim, f"board{board} is not in the boards file")
            elif not change.check:
                proxy.store.keep_anew(board)
    return ended


def _left(proxy):
    """[(board id, instance, Claim)] of boards that the boards file does not name; without the Claim what only a record
    says, without the instance a record that cannot be read.
    """
    claims = {claim.board: claim for claim in proxy.store.claims()}
    found = [(board, claim.instance, claim) for board, claim in claims.items()]
    for board in proxy.store.kept_boards():
        try:
            kept = proxy.store.kept(board)
        except HeteroError:
            found.append((board, None, None))
        else:
            if kept and not (board in claims and kept.claim.is_same(claims[board])):
                found.append((board, kept.claim.instance, None))
    return sorted([one for one in found if one[0] not in proxy.boards], key=lambda one: one[0])


def others(proxy):
    """What lies here for boards that the boards file does not name, as texts; only a person can say what it is."""
    known = {f"fs_{number}" for number in proxy.boards}
    addresses = {board.ip for board in proxy.boards.values()}
    roots = [proxy.folder(folder) for folder in (ROOTS, OLDER)]
    found = []
    for board, name, claim in _left(proxy):
        if claim:
            what = f"claim of {name} ({claim.owner}) on board{board}"
        else:
            what = f"record of {f'the claim of {name}' if name else 'a claim, which cannot be read,'} on board{board}"
        found.append(f"{what}: {LEFT.format(name=name) if name else UNREAD.format(proxy.store.path_of_kept(board))}")
    found += [
        f"folder {os.path.join(folder, name)}"
        for folder in roots
        for name in _names(folder, ROOT_NAME)
        if name not in known
    ]
    tftp_root = proxy.config["tftp_root"]
    names = _names(tftp_root, FILES_NAME)
    found += [f"folder {os.path.join(tftp_root, name)}" for name in names if name not in addresses]
    server = exporter(proxy.config["exports"], proxy.folder("exports"))
    try:
        exports = server.show().values()
    except HeteroError as error:
        return [*found, str(error)]
    below = {export for export in exports if export.path.startswith(tuple(f"{folder}/" for folder in roots))}
    own = {os.path.join(folder, name, "root") for folder in roots for name in known}
    return found + sorted(f"export {export.id} {export.pseudo}" for export in below if export.path not in own)


def _names(folder, pattern):
    return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name)) if os.path.isdir(folder) else []
