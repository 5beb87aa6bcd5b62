# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a board that is an instance's by a record and does not prove it: see to what it runs from, or its
plug.

A board whose root is not exported any more answers at its ssh port, and no login there comes to its end.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.errors import HeteroError
from ...core.this_node import THIS_NODE
from ...roots.made_json import is_seen
from ...roots.place import Place
from ..power.power_proof import PLUGS
from ..power.presence import ALIVE, SILENT
from ..records.misfiled_records import ADOPT

if TYPE_CHECKING:
    from ...roots.proxy_node import RootClaim
    from ..records.proxy import Proxy
    from .looked_board import LookedBoard

NOT = "not adopted, nothing of it is touched"
ASK = f"{NOT}: {PLUGS}; once it is known to be {{name}}'s, {ADOPT} takes its record's word"
#: `hetero restore` is run by the start of the NFS server. Started by itself, it tells a server that runs nothing. The
#: server is begun with what the records bear out alone, so a word for one claim comes before a restart for all.
SERVE = (
    f"{NOT}: its root is not {{missing}}, so no login on it can succeed: {ADOPT} takes its record's word, and puts "
    f"that back; or run on {THIS_NODE}: systemctl restart {{unit}}, by which `hetero restore` mounts and exports it as "
    "its record says (boards wait meanwhile, and an export that no record bears out ends: adopt those first), then run "
    "this again"
)


def way_on(proxy: Proxy, look: LookedBoard, claim: RootClaim) -> str:
    """Return what is not done with a board, and what a person does about it, as a text to come after the reason.

    :param claim: the claim of the board's record, whose root the board's root is.
    """
    missing = _missing(proxy, look, claim)
    if not missing:
        return ASK.format(name=claim.instance)
    unit = Place(proxy, look.work.board).exporter.unit
    return SERVE.format(name=claim.instance, missing=" and not ".join(missing), unit=unit)


def _missing(proxy: Proxy, look: LookedBoard, claim: RootClaim) -> list[str]:
    """Return what a board that has power lacks of its root, each as a word; nothing where another key answers."""
    if look.power != "on" or look.ssh not in (None, ALIVE, SILENT) or claim.boot_source == "disk":
        return []
    place = Place(proxy, look.work.board)
    missing = [] if is_seen(place.root) else ["mounted"]
    with suppress(HeteroError):  # the server does not answer: nothing is known of its exports
        missing += [] if place.exported() == place.export else ["exported"]
    return missing
