# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether a board is at rest by all that is recorded of it: the database, which may be an older copy that was put
back, and the record of its claim. Code that would take the root, the address or the boot files from an instance asks
here first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...site import board_states
from .claim_copies import is_of_before

if TYPE_CHECKING:
    from .board_records import Record
    from .claim_records import Kept


def is_at_rest(record: Record, kept: Kept | None, power: str | None = None) -> bool:
    """Return whether nobody is at work on a board: it is recorded as off, by both, and its outlet was seen off.

    :param kept: what the record of its claim says; None where there is none, or it cannot be read.
    :param power: the state of its outlet as it was just seen; None for the database's.
    """
    return board_states.is_at_rest(record.state, power or record.power) and not is_at_work(kept, record)


def is_at_work(kept: Kept | None, record: Record) -> bool:
    """Return whether a board runs or boots by the record of its claim, or may do so.

    It may where that says that its stop was begun, or failed, and the database knows nothing of it: so the database is
    older, and what it knows of the outlet, too. The record of an earlier claim tells nothing of it, nor that of a claim
    for which nothing was made.
    """
    if kept is None or not kept.is_somebodys or (record.claim is not None and is_of_before(kept, record.claim)):
        return False
    unknown = kept.state in (board_states.SHUTTING_DOWN, board_states.ERROR) and kept.state != record.state
    return kept.state in board_states.AT_WORK or unknown
