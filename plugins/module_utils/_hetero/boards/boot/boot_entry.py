# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write and remove a board's boot entry as its boot driver wants it; the diff shows the lines that change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import BadInput, Refused
from ...images.choice import image_of, image_store
from ...roots.ownership import is_gone
from ...tftp import board_folder
from ..records.store import nobodys

if TYPE_CHECKING:
    from ..work.board_work import BoardWork

#: What a dry run shows in place of the entry's lines, for an image that only the real run imports.
UNKNOWN = "(its lines depend on the image, which is not in the store yet)"


def ensure_entry(work: BoardWork, image: str | None = None) -> None:
    """Write the boot entry of a board's claim where it is missing or differs from what the driver wants.

    :param image: name of the image, for a dry run on a board that is not claimed yet.
    :raises Refused: nobody claims the board, or it has no root (any more); a dry run raises nothing.
    """
    claim, check = work.claim, work.change.check
    if claim is None and not check:
        raise nobodys(work.board.name, work.wanted)
    if claim and not check and not (claim.host_key and claim.image_hash):
        raise Refused(f"has no root for {claim.instance} yet", work.board.name, "make it ready: board_image")
    if claim and not check and is_gone(work.proxy, work.board, claim):
        what = f"has no root for {claim.instance} any more, it was removed meanwhile"
        raise Refused(what, work.board.name, "make it ready: board_image, or terminate it")
    for path, text in _wanted(work, image).items():
        found = None if work.as_rebuilt else board_folder.read_entry(path)
        if work.note(path, _lines(found), _lines(text)):
            board_folder.write_entry(path, text)


def _wanted(work: BoardWork, image: str | None) -> dict[str, str]:
    try:
        found = image_of(work.proxy, work.claim) if work.claim else image_store(work.proxy).get(image or "")
    except BadInput:
        if work.change.check:
            return dict.fromkeys(work.driver.entry_paths(work.board), UNKNOWN)
        raise
    return work.driver.entry(work.board, replace(work.system, image=found))


def remove_entry(work: BoardWork) -> None:
    """Remove the boot entry: a board that is switched on by hand then boots nothing."""
    for path in work.driver.entry_paths(work.board):
        if work.note(path, _lines(board_folder.read_entry(path)), {}):
            board_folder.remove_entry(path)


def _lines(text: str | None) -> dict[str, list[str]]:
    """Return a file's lines as the diff shows them."""
    return {} if text is None else {"lines": text.splitlines()}
