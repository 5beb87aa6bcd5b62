# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of cards whose machine or domain they are no more in."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import forgotten

__all__ = ["forgotten"]


def test_nothing_is_said_to_be_written_down_of_a_card_that_left_the_machine(forgotten):
    """Lost: the trust in what reconcile says: it said so at each run, and wrote nothing."""
    forgotten.virt.domain("ml-8").stop()
    (forgotten.virt.root / "sys/bus/pci/devices" / CARD).unlink()
    change = Change()
    with forgotten.host() as host:
        (one,) = reconcile(host, change, 5.0)["domains"]
    assert (one["address"], one["done"], change.changed, forgotten.table()) == (CARD, None, False, {})
    assert one["found"].endswith("; it is no more on this host, and nothing is written down of it until it is put back")


def test_who_frees_the_card_of_a_domain_that_is_no_more_is_said(site):
    """Lost: the card, for the module that was told to take it away knows no such domain."""
    with site.virt.store() as store:
        wanted = GpuRequest(gpus=(CARD,))
        store.grant(Allocation(CARD, "domain:gone", None, False, ATTACHED, 1.0, wanted))
    hand = site.virt.define("hand")
    with pytest.raises(Refused, match=r"what a domain has that is no more, .*reconcile.* frees"):
        site.virt.attach(hand, CARD)
    with site.host() as host:
        reconcile(host, Change(), 5.0)
    assert site.virt.attach(hand, CARD)["changed"]


@pytest.mark.parametrize("runs", [True, False])
def test_a_guests_card_that_was_pulled_is_found(site, runs):
    """Lost: the word that a guest does not start any more, until its tenant wants it."""
    site.provision("ml-8")
    if not runs:
        site.do("stopped", "ml-8")
    (site.virt.root / "sys/bus/pci/devices" / CARD).unlink()
    with site.host() as host:
        (look,) = reconcile(host, Change(), 5.0)["instances"]
    way = "put its card back there, or terminate it"
    assert [one["found"] for one in look["found"]] == [f"ml-8: its device at {CARD} is no more on this host: {way}"]
    assert look["found"][0]["done"] is None
