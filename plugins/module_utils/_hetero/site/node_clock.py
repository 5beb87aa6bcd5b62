# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's clock held against the seconds that its kernel counted since the clock was believed last.

Leases end by the clock, and with them boards, guests and data; a clock jumps: a battery that is dead, a wrong time
server, a slip of the hand. So nothing ends by a jump: what is over by the clock alone is held until the clock is set
right, or an operator says that it is. What was believed last, by the reaper or when a lease was given, lies in a file
beside the node's database. Where that is lost, the clock is held against the newest that the database says.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Protocol

from ..core.errors import BadInput, HeteroError, Refused, naming
from ..core.json_file import read_object
from ..core.kernel_clock import synchronised
from ..files.whole_file import write_whole
from .instance import age

#: What a clock may be stepped by between two turns of the reaper and be believed (seconds): what time servers correct,
#: and a reboot that leaves it to a clock without a battery for that long.
SLACK = 300.0
#: How long a machine may have been off (seconds): a long weekend. Nobody but its clock counted that time, so it counts
#: only once a time server has set the clock (core/kernel_clock.py).
OFF = 4 * 86400.0
#: How often it is written down that the clock is believed (seconds): this and a reboot are to be less than SLACK.
KEEP = 60.0
#: One line, another one after each boot (random(4)).
BOOT_ID = "/proc/sys/kernel/random/boot_id"
#: Of the first process of this machine or container.
FIRST = "/proc/1/stat"
#: In place of a boot: that time was read of the database, and nobody counted since.
UNCOUNTED = ""
BY_WORD = "--clock-is-right"
HOW = "set the clock; where it is right: hetero {verb} " + BY_WORD
UNSET = ", and no time server has set it since the boot"
#: An operator's word ends what is over by it.
FIRST_EXTEND = ", once what is to stay has been extended"
#: What is done about a lease that is over by a clock which jumped.
HOLD = f"nothing ends by a jump: {HOW}{FIRST_EXTEND}"
#: What is said of one that is extended meanwhile, which that word would end else.
LATE = "; {fault}: it ends too late once that is set"


class DatedStore(Protocol):
    """The database of a node, as far as its clock asks for it: a ClaimsStore."""

    @property
    def path(self) -> str: ...

    def newest_time(self) -> float | None: ...


@dataclass(frozen=True)
class Mark:
    """A clock that was believed: what it showed, in which boot, and the seconds that the kernel had counted in it.

    Where no such mark was kept, the time of the newest that the database says, in boot UNCOUNTED.
    """

    time: float
    boot: str
    counted: float


@dataclass(frozen=True)
class Clock:
    """What a node's clock shows, and what the kernel's count makes of the one that was believed last.

    :param path: where the mark lies.
    :param now: what it shows (unix seconds).
    :param counted: what it is at least by the kernel's count; None where nothing is known of any time before.
    :param latest: the latest that is believed.
    :param here: the mark of this moment.
    :param mark: the one that it is held against; None where there is none.
    :param unset: time was not counted that the machine may have been off: no time server has set the clock since.
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
        """Whether it went forward by more than can be told from a wrong clock."""
        return self.now > self.latest

    @property
    def behind(self) -> bool:
        """Whether it shows a time that was long over."""
        return self.counted is not None and self.now < self.counted - SLACK

    @property
    def sure(self) -> float:
        """The time that it is at least: what ends then is over."""
        return min(self.now, self.counted) if self.ahead else self.now

    @property
    def fault(self) -> str | None:
        """What is wrong with it, in words; None for one that is believed."""
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
        """Whether it was written down a short time ago that it is believed."""
        mark, here = self.mark, self.here
        return bool(mark and mark.boot == here.boot and 0 <= here.counted - mark.counted < KEEP)


def path_of(database: str) -> str:
    """Where the mark of the node with this database lies."""
    return f"{os.path.splitext(os.path.abspath(database))[0]}.clock"


def look(store: DatedStore, verb: str) -> Clock:
    """The clock of a node.

    :param store: the node's.
    :param verb: of `hetero`, with which an operator says that it is right.
    :raises HeteroError: what was believed last cannot be read.
    """
    path, here = path_of(store.path), _here()
    mark = _read(path, verb)
    if mark is None:
        newest = store.newest_time()
        if newest is None:
            return Clock(path, here.time, None, here.time, here, None)  # nothing is there that could end
        mark = Mark(newest, UNCOUNTED, 0.0)
    # a container that was started again has the boot of its machine, and counts anew
    same = mark.boot == here.boot and mark.counted <= here.counted
    # of another boot: it was on for as long as it counts now, at least
    since = here.counted - mark.counted if same else here.counted if mark.boot != UNCOUNTED else 0.0
    unset = not (same or synchronised())
    counted = mark.time + since
    return Clock(path, here.time, counted, counted + (SLACK if same or unset else OFF), here, mark, unset)


def keep(clock: Clock, say: Callable[[str], object] = lambda _text: None) -> None:
    """Write down that a clock is believed, if it is; else what it is held against, before wrong times come after it.

    :param say: called with a text where that cannot be written: on a disk that is full leases end all the same.
    """
    first = clock.ahead and clock.mark.boot == UNCOUNTED and not os.path.lexists(clock.path)
    wanted = first or not (clock.fault or clock.is_kept)
    if wanted and os.path.isdir(os.path.dirname(clock.path)):
        try:
            _write(clock.path, clock.mark if first else clock.here)
        except HeteroError as error:
            say(str(error))


def set_right(database: str) -> None:
    """An operator's word that the clock is right now."""
    _write(path_of(database), _here())


def begin_lease(store: DatedStore, verb: str, dry: bool) -> None:
    """The clock is believed for a lease that begins now, and held against this moment where nothing else is kept.

    :param dry: nothing is written.
    :raises Refused: the lease would be over as soon as the clock is set, or last too long.
    :raises HeteroError: what was believed last cannot be read.
    """
    clock = _believed(store, verb, dry)
    if _runs_ahead(clock):
        what = f"{clock.fault}: a lease would end too late once it is set"
        raise Refused(what, "lease", HOW.format(verb=verb) + FIRST_EXTEND)


def extend_lease(store: DatedStore, verb: str, dry: bool) -> str:
    """The same for one that is extended, which is not refused by a clock that is ahead: an operator who says that it is
    right has extended before what is to stay. What is to be said of its end then; empty where there is nothing.
    """
    clock = _believed(store, verb, dry)
    return LATE.format(fault=clock.fault) if _runs_ahead(clock) else ""


def _believed(store: DatedStore, verb: str, dry: bool) -> Clock:
    clock = look(store, verb)
    if not dry and not os.path.lexists(clock.path):
        keep(clock)
    if clock.behind:
        raise Refused(f"{clock.fault}: a lease would end at once when it is set", "lease", HOW.format(verb=verb))
    return clock


def _runs_ahead(clock: Clock) -> bool:
    """Whether a clock is known to be ahead. One that a time server keeps is right, for a lease: the kernel forgets that
    when it is set by hand, and nothing is lost by a lease that is too long.
    """
    return bool(clock.ahead and not synchronised())


def _here() -> Mark:
    with naming(BOOT_ID), open(BOOT_ID, encoding="utf-8") as file:
        boot = file.read().strip()
    return Mark(time.time(), boot, time.clock_gettime(time.CLOCK_BOOTTIME) - began())


def began() -> float:
    """When this boot began, in seconds of the kernel's count: a container has boots of its own, and no such count.

    The start of process 1 is its 22nd field, in ticks (proc_pid_stat(5)).
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
        return Mark(float(found["time"]), str(found["boot"]), float(found["counted"]))
    except (BadInput, KeyError, TypeError, ValueError, OverflowError) as error:
        what = "what it says of the clock cannot be read, so no lease is ended or given"
        remedy = f"where the clock is right: hetero {verb} {BY_WORD}"
        raise HeteroError(what, path, remedy) from error


def _date(when: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))
    except (OverflowError, OSError, ValueError):
        return f"{when:g}"
