# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs behind a program that runs for each question (fence.py, script.py): its last words, without secrets."""

from __future__ import annotations

import subprocess
from typing import Callable

from ...core.command import last_words
from ...core.errors import HeteroError, TimedOut
from ...core.output import TooMuch
from ...core.printable import brief
from .driver import PowerDriver

#: Most characters that are kept of what a program said before it was killed.
KEPT = 2000


class ProgramDriver(PowerDriver):
    """A driver that asks by a program, which gets the secrets and may print them."""

    _hung: type[HeteroError] = TimedOut  #: the error if the program does not end
    _heard = ""

    def _words(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return the last line that it printed, on standard error rather than output."""
        return last_words(self._shown(done))

    def _shown(self, done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
        """Return its end with all its output masked."""
        said = dict(stdout=self.masked(done.stdout), stderr=self.masked(done.stderr))
        return subprocess.CompletedProcess((), done.returncode, **said)

    def _asked(
        self, run: Callable[[float], subprocess.CompletedProcess[str]], begin: str, called: str, remedy: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program by `run` and return its end.

        :param run: takes the seconds that it may last.
        :param begin: what it does, as a verb ("ask").
        :param called: the program's name for people.
        :param remedy: what to do if it does not end.
        :raises TimedOut: no time was left for it; the text has what was heard last.
        :raises HeteroError: it did not end (of class `_hung`); the text has what was heard last.
        """
        limit = self.deadline.left
        if not limit:
            raise TimedOut(self._last_heard(f"no time left to {begin} {called}"), self.name, "raise timeout")
        try:
            done = run(limit)
        except (TimedOut, TooMuch) as error:
            said = brief(self.masked(error.facts.get("said", "")), KEPT)
            self._heard = brief(next(filter(None, map(str.strip, said.splitlines())), self._heard))
            if isinstance(error, TooMuch):
                raise TooMuch(error.what, error.thing, error.remedy, said=said) from error
            what = self._last_heard(f"{called} did not end within {limit:.1f} s")
            raise self._hung(what, self.name, remedy, said=said) from error
        self._heard = self._words(done)
        return done

    def _last_heard(self, what: str) -> str:
        return f"{what}; last heard: {self._heard}" if self._heard else what
