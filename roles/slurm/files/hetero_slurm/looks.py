# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at Slurm for all programs that wait: which nodes are awaited, in a file that one of them at a time renews.

Slurm says by no event that a node is up, and each look is a process. So who finds the last look too old, and nobody at
it (flock), looks, and all others read what it has noted. They go by a clock that nobody sets, of this boot of the
machine, and by no look that began before they did.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import IO, TYPE_CHECKING, Collection, Optional, Tuple

from controller import ANSWER
from site_file import SiteError

if TYPE_CHECKING:
    from controller import Controller

#: Seconds between the beginnings of two looks, and between two readings of what one has noted.
EACH = 0.2
#: Seconds after which nobody waits for who is at it any more: killed, it would have let go, and scontrol has ANSWER.
STUCK = ANSWER + 10.0
#: A number that each boot of the machine has for itself, since the clock begins again with it.
BOOT = "/proc/sys/kernel/random/boot_id"

#: (when a look began, the names that are awaited; None where Slurm did not answer).
Look = Tuple[float, Optional[Collection[str]]]


def now() -> float:
    """Return the seconds since the machine's boot, also those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Looks:
    """The looks of all programs of one site, in its folder."""

    def __init__(self, folder: str, controller: Controller) -> None:
        self.controller, self.began = controller, now()
        self.path = os.path.join(folder, "awaited")
        with open(BOOT, encoding="ascii") as file:
            self.boot = file.read().strip()

    def awaited(self) -> Collection[str] | None:
        """Return the nodes that are awaited; None where no look says it that began after this one's first."""
        look = self._noted()
        if now() - look[0] >= EACH:
            look = self._look(look)
        return look[1] if look[0] >= self.began else None

    def _look(self, last: Look) -> Look:
        """Look, where nobody else does; return the last look that there is then."""
        with contextlib.ExitStack() as opened:
            try:
                file = opened.enter_context(open(f"{self.path}.lock", "a", encoding="ascii"))
            except OSError:
                return self._alone()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if now() - max(last[0], self.began) > STUCK:
                    self._pass_by(file)
                return last
            last = self._noted()
            if now() - last[0] < EACH:  # another's has come meanwhile
                return last
            look = self._asked()
            try:
                self._note(look)
            except OSError:  # no room: each looks by itself, and not more often together
                time.sleep(EACH)
            return look

    def _alone(self) -> Look:
        """Look where nobody can lock the file: there is no room for it, or it is another user's, and is made anew."""
        with contextlib.suppress(OSError):
            os.unlink(f"{self.path}.lock")
        time.sleep(EACH)
        return self._asked()

    def _asked(self) -> Look:
        began = now()
        try:
            return began, sorted(name for name, node in self.controller.nodes().items() if node.awaited)
        except SiteError:
            return began, None

    def _pass_by(self, file: IO[str]) -> None:
        """Have the next one that comes lock another file than this one, whose holder was stopped."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat(file.name).st_ino == os.fstat(file.fileno()).st_ino:
                os.unlink(file.name)

    def _note(self, look: Look) -> None:
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            json.dump([self.boot, *look], file)
        os.replace(file.name, self.path)

    def _noted(self) -> Look:
        """Return the last look; one before all others where there is none of this boot, or no whole one."""
        with contextlib.suppress(OSError, ValueError, TypeError), open(self.path, encoding="utf-8") as file:
            boot, began, names = json.load(file)
            if boot == self.boot and began <= now():
                return began, names
        return float("-inf"), None
