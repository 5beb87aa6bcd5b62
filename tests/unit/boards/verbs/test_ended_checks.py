# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that were killed. If these fail, a board is out of use or on for ever, or a tenant's work is cut for it."""

from __future__ import annotations

import os
import shutil
import signal
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import ram_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import (
    checks,
    ended_checks,
    left_boards,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as FakePdu
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.board_states import CHECKING
from ansible_collections.hetero.compute.tests.unit.boards.disk.conftest import disks, own_mounts
from ansible_collections.hetero.compute.tests.unit.boards.verbs.test_checks import QUICK, checked, is_free, site

__all__ = ["disks", "own_mounts", "site"]


def killed_after(where, name, when=lambda *arguments: True):
    """Kill this process as soon as a function has been called with such arguments."""
    done = getattr(where, name)

    def last(*arguments, **named):
        result = done(*arguments, **named)
        if when(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(where, name, last)


def is_event(phase, end):
    return lambda store, board, its, text, *more: its == phase and text.endswith(end)


POINTS = {
    "begun": lambda: killed_after(checks, "_begin"),
    "its kernel is served": lambda: killed_after(ram_boot, "serve_kernel"),
    "its outlet is to be on": lambda: killed_after(Store, "event", is_event("switch", "on")),
    "its outlet is on": lambda: killed_after(FakePdu, "switch", lambda pdu, outlets, state: state == "on"),
    "it runs from RAM": lambda: killed_after(ram_boot.RamWork, "came_up"),
    "its outlet is to be off": lambda: killed_after(Store, "event", is_event("switch", "off")),
    "its outlet is off": lambda: killed_after(FakePdu, "switch", lambda pdu, outlets, state: state == "off"),
    "what came of it is kept": lambda: killed_after(Store, "outcome"),
}


def kill(site, point):
    """A check of board 0 that is killed at a point."""
    child = os.fork()
    if not child:
        try:
            POINTS[point]()
            checked(site, 0)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert site.record(0).note == CHECKING


def taken_up(site, said=None):
    with site.proxy() as proxy:
        return left_boards.take_up(proxy, "reap", (said if said is not None else []).append)


def reconciled(site, check=False):
    with site.proxy() as proxy:
        return reconcile(proxy, None, Change(check), 20)["boards"][0]


@pytest.mark.parametrize("point", list(POINTS))
def test_a_check_that_is_killed_leaves_nothing_for_long(site, point):
    """Lost: the board, for all requests; or its RAM system, on for ever."""
    before = site.disk(0).read_bytes()
    kill(site, point)
    said = []
    assert taken_up(site, said)
    assert said == ["board0: its check was killed: off, free"]
    assert is_free(site, 0)
    assert not site.entry(0).parent.exists()
    assert site.disk(0).read_bytes() == before, "nothing is wiped"
    assert taken_up(site, said)
    assert len(said) == 1, "there is nothing left to do"


@pytest.mark.parametrize("point", ["its kernel is served", "its outlet is on", "it runs from RAM"])
@pytest.mark.parametrize("way", ["check", "reconcile"])
def test_who_works_on_the_board_next_takes_it_up(site, point, way):
    """Lost: the board, to "see who is at work there" of its own RAM system; or what its disk has, to a wipe."""
    before = site.disk(0).read_bytes()
    kill(site, point)
    if way == "check":
        result = checked(site, 0)
        assert not result["failed"], result["error"]
    else:
        dry = reconciled(site, check=True)
        assert (dry["found"][0]["done"], site.record(0).note) == ("would be switched off, and freed", CHECKING)
        assert reconciled(site)["found"] == [dict(found="its check was killed", done="off, free")]
    assert is_free(site, 0)
    assert not site.entry(0).parent.exists()
    assert site.disk(0).read_bytes() == before


def test_nobody_takes_up_a_check_that_goes_on(site):
    """Lost: the board's power within its check."""
    kill(site, "it runs from RAM")
    with site.proxy() as proxy:
        run = proxy.config.run_folder
    child = os.fork()
    if not child:
        with locks.lock(run, "board0", "check", "test", Deadline(5)):
            signal.pause()
    try:
        end = Deadline(20)
        while locks.held_by(run, "board0") is None and not end.passed:
            end.nap(0.02)
        said = []
        assert taken_up(site, said)
        assert (said, site.power(0), site.record(0).note) == ([], "on", CHECKING)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("boots_from", ["nfs", "disk"])
@pytest.mark.parametrize("way", ["check", "reconcile", "reap"])
def test_a_database_from_within_a_check_cuts_nobody(site, boots_from, way):
    """Lost: the work of who got the board since: the backup that was put back knows of the check alone."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", CHECKING)
        proxy.store.move(0, "shutting down", CHECKING)
        proxy.store.event(0, "switch", "pdu-a outlet 5 is to be switched on")
    shutil.copy(site.folder / "state.db", site.folder / "backup.db")
    assert taken_up(site)
    if boots_from == "disk":
        site.ask(0)
    else:
        site.claim(0)
    site.run("start", 0)
    assert site.record(0).state == "running"
    for name in ("state.db-wal", "state.db-shm"):
        (site.folder / name).unlink(missing_ok=True)
    shutil.copy(site.folder / "backup.db", site.folder / "state.db")
    assert site.record(0).note == CHECKING
    if way == "check":
        assert "has the root of vm0, of which no claim is known" in checked(site, 0)["error"]
    elif way == "reap":
        assert not taken_up(site)
    else:
        reconciled(site)
    assert site.power(0) == "on"
    assert site.entry(0).exists()


def test_an_outlet_that_a_check_never_switched_is_left_alone(site):
    """Lost: the work of who switched the board on by hand, where the check had not come to that."""
    kill(site, "its kernel is served")
    site.cut(0, "on")
    taken_up(site)
    assert site.power(0) == "on"
    with site.proxy() as proxy:
        proxy.store.power_seen(0, "on")
        assert 0 not in checks.idle(proxy)[0]


def test_what_nobody_foresaw_leaves_the_board_off_and_free(site, monkeypatch):
    """Lost: the board, to a full disk of its proxy node."""

    def fails(*arguments):
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(checks.measures, "memory", fails)
    with pytest.raises(RuntimeError, match="nobody foresaw"):
        checked(site, 0)
    assert is_free(site, 0)


def test_what_nobody_foresaw_frees_no_board_that_does_not_boot(site, monkeypatch):
    """Lost: the next request, to a board that its check has seen fail, where the proxy fails as well just then."""
    clear, failed = ram_boot.clear, []

    def fails_once(work):
        if not failed:
            failed.append(work.board.id)
            raise RuntimeError("nobody foresaw this")
        clear(work)

    monkeypatch.setattr(ram_boot, "clear", fails_once)
    site.play(0, stall="tftp")
    with pytest.raises(RuntimeError, match="nobody foresaw"):
        checked(site, 0, checks.CheckRequest(QUICK.limits, timeout=1))
    assert (failed, site.record(0).state, site.power(0)) == ([0], "error", "off")


def test_a_pdu_that_is_lost_within_the_switching_frees_no_board_that_may_be_on(site, monkeypatch):
    """Lost: the next request, to a board that is free by its record and on; or the board, once its PDU answers."""
    switch, login, lost = FakePdu.switch, FakePdu.login, []

    def fails(self, outlets, state):
        switch(self, outlets, state)
        lost.append(state)
        raise Lost("the connection to it is lost", "pdu-a")

    def refuses(self):
        if lost:
            raise Lost("does not answer", "pdu-a")
        login(self)

    monkeypatch.setattr(pdu_loop, "PDU", 1.0)
    with monkeypatch.context() as pdu:
        pdu.setattr(FakePdu, "switch", fails)
        pdu.setattr(FakePdu, "login", refuses)
        result = checked(site, 0)
        assert result["failed"]
        assert "does not answer" in result["error"] or "is lost" in result["error"]
    assert (lost, site.power(0), site.record(0).note) == (["on"], "on", CHECKING)
    assert taken_up(site)
    assert is_free(site, 0)


@pytest.mark.parametrize(
    ("point", "power", "found"),
    [
        ("its kernel is served", "on", None),
        ("its kernel is served", "off", [ended_checks.KILLED]),
        ("its outlet is on", "on", [ended_checks.KILLED]),
    ],
)
def test_what_is_on_by_its_check_is_told_from_what_is_on_by_hand(site, point, power, found):
    """Lost: the work of who switched a board on by hand, to reconcile, which cuts what a check left."""
    kill(site, point)
    with site.proxy() as proxy:
        look = Look(Seen(proxy, proxy.board(0), Change(True)))
        look.work.read()
        look.power = power
        assert ended_checks.is_left(look.work.record)
        assert ended_checks.was_switched(proxy, look.work.board) == (point == "its outlet is on")
        assert ended_checks.settled(proxy, look) == (found is not None)
        assert [one["found"] for one in look.found] == (found or [])


def test_a_board_that_somebody_has_is_not_left_by_a_check(site):
    """Lost: a tenant's board, to a note of its record that is older than his claim."""
    record = SimpleNamespace(claim=None, state="shutting down", note=CHECKING)
    assert ended_checks.is_left(record)
    for more in (dict(claim="jackie's"), dict(note="stalled at tftp"), dict(state="running")):
        assert not ended_checks.is_left(SimpleNamespace(**dict(vars(record), **more)))
