# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's board is in state "error": its relay was stuck at a stop of a boot whose play was killed, or between two
tries of her start. The board came up late all the same, and she writes into her root. She asks for the same again,
without a stop in between (test_seen_off_after_a_failed_stop.py has one), as provision_instance does it: it tries two
boards by default. If this fails, her root is removed as that of an instance that never ran, with success and under a
board that runs from it, and she gets an empty one on the next board.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopted_unwatched import REQUEST, data, verb
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


def sticks(self, outlets, state, switch=Fake.switch):
    """A relay that can be switched on, and says "done" to any "off"."""
    done = {outlet: Answer(True, "done") for outlet in outlets}
    return switch(self, outlets, state) if state == "on" else done


@pytest.mark.parametrize(
    ("how", "since"), [("stuck", "on"), ("stuck", "cut"), ("stuck in a retry", "on"), ("stuck in a retry", "cut")]
)
def test_a_root_that_may_have_been_used_stays(site, monkeypatch, how, since):
    """Lost: her work, by her own request for the same instance."""
    site.wire(0, fake=dict(tftp=0.0, nfs=300.0, running=300.0))
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    if "retry" in how:
        site.wire(0, fake=dict(tftp=300.0, nfs=300.0, running=300.0))
        with monkeypatch.context() as patch:
            patch.setattr(Fake, "switch", sticks)
            assert site.module("tilera_boot", boards=[0], timeout=3, retries=1, instance="jackie")["failed"]
    else:
        assert not site.module("tilera_boot", boards=[0], timeout=10, instance="jackie", wait=False).get("failed")
        site.pdu(faults={"stuck": ["1"]})
        assert stop(site)["failed"]
    assert (site.record(0).state, site.outlets()["1"]) == ("error", "on")
    site.pdu()
    site.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0))  # it is up by now
    data(site).write_text("her work")
    if since == "cut":
        site.cut(0)
        reconcile(site)
    result = verb(site, state="running", **REQUEST)
    said = [line["text"] for line in result["lines"]]
    assert data(site).exists(), (result.get("failed"), site.outlets(), site.board_of("jackie"), said)


def test_one_request_with_a_relay_that_is_stuck_between_its_tries(site, monkeypatch):
    """Lost: the root under a board that has power and is not up yet, as its relay is stuck between two tries."""
    site.wire(0, fake=dict(tftp=300.0, nfs=300.0, running=300.0))
    with monkeypatch.context() as patch:
        patch.setattr(Fake, "switch", sticks)
        result = verb(site, state="running", timeout=3, **REQUEST)
    assert result["failed"]
    assert data(site).parent.exists(), (result["msg"], site.outlets(), site.board_of("jackie"))
    assert (site.board_of("jackie"), site.record(0).state, site.outlets()["1"]) == (0, "error", "on")
    assert "was last seen on, and it may run from it: stop it first" in result["msg"]


def test_a_board_in_error_whose_boot_left_no_trace_is_changed_for_another(site):
    """Lost: her machine, by a board that never asked for its kernel and whose outlet is off."""
    site.wire(0, fake=dict(stall="tftp"))
    assert verb(site, state="running", timeout=3, attempts=1, **REQUEST)["failed"]
    assert (site.record(0).state, site.outlets()["1"]) == ("error", "off")
    assert not verb(site, state="running", **REQUEST).get("failed")
    assert site.board_of("jackie") == 1
