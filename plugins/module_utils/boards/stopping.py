# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards on their way off: outlet off and read back, boot entry gone, the claim untouched; all PDUs at once.

The state is "shutting down" afterwards, until somebody cleans up and releases the claim (board_image, board_claim).
"""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ..deadline import Deadline
from . import blame, states
from .board_work import no_outlet
from .boot_entry import remove_entry
from .pdu_line import PduLine
from .starting import PDU


class Stopping:
    """Switch boards off.

    :param works: BoardWork of each board, locked and read.
    :param options: lifecycle.Options.
    """

    def __init__(self, proxy, works, options):
        self.proxy = proxy
        self.check = options.check
        self.works = works
        self.lines = {}
        self._inbox = queue.Queue()

    def run(self):
        """Until each board is off or failed."""
        names = {work.pdu for work in self.works}
        with ThreadPoolExecutor(max_workers=max(1, len(names))) as threads:
            try:
                for name in names:
                    self._open_line(threads, name)
                while not all(work.over for work in self.works):
                    self._inbox.get()()
                    for name in names:
                        if name in self.lines and not self._of(name):
                            self.lines.pop(name).close()
            finally:
                for line in self.lines.values():
                    line.close()

    def _open_line(self, threads, name):
        post = partial(partial, self._post)
        self.lines[name] = PduLine(
            self.proxy,
            name,
            Deadline(PDU),
            on_status=post(self._on_status, name),
            on_switched=post(self._on_switched, name),
            on_refused=post(self._on_refused, name),
            on_down=post(self._on_down, name),
        )
        threads.submit(self.lines[name].run).add_done_callback(lambda done: self._inbox.put(done.result))

    def _post(self, handler, *args):
        self._inbox.put(partial(handler, *args))

    def _of(self, pdu, outlet=None):
        return [work for work in self.works if work.pdu == pdu and outlet in (None, work.outlet) and not work.over]

    def _on_status(self, pdu, outlets):
        for work in self._of(pdu):
            now = outlets.get(work.outlet)
            if now is None:
                work.fail(blame.PROXY, no_outlet(work, outlets))
                continue
            after = work.state if work.state == states.POWER_OFF else states.SHUTTING_DOWN
            work.note(work.board.name, {"power": now, "state": work.state}, {"power": "off", "state": after})
            if self.check:
                if now == "on":
                    work.say("power", f"{work.outlet_name} is on: on → off")
                self._off(work)
            else:
                work.move(after)
                work.power_seen(now)
                if now == "on":
                    self.lines[pdu].ask(work.outlet, "off")
                else:
                    self._off(work)

    def _off(self, work):
        remove_entry(work)
        work.over = True

    def _on_switched(self, pdu, outlet, before, after, seconds):
        for work in self._of(pdu, outlet):
            work.power_seen(after)
            work.driver.switched(work.board, after)
            work.phases["power"] = seconds
            work.say("power", f"{work.outlet_name}: on → off, read back", seconds)
            self._off(work)

    def _on_refused(self, pdu, outlet, error):
        for work in self._of(pdu, outlet):
            work.say("power", str(error))
            work.quarantine(str(error), **error.facts)

    def _on_down(self, pdu, line, error):
        for work in self._of(pdu):
            work.say("error", f"the board is left as it is: {error}")
            work.fail(blame.PROXY, error, **error.facts)
