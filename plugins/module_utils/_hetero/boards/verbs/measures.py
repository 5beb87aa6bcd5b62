# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the memory, disks and network of a board that runs from RAM, over a Shell, in pieces of a few seconds.

Disks are only read. The board needs sh, dd, cmp, cat, tr, head, sed and blockdev; checks.py says what follows from a
test that failed.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Lost, TimedOut
from ...drivers.boot.shell import NoProgram

if TYPE_CHECKING:
    from ...drivers.boot.shell import Shell
    from ...site.proxy_config import UsualCheck

MIB = 1 << 20
#: Seconds for one piece of a test; the slowest limit that can be asked for is far above that.
PIECE_TIME = 120.0
#: MiB of memory that one command writes or reads: a second or two of ssh and of copying.
PIECE = 64
#: MiB of a disk that are read in each of three places: its first, middle and last cylinders differ in speed and age.
READ = 64
#: MiB that go to the board, in so many files: at 1 MB/s each takes 8 s.
SENT, FILES = 8, 2
#: The part of the free memory that a test takes at most: what is left runs the RAM system.
SHARE = 0.5

#: Prints free memory in KiB: MemAvailable came with Linux 3.14.
FREE = """
free=$(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)
[ -n "$free" ] || free=$(sed -n 's/^MemFree: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)
echo "$free"
"""
#: Makes three patterns of 1 MiB: 01010101, 10101010, and noise. The RAM system's files lie in its memory.
PATTERNS = """
set -e
rm -rf /tmp/hetero-check; mkdir /tmp/hetero-check
tr '\\000' '\\125' < /dev/zero | head -c 1048576 > /tmp/hetero-check/p0
tr '\\000' '\\252' < /dev/zero | head -c 1048576 > /tmp/hetero-check/p1
head -c 1048576 /dev/urandom > /tmp/hetero-check/p2
"""
REPEAT = 'repeat() { n=0; while [ $n -lt "$2" ]; do cat "$1" || return; n=$((n + 1)); done; }\n'
FILL = "set -e\n" + REPEAT + 'repeat "/tmp/hetero-check/p$1" "$3" > "/tmp/hetero-check/m$2"\n'
#: Prints whether a piece of the memory is as it was written.
KEEPS = (
    REPEAT + 'repeat "/tmp/hetero-check/p$1" "$3" | cmp -s - "/tmp/hetero-check/m$2"\n'
    "case $? in 0) echo kept ;; 1) echo other ;; *) exit 1 ;; esac\n"
)
CLEAR = "rm -rf /tmp/hetero-check"
SIZE = 'blockdev --getsize64 "$1"'
#: Prints the board's own time (seconds since its start) before and after it read a piece of a disk past all caches.
READ_DISK = """
set -e
sed 's/ .*//' /proc/uptime
dd if="$1" of=/dev/null bs=1048576 skip="$2" count="$3" iflag=direct status=none
sed 's/ .*//' /proc/uptime
"""
#: Prints smartctl's exit status, or nothing where the RAM image has no such program.
SMART = 'command -v smartctl > /dev/null || exit 0; smartctl -H "$1" > /dev/null 2>&1; echo $?'
#: Bits of that status (smartctl(8), EXIT STATUS): it could not ask the disk; the disk says that it is failing.
UNASKED, FAILING = 0b11, 0b1000
NO_PROGRAM = "not tested: the RAM image lacks a program ({error})"


@dataclass(frozen=True)
class Limits:
    """How much is tested, and from where on a test fails.

    :param memory_mb: most MiB of memory that are written and read.
    :param disk_mb_s: MB/s at which a disk must be read at least.
    :param network_mb_s: MB/s that must come from the proxy node at least, by ssh.
    :param boot_seconds: seconds from power on to ssh of the RAM system, at most.
    """

    memory_mb: int = 256
    disk_mb_s: float = 5.0
    network_mb_s: float = 1.0
    boot_seconds: float = 300.0

    @classmethod
    def of(cls, usual: UsualCheck, **given: Any) -> Limits:
        """Return the given limits; for those that are None this proxy's (tftp_proxy_check), else the defaults."""
        names = ("memory_mb", "disk_mb_s", "network_mb_s", "boot_seconds")
        said = {name: getattr(usual, name) if given.get(name) is None else given[name] for name in names}
        return cls(**{name: value for name, value in said.items() if value is not None})


@dataclass(frozen=True)
class Found:
    """What came of one test.

    :param passed: None where the test could not be done and nothing is wrong with the board.
    :param figures: what was measured, with its unit in the key.
    """

    passed: bool | None
    text: str
    figures: dict[str, Any]


#: Is called between pieces; it raises where the check is to end.
GoOn = Callable[[], None]


def memory(shell: Shell, limits: Limits, go_on: GoOn) -> Found:
    """Write patterns all over a part of the memory, each place in turn all of them, and compare what is read."""
    free = int(_run(shell, FREE).strip() or 0) >> 10
    total = int(min(limits.memory_mb, free * SHARE))
    if total < 1:
        return Found(None, f"not tested: {free} MB of memory are free", dict(mb=0))
    sizes = [PIECE] * (total // PIECE) + ([total % PIECE] if total % PIECE else [])
    _run(shell, PATTERNS)
    bad, begun = [], time.monotonic()
    for turn in range(3):
        for number, size in enumerate(sizes):
            go_on()
            _run(shell, FILL, (turn + number) % 3, number, size)
        for number, size in enumerate(sizes):
            go_on()
            if _run(shell, KEEPS, (turn + number) % 3, number, size).strip() != "kept":
                bad.append(number)
    seconds = time.monotonic() - begun
    _run(shell, CLEAR)
    figures = dict(mb=total, seconds=round(seconds, 1))
    if bad:
        lost = sum(sizes[number] for number in set(bad))
        return Found(False, f"of {total} MB, something in {lost} MB is not kept: replace its memory", figures)
    return Found(True, f"{total} MB keep three patterns", figures)


def disks(shell: Shell, devices: Sequence[str], limits: Limits, go_on: GoOn) -> Found:
    """Read three places of each disk and ask it how it is; nothing is written to it."""
    if not devices:
        return Found(None, "not tested: its wiring names no disk", {})
    told, passed, figures = [], True, {}
    for device in devices:
        speed, smart = _speed(shell, device, go_on), _smart(shell, device)
        figures[device] = dict(mb_s=speed, smart=smart)
        text = f"{device} {speed:g} MB/s"
        if speed < limits.disk_mb_s:
            passed, text = False, f"{text}, less than {limits.disk_mb_s:g} MB/s"
        if smart is not None:
            text += f", SMART {smart}"
        if smart == "failing":
            passed, text = False, f"{text}: replace it"
        told.append(text)
    return Found(passed, "; ".join(told), figures)


def _speed(shell: Shell, device: str, go_on: GoOn) -> float:
    """Return the MB/s (10^6 bytes) of the slowest of three places, by the board's own clock.

    :raises HeteroError: something cannot be read.
    """
    size = int(_run(shell, SIZE, device)) // MIB
    count, speeds = min(READ, size), []
    for place in sorted({0, (size - count) // 2, size - count}):
        go_on()
        began, ended = map(float, _run(shell, READ_DISK, device, place, count).split())
        if not math.isfinite(ended - began):
            raise ValueError(f"its clock says {began:g} and {ended:g}")
        speeds.append(count * MIB / 1e6 / max(ended - began, 0.01))  # the clock's own step
    return round(min(speeds), 1)


def _smart(shell: Shell, device: str) -> str | None:
    said = _run(shell, SMART, device).strip()
    if not said or int(said) & UNASKED:
        return None
    return "failing" if int(said) & FAILING else "passed"


def network(shell: Shell, limits: Limits, go_on: GoOn) -> Found:
    """Send files to the board's memory; what a connection costs without one is measured before and left out."""
    begun = time.monotonic()
    _run(shell, "true")
    idle, spent = time.monotonic() - begun, 0.0
    with tempfile.NamedTemporaryFile(prefix="hetero-check-") as file:
        file.write(os.urandom(SENT * MIB))
        file.flush()
        for _file in range(FILES):
            go_on()
            begun = time.monotonic()
            shell.put(file.name, "/tmp/hetero-check-file", _time(), lambda sent, all: go_on())
            spent += max(time.monotonic() - begun - idle, 0.001)
    _run(shell, "rm -f /tmp/hetero-check-file")
    speed = round(FILES * SENT * MIB / 1e6 / spent, 1)
    figures = dict(mb_s=speed, mb=FILES * SENT)
    if speed < limits.network_mb_s:
        least = f"less than {limits.network_mb_s:g} MB/s: see its cable and its switch"
        return Found(False, f"{speed:g} MB/s from the proxy node, {least}", figures)
    return Found(True, f"{speed:g} MB/s from the proxy node", figures)


def tried(test: Callable[[], Found]) -> Found:
    """Return what a test found; an error that is not the loss of the board is a failure, or the RAM image's lack.

    :raises Lost, TimedOut: the board went away.
    """
    try:
        return test()
    except (Lost, TimedOut):
        raise
    except NoProgram as error:
        return Found(None, NO_PROGRAM.format(error=error.what), {})
    except HeteroError as error:
        if error.facts.get("ends"):
            raise
        return Found(False, error.what, {})
    except ValueError as error:
        return Found(False, f"what it answers cannot be ({error})", {})


def _run(shell: Shell, script: str, *words: Any) -> str:
    return shell.run(["sh", "-c", script, "sh", *map(str, words)], _time())


def _time() -> Deadline:
    return Deadline(PIECE_TIME)
