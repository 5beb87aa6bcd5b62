# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU behind a program that is run for each question (fence.py, script.py): what it said last, without secrets."""

from __future__ import annotations

import subprocess
from typing import Callable

from ...core.command import last_words
from ...core.errors import HeteroError, TimedOut
from ...core.output import TooMuch
from .driver import PowerDriver


class ProgramDriver(PowerDriver):
    """A driver that asks by a program, which is told the secrets and may say them again."""

    _hung: type[HeteroError] = TimedOut  #: what a program is that does not end
    _heard = ""

    def _words(self, done: subprocess.CompletedProcess[str]) -> str:
        """The last line that it said, errors rather than output."""
        return last_words(self._shown(done))

    def _shown(self, done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
        """Its end, with all that it said as people may see it."""
        said = dict(stdout=self.masked(done.stdout), stderr=self.masked(done.stderr))
        return subprocess.CompletedProcess((), done.returncode, **said)

    def _asked(
        self, run: Callable[[float], subprocess.CompletedProcess[str]], begin: str, called: str, remedy: str
    ) -> subprocess.CompletedProcess[str]:
        """What `run` returns: a program's end.

        :param run: called with the seconds that it may take.
        :param begin: in a verb what it does ("ask").
        :param called: what people call the program.
        :param remedy: what to do where it does not end.
        :raises TimedOut: there was no time left for it; what was heard last is told.
        :raises HeteroError: likewise, it did not end (`_hung`).
        """
        limit = self.deadline.left
        if not limit:
            raise TimedOut(self._last_heard(f"no time left to {begin} {called}"), self.name, "raise timeout")
        try:
            done = run(limit)
        except (TimedOut, TooMuch) as error:
            said = self.masked(error.facts.get("said", ""))
            self._heard = next(filter(None, map(str.strip, said.splitlines())), self._heard)
            if isinstance(error, TooMuch):
                raise TooMuch(error.what, error.thing, error.remedy, said=said) from error
            what = self._last_heard(f"{called} did not end within {limit:.1f} s")
            raise self._hung(what, self.name, remedy, said=said) from error
        self._heard = self._words(done)
        return done

    def _last_heard(self, what: str) -> str:
        return f"{what}; last heard: {self._heard}" if self._heard else what
