# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of one board's boot: its stage, what was seen of the board, and which phases that proves.

boot_loop.py acts on it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Union

from ...core.deadline import Deadline
from ...core.errors import StepFailed
from ...drivers.boot import blame
from ...drivers.boot.driver import FILES, FIRMWARE, HTTP, KERNEL, NFS, STRANGERS, SYSTEM, TFTP
from ...drivers.boot.ssh import WrongHostKey
from ..work import console

if TYPE_CHECKING:
    from ..work.board_work import BoardWork
    from .undone_cuts import Undo

#: The result of a wait for ssh or of a look: whether the key was proven, one of presence.py's words, or an error.
Answer = Union[bool, str, WrongHostKey, StepFailed, None]
#: Stages of a board in the loop of boot_loop.py.
DECIDING, ASKED, SWITCHING, BOOTING = "deciding", "asked by ssh to reboot", "switching", "booting"
#: The stage of a board whose outlet was read as off, while the loop listens for signs of life from it.
LISTENING = "listening"
#: The stage of a board that did not come up, while its outlet is read before the board is left on (left_on.py).
LOOKING = "its outlet is read"
#: The stage of a board that waits for a place among those that boot (boot_places.py).
QUEUED = "queued"
#: Phase of the event of a reboot by ssh, and how its text ends once the boot began.
REBOOT, REQUESTED = "reboot", "boot request seen"
#: How the outlet of a board is switched that was found off.
FROM_OFF = "off → on"
#: Most strangers that are kept, for any machine on the network can feign any number of them.
MANY = 8
#: {phase: the end of the text of the event with which a boot begins}.
BEGINS = {"power": "on, read back", REBOOT: REQUESTED}


class Boot:
    """One board's boot, which may be tried several times; `work` is the board's outcome."""

    def __init__(self, work: BoardWork) -> None:
        self.work = work
        self.board = work.board
        self.stage = DECIDING
        self.outlet_now: str | None = None  # "on" or "off", as read
        self.probe: Answer = None  # a board found on: whether it proved its key
        self.is_probed = False  # whether that was asked, so that an answer will come
        self.answered_at: float | None = None  # monotonic time of the board's newest answer, or of its silence
        self.outlet_at = 0.0  # monotonic time when the outlet was read
        self.then: Any = None  # a function that is called with this boot once its outlet was read back as off
        self.way = FROM_OFF
        self.doomed: Any = None  # the note with which the board goes to state error once its outlet was dealt with
        self.stalled = ("", "")  # why it did not come up, and at whose fault, until its outlet was read
        self.unheard = False  # True where it goes there because it made no request at all
        self.switch_seconds = 0.0
        self.powered: Any = None  # monotonic time of power on
        self.cycled = False  # True once this call has seen its outlet off
        self.undo: Undo | None = None  # why its outlet is being switched on again
        self.off = Deadline(0)  # counts from when its outlet was read back as off
        self.used: bool | None = (
            False  # True: a tenant may be at work since another process began this boot; None: not looked up yet
        )
        self.root_at: float | None = None  # monotonic time when its root was looked into for that
        self.since: tuple[float | None, set[str]] = (None, set())  # of its present boot, as since_found says
        self.changed = False  # whether its work had changed anything before its power was to be cut
        self.spared = 0  # how often it was to be cut, and was not
        self.taken_over: bool | None = False  # as `used`, until this call sees its firmware ask for anything
        self.was_cut = False  # whether a PDU said that it was off while it was to boot; that may have been wrong
        self.tries = 0
        self.kinds: dict[str, float] = {}  # kind of request seen: monotonic time
        self.asked: dict[str, float] = {}  # role of a file that it asked for: monotonic time
        self.by_http = False  # whether it asked for its kernel by HTTP
        self.strangers: dict[tuple[str, str], float] = {}  # (kind, name) of machines that answered as the proxy: time
        self.said: set[str] = set()
        self.early: list[str] = []  # faults that the proxy's self-test found in this try while the board was silent
        self.failed_step: StepFailed | None = None  # the driver's step that failed in this try
        self.console_from = 0
        self.cancelled = threading.Event()  # ends the present wait for ssh
        self.watching: threading.Event | None = None  # the wait for ssh whose answer counts
        self.has_power = threading.Event()  # set when the outlet is seen on: ends the wait for signs of life while off
        self.signs: list[str] | None = (
            None  # signs of life from before anything was switched, once they were listened for
        )
        self.signs_at = 0.0  # monotonic time when that ended
        self.queued_at = 0.0  # monotonic time since when it waits for a place among those that boot

    @property
    def was_served(self) -> bool:
        """Return whether this node has served it: it asked for a file, or for more than an address."""
        return bool(self.asked or set(self.kinds) - {FIRMWARE})

    @property
    def may_be_at_work(self) -> bool:
        """Return whether its instance ran before, and the board has mounted that root, or may have by now."""
        has_root = self.taken_over or NFS in self.kinds or self.work.driver.has_root(self.board)
        return self.work.ran and has_root

    @property
    def console(self) -> str | None:
        """The log of the board's console, where its wiring names one."""
        return self.work.proxy.wiring(self.board).console

    @property
    def flash(self) -> bool:
        """Return whether the board's kernel comes from its own flash memory, so that it does not ask for one."""
        return self.work.driver.from_flash(self.board)

    @property
    def roles(self) -> list[str]:
        """Return the roles of the files that the board asked for, in that order, without the system's request."""
        return [role for role in self.asked if role != SYSTEM]

    def decide_anew(self) -> None:
        """Forget what was seen of a board before anything was done with it."""
        self.stage, self.outlet_now, self.outlet_at = DECIDING, None, 0.0
        self.probe, self.is_probed, self.answered_at = None, False, None
        self.signs, self.signs_at = None, 0.0
        self.has_power = threading.Event()

    def forget(self) -> None:
        """Begin a new try: forget all that was seen in the one before."""
        self.taken_over = self.was_cut
        self.kinds, self.asked, self.said, self.failed_step, self.strangers = {}, {}, set(), None, {}
        self.by_http = False
        self.early = []
        self.console_from = blame.console_size(self.console)

    def take_up(self, phases: set[str], powered: float) -> None:
        """Take over a boot that another process began.

        :param phases: phases that the other process wrote down.
        :param powered: monotonic time of power on.
        """
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
        """Record something that was seen of the board.

        :param kind: one of the boot driver's kinds of requests.
        :param name: the file that the board asked for, or the stranger's name.
        :param at: monotonic time.
        """
        if kind in STRANGERS:
            if len(self.strangers) < MANY:
                self.strangers.setdefault((kind, name), at)
            return
        role = self.work.driver.files(self.board).get(name) if kind in FILES else None
        self.by_http = self.by_http or (kind == HTTP and role == KERNEL)
        self.kinds.setdefault(TFTP if kind in FILES else kind, at)
        if kind == FIRMWARE or role:
            self.taken_over = False  # the board boots anew, so nobody is at work on it any more
        if kind == SYSTEM and KERNEL in self.asked:
            self.asked.setdefault(SYSTEM, at)
        if role:
            self.asked.setdefault(role, at)
        if self.stage == BOOTING:
            self.progress()

    def progress(self) -> None:
        """Report the phases that are proven: all files are fetched once the kernel asks for its address or its root."""
        root_at = self.kinds.get(NFS)
        fetched_at = self.asked.get(SYSTEM, root_at)
        if KERNEL in self.asked and fetched_at is not None:
            way = " by HTTP" if self.by_http else ""
            self.phase("tftp", f"{', '.join(self.roles)} fetched{way}", fetched_at)
        if self.flash and SYSTEM in self.kinds:
            self.phase("flash", "the kernel of its own flash runs", self.kinds[SYSTEM])
        if root_at is not None:
            self.phase("nfs", "root mounted", root_at)

    def phase(self, phase: str, text: str, at: float) -> None:
        """Report a phase, once in a try."""
        if phase not in self.said:
            self.said.add(phase)
            self.work.phases[phase] = max(0.0, at - self.powered)
            self.work.say(phase, text, self.work.phases[phase])
