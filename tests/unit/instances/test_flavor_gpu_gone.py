# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance with a further GPU by hand, whose flavor's GPU broke and was detached as printed. Lost: the word that it
starts without the GPU of its flavor, although one is free.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.instances.test_gpus_by_hand_after_changes import given, uuids
from ansible_collections.hetero.compute.tests.unit.instances.test_swapped_gpus import ONE, take_out

FURTHER = "0000:05:00.0"
SAID = "all its GPUs were asked for by hand: where its flavor's is not among them"


def lines(done):
    assert not done.get("failed"), done.get("msg")
    return " ".join(line["text"] for line in done["lines"])


@pytest.mark.parametrize("further", [True, False])
def test_what_is_missing_is_said_and_given_as_printed(site, further):
    if further:
        given(site, FURTHER)
    else:
        site.claim(flavor=ONE)
        site.up()
    before = uuids(site)
    (own,) = [address for address, _lasts in before.values() if address != FURTHER]
    take_out(site, own)
    assert "or detach it" in site.up()["msg"]
    with site.host() as host:
        attachment.detach(host.site, site.container(), [own], Change(), Deadline(60.0))
    said = lines(site.up())
    assert (SAID in said) == further
    if further:
        assert "hetero.compute.lxc_gpu_attach, count 2)" in said
        with site.host() as host:
            attachment.attach(host.site, site.container(), GpuRequest(2), Change(), Deadline(60.0))
        assert SAID not in lines(site.up())
    assert len(uuids(site)) == len(before)


def test_nothing_is_said_of_one_that_has_both(site):
    given(site, FURTHER)
    assert SAID not in lines(site.up())


@pytest.mark.parametrize("asked", [GpuRequest(1, "kepler"), GpuRequest(2)], ids=["another kind", "two in all"])
def test_one_asked_for_by_number_is_none_of_its_flavor(site, asked):
    """Lost: the GPU of its flavor, without a word: the further one was asked for by its kind and a number."""
    if asked.arch:
        site.machine.pci("0000:03:00.0", 0x10DE, 0x1028, driver="nvidia", numa_node=0)
        site.machine.serve("0000:03:00.0", 4)
        site.machine.node("nvidia4", 195, 4)
    site.claim(flavor=dict(ONE, extra_specs=dict(ONE["extra_specs"], gpu_arch="s== fermi")))
    site.up()
    (own,) = [address for address, _lasts in uuids(site).values()]
    with site.host() as host:
        attachment.attach(host.site, site.container(), asked, Change(), Deadline(60.0))
    assert len(uuids(site)) == 2
    site.do(lifecycle.stopped)
    assert SAID not in lines(site.up())
    take_out(site, own)
    assert "or detach it" in site.up()["msg"]
    with site.host() as host:
        attachment.detach(host.site, site.container(), [own], Change(), Deadline(60.0))
    said = lines(site.up())
    assert (SAID in said) == bool(asked.arch)
    if asked.arch:
        assert "hetero.compute.lxc_gpu_attach, count 1, arch fermi)" in said
        with site.host() as host:
            attachment.attach(host.site, site.container(), GpuRequest(1, "fermi"), Change(), Deadline(60.0))
        site.do(lifecycle.stopped)
        assert SAID not in lines(site.up())
    assert len(uuids(site)) == 2
