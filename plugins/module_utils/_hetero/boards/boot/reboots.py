# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboot boards: by ssh where that is wanted and possible, else by power; then follow each until it runs.

soft_reboot.py tells a board to reboot by ssh; starts.py does all else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Iterable

from ...core import askers
from ...core.deadline import Deadline
from ...drivers.boot.driver import FIRMWARE, SYSTEM
from ...site import board_states
from ..power.presence import ANOTHERS, OTHER_KEY, is_others
from ..records.board_records import SWITCH
from ..work import console
from . import power_marks
from .boot_progress import ASKED, BOOTING, DECIDING, REBOOT, REQUESTED
from .soft_reboot import HARD, SOFT, SoftReboot
from .starts import Starting

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from .boot_options import BootOptions
    from .boot_progress import Boot

#: (before, after) of the diff of a reboot by ssh.
ANEW = {"boot": "the present one"}, {"boot": "another one"}


class Rebooting(Starting):
    """Bring boards to state running by a new boot, whatever they do now.

    :param options: lifecycle.Options; `how` says whether by ssh or by power.
    """

    def __init__(self, proxy: Proxy, works: Iterable[BoardWork], options: BootOptions) -> None:
        super().__init__(proxy, works, options, reboot=True)
        self._softs: dict[int, SoftReboot] = {}

    @property
    def _only_soft(self) -> bool:
        return self.options.how == SOFT

    def _decide(self, boot: Boot) -> None:
        if self.options.how == HARD or boot.stage != DECIDING or boot.outlet_now is None:
            super()._decide(boot)
        else:
            self._tell(boot)

    def _tell(self, boot: Boot) -> None:
        """Tell the board by ssh to reboot; its boot request begins the boot."""
        work = boot.work
        soft = self._softs[boot.board.id] = SoftReboot(boot, self.options.soft_timeout)
        obstacle = soft.obstacle()
        if obstacle:
            self._not_told(boot, obstacle)
            return
        if self.check:
            work.note(work.board.name, *ANEW)
            work.say(REBOOT, "would be told by ssh" + ("" if self._only_soft else ", else by power"))
            work.over = True
            return
        boot.stage = ASKED
        askers.asked_by(None)  # this has begun: its PDU is not refused to it, should the board need that
        console.begin_anew(self.proxy, boot.board)
        boot.forget()
        mark = power_marks.begins(self.proxy, boot.board)
        self.proxy.store.event(boot.board.id, SWITCH, "is to be told by ssh to reboot")
        self._then(mark)
        self._spawn(lambda: self._post(self._on_told, boot, time.monotonic(), soft.run(), time.monotonic()))

    def _seen(self, board_id: int, kind: str, name: str, at: float) -> None:
        super()._seen(board_id, kind, name, at)
        boot = self.boots[board_id]
        # Any program on the board may send TFTP requests, but only its firmware asks for its boot files.
        if boot.stage == ASKED and (kind == FIRMWARE or boot.asked or (boot.flash and kind == SYSTEM)):
            self._softs[board_id].requested.set()

    def _on_told(self, boot: Boot, since: float, failure: str | None, at: float) -> None:
        if failure:
            self._not_told(boot, failure)
            return
        boot.work.note(boot.board.name, *ANEW)
        boot.work.driver.boots_anew(boot.board)
        boot.work.move(board_states.BOOTING)
        boot.work.phases[REBOOT] = at - since
        boot.work.say(REBOOT, f"told by ssh, {REQUESTED}", at - since)
        boot.stage, boot.powered, boot.tries = BOOTING, at, 1
        self._follow(boot, Deadline(self.options.timeout))

    def _not_told(self, boot: Boot, why: str) -> None:
        work = boot.work
        if self._only_soft:
            work.say("error", f"not rebooted, the board is left as it is: {why}")
            work.fail(None, f"{work.board.name}: not rebooted: {why}: {self._softs[boot.board.id].remedy}")
        elif boot.outlet_now == "off" or self.check:
            self._by_power(boot, why)
        else:
            boot.stage = ASKED
            self._spawn(lambda: self._post(self._on_whose, boot, why, is_others(work, boot.cancelled)))

    def _on_whose(self, boot: Boot, why: str, others: bool) -> None:
        if others:
            self._leave(boot, ANOTHERS)
        else:
            boot.stage, boot.answered_at = DECIDING, time.monotonic()
            self._by_power(boot, why)

    def _spares(self, boot: Boot, shown: str, used: bool) -> bool:
        return super()._spares(boot, shown, used) if boot.tries else shown == OTHER_KEY

    def _found_in_use(self, boot: Boot, shown: str, used: bool) -> None:
        self._undo_note(boot)
        self._leave(boot, ANOTHERS)

    def _by_power(self, boot: Boot, why: str) -> None:
        if boot.outlet_now == "on" and not self._was_ours(boot):
            self._leave_nobodys(boot)
            return
        boot.work.say(REBOOT, f"by power: {why}")
        (self._found_off if boot.outlet_now == "off" else self._cold_start)(boot)
