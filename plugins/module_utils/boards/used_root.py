# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody may be at work on a board whose boot nobody watched to its end: what its root tells.

A connection of its NFS client says so while it is there, and may be gone since. What a system that came up writes into
its root stays; one that hangs in its firmware, or for want of its root, has written nothing.
"""

from __future__ import annotations

import os

from ..errors import HeteroError
from ..images.provision import Place


def used_since(work, when):
    """Whether a board's root may have been used since a unix time; True where nobody can tell.

    :param when: when its boot began; None where that is not known.
    """
    if work.from_its_disk or when is None:
        return True
    try:
        root = Place(work.proxy, work.board).root
        return not root.is_mounted or changed_since(root.path, when)
    except (OSError, HeteroError):
        return True


def changed_since(folder, when):
    """Whether anything in a folder was made, changed or removed since a unix time, by the clock of its file system."""
    folders = [folder]
    while folders:
        looked_at = folders.pop()
        if os.lstat(looked_at).st_ctime >= when:
            return True
        with os.scandir(looked_at) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.stat(follow_symlinks=False).st_ctime >= when:
                    return True
    return False
