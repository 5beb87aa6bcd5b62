# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusal to end an instance, or a half of one that moves, of which nothing is to be seen: mounted again, its root
would be nobody's, and take an address that is another's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import Refused
from ..site.instance_states import ENDING, NEVER_RAN
from ..site.moves import is_half
from .moved_instances import elsewhere

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from .work import Work

UNSEEN = "its root is not to be seen here, and {name} has run: nothing of it is removed, its address is not freed"
MOUNT = "mount what holds it, or put it back; where nobody has it any more, "
MADE_ANEW_WAY = MOUNT + "{anew} makes a new one, which can be ended"
#: No verb makes one anew that moves.
MOVES_WAY = MOUNT + "remove the record of its claim, {path}; then run this again"


def must_be_seen(work: Work, moves: bool = False) -> None:
    """Raise Refused if nothing is there of an instance that has run: what holds it may not be mounted.

    Also of a rebuild that was cut off, which may have removed nothing.

    :param moves: whether it ends by a move, as does each half of one that is moved. The record of a claim goes where
        its root was removed, and so a database that was put back from before that is not believed.
    """
    moves = moves or is_half(work.claim.state, work.claim.note)
    claims = _of_a_move(work) if moves else [one for one in (work.claim, work.kept) if one is not None]
    has_run = any(one.state not in (*NEVER_RAN, ENDING) for one in claims)
    if has_run and any(one.container is not None for one in claims) and not (work.is_made or work.has_root):
        name = work.claim.instance
        way = (MOVES_WAY if moves else MADE_ANEW_WAY).format(anew=work.anew, path=_record_of(work))
        raise Refused(UNSEEN.format(name=name), os.path.dirname(work.sign), elsewhere(work.host, work.claim) or way)


def _of_a_move(work: Work) -> list[Claim]:
    """Return the claim as its record has it, or as the database where that cannot be read; none without a record."""
    if work.kept is not None:
        return [work.kept]
    is_unread = work.host.store.kept(work.claim.instance) is None and os.path.lexists(_record_of(work))
    return [work.claim] if is_unread else []


def _record_of(work: Work) -> str:
    return work.host.store.records.path(work.claim.instance)
