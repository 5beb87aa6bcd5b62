# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done with boards of one call before they boot. Whole boots are in test_lifecycle.py."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    DECIDING,
    SWITCHING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import UNWATCHED


@pytest.mark.parametrize("stage_over", [(DECIDING, False, True), (SWITCHING, False, False), (DECIDING, True, False)])
@pytest.mark.parametrize(
    ("outlet", "as_rebuilt", "state", "check", "seen", "ended"),
    [
        ("on", False, "booting", False, "on", False),
        ("on", False, "running", False, "on", False),
        ("off", False, "running", False, "off", False),
        ("off", False, "power off", False, "off", False),
        ("off", False, "booting", False, "off", True),
        ("off", False, "shutting down", False, "off", True),
        ("off", False, "booting", True, "off", False),
        # a dry run of a rebuild takes what is there as gone
        ("on", True, "running", True, "off", False),
    ],
)
def test_what_the_status_of_its_outlet_says_of_a_board(stage_over, outlet, as_rebuilt, state, check, seen, ended):
    """Lost: a played or emulated board that a killed play switched off goes on as if it had power; or one that runs
    is told that it has none.
    """
    stage, over, asked = stage_over
    told, decided = [], []
    work = SimpleNamespace(pdu="pdu-a", outlet="5", over=over, as_rebuilt=as_rebuilt, state=state)
    work.power_seen = told.append
    work.driver = SimpleNamespace(switched=lambda board, now: told.append((board, now)))
    boot = SimpleNamespace(work=work, board="board0", stage=stage, outlet_now=None, has_power=threading.Event())
    call = Starting.__new__(Starting)
    call.boots, call.check, call._decide = {0: boot}, check, decided.append
    call._on_status("pdu-b", {"5": outlet})
    assert (told, decided) == ([], [])
    call._on_status("pdu-a", {"5": outlet})
    if not asked:
        assert (told, decided, boot.outlet_now) == ([], [], None)
        return
    assert boot.outlet_now == seen
    assert told == ([seen, ("board0", "off")] if ended else [seen])
    assert decided == [boot]
    assert boot.has_power.is_set() is (seen == "on")


def test_an_outlet_that_its_pdu_does_not_have_is_the_wirings_fault():
    failed = []
    work = SimpleNamespace(pdu="pdu-a", outlet="5", over=False, board=SimpleNamespace(name="board0"))
    work.fail = lambda blame, error: failed.append((blame, error.what))
    boot = SimpleNamespace(work=work, board="board0", stage=DECIDING, outlet_now="old")
    call = Starting.__new__(Starting)
    call.boots = {0: boot}
    call._on_status("pdu-a", {"4": "on"})
    assert failed == [("proxy", "pdu-a has no outlet 5 (it has 4)")]


ON, DONE = {"outlet_now": "on"}, ["state running", "remember", "says running"]


@pytest.mark.parametrize(
    ("fields", "resumes", "ours", "done"),
    [
        ({}, None, True, []),
        (dict(ON, stage=SWITCHING), None, True, []),
        (ON, None, True, []),
        (dict(ON, is_probed=False), None, True, ["asks it"]),
        ({"outlet_now": "off"}, 7.0, True, ["found off"]),
        (dict(ON, probe=True), 7.0, True, ["resumes 7.0"]),
        (dict(ON, probe=presence.ALIVE), None, True, ["left not proven"]),
        (dict(ON, probe=presence.OTHER_KEY), None, True, ["left another's"]),
        (dict(ON, probe=True), None, True, DONE),
        (dict(ON, probe=False), None, True, ["cold start"]),
        (dict(ON, probe=False), None, False, ["quarantine"]),
    ],
)
@pytest.mark.parametrize("reboot", [False, True])
def test_what_is_done_with_a_board(monkeypatch, fields, resumes, ours, done, reboot):
    """Lost: the power of a board that somebody works on; or a start that waits for a board that runs already."""
    did = []
    work = SimpleNamespace(instance="jackie", doubt=None, over=False, only_from_off=False, stays_on=False, ran=False)
    work.came_up_before = False
    work.state, work.claim, work.driver, work.board = "power off", None, None, None
    work.move = lambda state: did.append(f"state {state}")
    work.line = lambda phase, text: did.append(f"says {phase}")
    work.quarantine = lambda why, remedy, at_fault: did.append("quarantine")
    boot = SimpleNamespace(
        work=work, **{"stage": DECIDING, "outlet_now": None, "probe": None, "is_probed": True, "used": False, **fields}
    )
    boot.answered_at, boot.outlet_at, boot.root_at = None, 0.0, None
    one = Starting.__new__(Starting)
    one.reboot, one.check = reboot, False
    one._feeds = SimpleNamespace(remember=lambda *given: did.append("remember"))
    whys = {starts.NOT_PROVEN: "not proven", starts.ANOTHERS: "another's"}
    for name, act in {
        "_resumes": lambda boot: resumes,
        "_was_ours": lambda boot: ours,
        "_probe": lambda boot: did.append("asks it"),
        "_found_off": lambda boot: did.append("found off"),
        "_cold_start": lambda boot: did.append("cold start"),
        "_resume": lambda boot, powered: did.append(f"resumes {powered}"),
        "_leave": lambda boot, why: did.append(f"left {whys[why]}"),
    }.items():
        monkeypatch.setattr(one, name, act, raising=False)
    monkeypatch.setattr(starts, "note_unwatched", lambda work, *text: None)
    one._decide(boot)
    looked = boot.stage == DECIDING and boot.outlet_now is not None
    cut = ["cold start"] if ours or boot.outlet_now == "off" else ["quarantine"]
    assert did == (cut if reboot and looked else done)
    assert work.over is (not reboot and done == DONE)


@pytest.mark.parametrize(("probe", "done"), [(None, []), (False, ["stays on"]), (True, DONE)])
def test_one_that_ran_from_its_own_disk_is_not_cycled(monkeypatch, probe, done):
    """Lost: what a tenant's disk has not written yet, while its board is busy, or checks the disk."""
    did = []
    work = SimpleNamespace(
        instance="jackie", only_from_off=False, stays_on=True, move=lambda state: did.append(DONE[0])
    )
    work.line = lambda phase, text: did.append(f"says {phase}")
    work.driver = work.board = None
    boot = SimpleNamespace(work=work, stage=DECIDING, outlet_now="on", probe=probe, is_probed=True, used=False)
    boot.answered_at = None
    one = Starting.__new__(Starting)
    one.reboot, one.check = False, False
    one._feeds = SimpleNamespace(remember=lambda *given: did.append("remember"))
    monkeypatch.setattr(one, "_resumes", lambda boot: None)
    monkeypatch.setattr(one, "_leave_on", lambda boot, why: did.append("stays on"))
    one._decide(boot)
    assert did == done


@pytest.mark.parametrize(
    ("check", "began", "claim", "is_older", "done"),
    [
        (True, "booting", "c", False, ["cold start"]),
        (False, "booting", "c", False, [UNWATCHED, "heard"]),
        (False, "booting", None, False, ["heard"]),
        (False, "running", "c", False, ["heard"]),
        (False, "power off", "c", False, ["heard"]),
        (False, "power off", "c", True, [UNWATCHED, "heard"]),
    ],
)
def test_a_board_whose_outlet_is_off(check, began, claim, is_older, done):
    """Lost: that an image may have run which nobody watched."""
    did, work = [], SimpleNamespace(began=began, claim=claim, instance="jackie", ran=False)
    work.came_up_before = False
    work.change, work.found = SimpleNamespace(check=check), None
    work.proxy = SimpleNamespace(store=SimpleNamespace(is_older_than=lambda claim: is_older))
    work.say = lambda phase, text: did.append(phase)
    boot, one = SimpleNamespace(work=work, stage=DECIDING), Starting.__new__(Starting)
    one.check, one._cold_start, one._on_heard = (
        check,
        lambda boot: did.append("cold start"),
        lambda boot: did.append("heard"),
    )
    one._found_off(boot)
    assert did == done
    assert (boot.stage == DECIDING) is check


@pytest.mark.parametrize("before", ["on", "off"])
def test_a_board_that_is_to_boot_anew_is_asked_nothing_more(before):
    """Lost: a boot that is called done by an answer of the system before it, or a call that waits for that answer."""
    asked, one = threading.Event(), Starting.__new__(Starting)
    one.check, said = True, []
    work = SimpleNamespace(doubt=None, state="running", outlet_name="pdu-a outlet 5", over=False, changed=False)
    work.board, work.note = SimpleNamespace(name="board0"), lambda *change: True
    work.say = lambda phase, text: said.append(text)
    boot = SimpleNamespace(work=work, outlet_now=before, cancelled=asked, watching=asked)
    one._cold_start(boot)
    assert asked.is_set()
    assert (boot.watching, work.over) == (None, True)
    assert said == [f"pdu-a outlet 5 is {before}: {'on → off → on' if before == 'on' else 'off → on'}"]
