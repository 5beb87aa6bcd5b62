# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboot a board by ssh: the proxy tells it by its own key, and the reboot counts once the boot request is seen.

The request comes from the firmware, so a system that answers ssh after it is a newly booted one. reboots.py follows the
boot, and decides about a board that does not reboot.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.plays import play
from ...drivers.boot import blame
from ...roots.reboot_key import MARK, private_key, wanted
from ..power.presence import CONNECT

if TYPE_CHECKING:
    from .boot_progress import Boot

AUTO, SOFT, HARD = "auto", "soft", "hard"
#: Seconds between two looks whether the command on the board has failed.
TICK = 0.1


class SoftReboot:
    """One board's reboot by ssh.

    :param seconds: seconds within which its boot request must come.
    """

    def __init__(self, boot: Boot, seconds: float) -> None:
        self.boot = boot
        self.seconds = seconds
        self.requested = threading.Event()  # to be set when its boot request is seen
        self.silent = False  # True where nothing at all came from the board

    def obstacle(self) -> str | None:
        """Return why the board cannot be told by ssh to reboot; None where it can."""
        work = self.boot.work
        if not wanted(work.proxy):
            return "reboot by ssh is turned off (soft_reboot)"
        if self.boot.outlet_now == "off":
            return f"{work.outlet_name} is off"
        if not os.path.exists(private_key(work.proxy)):
            return "its root has no line for it: the next provision or rebuild puts one in"
        return None

    def run(self) -> str | None:
        """Tell the board and wait for its boot request; return None when it came, else why it did not, as a text."""
        why = self._told()
        self.silent = bool(why) and self._is_silent()
        return f"{why}; nothing at all was heard of it since: {self._unheard}" if self.silent else why

    @property
    def remedy(self) -> str:
        """Return what a person does with a board that did not reboot, and whose power was not cut."""
        name = self.boot.work.instance
        if not self.silent:
            return f"by power, where ssh does not do: {play('reboot_instance', instance=name, how=AUTO)}"
        look = f"look at its console ({play('console', instance=name)}), or " if self.boot.console else ""
        return f"{look}have its power cut: {play('reboot_instance', instance=name, how='hard')}"

    def _is_silent(self) -> bool:
        """Return whether the board is silent since it was told: no packet, no console output, no answer now."""
        boot = self.boot
        spoke = boot.kinds or blame.has_spoken(boot.console, boot.console_from)
        if spoke or boot.cancelled.is_set() or boot.work.driver.alive(boot.board, CONNECT):
            return False
        return not blame.has_spoken(boot.console, boot.console_from)

    @property
    def _unheard(self) -> str:
        console = "its console says nothing" if self.boot.console else "it has no console"
        return f"no answer at {self.boot.work.driver.address(self.boot.board)}, no boot request, {console}"

    def _told(self) -> str | None:
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
