# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays that wait for the boards of two proxy nodes, and are killed or interrupted meanwhile. If these fail, who waits
longest is overtaken, or waits for ever for a play that is dead.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR
from ansible_collections.hetero.compute.tests.unit.plays.test_several_owners import claims, take, waiting_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
#: Seconds in which a play ends.
LIMIT = 900
REQUEST = dict(flavor=FLAVOR, hetero_wait_interval=1, wait=30)


def waits(plays, name, **more):
    """A play that waits, once it says so; what it said."""
    process, said = plays.start("provision_instance", instance=name, **dict(REQUEST, **more)), ""
    while f"{name} waits for" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return process, said


def give_back(proxy, board):
    with Store(proxy.state_db) as store:
        store.release(board, store.record(board).claim)


def change(folders, how, request):
    for proxy in folders.values():
        with Store(proxy.state_db) as store:
            store._db.write(f"UPDATE tickets SET {how} WHERE request = ?", (request,))


@contextmanager
def minute_of(folders, *requests):
    """Let the minute of requests last as long as the block: machines that do much besides need longer for it."""
    over = threading.Event()

    def last():
        while not over.wait(1.0):
            for request in requests:
                change(folders, "lasts = 3000", request)

    lasting = threading.Thread(target=last)
    lasting.start()
    try:
        yield
    finally:
        over.set()
        lasting.join()


@pytest.mark.long
def test_killed_plays_keep_their_place_for_a_minute(proxies):
    """Lost: hours in the queue, when a play is killed and started again; or the board of all who wait behind it."""
    folders, plays = proxies
    plays.env["ANSIBLE_STDOUT_CALLBACK"] = "hetero.compute.quiet"
    for proxy in folders.values():
        take(proxy, f"full-{proxy.folder.name}-1", f"full-{proxy.folder.name}-2")
    old, said = waits(plays, "old")
    assert "1st in the queue" in said
    with minute_of(folders, "old"):
        young, said = waits(plays, "young")
    place = "2nd in the queue, none free for it; 4 boards in use, and old of jo goes first"
    line = f"young waits for tp64.8x8, 30 min at most: {place}"
    assert (line in said.splitlines(), "TASK" in said) == (True, False), said
    old.send_signal(signal.SIGINT)
    rc, output = plays.end(old, LIMIT)
    said = "the request keeps its place in the queue for a minute: the same command"
    assert (rc, said in output, "terminate_instance" in output) == (99, True, False), output
    with minute_of(folders, "old"):
        give_back(folders["p1"], 1)
        rc, output = plays.end(plays.start("provision_instance", instance="eve", flavor=FLAVOR), LIMIT)
        assert rc == 2, output
        assert "held for old of " in output, output
        assert "wait for it: -e wait=MINUTES" in output
        rc, output = plays.end(plays.start("status"), LIMIT)
        assert "next: old (queue 1)" in output, output
        assert "2nd in the queue" in output
        rc, output = plays.end(plays.start("provision_instance", instance="old", **REQUEST), LIMIT)
        assert (rc, "old is running on board1" in output) == (0, True), output
    # on the other proxy, which it never asked as a play that waits, its place is over after the minute
    change(folders, "renewed = renewed - 3600", "old")
    assert waiting_for(folders) == {"young"}
    dead, said = waits(plays, "dead", hetero_priority=5)
    assert "1st in the queue" in said
    plays.kill(dead)
    plays.end(dead, LIMIT)
    change(folders, "renewed = renewed - 3600", "dead")
    give_back(folders["p2"], 0)
    with minute_of(folders, "young"):
        rc, output = plays.end(young, LIMIT)
    assert (rc, "young is running on board0" in output) == (0, True), output
    assert claims(folders) == {"p1": ["full-p1-1", "old"], "p2": ["full-p2-2", "young"]}


@pytest.mark.long
def test_the_only_node_of_a_site_keeps_places_too(proxies):
    """Lost: the wait at a site with one proxy node, which claims and boots in one call."""
    folders, plays = proxies
    take(folders["p1"], "full-1", "full-2")
    solo, said = waits(plays, "solo", without="p2", count=2, hours=3)
    assert "solo waits for 2 tp64.8x8, 30 min at most: 1st in the queue, none free for it; " in said
    give_back(folders["p1"], 1)
    late = plays.start("provision_instance", instance="late", flavor=FLAVOR, without="p2", wait=0.01)
    with minute_of(folders, "solo"):
        rc, output = plays.end(late, LIMIT)
    assert (rc, "held for solo of " in output, "waited 0.01 min" in output) == (2, True, True), output
    assert waiting_for(folders) == {"solo"}
    give_back(folders["p1"], 0)
    rc, output = plays.end(solo, LIMIT)
    assert (rc, output.count("is running on board")) == (0, 2), output
    assert waiting_for(folders) == set()


@pytest.mark.long
def test_more_boards_than_the_only_node_has(proxies):
    """Lost: what would help who asks for too many, and an hour of `wait=`."""
    _folders, plays = proxies
    plays.env["ANSIBLE_STDOUT_CALLBACK"] = "hetero.compute.quiet"
    three = dict(REQUEST, instance="lab", count=3)
    rc, output = plays.end(plays.start("provision_instance", order=["p1"], **three), LIMIT)
    assert (rc, "names no boards" in output) == (2, False), output
    assert "lab wants 3 tp64.8x8 (tilepro64, 8x8, 16384 MB, 500 GB): 2 of 3 boards.\n" in output
    assert "\n  no wait helps: of these there are 2 in all, whoever has them\n  take what there is: " in output, output


@pytest.mark.long
def test_a_request_that_lacks_a_board_in_error_keeps_nobody_from_the_others(proxies):
    """Lost: three sound boards of two proxies, until the `wait=` of a request for four is over; or its turn, once the
    fourth is mended.
    """
    folders, plays = proxies
    plays.env["ANSIBLE_STDOUT_CALLBACK"] = "hetero.compute.quiet"
    with Store(folders["p2"].state_db) as store:
        store.move(1, "error", "it smells")
    four, said = waits(plays, "four", count=4)
    why = "is in error: it smells: ansible-playbook hetero.compute.repair -e node=board1 makes it free again"
    line = "1st in the queue, nothing is held for it, for 3 of 4 can become free by themselves; board1 of p2"
    assert f"{line} {why}" in said, said
    deadline = Deadline(120.0)
    with minute_of(folders, "four"):
        while told_others(folders) != {"p1": 1, "p2": 2} and not deadline.passed:
            deadline.nap()
        rc, output = plays.end(plays.start("provision_instance", instance="eve", flavor=FLAVOR), LIMIT)
        assert (rc, "eve is running on board" in output) == (0, True), output
        rc, output = plays.end(plays.start("status"), LIMIT)
        assert "1st in the queue since " in output, output
        assert "nothing is held for it; board1 is in error: it smells" in output
        rc, output = plays.end(plays.start("terminate_instance", instance="eve"), LIMIT)
        assert rc == 0, output
        with Store(folders["p2"].state_db) as store:
            store.move(1, "shutting down", "mended")
            store.release(1, None)
        rc, output = plays.end(four, LIMIT)
    assert (rc, output.count("is running on board")) == (0, 4), output


def told_others(folders):
    """How many boards each proxy was told that the other one can give."""
    found = {}
    for name, proxy in folders.items():
        with Store(proxy.state_db) as store:
            found[name] = next((one.others for one in store.tickets.living()), None)
    return found
