# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that module libvirt_hostdev gave to an instance's guest, on a host whose database is older than that (a copy
was put back). If the first fails, the card is taken out of the guest's next start, by stop_instance without a word and
also by reconcile, and is free for anybody. Reconcile writes down that the guest has it, by hand and not by its flavor:
if the others fail, one for this run alone is the guest's for good; module libvirt_hostdev says that it took it away,
and the next verb gives it back, or says that the guest lacks its own; and at its end the card stays on vfio-pci,
although it was the host's own driver's, so that no container gets that GPU any more.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
    put_back,
)


def given(site, config):
    """Have guest a run with a card of the host's by hand, of which an older database knows nothing."""
    site.provision("a", flavor=SMALL)
    database = site.folder / "var/lib/hetero/host.db"
    copy = backups.make(str(database))
    site.virt.attach(site.virt.domain("a"), OTHER, config=config)
    put_back(copy, database)


def starts_with(site):
    return set(hostdev.devices_in(site.virt.domain("a").xml(live=False)))


@pytest.mark.parametrize("verb", ["provision", "stop", "reconcile", "rebuild"])
def test_it_stays_in_the_next_start(site, verb):
    given(site, config=True)
    if verb == "provision":
        site.provision("a", flavor=SMALL)
    elif verb == "stop":
        site.do("stopped", "a")
    elif verb == "rebuild":
        assert not site.do("rebuilt", "a", fresh=True).get("failed")
    else:
        found_by_reconcile(site)
    assert starts_with(site) == {OTHER}


def test_one_for_this_run_alone_is_not_its_own_for_good(site):
    given(site, config=False)
    found_by_reconcile(site)
    site.provision("a", flavor=SMALL)
    assert starts_with(site) == set()


def test_it_can_be_taken_back(site):
    given(site, config=True)
    found_by_reconcile(site)
    assert site.virt.detach(site.virt.domain("a"), OTHER)["changed"]
    assert site.table() == {}
    assert not site.provision("a", flavor=SMALL).get("failed")
    assert starts_with(site) == set()


def test_it_goes_back_to_the_hosts_driver_with_its_end(site):
    before = site.drivers()
    given(site, config=True)
    found_by_reconcile(site)
    assert not site.do("absent", "a").get("failed")
    assert site.drivers() == before
