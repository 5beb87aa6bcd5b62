# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open files for work on many boards at once: the process takes as many as it may have, and what would need more is
refused before anything is begun.
"""

from __future__ import annotations

import resource

from .errors import Refused
from .this_node import THIS_NODE

#: Open files of a call on boards besides those of its boards: database, job, watches, PDUs, what Python holds.
BESIDES = 128
#: Of each board at most: its lock (1), and an ssh client's pipes (2) and those of one that is being started (4).
OF_BOARD = 7


def make_room(boards: int) -> None:
    """Have enough open files for work on so many boards at once.

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
