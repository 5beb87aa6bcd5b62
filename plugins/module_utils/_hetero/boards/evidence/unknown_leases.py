# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims on boards whose lease may end later than the database says: their records are lost or cannot be read.

Nothing ends such a lease but a person's word; adoption.py looks for what else is known of the claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ..records.misfiled_records import ADOPT, WORD, astray, way_of_only

if TYPE_CHECKING:
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

OLDER_RECORD = "the record of {name}'s claim is older than the database's"
LOST = (
    "the record of {name}'s claim is lost, and the database may be older than what it said: nothing is touched, and "
    f"its lease is not ended: where the database is right (see its lease: {play('status')}), {ADOPT} has it written "
    "anew"
)
LOST_ENDLESS = f"the record of {{name}}'s claim is lost: {play('reconcile')} writes it anew"


def unknown_lease(proxy: Proxy, claim: Claim) -> tuple[str, str] | None:
    """Return (what, remedy) where a claim's record is lost or unreadable and may have had a later end of the lease."""
    if claim.expires is None:
        return None
    try:
        proxy.store.kept(claim.board)
    except HeteroError as error:
        moved = way_of_only(proxy, claim.board, error)
        return f"{error.thing}: {error.what}", moved or WORD.format(name=claim.instance)
    if not proxy.store.is_record_lost(claim):
        return None
    what, _colon, remedy = (astray(proxy, claim) or LOST.format(name=claim.instance)).partition(": ")
    return what, remedy


def must_know_the_lease(proxy: Proxy, claim: Claim) -> None:
    """Raise Refused where unknown_lease says so; else the record would be written anew with the database's lease.

    Where that of an earlier claim is back in its place, it would not be, and a new root would be nobody's by it.
    """
    unknown = unknown_lease(proxy, claim)
    earlier = proxy.store.kept(claim.board) if not unknown and proxy.store.is_record_lost(claim) else None
    if earlier and earlier.is_somebodys:
        unknown = OLDER_RECORD.format(name=earlier.claim.instance), f"{play('reconcile')} corrects it"
    if unknown:
        what, remedy = unknown
        raise Refused(what, f"board{claim.board}", remedy)
