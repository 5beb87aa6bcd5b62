# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that nobody has by the database, and that comes up while reconcile waits for its PDU to free it.

If this fails, who is at work there loses its power.
"""

from __future__ import annotations

import json
import threading
import time

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts, stops
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock

NEVER = 5000.0


def test_a_board_that_comes_up_before_it_is_freed_is_left_on(site, monkeypatch):
    """Lost: the power of who is at work on a board that the database does not know of, and that was slow to boot."""
    monkeypatch.setattr(late_cuts, "FRESH", 1.0)
    monkeypatch.setattr(stops, "FRESH", 1.0)
    site.wire(0, fake=dict(tftp=NEVER, nfs=NEVER, running=NEVER))
    site.pdu(board0="on")  # somebody switched it on
    boot = site.run_folder / "fake-boots" / "board0"
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text(json.dumps({"on": time.monotonic(), "boots": 1}))
    real, waits, go, done = reconciliation.release, threading.Event(), threading.Event(), {}

    def release(*given, **more):
        waits.set()  # it was judged: on, and silent
        assert go.wait(60)
        return real(*given, **more)

    def run():
        with site.proxy() as proxy:
            done.update(reconciliation.reconcile(proxy, [0], Change(False), 20.0))

    monkeypatch.setattr(reconciliation, "release", release)
    thread = threading.Thread(target=run)
    thread.start()
    assert waits.wait(60)
    with lock(str(site.run_folder), "pdu-pdu-a", "power", "jo", Deadline(60)):
        go.set()
        time.sleep(2.0)
        boot.write_text(json.dumps({"on": time.monotonic() - 2 * NEVER, "boots": 1}))  # its system is up, and answers
        time.sleep(2.0)
    thread.join(60)
    found = [one for board in done["boards"] for one in board["found"]]
    assert site.outlets()["1"] == "on", found
