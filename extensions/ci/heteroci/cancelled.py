# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The signals by which a job is cancelled, as an exception, so that what is open is closed on the way out."""

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


@contextlib.contextmanager
def raised():
    """Raise Cancelled in the block at the first signal. Later ones are not heard: the block is closing then."""

    def cancel(number, _frame):
        ignored()
        raise Cancelled(number)

    # what nohup has ignored stays so; the others are heard also where a shell in the background has them ignored
    kept = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else ()
    before = {number: signal.signal(number, cancel) for number in SIGNALS if number not in kept}
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def unheard():
    """Hear none of them in the block: what is given back there is given back as a whole, or the process is killed."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ignored()
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def deferred():
    """Have the signals of the block count at its end: what it starts is known then, and can be ended."""
    if threading.current_thread() is not threading.main_thread():
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


def ignored():
    """Hear no further signal."""
    for number in SIGNALS:
        # not SIG_IGN, which playbooks that begin from now on would inherit
        signal.signal(number, lambda _number, _frame: None)


def _restore(handlers):
    for number, handler in handlers.items():
        signal.signal(number, handler)
