# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many processes that wait for ten boards of one database, and are killed. If this fails, the order holds only as long
as nobody asks at the same time.

Tests boards/work/board_fit.py.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_claims
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_queue import KEPT, BoardQueue
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import Ticket
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, Node
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

BOARDS = 10
#: Seconds for which a place is kept here, so that one who is killed holds up the others for no longer.
LASTS = 5.0
#: Seconds in which all of it ends, also on a machine that does much besides.
LIMIT = 3000.0
#: Seconds after which one who missed the bell asks again.
SOON = 0.5


def ticket(request, asked):
    wish = {key: getattr(request, key) for key in KEPT}
    return Ticket(request.request, request.owner, asked, dict(wish, numbers=[]), lasts=LASTS)


class Storm:
    """What the processes share: who was served, and a bell that rings when boards are given back."""

    def __init__(self, node):
        self.node, self.fork = node, multiprocessing.get_context("fork")
        self.bell, self.served, self.wrong = self.fork.Condition(), self.fork.Value("i", 0), self.fork.Queue()

    def play(self, name, requests):
        """What so many plays do, one after the other."""
        dice = random.Random(name)
        with Proxy(self.node.params, "test") as proxy:
            for number in range(requests):
                count = dice.choice((1, 1, 1, 1, 2, 3, 8))
                request = ClaimRequest(f"{name}-{number}", name, FLAVOR, "debian", KEY, count=count)
                self.one(proxy, request, time.time())

    def one(self, proxy, request, asked):
        """Wait until it is its turn, claim, and give back."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if BoardQueue(proxy).kept(ticket(request, asked), False)["may"] < request.count:
                with self.bell:
                    self.bell.wait(SOON)
                continue
            try:
                with proxy.store.transaction(), self.in_order(proxy, request, asked):
                    board_claims.present(proxy, request, Change())
            except NoneFree:
                continue
            break
        with proxy.store.transaction():
            for claim in proxy.store.claims(request.request):
                proxy.store.release(claim.board, claim)
        with self.served.get_lock():
            self.served.value += 1
        with self.bell:
            self.bell.notify_all()

    def stand_in_the_way(self):
        """Wait for all boards, before everybody else, and never claim them."""
        with Proxy(self.node.params, "test") as proxy:
            request = ClaimRequest("victim", "victim", FLAVOR, "debian", KEY, count=BOARDS)
            assert BoardQueue(proxy).kept(ticket(request, 1.0), False)
            signal.pause()

    @contextmanager
    def in_order(self, proxy, request, asked):
        """See, within the transaction of a claim, what is left for those who wait longer."""
        mine = (asked, request.request)
        older = [one for one in proxy.store.tickets.living() if (one.asked, one.request) < mine]
        free = BOARDS - len(proxy.store.claims())
        yield
        left = BOARDS - len(proxy.store.claims())
        for one in sorted(older, key=lambda each: (each.asked, each.request)):
            if left < min(free, one.wish["count"]):
                self.wrong.put(f"{request.request} took {free - left} of {free}, and {one.request} waits longer: {one}")
            free, left = free - one.wish["count"], left - one.wish["count"]


@pytest.mark.parametrize(
    ("plays", "requests"), [(4, 5), *(pytest.param(*many, marks=pytest.mark.long) for many in ((8, 25), (20, 200)))]
)
def test_a_storm_of_requests_is_served_in_order(tmp_path, monkeypatch, plays, requests):
    """Lost: the turn of who waits, where twenty ask at once; or all turns, behind one that was killed."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    node = Node(tmp_path, BOARDS)
    node.image()
    with node.proxy():
        pass
    storm = Storm(node)
    processes = [storm.fork.Process(target=storm.play, args=(f"p{number}", requests)) for number in range(plays)]
    victim = storm.fork.Process(target=storm.stand_in_the_way)
    try:
        for process in processes:
            process.start()
        while storm.served.value < plays * requests // 2 and any(process.is_alive() for process in processes):
            with storm.bell:
                storm.bell.wait(SOON)
        victim.start()
        with Proxy(node.params, "test") as proxy:
            deadline = Deadline(60.0)
            while proxy.store.tickets.of("victim", "victim") is None and not deadline.passed:
                deadline.nap()
            os.kill(victim.pid, signal.SIGKILL)
        for process in processes:
            process.join(LIMIT)
    finally:
        for process in filter(None, [*processes, victim if victim.pid else None]):
            process.kill()
    assert [process.exitcode for process in processes] == [0] * plays
    assert storm.wrong.empty(), storm.wrong.get()
    with node.proxy() as proxy:
        assert proxy.store.claims() == []
        assert {one.owner for one in proxy.store.tickets.living()} <= {"victim"}
