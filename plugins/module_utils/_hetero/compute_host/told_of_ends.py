# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the end of instances tells: which devices are free again, and which instances have moved to another host between
the look of who is about to end them and that end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ..claims.host.store import CLAIM_PHASE
from ..site.moves import GONE, PHASE
from ..site.owners import is_of

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation
    from .host import Host
    from .verb_options import Options
    from .work import Work

#: The newest events of a host, which are looked through.
EVENTS = 500


def freed(work: Work, devices: Sequence[Allocation]) -> str:
    """Return in words, to be added, which devices are free again, and which were taken out of the host meanwhile."""
    free = [row.address for row in devices if work.is_on_host(row)]
    lost = [row.address for row in devices if row.address not in free]
    said = f"; free again: {' '.join(free)}" if free else ""
    return f"{said}; no more on this host: {' '.join(lost)}" if lost else said


def moved_away(host: Host, request: str, options: Options) -> dict[str, str]:
    """Return {instance: host} of the instances of a request that were looked up here, and have moved since.

    Without the times of the claims that were looked up there are none. Such a time is by the clock of the host on which
    the instance was claimed first, and so only the order of events here says that it was here, and moved.
    """
    found, begin = {}, GONE.partition("{")[0]
    for event in host.store.newest_events(None, EVENTS) if options.created else ():
        name, (_text, moved, to) = event.instance or "", event.text.partition(begin)
        is_asked = is_of({"instance": name, "request": request}, request, options.numbers)
        if event.phase == CLAIM_PHASE:
            found.pop(name, None)
        elif event.phase == PHASE and moved and is_asked:
            found[name] = to
    return {name: to for name, to in found.items() if host.store.claim_of(name) is None}
