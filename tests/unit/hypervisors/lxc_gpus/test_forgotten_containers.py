# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs given by hand, on a host whose database is older than the claim of a container that is not to be seen."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.claim_records import Claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

OWN, OTHER = ADDRESSES[:2]
ONE = {"name": "one", "extra_specs": {"hypervisor": "s== LXC", "gpus": "= 1"}}


def forget(host, **fields):
    """Leave nothing but the record of ml-8's claim; its key."""
    key = f"{host.boxes.lxcpath}/ml-8#{'8' * 32}"
    claim = Claim("ml-8", "ml-8", "jo", "lxc", ONE, "box", "", 64, 1, 1, "stopped", 1.0, "", 1.0, container=key)
    with Store(host.state_db, "test") as store:
        store.records.write(replace(claim, **fields))
    return key


def test_none_is_given_while_nobody_can_tell_which_is_its_own(host):
    """Lost: the GPU of a container whose disk is not mounted, to the next that is given one by hand."""
    box = host.boxes.make(start=False)
    forget(host)
    with pytest.raises(NoneFree) as refused:
        host.attach(box, gpus=[OWN])
    assert "may be ml-8's: no claim of it is in the database of" in str(refused.value)
    assert f"{host.state_db[:-3]}.claims/ml-8.json" in str(refused.value)
    assert host.table() == {}
    os.unlink(f"{host.state_db[:-3]}.claims/ml-8.json")
    host.attach(box, gpus=[OWN])
    assert host.table() == {OWN: [box.name]}


def test_what_a_container_has_stays_its_own(host):
    """Lost: the GPU of one that has nothing to do with it; its file knows it where the table does not."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[OWN])
    forget(host)
    assert not host.attach(box, gpus=[OWN])["changed"]
    lose(host)
    assert host.reconcile(repair=True)["changed"]
    assert host.table() == {OWN: [box.name]}


@pytest.mark.parametrize("fields", [dict(flavor={"name": "none"}), dict(container=None)], ids=["no GPU", "not made"])
def test_one_without_a_gpu_keeps_nobody_from_the_gpus(host, fields):
    """Lost: each GPU of the host, to a container that has none."""
    forget(host, **fields)
    assert host.attach(host.boxes.make(start=False), gpus=[OWN])["changed"]


def test_the_gpu_that_the_table_knows_is_its_own_and_no_other(host):
    """Lost: its GPU, as its folder is not there; or all others, though everybody knows which one it has."""
    box, key = host.boxes.make(start=False), forget(host)
    with Store(host.state_db, "test") as store:
        store.grant(Allocation(OWN, key, None, False, ATTACHED, time.time(), GpuRequest(1)))
    with pytest.raises(NoneFree, match=f"{OWN} allocated to ml-8"):
        host.attach(box, gpus=[OWN])
    host.reconcile(repair=True)
    assert host.table() == {OWN: ["ml-8"]}
    host.attach(box, gpus=[OTHER])
    assert host.table() == {OWN: ["ml-8"], OTHER: [box.name]}
