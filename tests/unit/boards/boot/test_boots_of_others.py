# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots that another process began and did not see the end of. Whole ones are in test_lifecycle.py."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts, used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import REBOOT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options


def loop(check=False, reboot=False, timeout=300.0, **of_store):
    one = Starting.__new__(Starting)
    one.check, one.reboot, one.options = check, reboot, Options(timeout=timeout)
    one.proxy = SimpleNamespace(store=SimpleNamespace(**of_store))
    return one


def event(phase, text="", at=900.0):
    return SimpleNamespace(phase=phase, text=text, time=at)


ON, TOLD = event("power", "pdu-a outlet 5: off → on, read back"), event(REBOOT, "told by ssh, boot request seen", 950.0)


@pytest.mark.parametrize(
    ("events", "more", "under_way"),
    [
        ([ON], {}, (900.0, {"power"})),
        ([ON, event("tftp"), event("nfs")], {}, (900.0, {"power", "tftp", "nfs"})),
        ([event("tftp"), ON], {}, (900.0, {"power"})),
        ([ON, event("tftp"), TOLD], {}, (950.0, {REBOOT})),
        ([ON, event("state", "→ booting")], {}, None),
        ([ON, event("switch", "is to be switched off")], {}, None),
        # killed before it could tell that it is on
        ([event("switch", "pdu-a outlet 5 is to be switched on")], {}, (900.0, {"switch"})),
        ([event("switch", "pdu-a outlet 5 is to be switched on, by a check of the cabling")], {}, None),
        ([ON, event("error", "stalled")], {}, None),
        ([event("switch"), ON], {}, (900.0, {"power"})),
        ([event("power", "on → off, read back")], {}, None),
        ([event(REBOOT, "by power: it is silent")], {}, None),
        ([event("tftp", "on, read back")], {}, None),
        ([], {}, None),
        ([ON], {"state": "running"}, None),
        ([ON], {"reboot": True}, None),
        ([ON], {"timeout": 100.0}, None),
        ([ON], {"timeout": 101.0}, (900.0, {"power"})),
        ([event("power", "on, read back", 1000.0)], {}, (1000.0, {"power"})),
        # a clock that was set back
        ([event("power", "on, read back", 1001.0)], {}, None),
    ],
)
def test_a_boot_that_another_process_began_is_found_by_its_events(monkeypatch, events, more, under_way):
    """Lost: a board that boots is switched off in the middle; or one that hangs is waited for without an end."""
    monkeypatch.setattr(starts, "time", SimpleNamespace(time=lambda: 1000.0))
    more = dict(more)
    asked, work = [], SimpleNamespace(state=more.pop("state", "booting"))
    one = loop(newest_events=lambda board, most: asked.append((board, most)) or events, **more)
    assert one._resumes(SimpleNamespace(work=work, board=SimpleNamespace(id=3))) == under_way
    assert asked in ([], [(3, 50)])


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_a_boot_that_another_process_began_has_the_rest_of_its_time(monkeypatch, check, used):
    """Lost: the try that counts, or the seconds since its power, for a boot that is taken over."""
    now = time.monotonic()
    monkeypatch.setattr(starts, "time", SimpleNamespace(time=lambda: 1000.0, monotonic=lambda: now))
    said, got = [], []
    work = SimpleNamespace(over=False, say=lambda *words: said.append(words))
    one, boot = loop(check), SimpleNamespace(work=work, used=used, tries=0, take_up=lambda *given: got.append(given))
    monkeypatch.setattr(starts, "note_unwatched", lambda work, *text: got.append("unwatched"))
    one._count = lambda boot: got.append("counted")
    one._follow = lambda boot, deadline: got.append(("follow", deadline.seconds, boot.tries))
    one._resume(boot, (960.0, {"power"}))
    assert got == [({"power"}, now - 40.0), *["unwatched"] * used, *["counted", ("follow", 260.0, 1)] * (not check)]
    assert said == ([("running", "boots since 40 s; would wait for it")] if check else [])
    assert work.over is check


@pytest.mark.parametrize(
    ("phases", "connected", "written", "used"),
    [
        ({"tftp"}, False, False, False),
        ({"tftp", "nfs"}, False, False, True),
        (set(), True, False, True),
        (set(), False, True, True),
    ],
)
def test_whether_somebody_may_use_a_boot_of_another_process(monkeypatch, phases, connected, written, used):
    """Lost: what a tenant wrote there, taken for a root that nobody ever used."""
    asked, posted = [], []
    monkeypatch.setattr(used_root, "used_since", lambda work, when: asked.append(when) or written)
    work = SimpleNamespace(driver=SimpleNamespace(has_root=lambda board: connected), board=None)
    one, boot = loop(), SimpleNamespace(work=work, board=SimpleNamespace(id=3))
    one._post = lambda *given: posted.append(given)
    one._look_into_root(boot, 960.0, phases)
    assert posted == [(one._on_root_seen, boot, used)]
    assert asked in ([], [960.0])


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ([], (None, set())),
        ([ON, event("tftp")], (None, {"power", "tftp"})),
        ([event("switch", "is to be switched on"), ON, event("nfs")], (1000.0, {"power", "nfs"})),
        (
            [event("switch", "is to be switched on"), event("switch", "is to be told by ssh to reboot")],
            (1000.0, {"switch"}),
        ),
        ([event("switch", "is to be switched on"), event("switch", "is to be switched off")], (1000.0, {"switch"})),
        ([event("nfs"), TOLD, event("error")], (1000.0, {"error"})),
    ],
)
def test_since_when_a_boot_may_have_changed_something(events, since):
    """Lost: a boot's own traces, for what was written before it; or those of an earlier one, for its own."""
    known = [SimpleNamespace(**dict(vars(one), time=1000.0)) for one in events]
    store = SimpleNamespace(newest_events=lambda board, most: known)
    work = SimpleNamespace(board=SimpleNamespace(id=3), proxy=SimpleNamespace(store=store))
    assert used_root.since_power(work) == since


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, True),
        ({"began": "running"}, False),
        ({"began": "shutting down", "found": SimpleNamespace(power="on")}, True),
        ({"began": "shutting down", "found": SimpleNamespace(power="off")}, False),
        ({"began": "error"}, True),
        ({"claim": None}, False),
        ({"ran": True}, False),
        ({"ran": True, "came_up_before": False}, True),
        ({"change": SimpleNamespace(check=True)}, False),
    ],
)
def test_a_boot_that_nobody_watched_is_written_down(fields, written):
    """Lost: a root with a tenant's work in it, that is taken back with the next board that is tried."""
    said, change = [], SimpleNamespace(check=False)
    store = SimpleNamespace(is_older_than=lambda claim: False, had_power=lambda claim: True)
    given = dict(began="booting", claim="c", ran=False, change=change, instance="vm0")
    given["came_up_before"] = fields.get("ran", False)
    work = SimpleNamespace(**dict(given, **fields), proxy=SimpleNamespace(store=store))
    work.say = lambda phase, text: said.append((phase, text))
    used_root.note_unwatched(work)
    told = ("unwatched", "its board had power while no play watched it, so vm0 may have run")
    assert said == ([told] if written else [])
    said.clear()
    used_root.note_unwatched(work, used_root.NO_USE_SEEN)
    text = "its board had power while no play watched it, and nothing was written to the root of vm0 since"
    assert said == ([("unwatched", text)] if written and not work.ran else []), "once, for it tells nothing more"
