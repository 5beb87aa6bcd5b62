# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One board within one call of a verb: what was found, reached and said, and its part of the result.

How a board is started or stopped is for boot/starts.py and boot/stops.py, which hold one of these a board.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ...core.errors import BadInput, HeteroError, Refused
from ...core.locks import lock
from ...drivers.boot.blame import BOARD, IMAGE, INSTANCE, NETWORK, PROXY
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT, System
from ...roots.ownership import forgotten_of, refuse_anothers
from ...site import board_states
from ..records.store import must_be_of

#: Ways through the states that a verb may need in one go.
WAYS = {
    (board_states.POWER_OFF, board_states.RUNNING): [board_states.BOOTING, board_states.RUNNING],
    (board_states.SHUTTING_DOWN, board_states.RUNNING): [
        board_states.POWER_OFF,
        board_states.BOOTING,
        board_states.RUNNING,
    ],
    (board_states.SHUTTING_DOWN, board_states.BOOTING): [board_states.POWER_OFF, board_states.BOOTING],
}

#: Whose fault, the worst first: a proxy's or a network's hits all its boards, a board's only itself. An instance that
#: ran before is by itself: what comes of it is its owner's decision, whatever is at fault.
BLAME = (PROXY, NETWORK, IMAGE, BOARD, INSTANCE)


class BoardWork:
    """A board, its record and claim (read once its lock is held), and the outcome so far.

    `up` is the phase, and its text, that a board reaches when it proved its key.

    :param change: the call's Change; also says whether this is check mode.
    :param wanted: the instance or request that the board is to be of; None does not ask.
    :param created: when the claims were made that it is to be of; none does not ask.
    """

    up = ("running", "ssh answers")

    def __init__(self, proxy, board, change, wanted=None, created=()):
        self.proxy = proxy
        self.board = board
        self.change = change
        self.wanted, self.created = wanted, created
        self.pdu: Any = None  # its name, and the outlet's, once its lock is held
        self.outlet: Any = None
        #: What power/last_outlet.py found: why that outlet is not to be switched off, and whether it may be switched
        #: on.
        self.doubt: Any = None
        self.off_by_all, self.wiring_seen = False, False
        #: Why it is not switched off where it is on: only the database says that the board is its claim's.
        self.unproven: Any = None
        self.record: Any = None  # recorded.Record, once its lock is held
        self.began = None  # the state that it was found in
        self.driver: Any = None  # boot.driver.BootDriver
        self.changed = False
        self.failed = False
        self.blame = None
        self.error = None
        self.evidence = {}
        self.phases = {}
        self.power_proof: Any = None
        self.key_proof: str | None = None  # of a RAM system: how the proxy knows that its host key is the board's
        self.lines = []
        self.over = False
        #: What is done with it is done only where its outlet is off: one that is on may be somebody at work.
        self.only_from_off = False
        #: Whether a boot of it that nobody watched may be at work from its own disk: nothing of that is seen from here.
        self.from_its_disk = False
        #: Why its tenant's disk was left as it is: what was looked for there was not seen.
        self.disk_left = ""
        #: In a dry run that comes after those of a rebuild and of a power off: what is there is taken as gone.
        self.as_rebuilt = False

    @property
    def claim(self):
        return self.record.claim if self.record else None

    @property
    def ran(self):
        """Whether what it is claimed for ran on it, and may be at work there."""
        return bool(not self.as_rebuilt and self.claim and self.proxy.store.has_run(self.claim))

    @property
    def never_had_power(self):
        """Whether its claim's board never had power for it: where it is on, somebody else may be at work there.

        A database that knows nothing of a root of the claim that lies here is behind, and of power, too.
        """
        if self.as_rebuilt or not self.claim or self.proxy.store.had_power(self.claim):
            return False
        return not forgotten_of(self.proxy, self.board, self.claim)

    @property
    def stays_on(self):
        """Whether its outlet is not switched off for its silence: it ran from its own disk, with its tenant's work."""
        return self.ran and self.claim.boot_source == DISK_ROOT

    @property
    def system(self):
        """The System whose answer counts: the claim's."""
        claim = self.claim
        return System(None, claim.boot_source or NFS_ROOT, claim.host_key) if claim else System(None)

    @property
    def image_name(self):
        """What it boots, for people."""
        return f"image {self.claim.image}" if self.claim else "no image"

    @property
    def instance(self):
        return self.claim.instance if self.claim else None

    @property
    def state(self):
        return self.record.state

    def read(self):
        """Read record and wiring; with the lock held nobody else changes them."""
        self.record = self.proxy.store.record(self.board.id)
        self.began = self.began or self.record.state
        must_be_of(self.claim, self.wanted, self.board.name, self.created)
        self.pdu, self.outlet = self.proxy.outlet(self.board)
        refuse_anothers(self.proxy, self.board, self.claim)

    def note(self, thing, before, after):
        """Note a change of this board; True where it is to be done now (not in check mode)."""
        if not self.change.note(thing, before, after):
            return False
        self.changed = True
        return not self.change.check

    def say(self, phase, text, seconds=None):
        """An event, at once, for whoever follows; and a line of the result."""
        if seconds is not None:
            seconds = round(seconds, 2)
        if not self.change.check:
            self.proxy.store.event(self.board.id, phase, text, seconds)
        self.line(phase, text, seconds)

    def line(self, phase, text, seconds=None):
        """A line of the result, in the form that all board modules have."""
        said = dict(instance=self.instance, node=self.board.name, phase=phase, text=text, seconds=seconds)
        self.lines.append(said)

    def move(self, state, note=""):
        """Put the board into a state, by the way that leads there. Staying in one keeps its note."""
        if self.change.check or (state == self.state and not note):
            return
        for step in WAYS.get((self.state, state), [state]):
            self.proxy.store.move(self.board.id, step, note if step == state else "")
        self.record = self.proxy.store.record(self.board.id)

    def before_boot(self):
        """It is about to be switched on, once a try; packets are watched, its outlet is off. May end the work."""

    def seen(self, kind, name, sender):
        """Something was seen of it (boot.driver's kinds); called from the thread that watches."""

    def came_up(self):
        """It proved its key."""

    def power_seen(self, power):
        """Record what the outlet said just now; a board is given back only on a fresh look."""
        if not self.change.check:
            self.proxy.store.power_seen(self.board.id, power)
            self.record = self.proxy.store.record(self.board.id)

    def fail(self, blame, error, **evidence):
        """End the work on this board without success."""
        self.failed, self.blame, self.error, self.over = True, blame, str(error), True
        self.evidence.update(evidence)

    def refuse_unproven(self):
        """End the work on a board that may be another's than its claim's."""
        self.say("error", str(self.unproven))
        self.fail(INSTANCE, self.unproven)

    def quarantine(self, note, remedy="", **evidence):
        """Keep the board out of use: state error, with the reason, and an event that says so."""
        self.move(board_states.ERROR, note)
        self.fail("board", f"{self.board.name}: {note}{remedy}", **evidence)
        tail = "\n".join(self.evidence.get("console_tail", []))
        self.say("error", f"kept out of use: {note}" + (f"\n{tail}" if tail else ""))

    @property
    def outlet_name(self):
        return f"{self.pdu} outlet {self.outlet}"

    def result(self):
        known_hosts = None
        if self.driver and self.claim and self.claim.host_key:
            known_hosts = self.driver.known_hosts(self.board, self.claim.host_key)
        return dict(
            board=self.board.id,
            name=self.board.name,
            instance=self.instance,
            ip=self.driver.address(self.board) if self.driver else self.board.ip,
            state=self.record.state if self.record else None,
            known_hosts=known_hosts,
            phases={phase: round(seconds, 2) for phase, seconds in self.phases.items()},
            power_proof=self.power_proof,
            changed=self.changed,
            failed=self.failed,
            blame=self.blame,
            error=self.error,
            evidence=self.evidence,
        )


def locked(works, verb, deadline):
    """An ExitStack that holds the locks of all boards, the lowest id first so that two calls never wait for each other.

    A board whose lock another process keeps beyond the deadline fails; the others go on. Check mode takes no locks.
    """
    stack = ExitStack()
    for work in sorted(works, key=lambda work: work.board.id):
        try:
            if not work.change.check:
                _lock(stack, work, verb, deadline)
            work.read()
        except HeteroError as error:
            work.fail(None, error, **error.facts)
    return stack


def _lock(stack, work, verb, deadline):
    def waiting(text):
        work.say("wait", text)

    proxy = work.proxy
    work.record = proxy.store.record(work.board.id)  # whose board it is, for what is said while waiting
    stack.enter_context(lock(proxy.config["run_folder"], work.board.name, verb, proxy.actor, deadline, waiting))


def refuse(work, what, remedy, blame=None):
    """End the work on a board that must not be touched."""
    work.fail(blame, Refused(what, work.board.name, remedy))


def no_outlet(work, outlets):
    """The error of a board whose PDU has no such outlet: the wiring is wrong, not the board."""
    there = ", ".join(outlets) or "none"
    return BadInput(f"{work.pdu} has no outlet {work.outlet} (it has {there})", work.board.name, "correct proxy.json")


def summary(works, change):
    """The module's result: every board's, the worst blame, and one message for all that failed."""
    boards = [work.result() for work in works]
    failed = [work for work in works if work.failed]
    result = dict(
        change.result,
        boards=boards,
        lines=[line for work in works for line in work.lines],
        blame=next((blame for blame in BLAME if any(work.blame == blame for work in works)), None),
        failed=bool(failed),
    )
    result["changed"] = any(work.changed for work in works)
    if failed:
        result["msg"] = "; ".join(work.error for work in failed)
    return result
