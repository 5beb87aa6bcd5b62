# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long users wait who ask one proxy node at the same moment: `bench/users.py [USERS [BOARDS]]`.

From the root folder. Each is a process of its own, as its module on the node is: let go with all others, it opens the
database, claims a board and gives it back. How long each needed from the word on, and how many claims and releases a
second that is.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import traceback

sys.path.insert(0, "build")

from goals import record, say

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
TERMS = ClaimTerms("bench", {"name": "tp64.8x8"}, "image", KEY)
#: Times the median that 99 of 100 may need.
MOST = 3.0


def user(path, name, boards):
    """A claim and its release."""
    with Store(path) as store:
        (claim,) = store.claim(name, [name], TERMS, boards)
        store.release(claim.board, claim)


def started(path, number, boards, go, told):
    """The process of one user, who waits until nobody can write to `go` any more; its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.close(go[1])
        os.read(go[0], 1)
        began = time.monotonic()
        user(path, f"user-{number}", boards)
        os.write(told, f"{json.dumps(time.monotonic() - began)}\n".encode())
        status = 0
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(status)


def together(path, users, boards):
    """([seconds of each user], seconds of all, how many failed)."""
    go, said = os.pipe(), os.pipe()
    pids = [started(path, number, boards, go, said[1]) for number in range(users)]
    os.close(go[0])
    os.close(said[1])
    began = time.monotonic()
    os.close(go[1])
    with os.fdopen(said[0], encoding="utf-8") as lines:
        seconds = [json.loads(line) for line in lines]
    took = time.monotonic() - began
    failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    return sorted(seconds), took, failed


def main(users, boards):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.db")
        Store(path).close()
        seconds, took, failed = together(path, users, range(boards))
    if failed:
        sys.exit(f"{failed} of {users} users were refused")
    median, late = statistics.median(seconds), seconds[min(users - 1, int(users * 0.99))]
    say(f"{users} users at once, {boards} boards: half within {median:.2f} s, 99 of 100 within {late:.2f} s")
    record("200 users at once: 99 of 100, times the median", f"{late / median:.1f}", late <= MOST * median)
    record("the same, claims and releases a second", f"{users / took:.0f} of each")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*given, *(200, 200)[len(given) :])
