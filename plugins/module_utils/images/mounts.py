# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mount(2) and umount(2), giving an error number where mount(8) has only words, and the table of what is mounted."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass

#: <linux/mount.h>: nobody here may gain rights by a set-uid file or a device node that a tenant made in its root.
MS_NOSUID, MS_NODEV = 2, 4


@dataclass(frozen=True)
class Mount:
    """What is mounted at a point, with the options of its file system."""

    kind: str
    source: str
    options: tuple

    @property
    def lower(self):
        """An overlay's lower folder, else None."""
        found = [option.partition("=")[2] for option in self.options if option.startswith("lowerdir=")]
        return _unescape(found[0]) if found else None


def mount_overlay(source, point, options):
    """Mount an overlay; 0, or the error number."""
    flags = MS_NOSUID | MS_NODEV
    return _call("mount", os.fsencode(source), os.fsencode(point), b"overlay", flags, os.fsencode(options))


def unmount(point):
    """Unmount; 0, or the error number."""
    return _call("umount2", os.fsencode(point), 0)


def mounts_below(folder):
    """{mount point: Mount} of a folder and everything below it; of several at one point the last, which is seen."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            # proc(5): the mount point is field 5; after a lone "-" come type, source and options of the file system.
            fields, dash, rest = line.partition(" - ")
            point = _unescape(fields.split()[4])
            if point == folder or point.startswith(f"{folder}/"):
                kind, source, options = rest.split()[:3]
                found[point] = Mount(kind, source, tuple(options.split(",")))
    return found


def _unescape(text):
    """Blanks and the like are written as \\040 there."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if getattr(libc, name)(*arguments) else 0
