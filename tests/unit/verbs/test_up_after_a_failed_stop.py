# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's play was killed while her board loads its kernel; a stop of it fails (the PDU is lost, or stuck), so the
board goes on, comes up, and she writes into her root. The room loses its power, or a stop goes well now; she asks for
the same again, and the image is slow. The database is there. If this fails, her root is removed as that of an instance
that never ran.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
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


@pytest.mark.parametrize("then", ["power cut", "power cut, reconcile", "stopped"])
@pytest.mark.parametrize("how", ["control: no stop", "PDU lost", "stuck"])
def test_a_root_that_may_have_been_used_stays(site, monkeypatch, how, then):
    """Lost: her work, by her own request for the same instance."""
    site.wire(0, fake=dict(tftp=0.0, nfs=300.0, running=300.0))
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    assert not site.module("tilera_boot", boards=[0], timeout=10, instance="jackie", wait=False).get("failed")
    if "stuck" in how:
        site.pdu(faults={"stuck": ["1"]})
        assert stop(site)["failed"]
    elif how == "PDU lost":
        with monkeypatch.context() as patch:
            patch.setattr(pdu_loop, "PDU", 3.0)
            patch.setattr(Fake, "switch", lambda self, outlets, state: self._hang(dict(faults=dict(hang=True))))
            assert stop(site)["failed"]
    site.pdu()
    assert site.outlets()["1"] == "on"
    before = site.record(0).state
    site.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0))  # it is up by now
    data(site).write_text("her work")
    if then == "stopped":
        assert not stop(site).get("failed")
    else:
        site.cut(0)
    told = reconcile(site)["boards"][0]["found"] if "reconcile" in then else None
    result = ask_again(site)
    said = before, result.get("msg"), [line["text"] for line in result["lines"]], told
    assert data(site).exists(), said
