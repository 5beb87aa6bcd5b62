# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that the database does not know any more, as an older copy was put back, ended as printed. If this fails,
the host gives nobody any GPU from then on.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE


def test_its_gpus_are_free_once_it_is_ended_as_printed(site):
    """Lost: all GPUs of the host, to a record that nobody was told to remove."""
    site.claim("ml-7", flavor=SMALL)
    copy = backups.make(site.database)
    site.claim("ml-8", flavor=ONE)
    site.up("ml-8")
    site.do(lifecycle.stopped, "ml-8")
    put_back(site, copy)
    with site.host() as host:
        (said,) = reconcile(host, Change(True), 5.0)["others"]
    assert "see whose root lies in its folder, unmount what is mounted there), and remove its folder" in said
    record = Path(re.search(r"then the record, (\S+\.json)", said).group(1))
    disks.unmount(site.container("ml-8"), site.here.disks)
    shutil.rmtree(site.lxcpath / "ml-8")
    record.unlink()
    assert site.claim("bob", owner="bo", flavor=ONE)["new"]
    with site.host() as host:
        assert reconcile(host, Change(True), 5.0)["others"] == []
