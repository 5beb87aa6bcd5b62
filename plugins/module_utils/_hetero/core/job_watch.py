# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a job in the background, or at the instances of a request: it waits for news, such as new events or the
job's end.

This file is also a program that needs the standard library only: the action plugin sends the file to the node's Python,
so that a look costs no module call. background.py writes the job file and the store writes the events.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import select
import sys
import time
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    import sqlite3

#: Steps of boot drivers that act on a board (drivers/boot/tilera.py).
STEPS = ("monitor", "network", "sshd", "firewall", "console")
#: Steps of work with a board that runs from RAM.
IN_RAM = ("ram", "upload", "unpack", "wipe")
#: Events that people follow. Events of claims and changes of state are left out, for other lines tell of them.
SHOWN = (
    "choice",
    "rebuild",
    "image",
    "power",
    "reboot",
    "tftp",
    "flash",
    "nfs",
    *STEPS,
    *IN_RAM,
    "running",
    "cabling",
    "check",
    "error",
    "wait",
)
OF_BOARDS = (
    "SELECT id, 'board' || board, instance, phase, text, seconds FROM events"
    " WHERE id > ? AND {} IN ({}) AND phase IN ({}) AND (phase != 'wait' OR actor LIKE ?) ORDER BY id"
)
#: Those of a job's own that are of no board, such as of outlets.
OF_NO_BOARD = (
    "SELECT id, NULL, instance, phase, text, seconds FROM events"
    " WHERE id > ? AND board IS NULL AND phase IN ({}) AND actor LIKE ? ORDER BY id"
)
#: Events of containers and guests that people follow; their texts name the phase themselves. Which node was chosen is
#: said of the request, and in the text.
SHOWN_OF_INSTANCES = ("choice", "image", "container", "guest", "gpus", "ssh", "lease", "error", "wait")
OF_INSTANCES = (
    "SELECT id, CASE phase WHEN 'choice' THEN '' ELSE ? END, instance, '', text, seconds FROM events"
    " WHERE id > ? AND instance IN ({}) AND phase IN ({}) AND (phase != 'wait' OR actor LIKE ?) ORDER BY id"
)
#: How the instances of a request stand, by a proxy node's database and by a compute host's.
BOARDS_STAND = (
    "SELECT instance, 'board' || board, coalesce(state, 'power off'), coalesce(note, ''), since"
    " FROM claims LEFT JOIN boards USING (board) WHERE :request IN (instance, request) ORDER BY instance"
)
INSTANCES_STAND = (
    "SELECT instance, :node, state, note, since FROM instances WHERE :request IN (instance, request) ORDER BY instance"
)
#: All that happened to them; of boards and of instances.
HAPPENED = (
    "SELECT id, time, {}, instance, phase, text, seconds FROM events"
    " WHERE id > :after AND (instance = :request OR instance GLOB :several) ORDER BY id"
)
TO_BOARDS, TO_INSTANCES = HAPPENED.format("'board' || board"), HAPPENED.format(":node")
#: Seconds that a look waits for news where it is not told how long. Each look costs a start of Python.
LOOK = 1.5
#: Seconds that a look goes on after it has news: the last event and the job's end come together, so that one look gets
#: both.
TOGETHER = 0.05
TICK = 0.02


def look(follow: dict) -> dict:
    """Return the news of a job.

    :param follow: dict of `job` (its file), `state_db`, `after` (id of the newest event that is known), and whose
        events are wanted: `boards` (ids; none: events of no board, of the worker), or `instances` (names), with their
        `node` on a compute host; and `worker`,
        the job's process id, without which events of other verbs on these boards are returned, too; and `wait`, the
        seconds to wait for news (default LOOK).
    :returns: dict of `events` (id, node, instance, phase, text, seconds), `done`, and `result` (what the job printed;
        None before its end). A job whose file is gone, as after a restart of the node, is done and printed nothing.
    """
    if not os.path.exists(follow["job"]):
        return dict(events=[], done=True, result="")
    db, query, ticks = _opened(follow), _query(follow), _Ticks(follow)
    with open(follow["job"], encoding="utf-8") as job:
        while True:
            os.utime(job.fileno())  # the sign that somebody still follows the job (askers.py)
            done = ended(job)
            events = db.execute(*query).fetchall()
            if done or not ticks.go_on(bool(events)):
                break
        result = job.read() if done else None
    db.close()
    # The file stays for a day (retention.JOBS_AGE): a play that did not receive the answer asks again.
    return dict(events=[list(event) for event in events], done=done, result=result)


def watch(follow: dict) -> dict:
    """Return the news of the instances of a request.

    :param follow: dict of `state_db`, `request`, `after` (id of the newest event that is known), `mark` (of how they
        stood, as the last look returned it; None for the first one), and `node`, a compute host's name; and `wait`.
    :returns: dict of `stands` (instance, node, state, note, since when), their `mark`, `events` (id, time, node,
        instance, phase, text, seconds), and `time`, by the node's clock.
    """
    db, ticks = _opened(follow), _Ticks(follow)
    stand, happened = (INSTANCES_STAND, TO_INSTANCES) if "node" in follow else (BOARDS_STAND, TO_BOARDS)
    values = dict(follow, several=f"{follow['request']}-[0-9]*")
    while True:
        events = db.execute(happened, values).fetchall()
        stands = db.execute(stand, values).fetchall()
        mark = zlib.crc32(repr(stands).encode("utf-8", "surrogateescape"))
        if not ticks.go_on(bool(events) or mark != follow["mark"]):
            break
    db.close()
    told = dict(stands=[list(one) for one in stands], events=[list(event) for event in events])
    return dict(told, mark=mark, time=time.time())


def _opened(follow: dict) -> sqlite3.Connection:
    import sqlite3  # each play loads this file on the controller, which has no database

    return sqlite3.connect(f"file:{quote(follow['state_db'])}?mode=ro", uri=True)


class _Ticks:
    """The ticks of one look: it goes on until its time is over or nobody reads it any more; with news, for TOGETHER."""

    def __init__(self, follow: dict) -> None:
        self._end = time.monotonic() + follow.get("wait", LOOK)

    def go_on(self, news: bool) -> bool:
        """Wait until the next tick; return False, without that, where the look is over."""
        if time.monotonic() > self._end or not is_read():
            return False
        if news:
            self._end = min(self._end, time.monotonic() + TOGETHER)
        time.sleep(TICK)
        return True


def _query(follow: dict) -> tuple[str, tuple]:
    # An event names who wrote it as "NAME pid NUMBER" (boards/records/proxy.py).
    own = f"%pid {follow['worker']}" if "worker" in follow else "%"
    if "node" in follow:
        names, shown = follow["instances"], SHOWN_OF_INSTANCES
        values = (follow["node"], follow["after"], *names, *shown, own)
        return OF_INSTANCES.format(_places(names), _places(shown)), values
    if follow.get("boards") == []:
        return OF_NO_BOARD.format(_places(SHOWN)), (follow["after"], *SHOWN, own)
    column = "board" if "boards" in follow else "instance"
    # The ids or names are in the query's text, for SQLite before 3.32 takes only 999 values. They are safe there: ids
    # are numbers, and names consist of a-z, 0-9 and -.
    wanted = ", ".join(map(repr, map(int, follow["boards"]) if "boards" in follow else map(str, follow["instances"])))
    return OF_BOARDS.format(column, wanted, _places(SHOWN)), (follow["after"], *SHOWN, own)


def _places(values: tuple[str, ...] | list[str]) -> str:
    return ", ".join("?" for value in values)


def is_read(output: int = 1) -> bool:
    """Return whether somebody reads what this process prints: a look of a play that was killed ends, and so do its
    signs that the job is followed.
    """
    poll = select.poll()
    poll.register(output, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _output, event in poll.poll(0))


def ended(job: io.TextIOWrapper) -> bool:
    """Return whether the worker has released the lock of its job file; the kernel releases that of a killed one."""
    try:
        fcntl.flock(job, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(look(asked) if "job" in asked else watch(asked)) + "\n")
