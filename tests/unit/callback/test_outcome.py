# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback hetero.compute.outcome. If these fail, a CI tells a failed test where a board failed.

What playbooks on nodes say to it is in tests/unit/plays/test_board_of_a_job.py.
"""

from __future__ import annotations

import json
import stat
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.callback.outcome import NODE, STEP, CallbackModule

#: What module instance says of a board that did not boot, as a module's result.
TAIL = ["PXE-E53: No boot filename received"]
BOARD0 = dict(instance="lab", evidence=dict(console_tail=TAIL))
BOOT = dict(failed=True, msg="Task failed: board0: stalled", blame="board", step="boot", instances=[BOARD0])
FAIL = "ansible.builtin.fail"


class Stats:
    """What Ansible counts of a play."""

    def __init__(self, failures, custom=None):
        self.processed, self.custom = {"localhost": 1}, custom or {}
        self._counts = dict(failures=failures, unreachable=0)

    def summarize(self, _host):
        return self._counts


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A function of what happened in a play, of (how a task ended, its action, its result): what the file says."""

    def tell(*happened, stats=None):
        callback = CallbackModule()
        monkeypatch.setattr(callback, "get_option", {"path": str(tmp_path / "outcome.json")}.get)
        for how, action, data in happened:
            result = SimpleNamespace(_task=SimpleNamespace(action=action), _result=data)
            getattr(callback, f"v2_runner_on_{how}")(result)
        callback.v2_playbook_on_stats(stats or Stats(1))
        assert stat.S_IMODE((tmp_path / "outcome.json").stat().st_mode) == 0o600
        return json.loads((tmp_path / "outcome.json").read_text())

    return tell


def test_what_was_given(told):
    """Lost: the address of a board that came up, after a node that was away for a moment."""
    given = [dict(instance="lab", ip="10.0.1.1")]
    lost = ("unreachable", "hetero.compute.node_info", dict(msg="no route"))
    said = told(lost, ("ok", STEP, dict(ending="given")), stats=Stats(0, {"_run": {"hetero_instances": given}}))
    assert said == dict(ending="given", text="", blame=None, console=[], instances=given)


GIVEN, IS_NONE = ("ok", STEP, dict(ending="given")), ("ok", STEP, dict(ending="none"))
SAYS = ("failed", FAIL, dict(msg="as the play says"))
UNDONE = ("failed", "hetero.compute.hand_over", dict(undone=["p2"], msg="p2 did not do it"))


@pytest.mark.parametrize(
    ("happened", "ending", "text"),
    [
        ([SAYS], "request", "as the play says"),  # before anything was asked
        ([("failed", STEP, dict(msg="belongs to bob", ending="request"))], "request", "belongs to bob"),
        ([("failed", STEP, dict(msg="p2 cannot be asked", ending="owner"))], "owner", "p2 cannot be asked"),
        ([IS_NONE, SAYS], "none", "as the play says"),
        ([("failed", STEP, BOOT)], "boot", "board0: stalled"),  # the only node
        ([GIVEN, ("failed", NODE, BOOT), SAYS], "boot", "board0: stalled"),  # one of several
        ([GIVEN, ("unreachable", NODE, dict(msg="no route")), SAYS], "owner", "no route"),
        # a node was away for a moment, and that is not why
        ([("unreachable", NODE, dict(msg="no route")), IS_NONE, SAYS], "none", "as the play says"),
        ([GIVEN, ("failed", "hetero.compute.ssh_config", dict(msg="disk full"))], "other", "disk full"),
        ([GIVEN, ("unreachable", NODE, dict(msg="no route")), UNDONE], "owner", "no route"),
        ([GIVEN, ("failed", NODE, BOOT), UNDONE], "boot", "board0: stalled"),
        ([GIVEN, ("failed", UNDONE[1], dict(msg="disk full"))], "other", "disk full"),
        ([GIVEN, SAYS], "other", "as the play says"),
        ([], "other", "failed without a word"),
    ],
)
def test_how_it_ended(told, happened, ending, text):
    """Lost: what is to be done about it, and the words that say it."""
    said = told(*happened)
    assert (said["ending"], said["text"], said["instances"]) == (ending, text, [])
    assert (said["blame"], said["console"]) == (("board", TAIL) if ending == "boot" else (None, []))


def test_a_failure_that_counts_for_nothing(told):
    """Lost: why it failed, behind a task whose failure the play expects."""
    callback = CallbackModule()
    callback.v2_runner_on_failed(None, ignore_errors=True)
    assert callback._failures == []
