# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process was killed once it had switched an outlet off, before it looked whom that cut: the plugs were swapped. If
these fail, Carol's board beside it stays dark, and the next run says that all is well.
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import stops
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_by_reconcile import hangs, nobodys
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty, lives, plugs, swapped

__all__ = ["hasty", "nobodys", "swapped"]


def killed(site, monkeypatch, module, **given):
    """A module, killed once the outlet was read back as off; Carol's board is dark."""
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_look_after", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert site._module(module, timeout=10, **given) is None
    assert (site.outlets()["1"], lives(site, 1)) == ("off", False)


def told(result):
    """All that a result says."""
    return str((result.get("msg"), [one.get("found") for one in result.get("boards", ())]))


INSTANCE = dict(kind="board", instance="jackie")
STOP, END = dict(INSTANCE, state="stopped"), dict(INSTANCE, state="absent")


@pytest.mark.parametrize("again", ["board_reconcile", "tilera_boot"])
def test_who_was_cut_with_a_board_that_nobody_has_gets_her_power_back(nobodys, monkeypatch, again):
    """Reconcile was killed; it is run again, or the board is stopped by hand."""
    killed(nobodys, monkeypatch, "board_reconcile")
    given = dict(boards=[0], state="stopped") if again == "tilera_boot" else {}
    result = nobodys.module(again, timeout=10, **given)
    assert lives(nobodys, 1), told(result)
    assert "carol on board1 answered until pdu-a outlet 1 was switched off" in told(result)
    assert nobodys.record(0).state == "error"


@pytest.mark.parametrize(
    ("begun", "again", "hung"),
    [(STOP, STOP, True), (STOP, None, True), (END, END, False), (STOP, None, False)],
    ids=["stop", "stop, reconcile", "end, lives", "stop, reconcile, lives"],
)
def test_so_does_she_by_what_follows_a_stop(swapped, monkeypatch, begun, again, hung):
    """Jackie's board hangs, or lives on by the other outlet."""
    if hung:
        hangs(swapped, 0)
    killed(swapped, monkeypatch, "instance", **begun)
    result = swapped.module("instance", timeout=10, **again) if again else reconcile(swapped)
    assert lives(swapped, 1), told(result)
    word = "carol on board1 answered until" if hung else "something answers at 10.0.2.1"
    assert word in told(result), told(result)
    assert result.get("failed") or again is None
    with swapped.proxy() as proxy:
        assert proxy.store.claim_of("jackie"), "she is not ended either"


def test_a_stop_that_was_killed_and_cut_nobody_is_ended_by_the_next(jackie, monkeypatch):
    """Lost: each stop and end of an instance that was begun twice."""
    jackie.provision("carol")
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_look_after", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert jackie._module("instance", timeout=10, **STOP) is None
    assert not reconcile(jackie).get("failed")
    result = stop(jackie)
    assert (result.get("failed"), jackie.outlets()) == (False, {"1": "off", "2": "on"}), told(result)


def test_a_board_that_nobody_has_and_whose_freeing_was_killed_is_freed_by_the_next(nobodys, monkeypatch):
    """Lost: the board, to everybody who asks for one; reconcile would tell it as freed, and do nothing with it."""
    plugs(nobodys, False)
    with monkeypatch.context() as patch:
        patch.setattr(stops.Stopping, "_look_after", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        assert nobodys._module("board_reconcile", timeout=10) is None
    assert (nobodys.outlets(), nobodys.record(0).state) == ({"1": "off", "2": "on"}, "shutting down")
    result = reconcile(nobodys)
    assert ("off, cleaned, free" in told(result), nobodys.record(0).state) == (True, "power off"), told(result)


def test_who_went_off_by_herself_later_is_not_looked_for(jackie):
    """Lost: an instance's end, which was stopped long ago, because its neighbour went off since."""
    jackie.provision("carol")
    hangs(jackie, 0)
    assert not jackie.module("instance", timeout=10, **STOP).get("failed")
    jackie.cut(1)
    for result in (reconcile(jackie), jackie.module("instance", timeout=10, **END)):
        assert not result.get("failed"), told(result)
    assert jackie.outlets()["1"] == "off"
