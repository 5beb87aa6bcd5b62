# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator lends one card to a domain of his own, which runs with it now, and to an instance's guest (by virsh, in
its next start). If this fails, reconcile writes down that the card is the guest's, although the other domain runs with
it; the operator's domain is told to give it up, and the instance does not start any more.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
)


def test_it_stays_who_runs_with_it(site):
    site.provision("a", flavor=SMALL)
    site.virt.domain("a").attach(hostdev.xml(OTHER), live=False)
    win = site.virt.define("win")
    win.start()
    win.attach(hostdev.xml(OTHER), live=True)
    (found,) = found_by_reconcile(site)["domains"]
    assert (found["domain"], found["done"], site.table()) == ("win", None, {})
    site.do("stopped", "a")
    said = site.do("running", "a")
    assert not said.get("failed"), said
    assert set(hostdev.devices_in(win.xml(live=True))) == {OTHER}
