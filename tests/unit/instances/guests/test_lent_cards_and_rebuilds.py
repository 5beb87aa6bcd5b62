# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card that an operator lends by virsh from one domain to another, one of which is an instance's guest that is
rebuilt. Lost: the instance, which does not start any more after its old disk is gone, for another domain runs with the
card; and the card, which is the rebuilt guest's by a guess and goes out of the other's next start.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt import hostdev
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import OTHER
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL

#: Seconds for a rebuild, also beside other load.
TIME = 300


@pytest.mark.parametrize("runs", [True, False])
def test_it_is_written_down_for_nobody(site, runs):
    site.provision("a", flavor=SMALL)
    site.virt.domain("a").attach(hostdev.xml(OTHER), live=False)
    win = site.virt.define("win")
    if runs:
        win.start()
    win.attach(hostdev.xml(OTHER), live=runs)
    said = site.do("rebuilt", "a", fresh=True, timeout=TIME)
    assert not said.get("failed"), said["msg"]
    assert (site.table(), set(hostdev.devices_in(win.xml(live=runs)))) == ({}, {OTHER})


def test_who_runs_with_it_keeps_it(site):
    site.provision("a", flavor=SMALL)
    for live in (True, False):
        site.virt.domain("a").attach(hostdev.xml(OTHER), live=live)
    site.virt.define("win").attach(hostdev.xml(OTHER), live=False)
    said = site.do("rebuilt", "a", fresh=True, timeout=TIME)
    assert not said.get("failed"), said["msg"]
    assert site.table() == {OTHER: "domain:a"}
