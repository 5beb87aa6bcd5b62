# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance whose container got a further GPU by hand (lxc_gpu_attach): each verb gives it both, the one of its
flavor and the other one.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE

FURTHER = ADDRESSES[0]


def again(site):
    """The same request once more."""
    site.claim(flavor=ONE)
    return site.up()


def rebuilt(site):
    return site.do(lifecycle.rebuilt, fresh=True)


@pytest.mark.parametrize("verb", [rebuilt, again])
@pytest.mark.parametrize("persistent", [True, False])
def test_both_are_open_afterwards(site, verb, persistent):
    """Lost: the GPU of its flavor, which stayed closed while status said that it has both."""
    site.claim("ml-7", flavor=ONE)
    site.claim(flavor=ONE)
    site.up()
    site.do(lifecycle.absent, "ml-7")
    with site.host() as host:
        by_hand = GpuRequest(gpus=(FURTHER,))
        attachment.attach(host.site, site.container(), by_hand, Change(), Deadline(60.0), persistent)
        before = host.store.allocations()
    (own,) = {row.address for row in before} - {FURTHER}
    (told,) = verb(site)["instances"]
    assert (told["state"], sorted(told["gpus"]), told["isolation"]) == ("running", [FURTHER, own], "cgroup")
    assert site.can_open() == [FURTHER, own]
    with site.host() as host:
        after = host.store.allocations()
    asked = {row.address: (row.wanted, row.persistent) for row in before}
    assert {row.address: (row.wanted, row.persistent) for row in after} == asked
