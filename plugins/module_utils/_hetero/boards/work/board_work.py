# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One board within one call of a verb: what was found, reached and said, and its part of the result.

How a board is started or stopped is for boot/starts.py and boot/stops.py, which hold one of these a board.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterable, Mapping, Sequence

from ...core.errors import BadInput, HeteroError, Refused
from ...core.locks import lock
from ...drivers.boot.blame import BOARD, IMAGE, INSTANCE, NETWORK, PROXY
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT, System
from ...roots.ownership import forgotten_of, refuse_anothers
from ...site import board_states
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...drivers.boot.driver import BootDriver
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

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

    def __init__(
        self,
        proxy: Proxy,
        board: Board,
        change: Change,
        wanted: str | None = None,
        created: Collection[float] = (),
    ) -> None:
        self.proxy = proxy
        self.board = board
        self.change = change
        self.wanted, self.created = wanted, created
        #: The PDU's name, and the outlet's; empty until its wiring is read.
        self.pdu = self.outlet = ""
        #: What power/last_outlet.py found: why that outlet is not to be switched off, and whether it may be switched
        #: on.
        self.doubt: Refused | None = None
        self.off_by_all, self.wiring_seen = False, False
        #: Why it is not switched off where it is on: only the database says that the board is its claim's.
        self.unproven: Refused | None = None
        #: The state in which it was found.
        self.began: str | None = None
        self.changed = False
        self.failed = False
        self.blame: str | None = None
        self.error: str | None = None
        self.evidence: dict[str, Any] = {}
        self.phases: dict[str, float] = {}
        #: How it is proven that its outlet was switched: `pdu` and `board` say it in words; None if nobody switched it.
        self.power_proof: dict[str, Any] | None = None
        #: How the proxy knows that the host key of a RAM system is the board's.
        self.key_proof: str | None = None
        self.lines: list[dict[str, Any]] = []
        self.over = False
        self._held = ExitStack()  # its lock
        #: What is done as soon as the work is over, once; None leaves its lock to whoever holds all.
        self.at_end: Callable[[], None] | None = None
        #: What is done with it is done only where its outlet is off: one that is on may be somebody at work.
        self.only_from_off = False
        #: Whether a boot of it that nobody watched may be at work from its own disk: nothing of that is seen from here.
        self.from_its_disk = False
        #: Why its tenant's disk was left as it is: what was looked for there was not seen.
        self.disk_left = ""
        #: In a dry run that comes after those of a rebuild and of a power off: what is there is taken as gone.
        self.as_rebuilt = False
        self._record: Record | None = None
        self._driver: BootDriver | None = None

    @property
    def is_read(self) -> bool:
        """Whether it is known what is recorded of the board."""
        return self._record is not None

    @property
    def record(self) -> Record:
        """What is recorded of the board, as it was read last.

        :raises RuntimeError: it was not read yet.
        """
        if self._record is None:
            raise RuntimeError(f"the record of {self.board.name} was not read")
        return self._record

    @record.setter
    def record(self, record: Record) -> None:
        self._record = record

    @property
    def driver(self) -> BootDriver:
        """How the board boots.

        :raises RuntimeError: nobody named a driver yet.
        """
        if self._driver is None:
            raise RuntimeError(f"{self.board.name} has no boot driver yet")
        return self._driver

    @driver.setter
    def driver(self, driver: BootDriver) -> None:
        self._driver = driver

    @property
    def claim(self) -> Claim | None:
        return self._record.claim if self._record else None

    @property
    def ran(self) -> bool:
        """Whether what it is claimed for ran on it, and may be at work there."""
        return bool(not self.as_rebuilt and self.claim and self.proxy.store.has_run(self.claim))

    @property
    def never_had_power(self) -> bool:
        """Whether its claim's board never had power for it: where it is on, somebody else may be at work there.

        A database that knows nothing of a root of the claim that lies here is behind, and of power, too.
        """
        if self.as_rebuilt or not self.claim or self.proxy.store.had_power(self.claim):
            return False
        return not forgotten_of(self.proxy, self.board, self.claim)

    @property
    def stays_on(self) -> bool:
        """Whether its outlet is not switched off for its silence: it ran from its own disk, with its tenant's work."""
        return self.ran and self.claim is not None and self.claim.boot_source == DISK_ROOT

    @property
    def system(self) -> System:
        """The System whose answer counts: the claim's."""
        claim = self.claim
        return System(None, claim.boot_source or NFS_ROOT, claim.host_key) if claim else System(None)

    @property
    def image_name(self) -> str:
        """What it boots, for people."""
        return f"image {self.claim.image}" if self.claim else "no image"

    @property
    def instance(self) -> str | None:
        return self.claim.instance if self.claim else None

    @property
    def state(self) -> str:
        return self.record.state

    def read(self) -> None:
        """Read record and wiring; with the lock held nobody else changes them."""
        self.record = self.proxy.store.record(self.board.id)
        self.began = self.began or self.record.state
        must_be_of(self.claim, self.wanted, self.board.name, self.created)
        self.pdu, self.outlet = self.proxy.outlet(self.board)
        refuse_anothers(self.proxy, self.board, self.claim)

    def note(self, thing: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Note a change of this board; True where it is to be done now (not in check mode)."""
        if not self.change.note(thing, before, after):
            return False
        self.changed = True
        return not self.change.check

    def say(self, phase: str, text: str, seconds: float | None = None) -> None:
        """An event, at once, for whoever follows; and a line of the result."""
        if seconds is not None:
            seconds = round(seconds, 2)
        if not self.change.check:
            self.proxy.store.event(self.board.id, phase, text, seconds)
        self.line(phase, text, seconds)

    def line(self, phase: str, text: str, seconds: float | None = None) -> None:
        """A line of the result, in the form that all board modules have."""
        said = dict(instance=self.instance, node=self.board.name, phase=phase, text=text, seconds=seconds)
        self.lines.append(said)

    def move(self, state: str, note: str = "") -> None:
        """Put the board into a state, by the way that leads there. Staying in one keeps its note."""
        if self.change.check or (state == self.state and not note):
            return
        for step in WAYS.get((self.state, state), [state]):
            self.proxy.store.move(self.board.id, step, note if step == state else "")
        self.record = self.proxy.store.record(self.board.id)

    def before_boot(self) -> None:
        """It is about to be switched on, once a try; packets are watched, its outlet is off. May end the work."""

    def seen(self, kind: str, name: str, sender: str) -> None:
        """Something was seen of it (boot.driver's kinds); called from the thread that watches."""

    def came_up(self) -> None:
        """It proved its key."""

    def power_seen(self, power: str) -> None:
        """Record what the outlet said just now; a board is given back only on a fresh look."""
        if not self.change.check:
            self.proxy.store.power_seen(self.board.id, power)
            self.record = self.proxy.store.record(self.board.id)

    def shows(self, words: str) -> None:
        """Note what the board itself shows of how its outlet was switched."""
        self.power_proof = dict(self.power_proof or {}, board=words)

    def fail(self, blame: str | None, error: HeteroError | str, **evidence: Any) -> None:
        """End the work on this board without success."""
        self.failed, self.blame, self.error, self.over = True, blame, str(error), True
        self.evidence.update(evidence)

    def hold(self, turn: ContextManager[None]) -> None:
        """Take its lock, which is held until let_go."""
        self._held.enter_context(turn)

    def let_go(self) -> None:
        """Let go of its lock, where it is held: another verb may begin here, whatever becomes of other boards."""
        self._held.close()

    def look_if_over(self) -> None:
        """Do what is to be done at its end, if that has come."""
        if self.over and self.at_end:
            at_end, self.at_end = self.at_end, None
            at_end()

    def refuse_unproven(self) -> None:
        """End the work on a board that may be another's than its claim's."""
        if self.unproven is not None:
            self.say("error", str(self.unproven))
            self.fail(INSTANCE, self.unproven)

    def quarantine(self, note: str, remedy: str = "", **evidence: Any) -> None:
        """Keep the board out of use: state error, with the reason, and an event that says so."""
        self.move(board_states.ERROR, note)
        self.fail("board", f"{self.board.name}: {note}{remedy}", **evidence)
        tail = "\n".join(self.evidence.get("console_tail", []))
        self.say("error", f"kept out of use: {note}" + (f"\n{tail}" if tail else ""))

    @property
    def outlet_name(self) -> str:
        return f"{self.pdu} outlet {self.outlet}"

    def result(self) -> dict[str, Any]:
        """The board's part of the module's result."""
        known_hosts = None
        if self._driver and self.claim and self.claim.host_key:
            known_hosts = self._driver.known_hosts(self.board, self.claim.host_key)
        return dict(
            board=self.board.id,
            name=self.board.name,
            instance=self.instance,
            ip=self._driver.address(self.board) if self._driver else self.board.ip,
            state=self._record.state if self._record else None,
            known_hosts=known_hosts,
            phases={phase: round(seconds, 2) for phase, seconds in self.phases.items()},
            power_proof=self.power_proof,
            changed=self.changed,
            failed=self.failed,
            blame=self.blame,
            error=self.error,
            evidence=self.evidence,
        )


def locked(works: Iterable[BoardWork], verb: str, deadline: Deadline) -> ExitStack:
    """An ExitStack that holds the locks of all boards, the lowest id first so that two calls never wait for each other;
    a board may be let go of before (BoardWork.let_go).

    A board whose lock another process keeps beyond the deadline fails; the others go on. Check mode takes no locks.
    """
    stack = ExitStack()
    for work in sorted(works, key=lambda work: work.board.id):
        try:
            if not work.change.check:
                stack.callback(work.let_go)
                _lock(work, verb, deadline)
            work.read()
        except HeteroError as error:
            work.fail(None, error, **error.facts)
    return stack


def _lock(work: BoardWork, verb: str, deadline: Deadline) -> None:
    def waiting(text: str) -> None:
        work.say("wait", text)

    proxy = work.proxy
    work.record = proxy.store.record(work.board.id)  # whose board it is, for what is said while waiting
    work.hold(lock(proxy.config["run_folder"], work.board.name, verb, proxy.actor, deadline, waiting))


def refuse(work: BoardWork, what: str, remedy: str | None, blame: str | None = None) -> None:
    """End the work on a board that must not be touched."""
    work.fail(blame, Refused(what, work.board.name, remedy))


def no_outlet(work: BoardWork, outlets: Iterable[str]) -> BadInput:
    """The error of a board whose PDU has no such outlet: the wiring is wrong, not the board."""
    there = ", ".join(outlets) or "none"
    return BadInput(f"{work.pdu} has no outlet {work.outlet} (it has {there})", work.board.name, "correct proxy.json")


def summary(works: Sequence[BoardWork], change: Change) -> dict[str, Any]:
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
        result["msg"] = "; ".join(str(work.error) for work in failed)
    return result
