# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a play that began before a board was given back destroys what its next user, of the same name, has; or
puts an end to it, an hour from now.
"""

from __future__ import annotations

STEPS = {
    "tilera_boot": dict(boards=[0], state="stopped", timeout=10),
    "board_image": dict(boards=[0], state="absent"),
    "board_wipe": dict(boards=[0]),
    "board_rebuild": dict(fresh=True),
    "board_lease": dict(hours=1),
    "board_claim": dict(state="absent"),
}


def test_each_step_leaves_a_claim_that_was_made_since(jackie):
    """Looked up, given back, claimed anew: neither the power, nor the root, nor the claim of the second one goes.

    Nor does its lease get the end that was asked for the first one's.
    """
    old = jackie.record(0).claim.created
    assert not any(result.get("failed") for result in [*jackie.terminate(), *jackie.provision()])
    before, there = jackie.record(0), jackie.what_is_there()
    again = {"tilera_boot": dict(boards=[0], state="rebooted", timeout=10), "board_image": dict(boards=[0])}
    steps = [*STEPS.items(), *again.items()]
    for name, given in steps:
        for check in (False, True):
            result = jackie.module(name, instance="jackie", created=[old], check=check, **given)
            assert result.get("failed"), (name, check, result)
            assert "was given back meanwhile, and claimed anew by jackie" in result["msg"]
    assert (jackie.record(0), jackie.what_is_there()) == (before, there)


def test_the_claim_that_was_looked_up_is_ended(jackie):
    mine = dict(instance="jackie", created=[jackie.record(0).claim.created])
    for name in ("tilera_boot", "board_image", "board_wipe", "board_claim"):
        result = jackie.module(name, **mine, **STEPS[name])
        assert not result.get("failed"), (name, result)
    assert jackie.record(0).claim is None
