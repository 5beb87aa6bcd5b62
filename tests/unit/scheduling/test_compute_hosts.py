# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors against hosts of containers and guests. If these fail, a user reads a wrong reason, or a host is missed."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import compute_hosts


def flavor(hypervisor="s== LXC", **specs):
    return dict(name="mine", memory_mb=4096, extra_specs=dict(specs, hypervisor=hypervisor))


def host(*archs, hypervisors=("LXC",)):
    capacity = {key: {"total": 65536} for key in ("memory_mb", "vcpus", "local_gb")}
    gpus = [{"arch": arch} for arch in archs]
    return dict(
        cpu_arch="x86_64", hypervisor=hypervisors[0], hypervisors=list(hypervisors), capacity=capacity, gpus=gpus
    )


def test_one_gpu_of_the_wanted_architecture_is_enough():
    """A host with a single GPU would serve nobody."""
    assert compute_hosts.rejections(flavor(gpus="1", gpu_arch="s== fermi"), host("fermi")) == []
    assert compute_hosts.rejections(flavor(gpus="1", gpu_arch="s== fermi"), host("kepler", "fermi")) == []


@pytest.mark.parametrize(("asked", "fits"), [("1", True), (" 2 ", True), (3, False), ("= 1", True), ("", None)])
def test_a_number_alone_asks_for_so_many_gpus_and_not_for_a_host_of_so_many(asked, fits):
    """Lost: every host with two GPUs, to a flavor that says `gpus: "1"`."""
    if fits is None:
        with pytest.raises(BadInput, match="gpus is ''"):
            compute_hosts.gpu_count(flavor(gpus=asked))
        return
    assert (compute_hosts.rejections(flavor(gpus=asked), host("fermi", "fermi")) == []) is fits


def test_gpus_of_another_architecture_are_told_from_too_few():
    """Who reads "has no gpus" of a host full of them does not think of the architecture."""
    wanted = flavor(gpus="2", gpu_arch="s== fermi")
    assert compute_hosts.rejections(wanted, host("volta", "kepler")) == [
        "gpu_arch kepler, volta does not satisfy 's== fermi'"
    ]
    assert compute_hosts.rejections(wanted, host("fermi", "kepler")) == ["gpus 1 does not satisfy '2'"]
    assert compute_hosts.rejections(wanted, host(None)) == [
        "gpus 1 does not satisfy '2'",
        "gpu_arch unknown does not satisfy 's== fermi'",
    ]


def test_what_is_asked_for_in_novas_scope_counts_the_same():
    """Flavors from Nova say capabilities:gpus; without it they would get an instance without GPUs."""
    mine = flavor(**{"capabilities:gpus": ">= 2", "capabilities:gpu_arch": "s== fermi"})
    assert (compute_hosts.gpu_count(mine), compute_hosts.gpu_arch(mine)) == (2, "s== fermi")
    assert (compute_hosts.gpu_count({}), compute_hosts.gpu_arch({})) == (0, None)
    with pytest.raises(BadInput, match=r"flavor mine: extra_specs\.gpus is '< 3'"):
        compute_hosts.gpu_count(flavor(gpus="< 3"))


def test_the_hypervisor_is_the_one_that_the_flavor_names():
    """A host that runs both would make a container of what is to be a guest."""
    both = host(hypervisors=("LXC", "KVM"))
    assert compute_hosts.hypervisor_for(flavor("s== kvm"), both) == "KVM"
    assert compute_hosts.hypervisor_for({}, both) == "LXC"
    assert compute_hosts.hypervisor_for({}, {"hypervisor": "KVM"}) == "KVM"
