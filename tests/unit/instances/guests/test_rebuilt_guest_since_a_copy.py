# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of host.db was put back, and a guest was rebuilt since; the record of its claim knows its host key. If
this fails, the guest is said to show another's key, and reconcile tells to make it anew, which removes its disk.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import (
    SMALL,
    found_by_reconcile,
    put_back,
)


def test_its_verbs_go_on(site):
    database = site.folder / "var/lib/hetero/host.db"
    site.provision("ml-8", flavor=SMALL)
    copy = backups.make(str(database))
    assert not site.do("rebuilt", "ml-8", fresh=True).get("failed")
    put_back(copy, database)
    found = [one["found"] for one in found_by_reconcile(site)["instances"][0]["found"]]
    assert not any("fresh=true" in one for one in found)
    done = site.do("running", "ml-8", timeout=60)
    assert not done.get("failed"), done.get("msg")
