# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop was killed after its cut; the plugs were swapped. Carol sees that her board is dark and has a verb of hers
look at it, when the stop is run again. If this fails, that one says that no other board has lost its power, without
having looked at hers; so nobody looks again, and her board stays dark.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import STOP, killed, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, swapped

__all__ = ["hasty", "swapped"]
BLAMED = "carol on board1 answered until pdu-a outlet 1 was switched off for board0, is silent now, and may have lost"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.fixture
def her_verb(swapped):
    """A function that begins a verb of carol's, which has the lock of her board; and one that ends it."""
    children = []

    def begin():
        read, write = os.pipe()
        child = os.fork()
        if not child:
            with lock(str(swapped.run_folder), "board1", "start", "carol", Deadline(5)):
                os.write(write, b"!")
                time.sleep(120)
            os._exit(0)
        children.append(child)
        assert os.read(read, 1) == b"!"

    def end():
        while children:
            child = children.pop()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    yield begin, end
    end()


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a verb of hers"])
def test_who_was_cut_has_her_power_back_or_is_looked_at_later(swapped, monkeypatch, her_verb, beside):
    """Lost: carol's power."""
    hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **STOP)
    begin, end = her_verb
    if beside:
        begin()
    second = swapped.module("instance", timeout=10, **STOP)
    end()
    said = second.get("failed"), told(second), [event.text for event in swapped.events(0, "power")][-1]
    assert not beside or (BLAMED in str(second["lines"]), second.get("failed", False)) == (True, False), said
    third = swapped.module("instance", timeout=10, **STOP)
    after = told(reconcile(swapped))
    assert lives(swapped, 1), (said, third.get("failed"), told(third), after)


def test_nothing_is_said_of_who_was_not_looked_at(swapped, monkeypatch):
    """Lost: the one word of what took carol's power; she had her board rebooted by power, as reconcile prints."""
    hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **STOP)
    again = dict(boards=[1], state="rebooted", how="hard", instance="carol", timeout=1, retries=0)
    assert swapped.module("tilera_boot", **again)["failed"]
    second = swapped.module("instance", timeout=10, **STOP)
    last = [event.text for event in swapped.events(0, "power")][-1]
    assert "no other board has lost its power" not in last, second
    assert BLAMED in str(second["lines"]), second
