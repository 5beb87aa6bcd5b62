# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebooting a board by ssh: told by the proxy's own key, and done only when the board's boot request is seen.

The request comes from the firmware, so whatever answers ssh after it is not the system of before. What becomes of the
boot from there on, and of a board that does not do it, is rebooting.py's.
"""

from __future__ import annotations

import os
import threading

from ..deadline import Deadline
from ..errors import HeteroError
from ..images.reboot_key import MARK, private_key, wanted

AUTO, SOFT, HARD = "auto", "soft", "hard"
#: Longest interval in which a command on the board that ended badly goes unnoticed (seconds).
TICK = 0.1


class SoftReboot:
    """One board's reboot by ssh.

    :param boot: booting.Boot.
    :param seconds: how long its boot request may take.
    """

    def __init__(self, boot, seconds):
        self.boot = boot
        self.seconds = seconds
        self.requested = threading.Event()  # to be set when its boot request is seen

    def obstacle(self):
        """Why it cannot be asked at all; None where it can."""
        work = self.boot.work
        if not wanted(work.proxy):
            return "reboot by ssh is turned off (soft_reboot)"
        if self.boot.outlet_now == "off":
            return f"{work.outlet_name} is off"
        if not os.path.exists(private_key(work.proxy)):
            return "its root has no line for it: the next provision or rebuild puts one in"
        return None

    def run(self):
        """Tell the board and wait for its boot request; None when it came, else why not."""
        work = self.boot.work
        try:
            deadline = Deadline(self.seconds)
            told = work.driver.told_to_reboot(work.board, work.system, private_key(work.proxy), MARK, deadline)
            with told as refusal:
                while not self.requested.wait(TICK) and not self.boot.cancelled.is_set():
                    said = refusal()
                    if said:
                        return f"it was told by ssh, and said: {said}"
                    if deadline.passed:
                        return f"it was told by ssh, and no boot request came within {self.seconds:g} s"
        except HeteroError as error:
            return error.what
        return None
