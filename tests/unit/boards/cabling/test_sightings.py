# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cabling check sees of boards while an outlet is on, and how it waits for that."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.sightings import Sightings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import FIRMWARE, NFS, TFTP
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire


def seen_of(consoles):
    """What is seen of four boards, of which some have a console's log."""
    boards = {number: SimpleNamespace(id=number) for number in range(4)}
    wired = {number: {"console": str(path)} for number, path in consoles.items()}
    return Sightings(SimpleNamespace(boards=boards, wiring=lambda board: Wire(**wired.get(board.id, {}))))


def test_what_is_seen_of_boards(tmp_path):
    """Lost: the board that an outlet feeds; or one that only goes on with what it did before counts as fed by it."""
    logs = {number: tmp_path / f"board{number}.log" for number in range(2)}
    for log in logs.values():
        log.write_text("before\n")
    seen = seen_of(logs)
    seen.request(1, TFTP, "x", 1.0, "1.1.1.1")
    seen.begin()
    assert seen.wait(Deadline(0), bool) == {}
    assert seen.consoles() == []
    for kind, at in ((TFTP, 2.0), (TFTP, 3.0), (FIRMWARE, 4.0), (NFS, 1.0)):
        seen.request(0, kind, "x", at, "1.1.1.1")
    assert seen.wait(Deadline(60), lambda requests: 0 in requests) == {0: {TFTP: 2.0, FIRMWARE: 4.0}}
    with open(logs[1], "a", encoding="utf-8") as file:
        file.write("more\n")
    assert seen.consoles() == [1]
    seen.begin()
    assert seen.consoles() == []


def test_a_request_ends_the_wait_for_it():
    """Lost: an outlet that stays on until the whole time is over, with whatever it feeds."""
    seen, found, waits = seen_of({}), [], threading.Event()

    def enough(requests):
        waits.set()  # from here on the lock is held until it sleeps
        return 2 in requests

    waiting = threading.Thread(target=lambda: found.append(seen.wait(Deadline(600), enough)), daemon=True)
    waiting.start()
    assert waits.wait(60)
    seen.request(2, TFTP, "x", 5.0, "1.1.1.1")
    waiting.join(60)
    assert found == [{2: {TFTP: 5.0}}]
