# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of one board's boot: where it stands, what was seen of it, and which phases that proves.

What is done about it is for boot_loop.py.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Union

from ...core.errors import StepFailed
from ...drivers.boot import blame
from ...drivers.boot.driver import FIRMWARE, KERNEL, NFS, STRANGERS, SYSTEM, TFTP
from ...drivers.boot.ssh import WrongHostKey
from ..work import console

if TYPE_CHECKING:
    from ..work.board_work import BoardWork

#: What a wait for ssh, or a look, ends with: whether the key was proven, one of presence.py's words, or an error.
Answer = Union[bool, str, WrongHostKey, StepFailed, None]
#: Where a board stands in the loop of boot_loop.py.
DECIDING, ASKED, SWITCHING, BOOTING = "deciding", "asked by ssh to reboot", "switching", "booting"
#: Its outlet was read as off, and it is heard whether it lives on all the same.
LISTENING = "listening"
#: Phase of the event of a reboot by ssh, and how its text ends once the boot began.
REBOOT, REQUESTED = "reboot", "boot request seen"
#: Strangers that are kept, of which anybody can feign any number.
MANY = 8
#: How the text of the event with which a boot begins ends, by phase.
BEGINS = {"power": "on, read back", REBOOT: REQUESTED}


class Boot:
    """One board's boot, which may be tried several times; `work` is the board's outcome."""

    def __init__(self, work: BoardWork) -> None:
        self.work = work
        self.board = work.board
        self.stage = DECIDING
        self.outlet_now: str | None = None  # "on" or "off", as read
        self.probe: Answer = None  # a board found on: whether it proved its key
        self.then: Any = None  # a function of the boot: what comes after its outlet was read back as off
        self.way = "off → on"
        self.doomed: Any = None  # the note with which it goes to error once its outlet was dealt with
        self.unheard = False  # it goes there for it made no request at all
        self.switch_seconds = 0.0
        self.powered: Any = None  # monotonic time of power on
        self.cycled = False  # this call saw its outlet off before
        self.used: bool | None = (
            False  # somebody may be at work since another process began it; None while that is looked up
        )
        self.taken_over: bool | None = False  # somebody may be, and its firmware asked for nothing since it is watched
        self.tries = 0
        self.kinds: dict[str, float] = {}  # kind seen: when
        self.asked: dict[str, float] = {}  # role of file asked for: when
        self.strangers: dict[tuple[str, str], float] = {}  # (kind, name) of those who stood in the proxy's place: when
        self.said: set[str] = set()
        self.early: list[str] = []  # what the proxy's self-test found while nothing was heard of it, in this try
        self.failed_step: StepFailed | None = None  # of this try
        self.console_from = 0
        self.cancelled = threading.Event()  # ends the present wait for ssh
        self.watching: threading.Event | None = None  # the wait for ssh whose answer counts
        self.has_power = threading.Event()  # ends the wait for signs of life that an outlet that is off would belie
        self.signs: list[str] | None = (
            None  # signs of life from before anything was switched, once they were listened for
        )

    @property
    def was_served(self) -> bool:
        """Whether it got so far that this node answered it: that it asks for an address alone is no sign of that."""
        return bool(self.asked or set(self.kinds) - {FIRMWARE})

    @property
    def may_be_at_work(self) -> bool:
        """Whether it has the root of an instance that ran before: seen in this boot, just now or by what it wrote."""
        has_root = self.taken_over or NFS in self.kinds or self.work.driver.has_root(self.board)
        return self.work.ran and has_root

    @property
    def console(self) -> str | None:
        """The log of the board's console, where its wiring names one."""
        return self.work.proxy.wiring(self.board).get("console")

    @property
    def flash(self) -> bool:
        """Whether its kernel comes from a flash memory of its own, so that it is not asked for."""
        return self.work.driver.from_flash(self.board)

    @property
    def roles(self) -> list[str]:
        """What it asked for of its own files, in that order."""
        return [role for role in self.asked if role != SYSTEM]

    def forget(self) -> None:
        """A new try begins."""
        self.taken_over = False
        self.kinds, self.asked, self.said, self.failed_step, self.strangers = {}, {}, set(), None, {}
        self.early = []
        self.console_from = blame.console_size(self.console)

    def take_up(self, phases: set[str], powered: float) -> None:
        """A boot that another process began: what it wrote down, and what can still be seen."""
        self.stage, self.powered, self.taken_over = BOOTING, powered, self.used
        self.said = phases & {"tftp", "flash", "nfs"}
        self.console_from = console.begins(self.work.proxy, self.board)
        if self.said and self.flash:
            self.kinds[SYSTEM] = powered
        elif self.said:
            self.asked[KERNEL] = self.kinds[TFTP] = powered
        for kind in self.work.driver.under_way(self.board):
            self.kinds.setdefault(kind, time.monotonic())

    def see(self, kind: str, name: str, at: float) -> None:
        """Something was seen of it."""
        if kind in STRANGERS:
            if len(self.strangers) < MANY:
                self.strangers.setdefault((kind, name), at)
            return
        role = self.work.driver.files(self.board).get(name) if kind == TFTP else None
        self.kinds.setdefault(kind, at)
        if kind == FIRMWARE or role:
            self.taken_over = False  # it begins anew, so whoever was at work there is not any more
        if kind == SYSTEM and KERNEL in self.asked:
            self.asked.setdefault(SYSTEM, at)
        if role:
            self.asked.setdefault(role, at)
        if self.stage == BOOTING:
            self.progress()

    def progress(self) -> None:
        """Say what is proven by now: all files are fetched once the kernel asks for its address or its root."""
        root_at = self.kinds.get(NFS)
        fetched_at = self.asked.get(SYSTEM, root_at)
        if KERNEL in self.asked and fetched_at is not None:
            self.phase("tftp", f"{', '.join(self.roles)} fetched", fetched_at)
        if self.flash and SYSTEM in self.kinds:
            self.phase("flash", "the kernel of its own flash runs", self.kinds[SYSTEM])
        if root_at is not None:
            self.phase("nfs", "root mounted", root_at)

    def phase(self, phase: str, text: str, at: float) -> None:
        """Say a phase, once a try."""
        if phase not in self.said:
            self.said.add(phase)
            self.work.phases[phase] = max(0.0, at - self.powered)
            self.work.say(phase, text, self.work.phases[phase])
