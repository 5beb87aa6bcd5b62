# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of host.db was put back, and a container was rebuilt since; the record of its claim knows which one it
is. If these fail, each verb and reconcile tell its tenant to move its only root away, and it does not start with the
host, as its GPU is said to be allocated to itself.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile

ONE = dict(SMALL, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})


@pytest.fixture
def older(site):
    """ml-8 was rebuilt after the copy that is in place."""
    site.claim(flavor=ONE)
    site.up()
    copy = backups.make(site.database)
    assert not site.do(lifecycle.rebuilt, fresh=True).get("failed")
    site.do(lifecycle.stopped)
    put_back(site, copy)
    return site


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.stopped, lifecycle.rebooted, lifecycle.absent])
def test_its_verbs_go_on(older, verb):
    done = older.do(verb)
    assert not done.get("failed"), done.get("msg")


def test_reconcile_has_the_database_know_it(older):
    assert not any("moved away" in found for found in found_by_reconcile(older, "ml-8"))
    with older.host() as host:
        claim, kept = host.store.claim_of("ml-8"), host.store.kept("ml-8")
        assert (claim.container, claim.host_key) == (kept.container, kept.host_key)
        assert [row.holder for row in host.store.allocations()] == [kept.container]


def test_its_gpu_is_its_own_after_a_boot(older):
    with older.host() as host:
        assert restoration.restore(host.site) == {"ml-8": None}
