# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that says that it did what it did not. If these fail, a play hands over an instance that does not run, or ends
with success where nothing was stopped.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.outcomes import contradiction

RUNS = dict(instance="jackie", state="running", name="board1", ip="10.0.2.2")


@pytest.mark.parametrize("state", ["running", "rebooted", "rebuilt"])
def test_what_runs_has_a_place_and_an_address(state):
    """Lost: an instance that nobody can reach, handed over as running."""
    assert contradiction([RUNS], state, 1) is None
    for key in ("state", "name", "ip"):
        without = {name: value for name, value in RUNS.items() if name != key}
        assert contradiction([without], state, 1) == f"{key} of jackie is not there, and it is to be {state}"
    said = contradiction([dict(RUNS, state="error")], state, 1)
    assert said == f"state of jackie is 'error', and it is to be {state}"


@pytest.mark.parametrize(
    ("asked", "said", "fits"),
    [
        ("stopped", "power off", True),
        ("stopped", "stopped", True),
        ("stopped", "running", False),
        ("absent", "maintenance", True),
        ("absent", "running", False),
        ("absent", "booting", False),
    ],
)
def test_what_ends_does_not_run(asked, said, fits):
    """Lost: a board that runs on after its instance was terminated, with success."""
    assert (contradiction([dict(RUNS, state=said)], asked, 1) is None) is fits


def test_all_that_were_asked_for_are_there():
    """Lost: seven of eight instances, which are not there and not missed."""
    two = [RUNS, dict(RUNS, instance="jackie-2")]
    assert contradiction(two, "running", 2) is None
    assert contradiction([RUNS, RUNS], "running", 2) == "it names 1 of 2 instances that are to be running"
    assert contradiction([], "stopped", 1) == "it names 0 of 1 instances that are to be stopped"
    assert contradiction([], "absent", 1) is None, "it was ended before"


def test_a_long_answer_is_cut_and_an_unknown_state_is_not_judged():
    """Lost: the terminal, to a node's 120 MB; or a verb of a later release."""
    assert len(contradiction([dict(RUNS, ip="x" * 9999)], "running", 1)) < 200
    assert contradiction([dict(RUNS, state="error")], "frozen", 1) is None
