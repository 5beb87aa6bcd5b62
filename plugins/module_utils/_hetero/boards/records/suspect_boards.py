# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a board is left on although its instance does not answer, as it may be at work there, in the board's note; and
whether the board itself is suspected by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...site import board_states

if TYPE_CHECKING:
    from .board_records import Record

#: Note on a board that does not come up or does not answer, and has run before from a root on its own disk.
STAYS_ON = "its root is on its own disk and it may be at work there, so its outlet stays on: look at its console"
#: Note on a board that does not answer, and has mounted a root from which it ran before.
MAY_WORK = "it has its root and ran before, so it may be at work and its outlet stays on: look at its console"
#: Note on a silent board whose boot was begun by a play that ended.
UNSEEN = (
    "nobody looked while it began to boot, so it may be at work and its outlet stays on: look at its console; "
    "{cut} cuts its power and boots it"
)
#: The end of the note on a board that lost its power at each boot from such a root.
CUT = "is off, and no verb of its proxy node has switched it off"


def is_suspect(record: Record) -> bool:
    """Return whether a board in error may be at fault itself, so that it stays out of use when its instance leaves.

    It is not where it has mounted the root of an instance that ran from it before: what keeps that from answering is
    in the root, which its tenant makes as it likes. With a BMC that also switches the board off.
    """
    return record.state == board_states.ERROR and not record.note.endswith((MAY_WORK, CUT))
