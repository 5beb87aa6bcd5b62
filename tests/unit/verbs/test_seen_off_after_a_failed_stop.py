# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's board is on and in state "error": its relay was stuck, between two tries of her start (no play is killed, no
database is lost), or at a stop of a boot whose play was killed. The board comes up late all the same, and she writes
into her root. The room loses its power; reconcile sees the outlet off; a stop goes well, which is the way out of
"error" that is printed; she asks for the same again, and the image is slow. If this fails, her root is removed as that
of an instance that never ran: test_up_after_a_failed_stop.py has the same without the look in between.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopted_unwatched import REQUEST, ask_again, data
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, stop
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)


@pytest.mark.parametrize(
    ("how", "looked"), [("stuck", "reconcile"), ("stuck", "board_image"), ("stuck in a retry", "reconcile")]
)
def test_a_root_that_may_have_been_used_stays(site, monkeypatch, how, looked):
    """Lost: her work, by her own request for the same instance."""
    site.wire(0, fake=dict(tftp=0.0, nfs=300.0, running=300.0))
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    if "retry" in how:  # no play is killed: it ends with an error, as the outlet does not go off between two tries
        site.wire(0, fake=dict(tftp=300.0, nfs=300.0, running=300.0))
        switch = Fake.switch

        def sticks(self, outlets, state):
            done = {outlet: Answer(True, "done") for outlet in outlets}
            return switch(self, outlets, state) if state == "on" else done

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
    site.cut(0)
    if looked == "reconcile":
        reconcile(site)
    else:
        site.module("board_image", boards=[0], state="absent", instance="jackie")
    assert data(site).exists()
    stopped = stop(site)
    assert not stopped.get("failed"), stopped["msg"]
    result = ask_again(site)
    assert data(site).exists(), result["msg"]
