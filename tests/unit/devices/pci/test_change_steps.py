# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a change of bindings, with what they do to devices played. If these fail, a card stays on no driver, a
service that was stopped for it does not come back, or what an older boot began is done to cards of today.

test_driver_changes.py has whole changes.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci import change_steps
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.change_steps import (
    begin,
    carry_out,
    settle,
    start_again,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.journal import Journal, Operation

A, B, UNIT = "0000:08:00.0", "0000:09:00.0", "nvidia-persistenced"
DOWN = SimpleNamespace(returncode=1, stdout="", stderr=f"Job for {UNIT}.service failed\n")
STAYS = StepFailed("bind", "is on no driver", B, "see")
NOT_BACK = StepFailed("back", "is not on nvidia again", A, "see")


@pytest.fixture
def journal(tmp_path):
    """The journal of a machine in its boot "today"."""
    (tmp_path / "sys" / "kernel" / "random").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "random" / "boot_id").write_text("today\n")
    return Journal(SimpleNamespace(journal=str(tmp_path / "lib" / "pci.json"), proc=str(tmp_path)))


def on_disk(journal):
    try:
        with open(journal.path, encoding="utf-8") as file:
            return json.load(file)["operations"]
    except FileNotFoundError:
        return []


@pytest.fixture
def played(monkeypatch):
    """What was done, in order; moves and ways back end as "moves" and "backs" say, {address: result or error}."""
    here = SimpleNamespace(did=[], moves={}, backs={}, starts={}, fails=None)

    def end(what, name, ends):
        here.did.append((what, name))
        ended = ends.get(name, True)
        if isinstance(ended, Exception):
            raise ended
        return ended

    def command(argv, *_words):
        here.did.append(tuple(argv[1:]))
        if here.fails == argv[-1]:
            raise HeteroError("ended with 1", argv[-1], "see")

    def ended(argv, unit):
        here.did.append(tuple(argv[1:]))
        return here.starts.get(unit, SimpleNamespace(returncode=0, stdout="", stderr=""))

    monkeypatch.setattr(change_steps, "_move", lambda address, *_more: end("move", address, here.moves))
    monkeypatch.setattr(change_steps, "_back", lambda address, *_more: end("back", address, here.backs))
    monkeypatch.setattr(change_steps, "read", lambda paths: {})
    monkeypatch.setattr(change_steps, "write", lambda lasting, paths: here.did.append(("write", sorted(lasting))))
    monkeypatch.setattr(change_steps, "command", command)
    monkeypatch.setattr(change_steps, "ended", ended)
    return here


def operation(boot="today", **more):
    before = {A: dict(driver="nvidia", override=None), B: dict(driver=None, override=None)}
    return Operation(boot=boot, driver="vfio-pci", devices=before, **more)


def begun(journal):
    chosen = [SimpleNamespace(address=A, driver="nvidia", override=None)]
    plan = SimpleNamespace(chosen=chosen, gone=[B], driver="vfio-pci")
    return begin(plan, {A: "its binding"}, [UNIT], journal, None)


def test_all_is_written_down_before_a_service_is_stopped(played, journal):
    """Lost: which driver a card had, and which services are to come back, where this run is killed."""
    made = begun(journal)
    assert played.did == [("write", [A]), ("stop", UNIT)]
    (kept,) = on_disk(journal)
    assert kept["devices"] == {A: dict(driver="nvidia", override=None)}
    assert (kept["rules"], kept["units"]) == ({A: None, B: None}, [UNIT])
    assert journal.operations == [made]


def test_a_service_that_does_not_stop_ends_it_before_a_device_is_touched(played, journal):
    """Lost: that all is as it was; the service, which is started again."""
    played.fails = UNIT
    with pytest.raises(StepFailed, match="all devices are as they were"):
        begun(journal)
    assert ("move", A) not in played.did
    assert played.did[-1] == ("start", UNIT)
    assert on_disk(journal) == []


def test_where_one_device_fails_all_go_back_in_reverse(played, journal):
    """Lost: a GPU of a host whose other one could not be moved."""
    one = operation(units=[UNIT])
    journal.open(one)
    played.moves[B], played.starts[UNIT] = STAYS, DOWN
    with pytest.raises(StepFailed) as failed:
        carry_out(one, journal, None, Deadline(5))
    assert played.did[:4] == [("move", A), ("move", B), ("back", B), ("back", A)]
    said = f"is on no driver; all devices are as they were; {UNIT} does not start again: Job for"
    assert failed.value.what.startswith(said)
    assert (failed.value.phase, failed.value.thing) == ("bind", B)
    assert on_disk(journal) == []


def test_what_cannot_be_put_back_stays_in_the_journal(played, journal):
    """Lost: a card that is on no driver, for no later run knows of it."""
    one = operation()
    journal.open(one)
    played.moves[B], played.backs[B] = STAYS, NOT_BACK
    with pytest.raises(StepFailed, match=r"and not all could be put back: .*is not on nvidia again") as failed:
        carry_out(one, journal, None, Deadline(5))
    assert failed.value.phase == "back"
    assert [kept["devices"] for kept in on_disk(journal)] == [one.devices]
    assert ("back", A) in played.did, "one that cannot go back keeps no other from it"


def test_a_driver_that_does_not_let_go_yet_is_named_and_kept(played, journal):
    """Lost: the unbind that waits for a holder, which nobody finishes."""
    one = operation()
    journal.open(one)
    played.moves[A] = False
    assert carry_out(one, journal, None, Deadline(5)) == [A]
    assert (played.did, len(on_disk(journal))) == ([("move", A)], 1)
    played.moves[A] = True
    assert carry_out(one, journal, None, Deadline(5)) == []
    assert on_disk(journal) == []


def test_what_an_earlier_boot_began_is_not_done_to_this_one(played, journal):
    """Lost: the driver of a card, to what somebody wanted before the machine went down."""
    told = []
    one = operation("yesterday")
    journal.open(one)
    assert settle(one, journal, None, Deadline(5), told.append) is True
    assert (played.did, on_disk(journal)) == ([], [])
    assert told == [f"{A}, {B} to vfio-pci was not over when the machine went down; this boot began afresh"]


def test_what_an_earlier_run_left_is_finished(played, journal, monkeypatch):
    """Lost: the services that were stopped for it; or the holder of a device that another process still waits for."""
    told = []
    one = operation(units=[UNIT], unbinding=dict(address=A))
    journal.open(one)
    monkeypatch.setattr(change_steps, "waits", lambda unbinding, paths: unbinding["address"] == A)
    assert settle(one, journal, None, Deadline(0), told.append) is False
    assert (played.did, told, len(on_disk(journal))) == ([], [], 1)
    monkeypatch.setattr(change_steps, "waits", lambda unbinding, paths: False)
    assert settle(one, journal, None, Deadline(5), told.append) is True
    assert played.did == [("move", A), ("move", B), ("start", UNIT)]
    assert told == [f"{A}, {B} to vfio-pci was left by an earlier run, and is done"]


def test_what_an_earlier_run_left_and_cannot_be_is_taken_back(played, journal):
    """Lost: that it was taken back; or, where it was not, the run that says so."""
    told = []
    one = operation()
    journal.open(one)
    played.moves[B] = STAYS
    assert settle(one, journal, None, Deadline(5), told.append) is True
    back = "was left by an earlier run, and is taken back"
    assert told[0].startswith(f"{A}, {B} to vfio-pci {back}: {B}: is on no driver")
    assert on_disk(journal) == []
    journal.open(one)
    played.backs[A] = NOT_BACK
    with pytest.raises(StepFailed, match="not all could be put back"):
        settle(one, journal, None, Deadline(5), told.append)
    assert len(on_disk(journal)) == 1


def test_each_service_is_started_and_those_that_fail_are_named(played):
    """Lost: the second service, to the first one's failure."""
    played.starts["a"] = DOWN
    assert start_again(["a", "b"]) == [f"a does not start again: Job for {UNIT}.service failed"]
    assert played.did == [("start", "a"), ("start", "b")]
