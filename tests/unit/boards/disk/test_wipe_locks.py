# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long boards stay locked that are wiped, freed or reconciled together. The kernel says who holds which lock."""

from __future__ import annotations

import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ram_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import wipes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import release as releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_locks import locked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_work import BoardWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import KEY

SPEC = importlib.import_module("ansible_collections.hetero.compute.plugins.modules.instance").SPEC


def held(site):
    """Return the numbers of the boards that are locked."""
    return [number for number in range(4) if held_by(site.config["run_folder"], f"board{number}")]


def taken(site, number):
    """Return the lock of a board, which is taken as soon as nobody else has it."""
    return lock(site.config["run_folder"], f"board{number}", "start", "jo", Deadline(30))


@pytest.fixture
def slow(disks):
    """The wipe of board 1 goes on until `go` is set; `begun` is set once it has begun."""
    go, begun = threading.Event(), threading.Event()

    def wait(_text):
        begun.set()
        assert go.wait(60)

    disks.shells[1].fail = wait
    disks.begun, disks.go = begun, go
    with ThreadPoolExecutor(max_workers=1) as thread:
        disks.beside = thread.submit
        try:
            yield disks
        finally:
            go.set()


def test_a_board_that_is_wiped_is_free_for_verbs_while_another_is(slow):
    """Lost: a board that is off and clean, for the hours that the largest disk of the call takes."""
    slow.use(0, 1)
    call = slow.beside(slow.wipe, 0, 1)
    assert slow.begun.wait(60)
    with taken(slow, 0):
        assert (slow.record(0).note, slow.power(0), slow.power(1)) == ("wiped, proven", "off", "on")
        assert held(slow) == [0, 1]
        assert not call.done()
        slow.go.set()
        result = call.result(60)
    assert not result["failed"], result
    assert [one["proof"]["board"] for one in result["boards"]] == [0, 1]
    assert held(slow) == []


def test_a_board_with_nothing_to_wipe_is_free_for_verbs_while_another_is_wiped(slow):
    """Lost: the same, for a board that was not even booted."""
    slow.use(0, 1)
    assert not slow.wipe(0)["failed"]
    call = slow.beside(slow.wipe, 0, 1)
    assert slow.begun.wait(60)
    assert held(slow) == [1]
    slow.go.set()
    assert not call.result(60)["failed"]


def test_a_board_that_does_not_boot_for_its_wipe_is_free_for_verbs_while_another_is_wiped(slow, monkeypatch, patient):
    """Lost: the look at a board at fault, for the hours that the disks of the others take. Nothing is run on it."""
    patient(lambda boot: boot.board.id == 0)
    act, acted = ram_boot._act, []

    def seen(given, ram):
        acted.append(ram.board.id)
        act(given, ram)

    monkeypatch.setattr(ram_boot, "_act", seen)
    slow.use(0, 1)
    slow.play(0, stall="running", stalls=9)
    call = slow.beside(slow.wipe, 0, 1, timeout=2)
    assert slow.begun.wait(60)
    with taken(slow, 0):
        assert slow.record(0).note.startswith("not wiped yet: ")
        assert not call.done()
        slow.go.set()
        result = call.result(60)
    assert [one["failed"] for one in result["boards"]] == [True, False]
    assert acted == [1]


def test_a_board_whose_boot_cannot_be_cleared_away_is_the_only_one_that_fails(disks, monkeypatch):
    """Lost: the power and the disks of all boards of a call, to the boot entry of one of them that stays."""
    remove = ram_boot.remove_entry

    def remove_entry(ram):
        if ram.board.id == 0:
            raise HeteroError("cannot be removed (Read-only file system)", "boot entry of board0")
        remove(ram)

    monkeypatch.setattr(ram_boot, "remove_entry", remove_entry)
    disks.use(0, 1)
    result = disks.wipe(0, 1)
    assert [one["failed"] for one in result["boards"]] == [True, False]
    assert "cannot be removed" in result["msg"]
    assert (disks.power(0), disks.power(1), disks.record(1).note) == ("off", "off", "wiped, proven")
    assert held(disks) == []


def test_what_its_wipe_proved_is_told_although_the_board_was_given_on_meanwhile(slow, monkeypatch):
    """Lost: the proof in a wipe's result, where the next start withdrew it while another board was being wiped."""
    slow.use(0, 1)
    call = slow.beside(slow.wipe, 0, 1)
    assert slow.begun.wait(60)
    with taken(slow, 0), slow.proxy() as proxy:
        wipes.disk_records.withdraw(proxy, proxy.board(0), "vm9")
    slow.go.set()
    assert [one["proof"]["board"] for one in call.result(60)["boards"]] == [0, 1]


def test_a_board_is_given_back_while_the_disks_of_another_are_wiped(slow):
    """Lost: a free board, to the next tenant, for the hours that another one's disks take at the same lease's end."""
    slow.claim(0, 1)
    slow.run("start", 0, 1)

    def free():
        with slow.proxy() as proxy:
            works = [BoardWork(proxy, proxy.board(number), Change()) for number in (0, 1)]
            with locked(works, "reap", Deadline(5)):
                releases.release(proxy, works, lifecycle.Options(timeout=20))
            return [work.error for work in works]

    call = slow.beside(free)
    assert slow.begun.wait(60)
    with taken(slow, 0):
        assert (slow.record(0).claim, slow.record(0).state) == (None, "power off")
        assert slow.record(1).claim.instance == "vm1"
        assert not call.done()
    slow.go.set()
    assert call.result(60) == [None, None]


def test_a_board_of_a_request_is_given_back_while_the_disks_of_another_are_wiped(slow):
    """Lost: the same, where the tenant ends an instance of several boards."""
    with slow.proxy() as proxy:
        wanted = ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY)
        proxy.store.claim("lab", ["lab-1", "lab-2", "lab-3"], wanted, [0, 1, 2])
    slow.run("start", 0, 1, 2)

    def end():
        with slow.proxy() as proxy:
            params = {name: option.get("default") for name, option in SPEC.options.items()}
            asked = dict(kind="board", instance="lab", timeout=20, created=[], numbers=[], state="absent")
            request = board.Request(proxy, dict(params, **asked), False)
            board.absent(request)
            return request.steps.result

    call = slow.beside(end)
    assert slow.begun.wait(60)
    with taken(slow, 0):
        assert (slow.record(0).claim, slow.record(0).state) == (None, "power off")
        assert (slow.record(2).claim, slow.record(2).state) == (None, "power off")
        assert slow.record(1).claim.instance == "lab-2"
        assert not call.done()
    slow.go.set()
    result = call.result(60)
    assert not result.get("failed"), result
    assert [one["instance"] for one in result["instances"]] == ["lab-1", "lab-2", "lab-3"]
    told = [line["instance"] for line in result["lines"] if "given back" in line["text"]]
    assert sorted(told) == ["lab-1", "lab-2", "lab-3"]


def test_what_reconcile_says_of_a_board_is_said_before_the_next_tenant_has_it(disks, monkeypatch):
    """Lost: a tenant's trust in his events, by which his running board was just freed."""
    monkeypatch.setattr(reconciliation, "PATIENCE", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.1)
    disks.cut(2, "on")
    disks.cut(3, "on")
    give_back = releases.free_board

    def claimed_meanwhile(proxy, work):
        if work.board.id == 3:
            with disks.proxy() as other:
                other.store.claim("carol", ["carol"], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY), [2])
        give_back(proxy, work)

    monkeypatch.setattr(reconciliation, "free_board", claimed_meanwhile)
    with disks.proxy() as proxy:
        reconciliation.reconcile(proxy, None, Change(), 20)
        assert proxy.store.record(2).claim.instance == "carol"
        said = [event for event in proxy.store.events(boards=[2, 3]) if "free" in event.text]
    assert [(event.board, event.instance) for event in said] == [(2, None), (3, None)]


def test_reconcile_locks_all_boards_until_no_outlet_is_on_for_nobody(disks, monkeypatch):
    """Lost: the stop of a board that runs, while what nobody has is cleaned; or a board that was started meanwhile, by
    the outlet that feeds it and is switched off as nobody's.
    """
    monkeypatch.setattr(reconciliation, "PATIENCE", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.1)
    disks.claim(0)
    disks.run("start", 0)
    disks.cut(2, "on")
    seen = []
    switch_off, remove = releases.switch_off, releases.clean

    def off(proxy, works, options):
        seen.append(("before", held(disks)))
        switch_off(proxy, works, options)
        seen.append(("off", held(disks), disks.power(2)))

    def clean(proxy, board, claim, change, say, deadline):
        seen.append(("clean", board.id, held(disks)))
        return remove(proxy, board, claim, change, say, deadline)

    monkeypatch.setattr(releases, "switch_off", off)
    monkeypatch.setattr(releases, "clean", clean)
    with disks.proxy() as proxy:
        result = reconciliation.reconcile(proxy, None, Change(), 20)
    assert [one["state"] for one in result["boards"]] == ["running", "power off", "power off", "power off"], result
    assert seen == [("before", [0, 1, 2, 3]), ("off", [0, 1, 2, 3], "off"), ("clean", 2, [2])]
    assert held(disks) == []
