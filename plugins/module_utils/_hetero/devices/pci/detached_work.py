# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that the kernel may keep waiting for ever, in a process of its own that nobody has to wait for.

A thread would not do: a process does not end while one of its threads sleeps in the kernel.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Collection, Iterable, NoReturn

#: Takes `tell`, a function that sends an answer (bytes).
Work = Callable[[Callable[[bytes], object]], None]


def detached(work: Work, keep: Iterable[int] = ()) -> tuple[int, int]:
    """Start `work(tell)` in a process of its own; return (its pid, descriptor from which its answers are read).

    :param keep: descriptors that the work needs. All others are closed in it, because Ansible waits for their end.
    """
    answers, told = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, {*keep, told}, told)
    os.close(told)
    return child, answers


def _child(work: Work, keep: Collection[int], told: int) -> NoReturn:
    """Do the work and end the process, whatever happens: the caller's code must not go on in both processes."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in [int(name) for name in os.listdir("/proc/self/fd")]:
            if number > 2 and number not in keep:
                with contextlib.suppress(OSError):  # the descriptor by which the folder was read
                    os.close(number)
        work(lambda answer: os.write(told, answer))
    finally:
        os._exit(0)


def started(pid: int, proc: str = "/proc") -> int | None:
    """Return when a process began, in the kernel's ticks, or None if it has ended.

    A pid that is used again began later.
    """
    fields = _stat(pid, proc)
    return None if fields is None else int(fields[19])  # proc(5): field 22


def sleeps_in_kernel(pid: int, proc: str = "/proc") -> bool:
    """Return whether a process sleeps in the kernel and cannot be interrupted."""
    fields = _stat(pid, proc)
    return fields is not None and fields[0] == "D"


def _stat(pid: int, proc: str) -> list[str] | None:
    """Return the fields of a process's stat file from its state on, or None if it has ended."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields
