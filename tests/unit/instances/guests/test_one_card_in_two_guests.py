# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that an operator has put by virsh into the next starts of two instances' guests, of which one runs with it at
a time. Lost otherwise: reconcile, or the card, which is written down for one of them by a guess.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
)


def test_reconcile_tells_of_both_and_what_it_says_helps(site):
    for name in ("a", "b"):
        site.provision(name, flavor=SMALL)
        site.virt.domain(name).attach(hostdev.xml(OTHER), live=False)
    found = found_by_reconcile(site)["domains"]
    assert [(one["domain"], one["address"], one["done"]) for one in found] == [("a", OTHER, None), ("b", OTHER, None)]
    assert "and domain b would start with it, too: once nobody wants it there, module lib" in found[0]["found"]
    assert site.table() == {}
    site.virt.detach(site.virt.domain("a"), OTHER)
    assert [one["done"] for one in found_by_reconcile(site)["domains"]] == ["written down"]
    assert site.table() == {OTHER: "domain:b"}


def test_who_runs_with_it_has_it(site):
    for name in ("a", "b"):
        site.provision(name, flavor=SMALL)
        site.virt.domain(name).attach(hostdev.xml(OTHER), live=False)
    site.virt.domain("b").attach(hostdev.xml(OTHER), live=True)
    found_by_reconcile(site)
    assert site.table() == {OTHER: "domain:b"}
