# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a job in the background: waits for new events or its end, whichever is first.

A program too, of the standard library alone: the action plugin sends this very file to the node's Python, so that a
look costs no module call. The job is background.py's, the events are the store's; this only reads them.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import sqlite3
import sys
import time
from urllib.parse import quote

#: Steps of boot drivers that act on a board (drivers/boot/tilera.py).
STEPS = ("monitor", "network", "sshd", "firewall", "console")
#: Steps of what is done with a board from RAM.
IN_RAM = ("ram", "upload", "unpack", "wipe")
#: Events that people follow. Changes of state and claims are history; other lines tell of them.
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
    "error",
    "wait",
)
OF_BOARDS = (
    "SELECT id, 'board' || board, instance, phase, text, seconds FROM events"
    " WHERE id > ? AND {} IN ({}) AND phase IN ({}) AND (phase != 'wait' OR actor LIKE ?) ORDER BY id"
)
#: Events of containers and guests that people follow; their texts name the phase themselves.
SHOWN_OF_INSTANCES = ("image", "container", "guest", "gpus", "ssh", "lease", "error", "wait")
OF_INSTANCES = (
    "SELECT id, ?, instance, '', text, seconds FROM events"
    " WHERE id > ? AND instance IN ({}) AND phase IN ({}) AND (phase != 'wait' OR actor LIKE ?) ORDER BY id"
)
#: How long a look waits for news (seconds): below the 2 s within which each phase is to be seen, and long enough to be
#: cheap.
LOOK = 1.5
#: How long it stays when there is news (seconds): the last event and the end come together, and one look is enough for
#: both.
TOGETHER = 0.05
TICK = 0.02


def look(follow: dict) -> dict:
    """News of a job.

    :param follow: dict of `job` (its file), `state_db`, `after` (the newest event known), and whose events tell of it:
        `boards` (ids), or `instances` (names), with their `node` where that is no board; and `worker`, its process id:
        what other verbs wait for there is none of its news.
    :returns: dict of `events` (id, node, instance, phase, text, seconds), `done`, and `result` (what the job printed;
        None before its end). A job whose file is gone, as after a restart of the node, is done and printed nothing.
    """
    if not os.path.exists(follow["job"]):
        return dict(events=[], done=True, result="")
    db = sqlite3.connect(f"file:{quote(follow['state_db'])}?mode=ro", uri=True)
    query, values = _query(follow)
    end = time.monotonic() + LOOK
    with open(follow["job"], encoding="utf-8") as job:
        while True:
            os.utime(job.fileno())  # whoever follows is there (askers.py)
            done = ended(job)
            events = db.execute(query, values).fetchall()
            if done or time.monotonic() > end:
                break
            if events:
                end = min(end, time.monotonic() + TOGETHER)
            time.sleep(TICK)
        result = job.read() if done else None
    db.close()
    # The file stays for a day (background.KEEP): whoever did not hear the answer asks again.
    return dict(events=[list(event) for event in events], done=done, result=result)


def _query(follow: dict) -> tuple[str, tuple]:
    # who acts is "NAME pid NUMBER" (boards/records/proxy.py)
    own = f"%pid {follow['worker']}" if "worker" in follow else "%"
    if "node" in follow:
        names, shown = follow["instances"], SHOWN_OF_INSTANCES
        values = (follow["node"], follow["after"], *names, *shown, own)
        return OF_INSTANCES.format(_places(names), _places(shown)), values
    column = "board" if "boards" in follow else "instance"
    # In the text, for SQLite before 3.32 takes only 999 values; numbers, and names of a-z, 0-9 and -.
    wanted = ", ".join(map(repr, map(int, follow["boards"]) if "boards" in follow else map(str, follow["instances"])))
    return OF_BOARDS.format(column, wanted, _places(SHOWN)), (follow["after"], *SHOWN, own)


def _places(values: tuple[str, ...] | list[str]) -> str:
    return ", ".join("?" for value in values)


def ended(job: io.TextIOWrapper) -> bool:
    """Whether the worker let go of its job file, which the kernel does for one that was killed."""
    try:
        fcntl.flock(job, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(json.loads(sys.argv[1]))) + "\n")
