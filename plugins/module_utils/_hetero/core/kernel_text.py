# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of /proc, line by line as the kernel writes them.

A tenant chooses some of their text: names of threads, mapped files, cgroups. The kernel writes a line feed there as
\\012 and leaves all else, also what Python's text files and str.splitlines take for the end of a line: a thread that
calls itself "a\\rCapBnd:\\t0" would have a line of its own in /proc/PID/status.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

#: What the kernel writes in mountinfo for blanks, line feeds, backslashes, and commas in an option.
_OCTAL = re.compile(r"\\([0-7]{3})")


class MountLine(NamedTuple):
    """A line of mountinfo (proc(5)).

    :param number: the mount's id.
    :param system: the file system's major:minor.
    :param root: path in the file system of what is mounted.
    :param options: of the file system; those of the mount itself are left out.
    """

    number: str
    system: str
    root: str
    point: str
    kind: str
    source: str
    options: tuple[str, ...]


def lines_of(path: str) -> list[str]:
    """Return the lines of a file of /proc, without their ends.

    :raises OSError: it cannot be read; of a process that has ended, ProcessLookupError or FileNotFoundError.
    """
    return _lines(_text(path))


def _text(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return file.read().decode("utf-8", "surrogateescape")


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n") if text else []


def status_of(pid: int | str, field: str, proc: str = "/proc") -> str:
    """Return a field of a process's status, such as PPid.

    :raises OSError: the process has ended.
    :raises StopIteration: the kernel has no such field.
    """
    lines = lines_of(os.path.join(proc, str(pid), "status"))
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:"))


def mount_table(proc: str = "/proc", pid: int | str = "self") -> list[MountLine]:
    """Return what is mounted for a process, this one or another, in the order of mounting.

    :raises OSError: it cannot be read.
    """
    return list(_mount_lines(_text(os.path.join(proc, str(pid), "mountinfo"))))


@functools.lru_cache(maxsize=1)
def _mount_lines(text: str) -> tuple[MountLine, ...]:
    """Return what mountinfo says. A verb asks for it a dozen times, and it rarely differs."""
    return tuple(map(_mount_line, _lines(text)))


def _mount_line(line: str) -> MountLine:
    # the fields before the lone "-" end with any number of optional ones
    fields, _dash, more = line.partition(" - ")
    number, _parent, system, root, point = fields.split(" ")[:5]
    kind, source, options = more.split(" ")[:3]
    shown = tuple(map(_plain, options.split(",")))
    return MountLine(number, system, _plain(root), _plain(point), kind, _plain(source), shown)


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), text)
