# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that got a further GPU by hand, by its index or address, on a host whose cards were changed since. If
these fail, it does not start although all its GPUs are there, or has one more that nobody gave it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE, put_into, take_out


def given(site, named, persistent=True):
    """Have a stopped instance with a GPU of its flavor and one by hand; return what `uuids` does."""
    site.claim(flavor=ONE)
    site.up()
    with site.host() as host:
        attachment.attach(host.site, site.container(), GpuRequest(gpus=(named,)), Change(), Deadline(60.0), persistent)
    site.do(lifecycle.stopped)
    return uuids(site)


def uuids(site):
    """Return {UUID: (address, whether it outlives a restart)} of what the instance has."""
    with site.host() as host:
        return {row.uuid: (row.address, row.persistent) for row in host.store.allocations()}


def start(site):
    said = site.up().get("msg")
    assert said is None, said


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.rebuilt])
def test_one_named_by_index_takes_no_other_since_a_card_was_added(site, verb):
    """Lost: one more GPU, to an instance that nobody gave it."""
    before = given(site, "1")
    site.machine.pci("0000:03:00.0", 0x10DE, 0x1091, driver="nvidia", numa_node=0)
    site.machine.serve("0000:03:00.0", 4)
    site.machine.node("nvidia4", 195, 4)
    said = site.do(verb, **({"fresh": True} if verb is lifecycle.rebuilt else {})).get("msg")
    assert said is None, said
    assert uuids(site) == before


@pytest.mark.parametrize("persistent", [True, False])
def test_one_named_by_index_starts_since_a_free_card_was_taken_out(site, persistent):
    """Lost: each start of an instance all whose GPUs are there."""
    before = given(site, "3", persistent)
    take_out(site, "0000:05:00.0")
    for _time in range(2):
        start(site)
        assert uuids(site) == before
        site.do(lifecycle.stopped)


def test_one_named_by_address_that_is_in_another_slot_starts(site):
    """Lost: each start of the instance; and a further one, the second time."""
    before = given(site, "0000:05:00.0")
    put_into(site, "0000:05:00.0", "0000:0b:00.0")
    for _time in range(2):
        start(site)
        after = uuids(site)
        assert sorted(after) == sorted(before)
        assert ("0000:0b:00.0", True) in after.values()
        site.do(lifecycle.stopped)


def test_of_two_that_are_named_at_once_one_that_was_taken_back_stays_away(site):
    """Lost: a GPU that was taken from the instance by hand, to it again at its next start."""
    site.claim(flavor=ONE)
    site.up()
    with site.host() as host:
        both = GpuRequest(gpus=("0000:05:00.0", "0000:06:00.0"))
        attachment.attach(host.site, site.container(), both, Change(), Deadline(60.0))
        attachment.detach(host.site, site.container(), ["0000:05:00.0"], Change(), Deadline(60.0))
    before = uuids(site)
    site.do(lifecycle.stopped)
    start(site)
    assert uuids(site) == before


@pytest.mark.parametrize("persistent", [True, False])
def test_one_that_is_gone_is_not_replaced_and_is_taken_back_as_printed(site, persistent):
    """Lost: the instance, until somebody finds out what its start wants."""
    before = given(site, "0000:05:00.0", persistent)
    take_out(site, "0000:05:00.0")
    said = site.up().get("msg") or ""
    assert "has GPU 0000:05:00.0" in said
    assert "put it back, or detach it (module hetero.compute.lxc_gpu_attach, state detached)" in said
    with site.host() as host:
        attachment.detach(host.site, site.container(), ["0000:05:00.0"], Change(), Deadline(60.0))
    start(site)
    assert [address for address, _persistent in uuids(site).values()] == ["0000:89:00.0"]
    assert set(uuids(site)) < set(before)
