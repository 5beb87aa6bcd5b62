# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signals by which a job is cancelled, as an exception, so that what is open is closed on the way out.

They end a program where it waits (`waits`), and nowhere else: between two lines of its own it would leave a lock, a key
or a process that nobody knows of.
"""

from __future__ import annotations

import contextlib
import signal
import threading

#: What a terminal, a runner and a shell that goes away send.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Cancelled(BaseException):
    """The job was cancelled. It is no Exception, as nobody mends that.

    :param number: of the signal.
    """

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def code(self):
        """Return the code with which a shell ends by this signal."""
        return 128 + self.number


class _Heard:
    """What was heard of signals, of which the first one counts, once.

    :ivar waits: whether one ends what the program does just now.
    """

    def __init__(self):
        self.number, self.waits, self._has_ended = None, False, False

    def hear(self, number, _frame):
        self.number = self.number or number
        self.end()

    def end(self):
        """Raise Cancelled where a signal was heard and may end what the program does."""
        if self.number and self.waits and not self._has_ended:
            self.waits, self._has_ended = False, True
            raise Cancelled(self.number)


#: Of the blocks of `raised`, the innermost last.
_blocks: list = []


@contextlib.contextmanager
def raised():
    """Have the first signal of the block raise Cancelled where it waits. Later ones do nothing: it is closing then."""
    heard = _Heard()
    # what nohup has ignored stays so; the others are heard also where a shell in the background has them ignored
    kept = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else ()
    _blocks.append(heard)
    before = {number: signal.signal(number, heard.hear) for number in SIGNALS if number not in kept}
    try:
        yield
    finally:
        _restore(before)
        _blocks.pop()


@contextlib.contextmanager
def waits():
    """Have a signal end the block, also one that came before it."""
    if not _blocks or not _is_main_thread():
        yield
        return
    heard = _blocks[-1]
    heard.waits = True
    try:
        heard.end()
        yield
    finally:
        heard.waits = False


def heeded():
    """Raise Cancelled if a signal was heard until now."""
    with waits():
        pass


@contextlib.contextmanager
def unheard():
    """Hear none of them in the block: what is given back there is given back as a whole, or the process is killed."""
    if not _is_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        # not SIG_IGN, which playbooks that begin from now on would inherit
        signal.signal(number, lambda _number, _frame: None)
    _blocks.append(_Heard())  # one that came before counts no more, either
    try:
        yield
    finally:
        _blocks.pop()
        _restore(before)


@contextlib.contextmanager
def deferred():
    """Have the signals of the block count at its end, whoever hears them: what it starts is known then, and can be
    ended.
    """
    if not _is_main_thread():
        yield
        return
    heard = []
    before = {number: signal.getsignal(number) for number in SIGNALS if callable(signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        _restore(before)
        if heard:
            signal.raise_signal(heard[0])


def _is_main_thread():
    """Return whether this is the thread that alone hears signals."""
    return threading.current_thread() is threading.main_thread()


def _restore(handlers):
    for number, handler in handlers.items():
        signal.signal(number, handler)
