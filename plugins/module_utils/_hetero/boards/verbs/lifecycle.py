# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs on boards that have a claim and a root: start, reboot and stop, for many boards in one call.

Each board's lock is held until its own work is over, one board's failure does not stop the others, and what is observed
counts more than the record. boot/starts.py and boot/stops.py do the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Sequence, cast

from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.descriptors import make_room
from ...core.errors import BadInput, HeteroError, Refused
from ...core.plays import play, stays
from ...drivers.boot.blame import BOARD, IMAGE, INSTANCE
from ...drivers.boot.driver import NFS_ROOT
from ...drivers.boot.registry import BootDrivers
from ...roots.board_parts import root_of_board
from ...roots.made_json import is_unread, unread, why_untold
from ...roots.ownership import has_root, is_borne_out, must_never_have_run, unproven
from ...site import board_states
from ...site.instance import must_be_soft_timeout
from ..boot import broken_drivers, soft_reboot
from ..boot.boot_entry import ensure_entry
from ..boot.ended_boots import refuse_ending
from ..boot.reboots import Rebooting
from ..boot.starts import Starting
from ..boot.stops import Stopping
from ..boot.used_root import note_if_used
from ..disk import disk_boot
from ..image.rebuilds import rebuilt_claim
from ..power import presence
from ..records.disk_records import withdraw
from ..records.store import AGAIN
from ..work.board_locks import locked
from ..work.board_work import BoardWork, must_be_each_once, refuse, summary
from ..work.each_board import LEFT, LOOK
from ..work.maintenance import BY_DATABASE

if TYPE_CHECKING:
    from ..records.proxy import Proxy

#: Seconds that a verb takes beside its boots: PDU sessions, self-test, key exchanges.
BESIDES = 120.0
#: The remedy for a board in error that an instance has; the playbook repair is for boards that nobody has.
OUT_OF_USE = (
    f"{play('stop_instance', instance='{name}')}, then {play('start_instance', instance='{name}')} or "
    f"{play('terminate_instance', instance='{name}')}"
)
NO_START = "{name} would not start again, so it is not stopped"
#: The note of a board that its instance's owner has stopped.
STOPPED = "stopped"


@dataclass(frozen=True)
class Options:
    """Options of the verbs.

    :param driver: a boot driver's name, or "auto" for that of each board's wiring.
    :param kernel_source: "tftp" or "flash", or "auto" for that of each board's wiring.
    :param timeout: seconds from power on to ssh, for each try.
    :param retries: power cycles for a board that stalls before it asks for its kernel.
    :param wait: False returns when the power is on.
    :param image: image of boards that are not claimed yet, for a dry run.
    :param instance: the instance or request that must have the boards; None for any.
    :param created: unix times of the claims of which one must have each board; none for any.
    :param boot_source: what the boards are to boot from; None for that of each board's claim.
    :param keep: a stopped board stays its instance's, which can be started again.
    :param ends: the claims end afterwards; where a board never had power for its claim, it is left as it is.
    :param by_guess: nobody asked for a stop by name: of boards that nobody has, one that answers by now is left on.
    :param only_looks: switch nothing off; see whom an outlet cut that was switched off before.
    :param never_ran: refuse to stop an instance that ever ran.
    :param how: a reboot by ssh ("soft"), by power ("hard"), or by ssh and else by power ("auto").
    :param soft_timeout: seconds from the reboot by ssh to the board's boot request.
    :param rebuilt: ids of boards for which dry runs of a rebuild and of a power off came before this one.
    """

    driver: str = "auto"
    kernel_source: str = "auto"
    timeout: float = 300.0
    retries: int = 1
    wait: bool = True
    check: bool = False
    image: str | None = None
    instance: str | None = None
    created: tuple[float, ...] = ()
    boot_source: str | None = None
    keep: bool = False
    ends: bool = False
    by_guess: bool = False
    only_looks: bool = False
    never_ran: bool = False
    how: str = soft_reboot.AUTO
    soft_timeout: float = 30.0
    rebuilt: tuple[int, ...] = ()

    @property
    def limit(self) -> float:
        """Return the most seconds that a verb can take."""
        return self.timeout * (self.retries + 1) + self.soft_timeout + BESIDES

    @property
    def limit_with_disk(self) -> float:
        """Return the most seconds that a verb can take where roots may be unpacked to boards' disks first."""
        return 2 * self.limit + disk_boot.LONGEST


def start(proxy: Proxy, ids: Sequence[int], options: Options) -> dict[str, Any]:
    """Bring boards to running; leave alone those that run with their own host key. Return the module's result."""
    return _bring_up(proxy, ids, options, "start", Starting)


def reboot(proxy: Proxy, ids: Sequence[int], options: Options) -> dict[str, Any]:
    """Reboot boards, by ssh or by power, and bring them to running again; claims and data stay."""
    return _bring_up(proxy, ids, options, "reboot", Rebooting)


def _end_of(work: BoardWork) -> str:
    """Return the remedy for a board in maintenance: how a person ends that."""
    return f"end its maintenance first: {play('maintenance', node=work.board.name, state='off')}"


def _refuse_maintenance(work: BoardWork) -> None:
    """Refuse a board in maintenance, by the database or, where that is older, by the board's own record."""
    state, note = _state(work)
    if state == board_states.MAINTENANCE:
        refuse(work, f"is in maintenance{': ' if note else ''}{note}", _end_of(work))


def _state(work: BoardWork) -> tuple[str, str]:
    """Return (state, note) of a board; where nobody has it, its own record of being out of use counts more."""
    out = work.proxy.store.out_of_use(work.board.id) if work.claim is None else None
    return (out.state, out.reason) if out else (work.state, work.record.note)


def stop(proxy: Proxy, ids: Sequence[int], options: Options) -> dict[str, Any]:
    """Switch boards off, also those in error, and remove their boot entries; claims stay."""
    works, change = works_of(proxy, ids, options)
    for work in works:
        work.at_end = partial(_end_stop, work, options)
    with locked(works, "stop", Deadline(options.limit), stays=options.keep), change.step("power"):
        switch_off(proxy, works, options)
    return summary(works, change)


def switch_off(proxy: Proxy, works: Sequence[BoardWork], options: Options) -> None:
    """Switch outlets off and read them back, and remove boot entries; the caller holds the boards' locks."""
    drivers = BootDrivers(proxy, options.driver)
    for work in works:
        _name_driver(drivers, work)
        if not work.over:
            _refuse_maintenance(work)
        if not (work.over or options.check) and work.proxy.store.take_out(work.board.id):
            work.record = work.proxy.store.record(work.board.id)
        if not work.over:
            note_if_used(work)
        if not work.over and options.never_ran:
            try:
                must_never_have_run(proxy, work.board, work.claim)
            except HeteroError as error:
                work.fail(INSTANCE, error)
        if not work.over:
            _look_whose(work)
        if not work.over and options.keep:
            _must_have_its_board(work, options)
            _must_start_again(work)
        work.look_if_over()
    Stopping(proxy, [work for work in works if not work.over], options).run()
    for work in works:
        _keep_stopped(work, options)


def _end_stop(work: BoardWork, options: Options) -> None:
    broken_drivers.tell(work)
    _keep_stopped(work, options)
    work.let_go()


def _keep_stopped(work: BoardWork, options: Options) -> None:
    if options.keep and not work.failed and work.claim and work.state == board_states.SHUTTING_DOWN:
        work.move(board_states.POWER_OFF, STOPPED)


def _must_have_its_board(work: BoardWork, options: Options) -> None:
    """Refuse to stop an instance on a board that it has left while its lock was waited for."""
    name = options.instance
    if name and work.claim is None:
        work.fail(INSTANCE, Refused(LEFT.format(request=name), work.board.name, LOOK.format(request=name)))


def _must_start_again(work: BoardWork) -> None:
    """Refuse to stop a running board that could not be started again, for its made.json is lost and not proven."""
    if not work.claim or work.state not in (board_states.RUNNING, board_states.BOOTING):
        return
    root = root_of_board(work.proxy, work.board.id)
    why = why_untold(work.proxy, root, work.claim) if is_unread(root) else None
    if why and presence.shown(work) == presence.OWN_KEY:
        error = unread(root, work.board, why)
        refuse(work, f"{NO_START.format(name=work.instance)}: {error.what}", error.remedy, blame=INSTANCE)


def _look_whose(work: BoardWork) -> None:
    """Mark a board as unproven whose claim only the database has, and which does not show its key; refuse a root."""
    proxy, board, claim = work.proxy, work.board, work.claim
    if claim is None or is_borne_out(proxy, board, claim) or presence.shown(work) == presence.OWN_KEY:
        return
    work.unproven = unproven(board, claim)
    if has_root(proxy, board):
        work.refuse_unproven()


def _bring_up(proxy: Proxy, ids: Sequence[int], options: Options, verb: str, way: type[Starting]) -> dict[str, Any]:
    works, change = works_of(proxy, ids, options)
    with locked(works, verb, Deadline(options.limit)):
        drivers = BootDrivers(proxy, options.driver, options.kernel_source)
        for work in works:
            if not (work.over or options.check):
                refuse_ending(work)
            _name_driver(drivers, work)
            if not work.over and (way is not Starting or work.state == board_states.ERROR):
                note_if_used(work)  # a start looks itself, before it does anything, at boards that are not refused
            if not work.over:
                if options.check and work.board.id in options.rebuilt:
                    _take_as_rebuilt(work, options.image)
                elif way is Starting or options.how != soft_reboot.SOFT:  # a reboot by ssh proves whose the board is
                    _look_whose(work)
            if not work.over:
                with change.step("boot entries"):
                    _make_ready(work, options)
            if work.over:
                work.let_go()
        begun = [work for work in works if not work.over]
        with change.step("disk"):
            disk_boot.lay(proxy, begun, options)
        ready = []
        for work in begun:
            if work.over:
                work.let_go()
            else:
                ready.append(work)
                work.at_end = partial(_end_boot, work)
        with change.step("boot"):
            way(proxy, ready, options).run()
        for work in ready:
            work.look_if_over()
        _keep_what_ran(works)
    return summary(works, change)


def _end_boot(work: BoardWork) -> None:
    broken_drivers.tell(work)
    disk_boot.remember([work])
    disk_boot.doubt([work])
    work.let_go()


def _keep_what_ran(works: Sequence[BoardWork]) -> None:
    """Set the blame to INSTANCE for instances that ran before, so that they are neither moved nor given back.

    A request is not given back for a fault of its image either while other instances of it ran.
    """
    ran = [work for work in works if work.claim and work.proxy.store.has_run(work.claim)]
    for work in works:
        if work.failed and work.blame in (BOARD, IMAGE) and work in ran:
            work.blame = INSTANCE
            why = f"{work.instance} ran here before, so its root and this board stay its own"
            work.error = f"{work.error}; {why}: {AGAIN.format(name=work.instance)}"
        elif work.failed and work.blame == IMAGE and ran:
            work.blame = INSTANCE
            others = ", ".join(sorted(str(other.instance) for other in ran))
            why = f"nothing is given back, for {others} of the same request ran before"
            work.error = f"{work.error}; {why}: ask again, or terminate {work.instance}"


def works_of(proxy: Proxy, ids: Sequence[int], options: Options) -> tuple[list[BoardWork], Change]:
    """Return a BoardWork of each board, neither locked nor read yet, and the Change that they share.

    :raises BadInput: an option is out of range, or a board is named twice.
    """
    if options.timeout < 1 or options.retries < 0:
        raise BadInput("timeout is at least 1 s, retries at least 0", "arguments", "correct them")
    must_be_soft_timeout(options.soft_timeout)
    must_be_each_once(ids)
    make_room(len(ids))
    change = Change(options.check)
    wanted = (options.instance, options.created)
    return [BoardWork(proxy, proxy.board(board_id), change, *wanted) for board_id in ids], change


def _name_driver(drivers: BootDrivers, work: BoardWork) -> None:
    if not work.over:
        try:
            work.driver = drivers.of(work.board)
        except HeteroError as error:
            work.fail(None, error, **error.facts)


def _take_as_rebuilt(work: BoardWork, image: str | None) -> None:
    """In a dry run take the board as off, and its claim as one whose root is yet to be made."""
    claim = rebuilt_claim(work.claim, image) if work.claim else None
    work.record = replace(work.record, state=board_states.SHUTTING_DOWN, claim=claim)
    work.as_rebuilt = True


def _make_ready(work: BoardWork, options: Options) -> None:
    """Write the boot entry before the board gets power; refuse a board that is out of use."""
    state, note = _state(work)
    if state == board_states.ERROR:
        refuse(
            work,
            f"is out of use: {note or 'in error'}",
            OUT_OF_USE.format(name=work.instance or "it"),
            blame=BOARD,
        )
        return
    _refuse_maintenance(work)
    out = work.proxy.store.out_of_use(work.board.id) if work.claim and not work.over else None
    if out:
        refuse(work, out.told, BY_DATABASE.format(name=work.instance, board=work.board.name), blame=INSTANCE)
    if work.over:
        return
    try:
        source = (work.claim.boot_source if work.claim else options.boot_source) or NFS_ROOT
        if options.boot_source not in (None, source):
            what = f"{work.instance} has boot source {source}, not {options.boot_source}"
            raise Refused(what, work.board.name, stays(str(work.instance), "boot source"))
        ensure_entry(work, options.image)
        if not options.check:
            withdraw(work.proxy, work.board, cast("str", work.instance))
    except HeteroError as error:
        work.fail(None, error, **error.facts)
