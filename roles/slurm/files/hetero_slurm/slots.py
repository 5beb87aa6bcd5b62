# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this controller knows of its slots by itself, in files: who works on one, whether it made the instance, whether
that is used up, and whose login it has.

`NAME.had`: an instance was asked for, and its end has not been seen. One without it was made by somebody else, who may
have it in use: nothing here ends it. `NAME.spent`: what there is of the slot is ended before the slot comes again.
`NAME.lent`: the job whose user has a login there (stand_in.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from contextlib import ExitStack, contextmanager
from typing import Iterable, Iterator

#: Seconds between two tries for a lock that another program has; flock has no time limit of its own.
TRY = 0.2


class Slots:
    """The records of one site, in its folder."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, "slots")
        os.makedirs(self.folder, exist_ok=True)

    @contextmanager
    def held(self, names: Iterable[str], seconds: float) -> Iterator[list[str]]:
        """Hold slots, so that no other program works on them; yield those that were had within `seconds`.

        One whose file cannot be opened is not had. A killed program lets go of its slots (flock). All take them in one
        order, so no two wait for each other.
        """
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            had = []
            for name in sorted(set(names)):
                try:
                    file = stack.enter_context(open(self._path(name, "lock"), "a", encoding="ascii"))
                except OSError as error:  # another user's, or a full disk; all other slots go on
                    logging.error("%s: nobody can work on this slot: %s", name, error)
                    continue
                if _locked(file.fileno(), until):
                    had.append(name)
            yield had

    def have(self, names: Iterable[str]) -> None:
        """Note, before they are asked for, that instances of these slots are this controller's."""
        self._note(names, "had")

    def had(self, name: str) -> bool:
        return os.path.exists(self._path(name, "had"))

    def every(self) -> set[str]:
        """Return the names of all slots that this controller has asked instances for, and not ended them."""
        return {name[: -len(".had")] for name in os.listdir(self.folder) if name.endswith(".had")}

    def spend(self, names: Iterable[str]) -> None:
        """Note that what there is of these slots is used up. It is noted before anything waits."""
        self._note(names, "spent")

    def spent(self, name: str) -> bool:
        return os.path.exists(self._path(name, "spent"))

    def lend(self, name: str, job: str) -> None:
        """Note, before it is done, that the user of a job gets a login in what there is of a slot.

        A program that is killed here leaves the note of an earlier login as it was.
        """
        new = self._path(name, "lending")
        with open(new, "w", encoding="ascii") as file:
            file.write(job)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path(name, "lent"))

    def lent(self, name: str) -> str:
        """Return whose login a slot has, as a job; "" where it has none."""
        with contextlib.suppress(FileNotFoundError), open(self._path(name, "lent"), encoding="ascii") as file:
            return file.read()
        return ""

    def close(self, name: str, why: str) -> None:
        """Note that a slot is taken out, and why: Slurm forgets it as it switches the slot off (power.suspend)."""
        with open(self._path(name, "closed"), "w", encoding="utf-8") as file:
            file.write(why)

    def closed(self, name: str) -> str:
        """Return why a slot was taken out, once; "" where it was not."""
        path = self._path(name, "closed")
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            why = file.read()
            os.unlink(path)
            return why
        return ""

    def ended(self, names: Iterable[str]) -> None:
        """Forget slots of which nothing is left."""
        for name in names:
            for what in ("spent", "lent", "had"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path(name, what))

    def _path(self, name: str, what: str) -> str:
        return os.path.join(self.folder, f"{name}.{what}")

    def _note(self, names: Iterable[str], what: str) -> None:
        for name in names:
            os.close(os.open(self._path(name, what), os.O_CREAT | os.O_WRONLY, 0o600))
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(descriptor: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(TRY)
