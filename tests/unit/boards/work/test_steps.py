# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes one result of the steps of a verb, and how a board that is not free is told."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.steps import Steps
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states


def step(**more):
    return dict(dict(boards=[{"board": 0}], changed=False, lines=["a"], diff=["b"], seconds={"boot": 1.0004}), **more)


def test_steps_that_went_well_are_one():
    """Lost: what a verb changed, how long it took, or a line of what it did."""
    steps = Steps()
    assert steps.result == dict(changed=False, diff=[], seconds={}, lines=[], blame=None, instances=[])
    assert steps.took({"boards": []}, "claim") is True
    assert steps.took(step(), "boot") is True
    assert steps.took(step(changed=True, seconds={"boot": 2.0, "disk": 0.5}, lines=["c"]), "boot") is True
    assert steps.took(step(boards=[{"board": 1}], blame="image", seconds={}, lines=[], diff=[]), "stop") is True
    assert steps.result == dict(
        changed=True,
        diff=["b", "b"],
        seconds={"boot": 3.0, "disk": 0.5},
        lines=["a", "c"],
        blame="image",
        instances=[{"board": 1}],
    )


def test_what_went_wrong_first_is_told_first():
    """Lost: why it failed, behind what failed because of that."""
    steps = Steps()
    told = dict(failure="full", errors={"board0": "x"}, rejected={"board1": "y"}, rejected_lines=["z"])
    assert steps.took(step(failed=True, msg="no room", blame="proxy", besides=1, **told), "ready") is False
    first = dict(told, failed=True, msg="no room", blame="proxy", step="ready")
    assert steps.failure == first
    steps.broke_off(HeteroError("is away", "pdu-a", "look at it"))
    assert steps.failure == dict(first, msg="no room; and then: pdu-a: is away: look at it")
    assert steps.result["msg"] == steps.failure["msg"]
    steps.mend()
    assert steps.failure == {}
    assert "failed" not in steps.result
    error = HeteroError("is away", "pdu-a", "look at it")
    steps.broke_off(error)
    assert steps.failure == dict(failed=True, msg=str(error), failure=error.failure, blame=None)


def test_what_went_wrong_twice_is_told_once():
    """Lost: the rest of a message, to who reads the same sentence twice and takes it for two faults."""
    steps, error = Steps(), HeteroError("does not answer", "node p1", "look there")
    steps.broke_off(error)
    steps.broke_off(error)
    assert steps.failure["msg"] == "node p1: does not answer: look there"


@pytest.mark.parametrize(
    ("state", "note", "instance", "why"),
    [
        ("power off", "", None, None),
        ("power off", "", "eve", "claimed for eve since 3 min"),
        ("running", "", "eve", "running eve since 2 min"),
        ("booting", "", "eve", "booting eve since 2 min"),
        ("shutting down", "", None, "shutting down since 2 min"),
        ("error", "its fan rattles", "eve", "error: its fan rattles"),
        ("error", None, None, "error"),
        ("maintenance", "", None, "maintenance"),
        ("maintenance", "new disk", None, "maintenance: new disk"),
    ],
)
def test_why_a_board_is_not_free(state, note, instance, why):
    assert board_states.why_not_free(state, note, instance, 120, 180) == why


def test_the_ways_between_states():
    """Lost: a board in error comes back to the free ones without being cleaned, or one that failed never does."""
    ways = {(one, other) for one, others in board_states.TRANSITIONS.items() for other in others}
    assert ways == {
        ("power off", "booting"), ("power off", "maintenance"), ("power off", "error"),
        ("booting", "running"), ("booting", "error"), ("booting", "shutting down"),
        ("running", "booting"), ("running", "shutting down"), ("running", "error"),
        ("shutting down", "power off"), ("shutting down", "error"),
        ("error", "shutting down"), ("error", "maintenance"), ("error", "running"),
        ("maintenance", "shutting down"), ("maintenance", "power off"),
    }  # fmt: skip


def test_what_is_added_to_a_failure_is_behind_it():
    """Lost: what went wrong, behind what is said besides; or which boards stay claimed."""
    steps = Steps()
    steps.broke_off(HeteroError("is away", "pdu-a", "look at it"))
    failure = steps.failure
    steps.add("jackie stays claimed")
    assert steps.failure == dict(failure, msg="pdu-a: is away: look at it; jackie stays claimed")
    assert (steps.failure["failed"], steps.result["failed"]) == (True, True)
