# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids that containers' users have on this host: root's ranges in /etc/subuid and /etc/subgid (subuid(5)).

Others have ranges there, too, which must not be ours: a process of theirs would own what lies in our containers.
"""

from __future__ import annotations

from ..node.machine import text_of

FILES = {"u": "/etc/subuid", "g": "/etc/subgid"}
#: Ids of one container, and of all of them: as many as Debian's nobody (65534) needs, for a thousand containers.
ONE = 65536
ALL = 1000 * ONE
#: Where LXD and Incus begin with theirs; useradd gives people ranges from 100000 on, and looks at what is taken.
FIRST = 1000000


def ranges(text, user=None):
    """[(first, count)] of a file, of one user or of all; lines that say nothing are left out."""
    found = []
    for line in text.splitlines():
        fields = line.split("#")[0].strip().split(":")
        if len(fields) == 3 and fields[1].isdigit() and fields[2].isdigit() and user in (None, fields[0]):
            found.append((int(fields[1]), int(fields[2])))
    return found


def wanted(found, files=None):
    """{file: the line that it must have}: root's largest range, or one that nobody has.

    :param found: Findings; a range of root's that others share is a note.
    """
    lines = {}
    for path in (files or FILES).values():
        text = text_of(path)
        own = max(ranges(text, "root"), key=lambda span: span[1], default=(0, 0))
        if own[1] < ONE:
            own = _free(ranges(text))
        elif sum(_overlap(own, other) for other in ranges(text)) > 1:
            what = f"root's range {own[0]}:{own[1]} is another user's, too"
            found.note(path, what, "give one of them another range, or that user owns what lies in containers")
        lines[path] = f"root:{own[0]}:{own[1]}"
    return lines


def _free(taken):
    """A range behind FIRST, or behind what lies there already."""
    first = FIRST
    for start, count in sorted(taken):
        if _overlap((first, ALL), (start, count)):
            first = start + count
    return first, ALL


def _overlap(one, other):
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]
