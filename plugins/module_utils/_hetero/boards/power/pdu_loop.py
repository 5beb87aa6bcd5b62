# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One loop for all boards of a call; only the loop writes to the store and decides.

Slow work (PDU sessions, looking at boards) runs in threads that only post to the loop's inbox.
"""

from __future__ import annotations

import queue
import time
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Sequence

from ...core.deadline import Deadline
from .pdu_line import Listener, PduLine
from .pdu_sessions import PDU

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ...core.errors import HeteroError
    from ...drivers.power.drawn import Drawn
    from ..records.proxy import Proxy
    from .board_views import PowerWork

#: Most results that are handled before what they wrote is committed, and seconds after which no further one is begun:
#: so long other plays wait for their turn to write.
AT_ONCE, LONGEST_TURN = 64, 0.1
#: So many times the time that a look at all boards takes goes by until the next one: of a thousand it is 10 ms.
SELDOM = 20.0


class PduLoop(ABC):
    """A loop that works on boards while lines to their PDUs are open."""

    #: Set by the loop while it runs.
    _threads: ThreadPoolExecutor
    #: What a turn does once all that it wrote is committed; None between turns.
    _steps: list[Callable[[], object]] | None = None

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.lines: dict[str, PduLine] = {}
        self._inbox: queue.Queue[Callable[[], object]] = queue.Queue()
        self._measures: queue.Queue[tuple[str, Mapping[str, Drawn]]] = queue.Queue()

    def _take_turns(self, works: Iterable[PowerWork]) -> None:
        """Take turns until the work on all boards is over, and end that on each as soon as that is seen."""
        left = list(works)
        while True:
            began = time.monotonic()
            left = [work for work in left if not _is_over(work)]
            if not left:
                return
            seldom = Deadline(SELDOM * (time.monotonic() - began))
            self._turn()
            self._close_lines()
            while not seldom.passed:
                self._turn(seldom.left)
                self._close_lines()

    def _turn(self, most: float | None = None) -> None:
        """Wait for a posted result, and handle it, with those that came meanwhile, AT_ONCE at most.

        What they write is committed together. Only then what follows is begun: outlets are switched, threads run.

        :param most: seconds to wait; None for ever.
        """
        try:
            first = self._inbox.get(timeout=most)
        except queue.Empty:
            return
        failed: BaseException | None = None
        self._steps = []
        try:
            with self.proxy.store.together():
                try:
                    self._handle(first)
                except BaseException as error:  # noqa: BLE001 - what was done before it is committed first
                    failed = error
            steps = self._steps
        finally:
            self._steps = None
        for step in steps:
            step()
        if failed is not None:
            raise failed

    def _handle(self, result: Callable[[], object]) -> None:
        deadline = Deadline(LONGEST_TURN)
        result()
        for _more in range(min(self._inbox.qsize(), AT_ONCE - 1)):
            if deadline.passed:
                break
            self._inbox.get()()
        self._end_turn()

    def _end_turn(self) -> None:
        """Do what follows from all that a turn has handled, before it is committed."""

    def _then(self, step: Callable[..., object], *args: object) -> None:
        """Call a function once all that was written until now in this turn is committed."""
        if self._steps is None:
            step(*args)
        else:
            self._steps.append(partial(step, *args))

    def _spawn(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` in a thread, as `_then` says; an exception of it is raised in the loop."""
        self._then(self._submit, function, *args)

    def _submit(self, function: Callable[..., object], *args: object) -> None:
        self._threads.submit(function, *args).add_done_callback(lambda done: self._inbox.put(done.result))

    def _post(self, handler: Callable[..., object], *args: object) -> None:
        self._inbox.put(partial(handler, *args))

    def _open_line(self, name: str) -> None:
        if name not in self.lines:
            listener = Listener(
                on_status=partial(self._post, self._on_status, name),
                on_switched=partial(self._post, self._on_switched, name),
                on_refused=partial(self._post, self._on_refused, name),
                on_down=partial(self._post, self._on_down, name),
                on_wait=partial(self._post, self._on_wait, name),
                on_drawn=partial(self._on_drawn, name),
            )
            self.lines[name] = PduLine(self.proxy, name, PDU, listener)
            self._spawn(self.lines[name].run)

    def _close_lines(self) -> None:
        """Log out of PDUs that no board needs any more, for others may wait for the only session."""
        for name in list(self.lines):
            if not self._asks(name):
                self.lines.pop(name).close()

    def _on_drawn(self, pdu: str, drawn: Mapping[str, Drawn]) -> None:
        """Have a reading of meters kept, by the loop or, where that has ended, by who ran it; for any thread."""
        self._measures.put((pdu, drawn))
        self._post(self._keep_measures)

    def _keep_measures(self) -> None:
        """Add readings of meters to what the boards' claims have drawn."""
        while not self._measures.empty():
            pdu, drawn = self._measures.get()
            for work in self._all_works():
                if work.pdu == pdu:
                    work.drew(drawn.get(work.outlet))

    @abstractmethod
    def _all_works(self) -> Iterable[PowerWork]:
        """Return the work on all boards of the loop, also on those that are done."""

    @abstractmethod
    def _asking(self, pdu: str) -> Sequence[PowerWork]:
        """Return the work on the boards that may still ask this PDU for something."""

    def _asks(self, pdu: str) -> bool:
        return bool(self._asking(pdu))

    def _on_wait(self, pdu: str, text: str) -> None:
        for work in self._asking(pdu):
            if not work.change.check:
                work.say("wait", text)

    @abstractmethod
    def _on_status(self, pdu: str, outlets: Mapping[str, str]) -> None: ...

    @abstractmethod
    def _on_switched(self, pdu: str, outlet: str, before: str, after: str, seconds: float) -> None: ...

    @abstractmethod
    def _on_refused(self, pdu: str, outlet: str, error: HeteroError) -> None: ...

    @abstractmethod
    def _on_down(self, pdu: str, line: PduLine, error: HeteroError) -> None: ...


def _is_over(work: PowerWork) -> bool:
    work.look_if_over()
    return work.over
