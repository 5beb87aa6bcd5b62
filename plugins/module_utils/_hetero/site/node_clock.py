# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's clock, compared with the seconds that its kernel counted since the clock was last believed.

Leases end by the clock, and with them boards, guests and data; but a clock jumps because of an empty battery, a wrong
time server or a typing mistake. So nothing ends by a jump: a lease that is over only by the clock is held until the
clock is set right, or an operator says that it is right. The reaper, and each lease that is given or extended, write
the time that they believed into a file beside the node's database. If that file is lost, the newest time in the
database and in the records of claims takes its place.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Iterable, Protocol

from ..core.errors import BadInput, HeteroError, Refused, naming
from ..core.json_file import read_object
from ..core.kernel_clock import synchronised
from ..files.whole_file import write_whole
from .instance import age

#: Seconds by which a clock may be stepped between two turns of the reaper and still be believed: corrections by time
#: servers, and a reboot that a clock without battery does not count.
SLACK = 300.0
#: Seconds that a machine may have been off: a long weekend. Only the clock itself counted them, so they count only
#: where a time server kept the clock both before and after them (core/kernel_clock.py): a clock that nobody kept before
#: may have been behind, and the ends of leases that were set by it too early.
OFF = 4 * 86400.0
#: Seconds between two notes that the clock is believed. This and a reboot together are to be less than SLACK.
KEEP = 60.0
#: A file of one line that differs after each boot (random(4)).
BOOT_ID = "/proc/sys/kernel/random/boot_id"
#: The first process of this machine or container.
FIRST = "/proc/1/stat"
#: The boot of a mark whose time was read from the database, so that nobody counted since.
UNCOUNTED = ""
BY_WORD = "--clock-is-right"
BY_WORD_HELP = "an operator's word that the clock is right: leases end that are over only since it jumped"
HOW = "set the clock; where it is right: hetero {verb} " + BY_WORD
UNSET = ", and no time server has set it since the boot"
#: An operator's word also ends leases that are over by the clock.
FIRST_EXTEND = ", once what is to stay has been extended"
#: What is done about a lease that is over only by a clock that jumped.
HOLD = f"nothing ends by a jump: {HOW}{FIRST_EXTEND}"
#: Text about a lease that is extended while the clock is doubted: the operator's word on the clock would end it.
LATE = "; {fault}: it ends too late once that is set"


class DatedStore(Protocol):
    """What a clock needs of a node's database (a ClaimsStore)."""

    @property
    def path(self) -> str: ...

    def newest_time(self) -> float | None: ...


@dataclass(frozen=True)
class Mark:
    """A clock that was believed: the time that it showed, the boot, and the kernel's seconds of that boot.

    If no mark was kept, its time is the newest that is written down and its boot UNCOUNTED.

    :param sure: whether, in this boot, a time server kept the clock or an operator said that it is right, and no end of
        a lease was set by a doubtful clock since.
    """

    time: float
    boot: str
    counted: float
    sure: bool = True


@dataclass(frozen=True)
class Clock:
    """What a node's clock shows, and what the kernel's count says of it.

    :param path: of the mark's file.
    :param now: what the clock shows (unix seconds).
    :param counted: the earliest time that it can be by the kernel's count; None if no earlier time is known.
    :param latest: the latest time that is believed.
    :param here: the mark of this moment.
    :param mark: the mark with which the clock is compared, or None.
    :param unset: whether the machine may have been off for an uncounted time and no time server has set the clock
        since.
    """

    path: str
    now: float
    counted: Any
    latest: float
    here: Mark
    mark: Any
    unset: bool = False

    @property
    def ahead(self) -> bool:
        """Return whether the clock went forward more than a right clock can."""
        return self.now > self.latest

    @property
    def behind(self) -> bool:
        """Return whether the clock shows a time that had passed before."""
        return self.counted is not None and self.now < self.counted - SLACK

    @property
    def sure(self) -> float:
        """The earliest time that it can be now. What ended by then is over."""
        return min(self.now, self.counted) if self.ahead else self.now

    @property
    def fault(self) -> str | None:
        """Return what is wrong with the clock in words, or None if it is believed."""
        if not self.ahead and not self.behind:
            return None
        unset = UNSET if self.unset else ""
        if self.mark.boot == UNCOUNTED:
            newest = f"the newest that is written down here is of {_date(self.mark.time)}"
            return f"the clock shows {_date(self.now)}, {newest}, and when it was believed last is not known{unset}"
        if self.ahead:
            return f"the clock shows {_date(self.now)}, {age(self.now - self.counted)} more than was counted{unset}"
        return f"the clock shows {_date(self.now)}, and was believed at {_date(self.mark.time)}"

    @property
    def is_kept(self) -> bool:
        """Return whether a recent note says that the clock is believed."""
        mark, here = self.mark, self.here
        return bool(mark and mark.boot == here.boot and 0 <= here.counted - mark.counted < KEEP)


def path_of(database: str) -> str:
    """Return the path of the mark of the node with this database."""
    return f"{os.path.splitext(os.path.abspath(database))[0]}.clock"


def look(store: DatedStore, verb: str) -> Clock:
    """Return the clock of a node.

    :param store: the node's database.
    :param verb: the verb of `hetero` by which an operator says that the clock is right.
    :raises HeteroError: the mark cannot be read.
    """
    path, here = path_of(store.path), _here()
    mark = _read(path, verb)
    if mark is None:
        newest = store.newest_time()
        if newest is None:
            here = replace(here, sure=synchronised())
            return Clock(path, here.time, None, here.time, here, None)  # nothing exists that could end
        mark = Mark(newest, UNCOUNTED, 0.0)
    # a container that was started again has the boot of its machine, and a count of its own
    same = mark.boot == here.boot and mark.counted <= here.counted
    # of another boot: the machine was on at least as long as it counts now
    since = here.counted - mark.counted if same else here.counted if mark.boot != UNCOUNTED else 0.0
    here = replace(here, sure=synchronised() or (same and mark.sure))
    unset = not (same or here.sure)
    counted = mark.time + since
    off = OFF if mark.sure and not (same or unset) else SLACK
    return Clock(path, here.time, counted, counted + off, here, mark, unset)


def keep(clock: Clock, say: Callable[[str], object] = lambda _text: None) -> None:
    """Write down that a clock is believed. If it is not, write down the mark, before wrong times get into the database,
    or an older copy of it is put back.

    :param say: is called with a text if that cannot be written. Leases also end when the disk is full.
    """
    first = clock.fault and clock.mark.boot == UNCOUNTED and not os.path.lexists(clock.path)
    wanted = first or not (clock.fault or clock.is_kept)
    if wanted and os.path.isdir(os.path.dirname(clock.path)):
        try:
            _write(clock.path, clock.mark if first else clock.here)
        except HeteroError as error:
            say(str(error))


def late(clock: Clock, ends: Iterable[float | None], verb: str) -> str | None:
    """Return, in words, that leases end late because the clock is behind; None where it is not, or no lease ends.

    :param ends: the ends of leases (unix seconds); None for one without end.
    """
    if not clock.behind or all(end is None for end in ends):
        return None
    return f"{clock.fault}: leases end late: {HOW.format(verb=verb)}"


def set_right(database: str) -> None:
    """Note an operator's word that the clock is right now."""
    _write(path_of(database), _here())


def begin_lease(store: DatedStore, verb: str, dry: bool) -> None:
    """Check the clock for a lease that begins now, and write this moment down.

    :param dry: write nothing.
    :raises Refused: the lease would be over as soon as the clock is set, or would last too long.
    :raises HeteroError: the mark cannot be read.
    """
    clock = _believed(store, verb, dry)
    if _runs_ahead(clock):
        what = f"{clock.fault}: a lease would end too late once it is set"
        raise Refused(what, "lease", HOW.format(verb=verb) + FIRST_EXTEND)


def extend_lease(store: DatedStore, verb: str, dry: bool) -> str:
    """Check the clock for a lease that is extended; otherwise as begin_lease.

    A clock that is ahead does not refuse it, because an operator extends what is to stay before saying that the clock
    is right. Call extended_late then, before the lease's end is written.

    :returns: what to say of the lease's end where the clock is ahead, else "".
    """
    clock = _believed(store, verb, dry)
    return LATE.format(fault=clock.fault) if _runs_ahead(clock) else ""


def extended_late(store: DatedStore, verb: str) -> None:
    """Note that a lease is extended by a clock that is ahead.

    It may be behind all the same, where the machine was off for longer than it shows: so the time that it was off ends
    nothing then without an operator's word. An extension that is refused notes nothing.
    """
    clock = look(store, verb)
    if clock.mark is not None:
        _write(clock.path, replace(clock.mark, sure=False))


def believed(store: DatedStore) -> float:
    """Return what time it is: what the clock shows, unless it went ahead and no time server keeps it. What ends by a
    date is not over by a jump.
    """
    try:
        clock = look(store, "")
    except HeteroError:  # who ends and gives leases says it
        return time.time()
    return clock.sure if _runs_ahead(clock) else clock.now


def _believed(store: DatedStore, verb: str, dry: bool) -> Clock:
    clock = look(store, verb)
    if not dry:
        keep(clock)
    if clock.behind:
        raise Refused(f"{clock.fault}: a lease would end at once when it is set", "lease", HOW.format(verb=verb))
    return clock


def _runs_ahead(clock: Clock) -> bool:
    """Return whether a clock is known to be ahead.

    For a lease, one that a time server keeps is right: the kernel forgets the server when the clock is set by hand, and
    a lease that is too long loses nothing.
    """
    return bool(clock.ahead and not synchronised())


def _here() -> Mark:
    return Mark(time.time(), boot_id(), time.clock_gettime(time.CLOCK_BOOTTIME) - began())


def boot_id() -> str:
    """Return what tells this boot of the machine from all others."""
    with naming(BOOT_ID), open(BOOT_ID, encoding="utf-8") as file:
        return file.read().strip()


def began() -> float:
    """Return when this boot began, in seconds of the kernel's count. A container has boots of its own, but no such
    count.

    The start of process 1 is field 22 of its stat file, in ticks (proc_pid_stat(5)).
    """
    with naming(FIRST), open(FIRST, encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[22 - 3]) / os.sysconf("SC_CLK_TCK")


def _write(path: str, mark: Mark) -> None:
    with naming(path):
        write_whole(path, json.dumps(asdict(mark)), 0o600)


def _read(path: str, verb: str) -> Mark | None:
    if not os.path.lexists(path):
        return None
    try:
        found = read_object(path, "")
        # an earlier release did not write down whether it was sure
        sure = found.get("sure", True) is True
        return Mark(float(found["time"]), str(found["boot"]), float(found["counted"]), sure)
    except (BadInput, KeyError, TypeError, ValueError, OverflowError) as error:
        what = "what it says of the clock cannot be read, so no lease is ended or given"
        remedy = f"where the clock is right: hetero {verb} {BY_WORD}"
        raise HeteroError(what, path, remedy) from error


def _date(when: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))
    except (OverflowError, OSError, ValueError):
        return f"{when:g}"
