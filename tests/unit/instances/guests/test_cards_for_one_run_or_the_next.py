# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that module libvirt_hostdev gives to an instance's guest for this run alone (config: false), or from its next
start on (live: false), or takes from one of the two. If these fail, whatever verb comes next, also reconcile, writes it
into the next start, and the guest has it for good; or a running instance is in error, although nothing is wrong.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CARD
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL


def starts_with(site):
    return set(hostdev.devices_in(site.virt.domain("a").xml(live=False)))


def test_one_for_this_run_is_not_there_at_the_next_start(site):
    site.provision("a", flavor=SMALL)
    done = site.virt.attach(site.virt.domain("a"), CARD, config=False)
    assert [(one["live"], one["config"]) for one in done["devices"]] == [(True, False)]
    site.provision("a", flavor=SMALL)
    assert CARD not in starts_with(site)
    before = site.drivers()
    said = site.do("rebooted", "a", how="hard")
    assert not said.get("failed"), said
    assert hostdev.devices_in(site.virt.domain("a").xml(live=True)) == {}
    assert site.drivers() != before  # it went back to the host's with the run
    assert not site.do("absent", "a").get("failed")
    assert site.table() == {}


def test_one_for_the_next_start_is_no_error_of_the_guest_that_runs(site):
    site.provision("a", flavor=SMALL)
    done = site.virt.attach(site.virt.domain("a"), CARD, live=False)
    assert [(one["live"], one["config"]) for one in done["devices"]] == [(False, True)]
    said = site.provision("a", flavor=SMALL)
    assert said["instances"][0]["state"] == "running", said["msg"]
    assert starts_with(site) == {CARD}
    assert site.do("rebooted", "a", how="hard")["instances"][0]["devices"] == [CARD]


def test_what_is_given_or_taken_later_counts(site):
    site.provision("a", flavor=SMALL)
    guest = site.virt.domain("a")
    for change, more, there in (
        (site.virt.attach, dict(config=False), False),
        (site.virt.attach, {}, True),
        (site.virt.detach, dict(live=False), False),
        (site.virt.attach, dict(live=False), True),
    ):
        assert change(guest, CARD, **more)["changed"]
        site.provision("a", flavor=SMALL)
        assert (CARD in starts_with(site)) is there
