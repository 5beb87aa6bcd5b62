# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work on one board within one call of a verb: the board's record, the outcome, the lines, its part of the result.

boot/starts.py and boot/stops.py start and stop boards; they have a BoardWork for each.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterable, Mapping, Sequence

from ...core.errors import BadInput, HeteroError, Refused
from ...core.lines import line
from ...drivers.boot.blame import BOARD, IMAGE, INSTANCE, NETWORK, PROXY
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT, System
from ...roots.ownership import forgotten_of, refuse_anothers
from ...site import board_states
from ...site.leases import until
from ..evidence.changed_addresses import refuse_changed
from ..records.board_health import BOOT, FAULT
from ..records.store import must_be_of

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...drivers.boot.driver import BootDriver
    from ...drivers.power.drawn import Drawn
    from ...site.boards_file import Board
    from ..records.board_records import Record
    from ..records.claim_records import Claim
    from ..records.proxy import Proxy

#: Ways through several states that a verb may need at once.
WAYS = {
    (board_states.POWER_OFF, board_states.RUNNING): [board_states.BOOTING, board_states.RUNNING],
    (board_states.SHUTTING_DOWN, board_states.RUNNING): [
        board_states.POWER_OFF,
        board_states.BOOTING,
        board_states.RUNNING,
    ],
    (board_states.SHUTTING_DOWN, board_states.BOOTING): [board_states.POWER_OFF, board_states.BOOTING],
}

#: Whose fault a failure is, the worst first: one of the proxy or network hits all boards, one of a board only itself.
#: INSTANCE is for an instance that ran before: its owner decides about it, whatever is at fault.
BLAME = (PROXY, NETWORK, IMAGE, BOARD, INSTANCE)


class BoardWork:
    """A board, its record and claim (read once its lock is held), and the outcome so far.

    `up` is the phase, and its text, that a board reaches when it has proved its key.

    :param change: the call's Change; it also says whether this is check mode.
    :param wanted: the instance or request that must have the board; None for any.
    :param created: unix times of the claims of which one must have the board; none for any.
    """

    up = ("running", "ssh answers")
    #: Whether who ends the instance may end a boot that is only waited for (boot/ended_boots.py).
    may_be_ended = True
    #: Whether the work on a board that nobody has ends as soon as a request wants the board.
    gives_way = False
    #: Whether the work refuses a board that may be at work at another address (evidence/changed_addresses.py).
    keeps_address = True

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
        #: The names of the PDU and the outlet; empty until the wiring is read.
        self.pdu = self.outlet = ""
        #: From power/last_outlet.py: why the outlet must not be switched off, and whether it may be switched on.
        self.doubt: Refused | None = None
        self.off_by_all, self.wiring_seen = False, False
        #: Why the board is not switched off while it is on: only the database says that its claim has it.
        self.unproven: Refused | None = None
        #: The board's record as it was found.
        self.found: Record | None = None
        self.changed = False
        self.failed = False
        self.blame: str | None = None
        self.error: str | None = None
        self.evidence: dict[str, Any] = {}
        self.phases: dict[str, float] = {}
        #: The proof that the outlet was switched, in words, as `pdu` and `board`; None where it was not switched.
        self.power_proof: dict[str, Any] | None = None
        #: How the proxy knows that the host key of a RAM system is the board's.
        self.key_proof: str | None = None
        #: Seconds from power on to each phase of its boot into RAM.
        self.ram_phases: dict[str, float] = {}
        self.lines: list[dict[str, Any]] = []
        self.over = False
        self._held = ExitStack()  # its lock
        #: The step of a verb of several that this work has come to.
        self.step = ""
        #: Called once, as soon as the work is over; with None the lock is held until the caller releases all locks.
        self.at_end: Callable[[], None] | None = None
        #: True where the work may be done only while the outlet is off: a tenant may be at work on a board that is on.
        self.only_from_off = False
        #: True where the board may run from its own disk after an unwatched boot, which cannot be seen from the proxy.
        self.from_its_disk = False
        #: Why the tenant's disk was left as it is: its root was not found there.
        self.disk_left = ""
        #: True in a dry run that follows those of a rebuild and of a power off: what is there counts as removed.
        self.as_rebuilt = False
        self._record: Record | None = None
        self._driver: BootDriver | None = None

    @property
    def is_read(self) -> bool:
        """Return whether the board's record was read."""
        return self._record is not None

    @property
    def record(self) -> Record:
        """Return the board's record as it was last read.

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
        """Return the board's boot driver.

        :raises RuntimeError: no driver was set yet.
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
        """Return whether the claim's instance ran on the board, so that it may be at work there."""
        return bool(not self.as_rebuilt and self.claim and self.proxy.store.has_run(self.claim))

    @property
    def came_up_before(self) -> bool:
        """Return whether the claim's instance came up on the board, or may have by what was seen of its root then."""
        return self.ran and not (self.claim and self.proxy.store.has_shown_no_use(self.claim))

    @property
    def never_had_power(self) -> bool:
        """Return whether the board never had power for its claim, so that others may be at work where it is on.

        False where the claim has a root that the database does not know of: that is older, and may not know of power.
        """
        if self.as_rebuilt or not self.claim or self.proxy.store.had_power(self.claim):
            return False
        return not forgotten_of(self.proxy, self.board, self.claim)

    @property
    def stays_on(self) -> bool:
        """Return whether the outlet stays on although the board is silent: its instance ran from its own disk."""
        return self.ran and self.claim is not None and self.claim.boot_source == DISK_ROOT

    @property
    def system(self) -> System:
        """The System that must answer: that of the claim."""
        claim = self.claim
        return System(None, claim.boot_source or NFS_ROOT, claim.host_key) if claim else System(None)

    @property
    def image_name(self) -> str:
        """Return the name of the image that the board boots, for people."""
        return f"image {self.claim.image}" if self.claim else "no image"

    @property
    def instance(self) -> str | None:
        return self.claim.instance if self.claim else None

    @property
    def state(self) -> str:
        return self.record.state

    @property
    def began(self) -> str | None:
        """The state in which the board was found."""
        return self.found.state if self.found else None

    def read(self) -> None:
        """Read record and wiring; while the lock is held no other process changes them."""
        self.record = self.proxy.store.record(self.board.id)
        self.found = self.found or self.record
        must_be_of(self.claim, self.wanted, self.board.name, self.created)
        self.pdu, self.outlet = self.proxy.outlet(self.board)
        refuse_anothers(self.proxy, self.board, self.claim)
        if self.keeps_address:
            refuse_changed(self.proxy, self.board)

    def note(self, thing: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Note a change of this board; return True where it is to be done now (not in check mode)."""
        if not self.change.note(thing, before, after):
            return False
        self.changed = True
        return not self.change.check

    def say(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Write an event, for those who follow, and add a line to the result.

        :param seconds: seconds that the phase took.
        """
        if seconds is not None:
            seconds = round(seconds, 2)
        if not self.change.check:
            self.proxy.store.event(self.board.id, phase, text, seconds)
        self.line(phase, text, seconds)

    def line(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Add a line to the result, in the form that all board modules have."""
        self.lines.append(line(self.instance, self.board.name, phase, text, seconds))

    def move(self, state: str, note: str = "") -> None:
        """Put the board into a state, through those on the way to it; where it is in that state, its note stays."""
        if self.change.check or (state == self.state and not note):
            return
        for step in WAYS.get((self.state, state), [state]):
            self.proxy.store.move(self.board.id, step, note if step == state else "")
        self.record = self.proxy.store.record(self.board.id)

    def before_boot(self) -> None:
        """Called in each try just before the board is switched on, while packets are watched; may end the work."""

    def seen(self, kind: str, name: str, sender: str) -> None:
        """Called from the watching thread when a request of the board was seen (kinds of drivers/boot/driver.py)."""

    def came_up(self) -> None:
        """Called when the board has proved its key."""
        if not self.change.check:
            self.proxy.store.outcome(self.board.id, BOOT, passed=True)

    def power_seen(self, power: str) -> None:
        """Record the outlet's state as it was just read; a board is given back only after a fresh look."""
        if not self.change.check:
            self.proxy.store.power_seen(self.board.id, power)
            self.record = self.proxy.store.record(self.board.id)

    def drew(self, drawn: Drawn | None) -> None:
        """Add a reading of the outlet's meter to what the claim has drawn; one that cannot be written is no fault of
        the board.
        """
        if drawn and self.claim and not self.change.check:
            with suppress(HeteroError):
                self.proxy.store.drew(self.claim, self.outlet_name, drawn)

    def shows(self, words: str) -> None:
        """Note in power_proof what the board itself shows of the switching of its outlet."""
        self.power_proof = dict(self.power_proof or {}, board=words)

    def fail(self, blame: str | None, error: HeteroError | str, **evidence: Any) -> None:
        """End the work on this board without success."""
        self.failed, self.blame, self.error, self.over = True, blame, str(error), True
        self.evidence.update(evidence)

    def hold(self, turn: ContextManager[None]) -> None:
        """Take the board's lock and hold it until let_go."""
        self._held.enter_context(turn)

    def let_go(self) -> None:
        """Release the board's lock, where it is held, so that another verb may begin while other boards go on."""
        self._held.close()

    def look_if_over(self) -> None:
        """Call at_end once, if the work is over."""
        if self.over and self.at_end:
            at_end, self.at_end = self.at_end, None
            at_end()

    def refuse_unproven(self) -> None:
        """End the work on a board that may be another instance's than its claim's."""
        if self.unproven is not None:
            self.say("error", f"the board is left as it is: {self.unproven.what}")
            self.fail(INSTANCE, self.unproven)

    def quarantine(self, note: str, remedy: str = "", at_fault: bool = True, **evidence: Any) -> None:
        """Keep the board out of use: state error, with the reason, and an event that says so.

        :param at_fault: whether that counts against the board (records/board_health.py).
        """
        self.move(board_states.ERROR, note)
        if at_fault and not self.change.check:
            self.proxy.store.outcome(self.board.id, FAULT, passed=False, text=note)
        self.fail("board", f"{self.board.name}: {note}{remedy}", **evidence)
        tail = "\n".join(self.evidence.get("console_tail", []))
        self.say("error", f"kept out of use: {note}" + (f"\n{tail}" if tail else ""))

    @property
    def outlet_name(self) -> str:
        return f"{self.pdu} outlet {self.outlet}"

    def result(self) -> dict[str, Any]:
        """Return the board's part of the module's result."""
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
            until=until(self.claim.expires, time.time()) if self.claim and self.claim.expires else None,
            phases={phase: round(seconds, 2) for phase, seconds in self.phases.items()},
            power_proof=self.power_proof,
            changed=self.changed,
            failed=self.failed,
            blame=self.blame,
            error=self.error,
            evidence=self.evidence,
            **self.proxy.store.energy_of(self.claim).told,
        )


def must_be_each_once(ids: Sequence[int]) -> None:
    """Raise BadInput where a board is named twice: a call has one work on it."""
    if len(set(ids)) != len(ids):
        raise BadInput("names a board twice", "boards", "name each once")


def refuse(work: BoardWork, what: str, remedy: str | None, blame: str | None = None) -> None:
    """End the work on a board that must not be touched."""
    work.fail(blame, Refused(what, work.board.name, remedy))


def no_outlet(work: BoardWork, outlets: Iterable[str]) -> BadInput:
    """Return the error of a board whose PDU has no such outlet: the wiring is wrong, not the board."""
    there = ", ".join(outlets) or "none"
    return BadInput(f"{work.pdu} has no outlet {work.outlet} (it has {there})", work.board.name, "correct proxy.json")


def unread_outlet(work: BoardWork, outlets: Mapping[str, str]) -> HeteroError | None:
    """Return the error of a board whose outlet its PDU does not have, or does not say on or off of; else None."""
    state = outlets.get(work.outlet)
    if state is None:
        return no_outlet(work, outlets)
    if state in ("on", "off"):
        return None
    what = f"{work.outlet_name} cannot be read: {state}"
    remedy = f"look at the PDU or BMC; once nobody is at work there, switch {work.outlet_name} off (pdu_power)"
    return Refused(what, work.board.name, f"run this again in a minute; where that stays so, {remedy}")


def summary(works: Sequence[BoardWork], change: Change) -> dict[str, Any]:
    """Return the module's result: that of each board, the worst blame, and one message for all that failed."""
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
