# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lease that is extended on an older copy of the database while the file system of containers is not mounted. If this
fails, the end of a container that nobody sees frees its address, which it takes again once it is mounted.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back
from ansible_collections.hetero.compute.tests.unit.instances.test_unseen_roots import unmounted


def test_the_record_still_knows_that_it_ran(site):
    site.claim(flavor=SMALL, lease_hours=1.0)
    copy = backups.make(site.database)
    site.up()
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    put_back(site, copy)
    with unmounted(site, "folder"):
        assert not site.do(lifecycle.extended, lease_hours=24.0).get("failed")
        assert "its root is not to be seen here, and ml-8 has run" in site.do(lifecycle.absent)["msg"]
