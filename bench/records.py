# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large a proxy's records are after a year: `bench/records.py [BOARDS [DAYS [CYCLES]]]`, from the root folder.

Each board is claimed, booted and given back CYCLES times a day by the store's own functions, on a clock that is played.
What the boots and the clean-up say are the events of a played proxy. Once a day old events go, as `hetero backup` does
each hour; in the last weeks copies are made, once a day, and each hour on the last day. Ten boards stand for a
thousand: events, and what stays of them, grow with the number of boards.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from datetime import datetime, timezone

sys.path.insert(0, "build")

from goals import record, say

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups, retention

SITE = 1000  # boards
DAY = 86400.0
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()
MIB = 1 << 20
#: Days before the end on which copies are made: more than there are copies of days.
COPIED = retention.COPIES_DAYS + 4
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 1, "local_gb": 500, "cpu_arch": "tilepro64"}
BOOT = (
    ("image", "root ready, exported to 10.0.2.1 only"),
    ("switch", "pdu-a outlet 1 is to be switched on"),
    ("power", "pdu-a outlet 1: off → on, read back"),
    ("tftp", "boot entry, kernel, initrd fetched"),
    ("nfs", "root mounted"),
)
END = (
    ("power", "pdu-a outlet 1: on → off, read back; no answer"),
    ("image", "export, root and files removed"),
)


class Clock:
    """The clock of this process, by which the store dates what happens."""

    def __init__(self):
        self.now = BEGIN
        time.time = lambda: self.now
        time.gmtime = lambda seconds=None, real=time.gmtime: real(self.now if seconds is None else seconds)


def cycle(store, board, instance):
    """A board's claim, boot and end."""
    store.claim(instance, [instance], ClaimTerms("bench", FLAVOR, "image", KEY), [board])
    store.event(None, "choice", f"wants tp64.8x8: 2 of 2 boards fit, board{board} chosen", instance=instance)
    store.move(board, "booting")
    for phase, text in BOOT:
        store.event(board, phase, text, 0.897)
    store.power_seen(board, "on")
    store.move(board, "running")
    store.event(board, "running", "ssh answers", 0.01)
    store.move(board, "shutting down")
    for phase, text in END:
        store.event(board, phase, text, 0.259)
    store.power_seen(board, "off")
    store.release(board, store.claim_of(instance))


def day(store, boards, cycles, clock):
    """What happens in a day; one commit an hour or so, for this machine's disk is not what is measured."""
    for _turn in range(cycles):
        with store.transaction():
            for board in range(boards):
                clock.now += DAY / cycles / boards
                cycle(store, board, f"job-{board}-{int(clock.now)}")


def events(store):
    return store._db.rows("SELECT count(*) FROM events")[0][0]


def size(store):
    """Bytes of the file; its log, some 4 MiB, is as large for any number of boards."""
    store._db.rows("PRAGMA wal_checkpoint")
    return os.path.getsize(store.path)


def main(boards, days, cycles):
    retention.REST = 0.0  # nobody else writes
    clock, table = Clock(), []
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/state.db") as store:
        print(f"{boards} boards, {cycles} cycles a day, events kept for {retention.EVENTS_DAYS} days")
        print(f"{'day':>6}{'events':>12}{'MiB':>10}{'MiB of copies':>15}{'copies':>8}", flush=True)
        for number in range(1, days + 1):
            day(store, boards, cycles, clock)
            if number > days - COPIED:
                backups.make(store.path)
            store.prune(retention.EVENTS_DAYS, clock.now)
            if number % 30 == 0 or number == days:
                for _hour in range(24 if number == days else 0):
                    clock.now += 3600
                    store.event(0, "note", "an hour")
                    backups.make(store.path)
                copies = backups.copies(store.path)
                table.append((size(store), sum(map(os.path.getsize, copies)), len(copies)))
                shown = f"{table[-1][0] / MIB:>10.1f}{table[-1][1] / MIB:>15.1f}{len(copies):>8}"
                print(f"{number:>6}{events(store):>12}{shown}", flush=True)
    full = [one[0] for one in table[retention.EVENTS_DAYS // 30 :]]
    grown = max(full) / full[0] - 1 if full else 0.0
    file, copies, number = table[-1]
    gib = SITE / boards / (1 << 30)
    text = f"{file * gib:.1f} GiB, {number} copies {copies * gib:.0f} GiB"
    say(f"{SITE} boards after {days} days: {text}; grown by {grown:.1%} since day {retention.EVENTS_DAYS + 30}")
    record(f"{SITE:,} boards, 10 cycles a day, a year: grown once events are of an age", f"{grown:.1%}", grown < 0.02)
    record("the same, database and its copies", text)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*given, *(10, 365, 10)[len(given) :])
