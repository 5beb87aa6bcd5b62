# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, two users have one GPU, or a GPU is lost, when many ask at once and some of them are killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.gpu_races.gpu_points import GpuPoints, alone, together
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS

ASKED = (1, 2, 1, 1, 1)


def asker(host, box, number, points, late):
    """Attach; every fifth gives back what it got. What came of it."""

    def ask():
        time.sleep(late)
        container = Container(box.name, box.lxcpath)
        points.arm()
        try:
            given = host.attach(container, ASKED[number % len(ASKED)], seconds=120)
            if number % 5 == 4:
                host.detach(container, seconds=120)
                return "gave back"
            return f"has {len(given['gpus'])}"
        except NoneFree:
            return "none free"
        except HeteroError as error:
            return f"error: {error}"
        finally:
            points.disarm()

    return ask


class Watch:
    """A process that looks all the while whether a GPU is open in two containers."""

    def __init__(self, boxes):
        self.boxes = [(box.name, box.init_pid) for box in boxes]
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.looks, self.both, self.over = 0, [], False
            signal.signal(signal.SIGTERM, lambda *_args: setattr(self, "over", True))
            try:
                os.close(reader)
                os.write(writer, b".")
                while not self.over:
                    self._look()
                os.write(writer, repr((self.looks, self.both)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        self.reader = reader
        assert os.read(reader, 1) == b"."

    def _open(self, name, pid):
        asked = of_container(pid, name).look()
        return {address for address in ADDRESSES if asked.may("c", 195, MINORS[address], "r")}

    def _look(self):
        seen = {}
        for name, pid in self.boxes:
            for address in self._open(name, pid):
                seen.setdefault(address, []).append((name, pid))
        for address, found in seen.items():
            # not at one moment: who was seen first may have given it back before the second got it
            still = [name for name, pid in found if len(found) > 1 and address in self._open(name, pid)]
            if len(still) > 1:
                self.both.append((address, still))
        self.looks += 1

    def end(self):
        """(how often it looked, what it saw twice)."""
        os.kill(self.pid, signal.SIGTERM)
        with open(self.reader, encoding="utf-8") as answer:
            text = answer.read()
        os.waitpid(self.pid, 0)
        return eval(text, {})  # what `repr` wrote above


def race(host, processes, containers, seed):
    """Everybody at once, a third of them killed; (tally, looks)."""
    chance = random.Random(seed)
    boxes = [host.boxes.make() for _number in range(containers)]
    counting = GpuPoints()
    assert not alone(counting, lambda: host.attach(boxes[0], 1)).get("failed")
    assert counting.count > 20
    host.detach(boxes[0])
    losing = GpuPoints()
    assert "wants 9 GPUs, 4 free" in alone(losing, lambda: host.attach(boxes[0], 9))["msg"]
    askers = []
    # any third of them; or all that work on a third of the containers, ahead of the others: nobody finishes their work
    doomed = chance.sample(range(processes), processes // 3)
    if seed % 2:
        doomed = [number for number in range(processes) if number % containers < containers / 3]
    points = [GpuPoints() for _number in range(processes)]
    for number in range(processes):
        # who loses has fewer writes to be killed at
        last = counting.count if chance.random() < 0.5 else losing.count
        points[number].reset(chance.randint(1, last) if number in doomed else 0)
        late = 0.2 if seed % 2 and number not in doomed else 0
        askers.append(asker(host, boxes[number % containers], number, points[number], late))
    watch = Watch(boxes)
    got = together(askers)
    looks, both = watch.end()
    assert both == []
    tally = Counter("killed" if one is None else str(one) for one in got)
    assert set(tally) <= {"killed", "none free", "gave back", "has 1", "has 2"}, tally
    assert [one for number, one in enumerate(got) if one is None and not points[number].killed] == []
    return boxes, tally, looks


def settled(host, boxes):
    """What is open is known; one repair, and the next has nothing to do; what nobody has can be had."""
    table = host.table()
    assert all(len(names) == 1 for names in table.values())
    for box in boxes:
        known = [address for address in ADDRESSES if table.get(address) == [box.name]]
        assert set(host.can_open(box)) <= set(known)
        if not known:
            assert host.nodes(box) == []
    repair = host.reconcile(repair=True)
    assert [finding["error"] for finding in repair["findings"] if finding["error"]] == []
    again = host.reconcile(repair=True)
    assert (again["changed"], again["findings"]) == (False, [])
    table = host.table()
    for box in boxes:
        assert host.can_open(box) == [address for address in ADDRESSES if table.get(address) == [box.name]]
    free = [address for address in ADDRESSES if address not in table]
    if free:
        last = host.boxes.make()
        host.attach(last, len(free))
        assert host.can_open(last) == free
    return len(repair["findings"]), len(free)


def check(host, capsys, processes, containers, rounds):
    total, looks, mended = Counter(), 0, 0
    for turn in range(rounds):
        boxes, tally, looked = race(host, processes, containers, seed=turn)
        found, _free = settled(host, boxes)
        total.update(tally)
        looks, mended = looks + looked, mended + found
        for box in host.boxes.made:
            host.detach(box)
            box.stop()
    with capsys.disabled():
        said = ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
        print(f"\n{rounds} × {processes} processes on {containers} containers and 4 GPUs: {said};", end=" ")
        print(f"open in two containers: 0 of {looks} looks; {mended} findings, all mended by one repair, then none")
    assert total["killed"]
    assert total["none free"]


def test_a_few_at_once_some_of_them_killed(host, capsys):
    check(host, capsys, processes=15, containers=5, rounds=2)


@pytest.mark.long
def test_fifty_at_once_on_ten_containers_a_third_of_them_killed(host, capsys):
    check(host, capsys, processes=50, containers=10, rounds=4)


@pytest.mark.long
def test_the_same_on_cgroup_v2_alone(host, pure_v2, capsys):
    check(host, capsys, processes=50, containers=10, rounds=4)
