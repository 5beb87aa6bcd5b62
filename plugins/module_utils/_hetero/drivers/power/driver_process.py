# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session of a site's own power driver in a process of its own. A driver that never returns, or ends its process, is
an error of its PDU: it switches nothing later, and keeps no other PDU from being asked.

own_drivers.py says what is a mistake of a driver.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from contextlib import suppress
from typing import Any, Callable

from ...core.child import Child
from ...core.deadline import Deadline
from ...core.errors import BadInput, Busy, HeteroError, Lost, TimedOut
from ...core.output import MOST_OF_OTHERS
from ...core.readiness import readable

#: Seconds that a call may take beyond the deadline, by which a driver bounds its own waits.
GRACE = 2.0
#: Seconds that the process has to end by itself once nothing more is asked.
ENDS = 1.0
#: Errors that stay of their kind on the way out of the process; others become a HeteroError.
KINDS: dict[str, type[HeteroError]] = {kind.__name__: kind for kind in (BadInput, Busy, Lost, TimedOut, HeteroError)}


def packed(error: HeteroError) -> list[Any]:
    """Return an error in JSON's types."""
    kind = next(one.__name__ for one in type(error).__mro__ if one.__name__ in KINDS)
    return [kind, *(None if word is None else str(word) for word in (error.what, error.thing, error.remedy))]


def unpacked(said: list[Any]) -> HeteroError:
    """Return the error that was packed."""
    kind, what, thing, remedy = said
    return KINDS[kind](what, thing, remedy)


class Apart:
    """The process of one session.

    :param work: takes a call's name, its arguments and the seconds that are left; returns the answer, of JSON's types.
    :param keep: begins the name of the one file that the process keeps open: the lock of its PDU. Of others it closes
        what it inherits, so that it holds no lock of another's.
    """

    def __init__(self, work: Callable[[str, list[Any], float], Any], keep: str) -> None:
        self._ours, theirs = socket.socketpair()
        self._child: Child | None = Child(lambda: _serve(theirs, self._ours, work, keep))
        theirs.close()

    def ask(self, call: str, words: list[Any], left: float) -> Any:
        """Return the answer to a call.

        :raises HeteroError: what the driver raised.
        :raises TimeoutError: it has not returned GRACE seconds after the time was up. Its process is killed.
        :raises EOFError: it has ended its process, or answers more than there can be.
        """
        limit = Deadline(left + GRACE)
        try:
            self._ours.sendall(json.dumps([call, words, left]).encode() + b"\n")
            said = self._line(limit)
        except OSError as error:
            self.end(0.0)
            raise (error if isinstance(error, TimeoutError) else EOFError()) from error
        except EOFError:
            self.end(0.0)
            raise
        if "error" in said:
            raise unpacked(said["error"])
        return said["done"]

    def end(self, seconds: float = ENDS) -> None:
        """Have the process end; kill it where it does not."""
        child, self._child = self._child, None
        self._ours.close()
        if child is not None:
            with suppress(HeteroError):
                child.answer(Deadline(seconds), "", "")

    def _line(self, limit: Deadline) -> dict[str, Any]:
        said = bytearray()
        while not said.endswith(b"\n"):
            if not readable([self._ours], limit.left):
                raise TimeoutError
            part = self._ours.recv(65536)
            said += part
            if not part or len(said) > MOST_OF_OTHERS:
                raise EOFError
        return dict(json.loads(said))


def _serve(end: socket.socket, others: socket.socket, work: Callable[[str, list[Any], float], Any], keep: str) -> None:
    """Answer calls in the child until nobody is there to ask."""
    others.close()
    _close_files(keep)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with end, end.makefile("rb") as asked:
        for line in asked:
            call, words, left = json.loads(line)
            # ends the process also where its parent, which would kill it, was killed itself
            signal.setitimer(signal.ITIMER_REAL, left + 2 * GRACE)
            try:
                said: dict[str, Any] = {"done": work(call, words, left)}
            except HeteroError as error:
                said = {"error": packed(error)}
            signal.setitimer(signal.ITIMER_REAL, 0)
            end.sendall(json.dumps(said, default=str).encode() + b"\n")


def _close_files(keep: str) -> None:
    """Close what was open in the parent, but for pipes, sockets and the lock that is named."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if number > 2 and stat.S_ISREG(os.fstat(number).st_mode) and os.path.basename(path) != keep:
                os.close(number)
