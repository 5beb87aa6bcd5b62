# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open files for work on many boards at once: the process raises its limit to what the system allows.

Work that would need more is refused before it begins.
"""

from __future__ import annotations

import resource

from .errors import Refused
from .this_node import THIS_NODE

#: Open files of a call besides those for each board: database, job file, watches, PDUs, and Python's own.
BESIDES = 128
#: Most open files for each board: its lock (1), an ssh client's pipes (2), and those of one being started (4).
OF_BOARD = 7


def make_room(boards: int) -> None:
    """Raise this process's limit of open files to what work on so many boards at once needs.

    :raises Refused: the system lets this process have fewer (the hard limit of RLIMIT_NOFILE).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = BESIDES + OF_BOARD * boards
    if needed <= soft or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        most = max(0, hard - BESIDES) // OF_BOARD
        what = f"need {needed} open files at once, and this process may have {hard}"
        remedy = (
            f"name at most {most} at once, or raise that limit on {THIS_NODE} (ulimit -Hn; LimitNOFILE of its sshd)"
        )
        raise Refused(what, f"{boards} boards", remedy)
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
