# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last look at a board before its power is cut, step by step. Whole boots are in test_late_cuts.py."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import late_cuts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    DECIDING,
    LISTENING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.reboots import Rebooting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import (
    ALIVE,
    ANOTHERS,
    OTHER_KEY,
    OWN_KEY,
    SILENT,
)

STARTS = {OWN_KEY, OTHER_KEY, ALIVE}


def boot_of(ran=False, has_root=False, **more):
    work = SimpleNamespace(ran=ran, over=False, driver=SimpleNamespace(has_root=lambda board: has_root))
    known = dict(work=work, board=None, tries=0, answered_at=time.monotonic() - 100, root_at=None, since=(1.0, set()))
    known["probe"] = False
    return SimpleNamespace(**{**known, **more})


def loop(way=Starting):
    one = way.__new__(way)
    one.posted = []
    one._post = lambda handler, *given: one.posted.append(given)
    return one


@pytest.mark.parametrize(
    ("way", "tries", "spared"),
    [
        (Starting, 0, STARTS),
        # it had its time, and refuses or has another key still
        (Starting, 1, {OWN_KEY}),
        # it is to be cut, unless another's board is there by now
        (Rebooting, 0, {OTHER_KEY}),
        (Rebooting, 2, {OWN_KEY}),
    ],
)
@pytest.mark.parametrize("shown", [OWN_KEY, OTHER_KEY, ALIVE, SILENT])
def test_what_a_board_shows_at_last_spares_it(monkeypatch, way, tries, spared, shown):
    """Lost: a board in use; or a reboot that its user asked for."""
    monkeypatch.setattr(presence, "shown", lambda work: shown)
    one, boot = loop(way), boot_of(tries=tries)
    assert one._last_look(boot)() is (shown not in spared)
    assert one.posted == ([(boot, shown, False)] if shown in spared else [])


@pytest.mark.parametrize("shown", [OWN_KEY, OTHER_KEY, ALIVE, SILENT])
def test_what_was_judged_as_it_is_is_not_spared(monkeypatch, shown):
    """Lost: a verb that looks at a board in its initrd for ever, while its PDU takes its time."""
    monkeypatch.setattr(presence, "shown", lambda work: shown)
    assert loop()._last_look(boot_of(tries=0, probe=ALIVE))() is (shown in (ALIVE, SILENT))


@pytest.mark.parametrize(
    ("more", "used"),
    [
        ({"root_at": 1.0}, True),
        # of a board that did not boot when it was found, its root tells nothing
        ({"root_at": None}, False),
        ({"tries": 1, "ran": True, "has_root": True}, True),
        ({"tries": 1, "ran": False, "has_root": True}, False),
        ({"tries": 1, "ran": True, "has_root": False}, False),
    ],
)
def test_what_its_root_tells_at_last_spares_it(monkeypatch, more, used):
    """Lost: a tenant's work on a board whose network is cut; or a retry, for a root that nobody used before."""
    monkeypatch.setattr(presence, "shown", lambda work: SILENT)
    monkeypatch.setattr(late_cuts, "may_be_used", lambda work, since, phases: (since, phases) == (1.0, set()))
    one, boot = loop(), boot_of(**more)
    assert one._last_look(boot)() is not used
    assert one.posted == ([(boot, SILENT, True)] if used else [])


@pytest.mark.parametrize(("ago", "looks"), [(late_cuts.FRESH - 1.0, False), (late_cuts.FRESH + 1.0, True)])
def test_a_board_that_was_seen_just_now_is_not_looked_at(monkeypatch, ago, looks):
    """Lost: seconds of each boot whose PDU is free."""
    looked = []
    monkeypatch.setattr(presence, "shown", lambda work: looked.append(work) or SILENT)
    boot = boot_of(answered_at=time.monotonic() - ago)
    assert loop()._last_look(boot)() is True
    assert looked == [boot.work] * looks


def test_what_is_cut_whatever_it_shows_is_not_looked_at():
    """Lost: a reboot by power that waits for the board which it is to end (how=hard)."""
    assert loop()._last_look(boot_of(answered_at=None)) is None


@pytest.mark.parametrize(
    ("tries", "shown", "over", "done"),
    [
        (0, ALIVE, False, [("in use", ALIVE, False)]),
        (1, OWN_KEY, False, [("answers", True)]),
        (1, SILENT, False, [("left on", late_cuts.MOUNTED)]),
        (0, OWN_KEY, True, []),
    ],
)
def test_what_becomes_of_a_board_that_is_spared(tries, shown, over, done):
    did, one = [], loop()
    one._found_in_use = lambda boot, shown, used: did.append(("in use", shown, used))
    one._on_answer = lambda boot, answer, at: did.append(("answers", answer))
    one._leave_on = lambda boot, note: did.append(("left on", note))
    boot = boot_of(tries=tries, doomed="no boot request", then="quarantine")
    boot.work.over = over
    one._on_spared(boot, shown, False)
    assert did == done
    assert (boot.doomed, boot.then) == (("no boot request", "quarantine") if over else (None, None))


def test_a_reboot_leaves_the_board_of_another_key_as_it_was():
    """Lost: a board that runs, recorded as one that boots."""
    did = []
    work = SimpleNamespace(began="running", changed=True, board=SimpleNamespace(name="board0"))
    work.change = SimpleNamespace(note=lambda *given: did.append(given))
    work.move = lambda state: did.append(("→", state))
    one, boot = loop(Rebooting), SimpleNamespace(work=work, changed=False)
    one._leave = lambda boot, why: did.append(("left", why))
    one._found_in_use(boot, OTHER_KEY, False)
    as_found = {"power": "on", "state": "running"}
    assert did == [("board0", as_found, as_found), ("→", "running"), ("left", ANOTHERS)]
    assert work.changed is False


@pytest.mark.parametrize(("shown", "times", "asked"), [(ALIVE, 0, True), (ALIVE, 1, False), (OWN_KEY, 0, False)])
def test_a_board_that_answers_without_a_key_is_asked_for_long_once(shown, times, asked):
    """Lost: a board whose sshd comes up; or a verb that asks one for ever that never proves its key."""
    did, one = [], loop()
    one._undo_note = lambda boot: did.append("undone")
    one._probe = lambda boot: did.append("asked for long")
    one._on_probe = lambda boot, answer, at: did.append(answer)
    one._found_in_use(SimpleNamespace(spared=times), shown, False)
    assert did == ["undone", "asked for long" if asked else shown]


def decided(**of_boot):
    """What is done with a silent board that boots by its record and is on, by when it was asked what."""
    did, one = [], loop()
    one.reboot, one.check = False, False
    one._resumes = lambda boot: of_boot.get("resumes")
    one._probe = lambda boot: did.append("asked")
    one._look_at_root = lambda boot: did.append("its root")
    one._resume = lambda boot, under_way: did.append("resumed")
    one._cold_start = lambda boot: did.append("cut")
    one._was_ours = lambda boot: True
    one._feeds = SimpleNamespace(remember=lambda *given: None)
    work = SimpleNamespace(
        state="booting",
        ran=False,
        came_up_before=False,
        only_from_off=False,
        stays_on=False,
        began="running",
        claim=None,
        over=False,
        driver=None,
        board=None,
    )
    work.change, work.move = SimpleNamespace(check=False), lambda state: None
    work.line = lambda phase, text: did.append("runs")
    known = dict(stage=DECIDING, outlet_now="on", outlet_at=100.0, probe=False, is_probed=True, used=False)
    one._decide(SimpleNamespace(**{"work": work, **known, **of_boot}))
    return did


F = late_cuts.FRESH


@pytest.mark.parametrize(
    ("answered", "root", "more", "done"),
    [
        (100.0, 100.0, {}, ["cut"]),
        (100.0 - F, 100.0 - F, {}, ["cut"]),
        (99.9 - F, 100.0, {}, ["asked"]),
        (99.9 - F, 100.0, {"probe": True}, ["asked"]),
        (100.0 - F, 0.0, {"probe": True}, ["runs"]),
        (100.0, 99.9 - F, {}, ["its root"]),
        # its look took long
        (200.0, 199.9 - F, {}, ["its root"]),
        (200.0, 200.0, {}, ["cut"]),
        # what is in use stays so
        (100.0, 0.0, {"resumes": (1.0, set()), "used": True}, ["resumed"]),
        (100.0, 0.0, {"resumes": (1.0, set())}, ["its root"]),
        (100.0, 100.0 - F, {"resumes": (1.0, set())}, ["resumed"]),
        # it is being looked at
        (100.0, 100.0, {"used": None}, []),
        (100.0, 100.0, {"resumes": (1.0, set()), "used": None}, []),
        # a dry run on a board that is not made ready asks nothing
        (None, None, {}, ["cut"]),
    ],
)
def test_a_board_is_judged_by_nothing_that_is_older_than_its_outlets_state(answered, root, more, done):
    """Lost: the power of a board that came up since; or seconds of each start whose PDU is free."""
    assert decided(answered_at=answered, root_at=root, **more) == done


@pytest.mark.parametrize(("heard", "again"), [(99.9 - F, True), (100.0 - F, False), (200.0, False)])
@pytest.mark.parametrize("signs", [[], ["something answers at 10.0.2.4"]])
def test_a_board_that_was_heard_before_its_outlet_went_off_is_listened_to_anew(heard, again, signs):
    """Lost: a board whose plug is right, said to live on by another outlet."""
    did, one = [], loop()
    one._spawn = lambda function, *given: did.append(function.__name__)
    one._cold_start = lambda boot: did.append("switched on")
    one._was_ours = lambda boot: False
    work = SimpleNamespace(over=False, driver=None, pdu="pdu-a", outlet="5", board=SimpleNamespace(ip="10.0.2.4"))
    work.quarantine = lambda note: did.append("kept out of use")
    one._on_heard(SimpleNamespace(work=work, stage=LISTENING, signs=signs, signs_at=heard, outlet_at=100.0))
    assert did == (["_listen"] if again else ["kept out of use" if signs else "switched on"])
