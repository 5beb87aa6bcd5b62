# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An outlet that is on again because it fed another board. If these fail, a board stays in a state that is not so, or
its tenant is not told that it was without power.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import undone_cuts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.undone_cuts import (
    NOT_BOOTED,
    Undo,
    end_uncut,
    undo_of_cut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states


class Work:
    def __init__(self, state, began=board_states.RUNNING, claim="claim"):
        self.state, self.began, self.claim, self.did = state, began, claim, []
        self.board = SimpleNamespace(name="board3")

    def move(self, state):
        self.did.append(f"to {state}")

    def quarantine(self, note):
        self.did.append("quarantine")
        self.note = note

    def say(self, phase, text):
        self.did.append(phase)
        self.note = text

    def fail(self, blame, error):
        self.did.append("fail")
        self.error = error


def ended(shown=presence.OWN_KEY, **work):
    made = Work(**work)
    end_uncut(made, NOT_BOOTED, Undo("it lives on", "its key", shown, lambda _work: "; not cut again"), 2.04)
    return made


def test_what_was_seen_is_said_with_the_seconds_without_power():
    """Lost: why an instance was without power."""
    work = ended(state=board_states.BOOTING)
    assert work.note == (
        "not booted anew: it lives on; the outlet is on again, and what it feeds was without power for 2.0 s"
        "; not cut again"
    )
    assert work.error == f"board3: {work.note}"


@pytest.mark.parametrize("state", [board_states.BOOTING, board_states.SHUTTING_DOWN])
def test_an_instance_that_ran_and_shows_its_key_runs(state):
    """Lost: a running instance, which stays in the state of a boot that never was."""
    assert ended(state=state).did == [f"to {board_states.RUNNING}", "error", "fail"]


def test_one_that_did_not_run_before_does_not_run_now():
    """Lost: the truth of *running*."""
    assert ended(state=board_states.BOOTING, began=board_states.POWER_OFF).did == ["error", "fail"]
    assert ended(state=board_states.BOOTING, shown=presence.SILENT).did == ["error", "fail"]


@pytest.mark.parametrize("state", [board_states.SHUTTING_DOWN, board_states.POWER_OFF])
def test_a_board_whose_outlet_is_on_is_not_off(state):
    """Lost: a board that counts as off and is on."""
    assert ended(state=state, shown=presence.SILENT).did == ["quarantine"]


def test_a_board_of_nobody_is_kept_out_of_use():
    """Lost: a free board, whose outlet feeds somebody's."""
    assert ended(state=board_states.BOOTING, claim=None).did == ["quarantine"]


def test_what_an_outlet_cut_is_written_down_at_once(monkeypatch):
    """Lost: what was seen, where this process is killed before it says it."""
    monkeypatch.setattr(undone_cuts, "fell_silent", lambda work, cut: f"{cut} fell silent")
    did = []
    feeds = SimpleNamespace(took=lambda work, cut: did.append(cut) or "learnt")
    undo = undo_of_cut("work", feeds, ["board4"])
    assert did == [["board4"]]
    assert (undo.note, undo.shown, undo.learn("work")) == ("['board4'] fell silent", presence.SILENT, "learnt")
    assert did == [["board4"]], "once"
