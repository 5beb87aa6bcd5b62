# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root must have in /etc/subuid and /etc/subgid (subuid(5)) so that each container gets ids of its own.

Others have ranges there, too, which must not be ours: a process of theirs would own what lies in our containers.
"""

from __future__ import annotations

from ...core.findings import Findings
from ...core.machine import text_of
from ...hypervisors.lxc.id_maps import COUNT, FILES, common, ranges

#: Ids for a thousand containers, each with as many as Debian's nobody (65534) needs.
ALL = 1000 * COUNT
#: Where LXD and Incus begin with theirs; useradd gives people ranges from 100000 on, and looks at what is taken.
FIRST = 1000000
#: The highest id that a file can belong to (-1 is "no change" to chown(2)).
LAST = (1 << 32) - 2


def wanted(found: Findings, files: tuple[str, ...] = FILES) -> dict[str, str]:
    """Return {file: the line that it must have}: a range of root's that both have, or one that nobody has.

    :param found: gets a note for a range of root's that others share, and for one with room for few containers.
    """
    texts = {path: text_of(path) for path in files}
    start, end = max(common(list(texts.values())), key=lambda span: span[1] - span[0], default=(0, 0))
    if end - start < COUNT:
        start = _free([one for text in texts.values() for one in ranges(text)], found)
        return dict.fromkeys(files, f"root:{start}:{ALL}")
    lines = {}
    for path, text in texts.items():
        own = next(span for span in ranges(text, "root") if span[0] <= start < sum(span))
        lines[path] = f"root:{own[0]}:{own[1]}"
        others = [span for span in ranges(text) if _overlap((start, end - start), span)]
        if len(others) > 1:
            what = f"root's range {start}:{end - start} is another user's, too"
            found.note(path, what, "give one of them another range, or that user owns what lies in containers")
    room = (end - start) // COUNT
    if room < 100:
        what = f"root's ids {start} to {end - 1} are enough for {room} container{'s' if room > 1 else ''} at a time"
        found.note(files[0], what, f"give root a wider range in {' and '.join(files)}")
    return lines


def _free(taken: list[tuple[int, int]], found: Findings) -> int:
    """Return the first id of a range behind FIRST, or behind what lies there already."""
    first = FIRST
    for start, count in sorted(taken):
        if _overlap((first, ALL), (start, count)):
            first = start + count
    if first + ALL - 1 > LAST:
        what = f"there are no {ALL} ids behind {first}"
        found.defect(FILES[0], what, "give root a range there by hand, or set gpu_lxc_unprivileged: false")
    return first


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]
