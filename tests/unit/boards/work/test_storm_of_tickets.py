# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many processes that wait for ten boards of one database, and are killed at random. If this fails, the order holds
only as long as nobody asks at the same time.

Tests boards/work/board_fit.py.
"""

from __future__ import annotations

import heapq
import json
import multiprocessing
import os
import random
import select
import signal
import time
from contextlib import contextmanager, suppress
from multiprocessing import connection

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
LASTS = 8.0
#: Seconds in which all of it ends, also on a machine that does much besides.
LIMIT = 9000.0
#: Seconds after which one who missed the bell asks again.
SOON = 3.0
#: How many of those who wait longest hear of boards that are given back; others ask again soon enough.
HEAR = 2
#: Most seconds for which one who was served has its boards.
LONGEST = 0.04


def ticket(request, asked):
    wish = {key: getattr(request, key) for key in KEPT}
    return Ticket(request.request, request.owner, asked, dict(wish, numbers=[]), lasts=LASTS)


class Storm:
    """What the processes share: a bell for each, which rings when boards are given back, and how far each is. Nothing
    of it is locked: whoever is killed holds nothing but what SQLite takes back.
    """

    def __init__(self, node, plays, requests, one_of):
        self.one_of = one_of  # of so many requests one is killed; every second one of those is started again at once
        self.node, self.fork, self.requests = node, multiprocessing.get_context("fork"), requests
        self.names = [f"p{number}" for number in range(plays)]
        # the last one is for who kills, and rings when somebody begins to wait
        self.bells = [os.pipe() for _play in [*self.names, "kills"]]
        for both in self.bells:
            for end in both:
                os.set_blocking(end, False)
        self.counts = (1, 1, 1, 1, 2, 3, 8) if plays >= BOARDS else (3, 4, 8)
        #: Of each play: the request that it is at, whether that waits, since when (0 for not yet).
        self.at = self.fork.RawArray("i", plays)
        self.waits = self.fork.RawArray("i", plays)
        self.since = self.fork.RawArray("d", plays)
        self.log = os.path.join(node.params["state_db"] + ".log")

    def close(self):
        for both in self.bells:
            for end in both:
                os.close(end)

    def note(self, **what):
        """Append a line for whom the test reads, in one call of the system."""
        with open(self.log, "ab", buffering=0) as file:
            file.write(json.dumps(what).encode() + b"\n")

    def noted(self, kind):
        with suppress(FileNotFoundError), open(self.log, encoding="utf-8") as file:
            return [one for one in map(json.loads, file) if one["kind"] == kind]
        return []

    def ring(self):
        waiting = [play for play, waits in enumerate(self.waits) if waits]
        for play in sorted(waiting, key=self.since.__getitem__)[:HEAR]:
            self.ring_one(play)

    def ring_one(self, play):
        with suppress(BlockingIOError):
            os.write(self.bells[play][1], b"!")

    def hear(self, play):
        with suppress(BlockingIOError):
            os.read(self.bells[play][0], 1 << 16)

    def play(self, play):
        """What so many plays do, one after the other, from the request on that it is at."""
        name = self.names[play]
        with Proxy(self.node.params, "test") as proxy:
            while self.at[play] < self.requests:
                number = self.at[play]
                count = random.Random(f"{name}-{number}").choice(self.counts)
                request = ClaimRequest(f"{name}-{number}", name, FLAVOR, "debian", KEY, count=count)
                self.since[play] = self.since[play] or time.time()
                self.one(proxy, request, play)
                self.since[play], self.at[play] = 0.0, number + 1

    def one(self, proxy, request, play):
        """Wait until it is its turn, claim, and give back."""
        asked, end, renewed = self.since[play], time.monotonic() + LIMIT, None
        while time.monotonic() < end:
            if renewed is not None and time.monotonic() - renewed < LASTS / 2:
                if proxy.store.tickets.of(request.request, request.owner) is None:
                    self.note(kind="wrong", text=f"{request.request} lost its ticket")
            self.waits[play] = 1  # before it asks: what is given back from now on rings
            place = BoardQueue(proxy).kept(ticket(request, asked), False)
            renewed = time.monotonic()
            if place["asked"] != asked:
                self.note(kind="wrong", text=f"{request.request} waits since {place['asked']} and not since {asked}")
            if place["may"] + place["there"] < request.count:
                self.ring_one(-1)
                select.select([self.bells[play][0]], [], [], SOON)
                self.hear(play)
                continue
            self.waits[play] = 0
            try:
                with proxy.store.transaction(), self.in_order(proxy, request, asked):
                    board_claims.present(proxy, request, Change())
            except NoneFree:
                continue
            break
        got = time.time()
        time.sleep(random.Random(request.request).uniform(0.0, LONGEST))  # what it does with its boards
        self.give_back(proxy, request.request)
        self.note(kind="served", name=request.request, count=request.count, asked=asked, got=got, back=time.time())
        self.ring()

    def give_back(self, proxy, request):
        with proxy.store.transaction():
            for claim in proxy.store.claims(request):
                proxy.store.release(claim.board, claim)

    @contextmanager
    def in_order(self, proxy, request, asked):
        """See, within the transaction of a claim, what is left for those who wait longer: the model of the order."""
        mine = (asked, request.request)
        older = [one for one in proxy.store.tickets.living() if (one.asked, one.request) < mine]
        free = BOARDS - len(proxy.store.claims())
        yield
        left = BOARDS - len(proxy.store.claims())
        for one in sorted(older, key=lambda each: (each.asked, each.request)):
            if left < min(free, one.wish["count"]):
                text = f"{request.request} took {free - left} of {free}, and {one.request} waits longer: {one}"
                self.note(kind="wrong", text=text)
            free, left = free - one.wish["count"], left - one.wish["count"]

    # ---- who kills

    def begin(self, play):
        process = self.fork.Process(target=self.play, args=(play,))
        process.start()
        return process

    def kill_some(self, processes, dice):
        """Kill plays that wait, now and then, until all have ended; return how many, and how many of them came back."""
        killed, back, end = 0, 0, time.monotonic() + LIMIT
        while any(one.is_alive() for one in processes) and time.monotonic() < end:
            if killed < sum(self.at) // self.one_of:
                waiting = [play for play, waits in enumerate(self.waits) if waits and processes[play].is_alive()]
                if waiting:
                    play, request = dice.choice(waiting), None
                    os.kill(processes[play].pid, signal.SIGKILL)
                    processes[play].join()
                    request, self.waits[play] = f"{self.names[play]}-{self.at[play]}", 0
                    was_served = request in {one["name"] for one in self.noted("served")}  # while it was chosen
                    killed, back = killed + (not was_served), back + (not was_served and killed % 2)
                    if was_served or killed % 2:  # it is never started again; what it got somebody terminates
                        with Proxy(self.node.params, "test") as proxy:
                            self.give_back(proxy, request)
                        self.since[play], self.at[play] = 0.0, self.at[play] + 1
                    processes[play] = self.begin(play)
            connection.wait([*(one.sentinel for one in processes if one.is_alive()), self.bells[-1][0]], SOON)
            self.hear(-1)
        return killed, back


def ideal(served):
    """How long each would wait, if to ask and to claim took no time: by the times at which they asked, and for as long
    as they had their boards.
    """
    coming, waits, running, found, now = sorted(served, key=lambda one: one["asked"]), [], [], [], 0.0
    free = BOARDS
    while coming or waits:
        while waits and waits[0]["count"] <= free:
            one = waits.pop(0)
            free -= one["count"]
            found.append(max(0.0, now - one["asked"]))
            heapq.heappush(running, (now + one["back"] - one["got"], one["count"], one["name"]))
        if coming and (not running or coming[0]["asked"] <= running[0][0]):
            now = coming[0]["asked"]
            waits.append(coming.pop(0))
        elif running:
            now, count, _name = heapq.heappop(running)
            free += count
    return found


def figures(seconds):
    seconds = sorted(seconds)
    median, p99 = seconds[len(seconds) // 2], seconds[int(len(seconds) * 0.99)]
    return f"median {median:.3f} s, p99 {p99:.3f} s, longest {seconds[-1]:.3f} s"


@pytest.mark.parametrize(
    ("plays", "requests", "one_of"),
    [(4, 6, 8), *(pytest.param(*many, marks=pytest.mark.long) for many in ((8, 25, 10), (20, 200, 200)))],
)
def test_a_storm_of_requests_is_served_in_order(tmp_path, monkeypatch, capsys, plays, requests, one_of):
    """Lost: the turn of who waits, where twenty ask at once, or where plays are killed and some are started again; or a
    ticket, or a request, to a database that others write.
    """
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    node = Node(tmp_path, BOARDS)
    node.image()
    with node.proxy():
        pass
    storm, processes = Storm(node, plays, requests, one_of), []
    began = time.monotonic()
    try:
        processes += [storm.begin(play) for play in range(plays)]
        killed, back = storm.kill_some(processes, random.Random(plays))
    finally:
        for process in processes:
            process.kill()
        storm.close()
    took, served = time.monotonic() - began, storm.noted("served")
    assert [process.exitcode for process in processes] == [0] * plays
    assert storm.noted("wrong") == []
    names = [one["name"] for one in served]
    assert (len(names), len(set(names))) == (plays * requests - (killed - back), len(names))
    assert killed >= plays * requests // one_of - 2
    waited = [one["got"] - one["asked"] for one in served]
    with capsys.disabled():
        print(f"\n{plays} plays, {len(served)} requests: {len(served) / took:.1f} a second, {took:.1f} s")
        print(f"  {killed} killed while they waited, {back} of them started again")
        print(f"  waited: {figures(waited)}\n  ideal:  {figures(ideal(served))}")
    with node.proxy() as proxy:
        assert proxy.store.claims() == []
        deadline = Deadline(2 * LASTS)
        while proxy.store.tickets.living() and not deadline.passed:
            deadline.nap()
        assert proxy.store.tickets.living() == []
