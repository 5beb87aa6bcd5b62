# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that is killed where it comes to a certain method."""

from __future__ import annotations

import os
import signal


def killed_at(owner, name, work):
    """Have `work()` done by a process that gets SIGKILL when it calls `owner.name`."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            setattr(owner, name, lambda *_args, **_more: os.kill(os.getpid(), signal.SIGKILL))
            work()
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), f"it never came to {name}"
