# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether a boot of a board was cut off, so that its outlet may be off although its tenant wants it on.

Before an outlet is switched for a boot, an event says so, and what follows is an event, too: that it was read back, an
error, another state. Where nothing follows and no verb works on the board, its process was killed in between.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.locks import held_by
from ...core.plays import play
from ...site import board_states
from ..records.board_records import AND_ON, STATE_PHASE, SWITCH, TO_BE

if TYPE_CHECKING:
    from ..records.board_records import Record
    from ..records.proxy import Proxy

#: The ends of texts of events before an outlet is switched for a boot: for one that was on, and for one that was off.
BEGUN = (TO_BE.format(state="off") + AND_ON, TO_BE.format(state="on"))
#: Phases of events that say what came of it.
ENDS = (STATE_PHASE, "power", "error")
#: Newest events that are looked at; what is asked of a board in between writes a few.
MANY = 50
CUT_OFF = "its boot was cut off before its outlet was on again"
NOTE = f"{CUT_OFF}: {play('reconcile')} or {play('start_instance', instance='{name}')} switches it on"


def is_cut_off(proxy: Proxy, record: Record) -> bool:
    """Return whether the boot of a board on which its instance ran before was cut off.

    A claim that never ran is its request's, which goes on or gives it back.
    """
    claim = record.claim
    if record.state != board_states.BOOTING or claim is None or not proxy.store.has_run(claim):
        return False
    for event in reversed(proxy.store.newest_events(record.board, MANY)):
        if event.phase == SWITCH:
            begun = event.text.endswith(BEGUN)
            return begun and event.instance == claim.instance and event.time >= claim.created
        if event.phase in ENDS:
            return False
    return False


def told_of_boot(proxy: Proxy, record: Record) -> str | None:
    """Return the note of `status` on a boot that was cut off; None where a verb works on the board."""
    with suppress(PermissionError):  # of another account, which may not see who works on it
        claim, name = record.claim, f"board{record.board}"
        if claim and is_cut_off(proxy, record) and held_by(proxy.config.run_folder, name) is None:
            return NOTE.format(name=claim.instance)
    return None
