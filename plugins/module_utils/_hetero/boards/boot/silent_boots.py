# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that have power and ask for nothing.

The proxy tests itself soon, and people are told. A boot whose first request does not come is given up sooner than a
boot that goes on.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ..power.pdu_loop import PduLoop
from .boot_progress import BOOTING

if TYPE_CHECKING:
    from .boot_progress import Boot

#: Seconds that a board with power may be silent before the proxy tests itself, once in a boot.
EARLY = 10.0
UNHEARD = "nothing is heard of it since {seconds:.0f} s, and its first boot request is awaited for {limit:.0f} s"
UNSERVED = "it asks for an address, and has fetched nothing for {seconds:.0f} s"
SERVES = "what its proxy serves to it answers: it may still be in its firmware; else see its cable and network"


class SilentBoots(PduLoop):
    """A loop that follows boots and listens for their first requests."""

    def _listen_for_requests(self, boot: Boot, watching: threading.Event) -> None:
        """Run the proxy's self-test once a board was silent for EARLY seconds, and end a boot without any request.

        :param watching: ends it; the wait for ssh that goes on meanwhile.
        """
        driver, limit = boot.work.driver, boot.work.driver.request_limit(boot.board)
        if watching.wait(min(EARLY, limit)):
            return
        if not (boot.was_served or boot.strangers or boot.work.over):
            faults = driver.self_test(boot.board, boot.work.system)
            self._post(self._on_early, boot, watching, faults, limit)
        # of a boot that another process began, requests may have come before this one listened
        if boot.tries and not watching.wait(max(0.0, boot.powered + limit - time.monotonic())):
            self._post(self._on_no_request, boot, watching)

    @staticmethod
    def _on_early(boot: Boot, watching: threading.Event, faults: list[str], limit: float) -> None:
        if not _is_awaited(boot, watching) or boot.was_served:
            return
        boot.early = faults
        found = f"the proxy itself fails: {'; '.join(faults)}" if faults else SERVES
        since = (UNSERVED if boot.kinds else UNHEARD).format(seconds=time.monotonic() - boot.powered, limit=limit)
        boot.work.say("wait", f"{since}; {found}")

    @staticmethod
    def _on_no_request(boot: Boot, watching: threading.Event) -> None:
        if _is_awaited(boot, watching) and not (boot.kinds or boot.asked or boot.strangers):
            watching.set()  # the wait for ssh ends without an answer


def _is_awaited(boot: Boot, watching: threading.Event) -> bool:
    return boot.watching is watching and boot.stage == BOOTING and not boot.work.over
