# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a forked child: what it does to its own root, namespaces or credentials is over with it, and so is a hang."""

from __future__ import annotations

import json
import os
import select
import signal

from .deadline import Deadline
from .errors import HeteroError, TimedOut

#: Seconds for a killed child to be gone; one that waits for a device inside the kernel may outlive us.
END_TIME = 1.0


def in_child(work, deadline, thing, remedy):
    """Run `work()` in a child process; its answer is of JSON's types.

    :raises HeteroError: what the work raised (its OSErrors too), or that it ended without an answer.
    :raises TimedOut: it was killed at the deadline.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(work, writer)
    os.close(writer)
    try:
        answer = _collect(reader, thing, deadline)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        _reap(child)
    if not answer:
        raise HeteroError("work inside it ended without an answer", thing, remedy)
    value = json.loads(answer.decode())
    if "failed" in value:
        raise HeteroError(value["failed"], thing, remedy)
    return value["done"]


def _child(work, writer):
    """Ends the process, whatever happens: the caller's code must not go on twice."""
    try:
        try:
            answer = {"done": work()}
        except OSError as error:
            answer = {"failed": f"{error.filename or 'its files'}: {error.strerror or error}"}
        except HeteroError as error:
            answer = {"failed": str(error)}
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def _collect(reader, thing, deadline):
    answer = b""
    while True:
        if not select.select([reader], [], [], deadline.left)[0]:
            raise TimedOut(f"work inside it took longer than {deadline.seconds:g} s", thing, "see dmesg")
        chunk = os.read(reader, 65536)
        if not chunk:
            return answer
        answer += chunk


def _reap(child):
    end = Deadline(END_TIME)
    while os.waitpid(child, os.WNOHANG)[0] == 0 and not end.passed:
        end.nap(0.001)
