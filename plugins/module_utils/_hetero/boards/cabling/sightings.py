# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen of all boards of a proxy node while one outlet is on: who asks to boot, whose console is written to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable, Dict

from ...drivers.boot import blame
from ...drivers.boot.driver import NFS

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ..records.proxy import Proxy

#: The requests of boards: {board id: {kind: monotonic time}}.
Requests = Dict[int, Dict[str, float]]


class Sightings:
    """Boot requests of all boards of the proxy since `begin`, and the boards whose consoles were written to."""

    def __init__(self, proxy: Proxy) -> None:
        logs = {board.id: proxy.wiring(board).console for board in proxy.boards.values()}
        self._consoles = {board: log for board, log in logs.items() if log}
        self._sizes: dict[int, int] = {}
        self._requests: Requests = {}
        self._change = threading.Condition()

    def request(self, board_id: int, kind: str, name: str, at: float, sender: str) -> None:
        """Record a request; the boot drivers' watches call it."""
        with self._change:
            if kind != NFS:
                self._requests.setdefault(board_id, {}).setdefault(kind, at)
                self._change.notify_all()

    def begin(self) -> None:
        with self._change:
            self._requests = {}
        self._sizes = {board: blame.console_size(path) for board, path in self._consoles.items()}

    def wait(self, deadline: Deadline, enough: Callable[[Requests], object]) -> Requests:
        """Wait until `enough(requests)` is true, or until the deadline; return the requests."""
        with self._change:
            self._change.wait_for(lambda: enough(self._requests), deadline.left)
            return {board: dict(kinds) for board, kinds in self._requests.items()}

    def consoles(self) -> list[int]:
        """Return the ids of boards whose console's log has grown since `begin`."""
        return [board for board, path in self._consoles.items() if blame.has_spoken(path, self._sizes[board])]
