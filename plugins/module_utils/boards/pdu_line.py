# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One PDU's session in a thread of its own, so that two PDUs work at once and the boards of one PDU share one login.

The session lasts as long as somebody may still ask for an outlet; what to switch, and what a refusal means, is decided
by whoever asks (boot_loop.py, stopping.py).
"""

from __future__ import annotations

import queue

from ..errors import BadInput, Busy, HeteroError, Lost, TimedOut, naming
from ..power.outlets import OutletsFailed, session, set_outlets

#: Refusals that say nothing of the outlet or the board behind it: the session was lost, or the wiring is wrong.
NOT_THE_OUTLET = (BadInput, Busy, Lost, TimedOut)


class PduLine:
    """Log in, tell the status of all outlets, then switch what is asked for until close().

    All `on_…` are called from the line's thread.

    :param on_status: ({outlet: "on" or "off"}) once, after the login.
    :param on_switched: (outlet, before, after, seconds) for each outlet read back in its new state.
    :param on_refused: (outlet, error) for each outlet that did not obey.
    :param on_down: (line, error) when the PDU cannot be talked to; the line is over then.
    """

    def __init__(self, proxy, name, deadline, on_status, on_switched, on_refused, on_down):
        self.proxy = proxy
        self.name = name
        self.deadline = deadline
        self.on_status, self.on_switched, self.on_refused, self.on_down = on_status, on_switched, on_refused, on_down
        self._asked = queue.Queue()

    def ask(self, outlet, state):
        """Switch an outlet "on" or "off"; what is asked for while the PDU is busy goes in one command."""
        self._asked.put((outlet, state))

    def close(self):
        """No more will be asked; what was asked before is still done."""
        self._asked.put(None)

    def run(self):
        """The thread's work."""
        try:
            settings, secrets = self.proxy.pdu(self.name)
            run_folder = self.proxy.config["run_folder"]
            # its client's files, where the disk is full
            with naming(self.name), session(self.name, settings, secrets, self.deadline, run_folder) as pdu:
                self.on_status(pdu.status())
                while True:
                    wanted, last = self._next()
                    if wanted:
                        self._switch(pdu, wanted)
                    if last:
                        return
        except HeteroError as error:
            self.on_down(self, error)

    def _next(self):
        """({outlet: state} asked for by now, whether the line was closed); waits for the first."""
        items = [self._asked.get()]
        while not self._asked.empty():
            items.append(self._asked.get())
        return dict(item for item in items if item), None in items

    def _switch(self, pdu, wanted):
        try:
            set_outlets(pdu, wanted, self.deadline, report=self.on_switched)
        except OutletsFailed as error:
            lost = None
            for outlet, refusal in error.errors.items():
                if isinstance(refusal, NOT_THE_OUTLET):
                    lost = refusal
                else:
                    self.on_refused(outlet, refusal)
            if lost:
                raise lost from error
