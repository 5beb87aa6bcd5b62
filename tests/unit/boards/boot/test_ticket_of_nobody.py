# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play whose last waiting board was ended goes on with another board, and keeps its place in the line. If this fails,
every other play of the proxy waits until that one's other boards answer, minutes after their places are free.
"""

from __future__ import annotations

import threading

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import end_requests
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_queued_boots import LONG, rack, until, waits

__all__ = ["rack"]


def test_who_waits_for_nothing_any_more_is_not_waited_for(rack):
    """Lost: the time of all others, behind a line in which nobody stands."""
    site = rack(1, tftp=0.2, nfs=1.0, running=12.0)  # its first boot: the root is mounted, ssh comes late
    done, threads = {}, []

    def play(name, *boards):
        threads.append(threading.Thread(target=lambda: done.update({name: site.run("start", *boards)})))
        threads[-1].start()

    play("a", 0, 1)
    until(lambda: waits(site, 1) or waits(site, 0))
    waiting = 1 if waits(site, 1) else 0
    claim = site.record(waiting).claim
    with end_requests.asked(
        site.config["run_folder"], f"board{waiting}", end_requests.EndRequest(claim.instance, [claim.created])
    ):
        until(lambda: "is being ended" in str(waits(site, waiting)))
        play("b", 2)
        until(lambda: site.events(2, ("power",)) or "a" in done)
        went_on = "a" not in done
    for thread in threads:
        thread.join(LONG)
    assert went_on, "board2 waited until all of 'a' was over"
