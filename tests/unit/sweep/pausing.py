# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two plays at once: the first stands still before its n-th write (killing.py) while the second one runs as far as it
comes, to its end or to where it waits for the first.
"""

from __future__ import annotations

import json
import os
import select

from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points

#: How long the first stands still for a second one that waits for it (seconds): a play that does not wait is done.
STILL = 0.7
#: Longest that two plays may take on a machine at work (seconds).
LONGEST = 120.0


class Pause(Points):
    """Points of which one is where the process stands still until `let_go`, once."""

    def __init__(self):
        super().__init__()
        self._reached, self._go = os.pipe(), os.pipe()

    def strike(self):
        os.write(self._reached[1], b"x")
        os.read(self._go[0], 1)

    def let_go(self):
        os.write(self._go[1], b"x")

    @property
    def reached(self):
        """A descriptor with something to read once the process stands still."""
        return self._reached[0]

    def close(self):
        for end in (*self._reached, *self._go):
            os.close(end)


def interleaved(site, first, second, at):
    """([results of the first play], [results of the second], what the first was about to write, "" for nothing).

    :param at: the number of the first one's write before which it stands still.
    """
    pause = Pause()
    try:
        pause.reset(at)
        one = _begin(site, pause, first)
        select.select([pause.reached, one], [], [], LONGEST)
        other = _begin(site, Points(), second)
        select.select([other], [], [], STILL)
        pause.let_go()
        return _end(one), _end(other), pause.killed
    finally:
        pause.close()


def _begin(site, points, play):
    """A descriptor that is read for what a play returns, which a process of its own runs."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reader)
            site.points = points
            os.write(writer, json.dumps(play(), default=str).encode())
        finally:
            os._exit(0)
    os.close(writer)
    return reader


def _end(reader):
    with open(reader, "rb") as answer:
        text = answer.read()
    os.wait()
    return json.loads(text or '"died"')
