# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One PDU's session in a thread of its own, so that two PDUs work at once and the boards of one PDU share one login.

A session lasts as long as there are requests, for the PDU may have only one session. The callers (boot/boot_loop.py,
boot/stops.py) decide what to switch, and what a refusal means.
"""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Callable, Mapping, NamedTuple, Sequence

from ...core.deadline import Deadline
from ...core.errors import BadInput, Busy, HeteroError, Lost, TimedOut, naming
from ...drivers.power.outlets import OutletsFailed, set_outlets
from .pdu_sessions import opened

if TYPE_CHECKING:
    from ...drivers.power.drawn import Drawn
    from ...drivers.power.outlets import Session
    from ..records.proxy import Proxy

#: Tells whether an outlet is still to be switched.
LastLook = Callable[[], bool]
#: A request that switches nothing, and has the status reported.
LOOK = ("", "", None)
#: Refusals that say nothing of the outlet or the board behind it: the session was lost, or the wiring is wrong.
NOT_THE_OUTLET = (BadInput, Busy, Lost, TimedOut)
#: Seconds without a request after which the session ends: others wait for the PDU's only session, and a look at a board
#: may take minutes. A login takes a second or two.
IDLE = 3.0
#: The part of a session's time that must be left for the next request; with less, that gets a new session.
LEFT = 0.5
#: Seconds. Where outlets' meters take longer, no other is read in the same line: boards may be waiting for their turn.
SLOW = 1.0


def _unheard(_drawn: Mapping[str, Drawn]) -> None:
    """Do nothing with what outlets draw."""


class Listener(NamedTuple):
    """The functions that a line calls with its results, from its own thread.

    :param on_status: is called with {outlet: "on" or "off"} once, after the first login.
    :param on_switched: is called with (outlet, before, after, seconds) for each outlet read back in its new state.
    :param on_refused: is called with (outlet, error) for each outlet that did not obey.
    :param on_down: is called with (line, error) when the PDU cannot be talked to; the line is over then.
    :param on_wait: is called with what is waited for, as a text, where that takes long.
    :param on_drawn: is called with {outlet: Drawn} of outlets that were switched, and that the device measures.
    """

    on_status: Callable[[Mapping[str, str]], object]
    on_switched: Callable[[str, str, str, float], object]
    on_refused: Callable[[str, HeteroError], object]
    on_down: Callable[[PduLine, HeteroError], object]
    on_wait: Callable[[str], None]
    on_drawn: Callable[[Mapping[str, Drawn]], object] = _unheard


class PduLine:
    """Log in, report the status of all outlets, then switch what is asked for until close().

    :param seconds: most seconds of a session, its login included. Where there are no requests for IDLE seconds, the
        session ends, and the next request begins a new one.
    :param listener: gets the results.
    """

    def __init__(self, proxy: Proxy, name: str, seconds: float, listener: Listener) -> None:
        self.proxy = proxy
        self.name = name
        self.seconds = seconds
        self.listener = listener
        self._asked: queue.Queue[tuple[str, str, LastLook | None] | None] = queue.Queue()
        self._last_looks: dict[str, LastLook | None] = {}  # {outlet: its function, of its newest request}
        self._unmeasured: set[str] = set()  # outlets that were switched since their meters were read
        self._is_slow = False  # whether that took long
        self._told = self._closed = False  # whether the status was reported, and whether close() was called

    def ask(self, outlet: str, state: str, last_look: LastLook | None = None) -> None:
        """Switch an outlet "on" or "off"; requests that come while the PDU is busy go into one command.

        :param last_look: is called in a thread of the line, logged in and directly before the switching, also before
            that is repeated after a lost session. Where it returns False, the outlet is not switched, and nothing is
            reported of it.
        """
        self._asked.put((outlet, state, last_look))

    def look(self) -> None:
        """Report the status of all outlets once more."""
        self._asked.put(LOOK)

    def close(self) -> None:
        """End the line once all requests until now are done."""
        self._asked.put(None)

    def run(self) -> None:
        """Do the thread's work."""
        try:
            wanted = self._session({})
            while wanted or not self._closed:
                wanted = self._session(wanted) if wanted or not self._told else self._next(None)
        except HeteroError as error:
            self.listener.on_down(self, error)

    def _session(self, wanted: dict[str, str]) -> dict[str, str]:
        """Have one session, until nothing is asked for, and return what it leaves to the next one."""
        deadline = Deadline(self.seconds)
        # names the PDU in errors of its client's files, such as a full disk
        with naming(self.name), opened(self.proxy, self.name, deadline, self.listener.on_wait) as pdu:
            while True:
                if not self._told:
                    self._told = True
                    self.listener.on_status(pdu.status())
                if wanted:
                    self._switch(pdu, wanted, deadline)
                    self._unmeasured.update(wanted)
                    wanted = {} if self._closed else self._next(0.0)  # who waits for power goes first
                if not wanted and self._told:
                    self._measure(pdu)
                    if self._closed:
                        return {}
                    wanted = self._next(IDLE)
                if not (wanted or not self._told) or deadline.left < LEFT * deadline.seconds:
                    return wanted

    def _measure(self, pdu: Session) -> None:
        """Read the meters of the outlets that were switched."""
        outlets, self._unmeasured = sorted(self._unmeasured), set()
        if outlets and not self._is_slow:
            began = time.monotonic()
            drawn = pdu.drawn(outlets)
            self._is_slow = time.monotonic() - began > SLOW
            if drawn:
                self.listener.on_drawn(drawn)

    def _next(self, seconds: float | None) -> dict[str, str]:
        """Return {outlet: state} asked for by now; wait for the first, so many seconds (None: for ever)."""
        try:
            items = [self._asked.get(timeout=seconds)]
        except queue.Empty:
            return {}
        while not self._asked.empty():
            items.append(self._asked.get())
        self._closed = self._closed or None in items
        self._told = self._told and LOOK not in items
        wanted = [item for item in items if item and item is not LOOK]
        self._last_looks.update({outlet: last_look for outlet, _state, last_look in wanted})
        return {outlet: state for outlet, state, _last_look in wanted}

    def _switch(self, pdu: Session, wanted: Mapping[str, str], deadline: Deadline) -> None:
        looks = {outlet: look for outlet in wanted if (look := self._last_looks.pop(outlet, None))}
        pdu.still = partial(_still, looks)
        try:
            set_outlets(pdu, wanted, deadline, report=self._on_done)
        except OutletsFailed as error:
            lost = None
            for outlet, refusal in error.errors.items():
                if isinstance(refusal, NOT_THE_OUTLET):
                    lost = refusal
                else:
                    self.listener.on_refused(outlet, refusal)
            if lost:
                raise lost from error

    def _on_done(self, outlet: str, before: str, after: str | None, seconds: float) -> None:
        if after is not None:  # each is read back
            self.listener.on_switched(outlet, before, after, seconds)


def _still(looks: Mapping[str, LastLook], outlets: Sequence[str]) -> list[str]:
    """Return which outlets are still to be switched by their last looks, all at the same time."""
    asked = [outlet for outlet in outlets if outlet in looks]
    if not asked:
        return list(outlets)
    with ThreadPoolExecutor(max_workers=len(asked)) as threads:
        still = dict(zip(asked, threads.map(lambda outlet: looks[outlet](), asked)))
    return [outlet for outlet in outlets if still.get(outlet, True)]
