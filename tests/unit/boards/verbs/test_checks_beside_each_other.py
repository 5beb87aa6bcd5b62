# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of checks at the same time: the timer's, and one by hand. If these fail, the second one says that boards
failed which the first one is still testing.
"""

from __future__ import annotations

import os
import signal

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import checks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.board_states import CHECKING
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import disks, own_mounts
from ansible_collections.hetero.compute.tests.unit.boards.verbs.test_checks import site

__all__ = ["disks", "own_mounts", "site"]


def test_what_another_run_checks_is_not_checked_by_all_idle_ones(site):
    """Lost: the word of the second run, which failed by each board of the first, after five seconds."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", CHECKING)
        proxy.store.move(0, "shutting down", CHECKING)
        assert 0 in checks.idle(proxy)[0], "one whose check was killed is taken up"
        run = proxy.config.run_folder
    child = os.fork()
    if not child:
        with locks.lock(run, "board0", "check", "timer", Deadline(5)):
            signal.pause()
    try:
        end = Deadline(20)
        while locks.held_by(run, "board0") is None and not end.passed:
            end.nap(0.02)
        with site.proxy() as proxy:
            ids, whys = checks.idle(proxy)
        assert 0 not in ids
        assert "check" in whys["board0"]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
