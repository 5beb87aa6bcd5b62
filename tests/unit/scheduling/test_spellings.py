# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors as seeds and blueprints spell them. If these fail, a site retypes the instance types that its Nova has."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.spellings import usual
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import flavors

AMOUNTS = dict(memory_mb=16384, vcpus=8, local_gb=160)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (dict(cpu_info='{"geometry":"8x8"}'), dict(cpu_info={"geometry": "8x8"})),
        (dict(xpus=2, xpu_arch="fermi"), dict(extra_specs={"gpus": "= 2", "gpu_arch": "s== fermi"})),
        (dict(gpus="= 2", hypervisor_type="s== LXC"), dict(extra_specs={"gpus": "= 2", "hypervisor": "s== LXC"})),
        (
            dict(extra_specs={"hypervisor_type": "s== LXC", "capabilities:xpus": "= 2"}),
            dict(extra_specs={"hypervisor": "s== LXC", "capabilities:gpus": "= 2"}),
        ),
        (dict(xpus=0, xpu_arch="", xpu_info="{}", net_arch="", net_info={}, net_mbps=0), {}),
        (dict(xpus="2", gpu_arch=None, net_mbps=None), dict(extra_specs={"gpus": "= 2"})),
        (dict(hypervisor="LXC", extra_specs={}), dict(extra_specs={"hypervisor": "s== LXC"})),
        (dict(cpu_arch="tilepro64", extra_specs={"gpus": "2"}), dict(cpu_arch="tilepro64", extra_specs={"gpus": "2"})),
    ],
)
def test_what_is_meant(given, meant):
    assert usual({**AMOUNTS, **given}) == {**AMOUNTS, **meant}
    assert flavors({}, {"mine": {**AMOUNTS, **given}}) == {"mine": {**AMOUNTS, **meant, "name": "mine"}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(cpu_info="{8x8"), "cpu_info is '{8x8': give a mapping such as {geometry: 8x8}"),
        (dict(cpu_info='["8x8"]'), "give a mapping such as {geometry: 8x8}"),
        (dict(xpus=[2]), "unknown key 'xpus': write it as gpus in extra_specs"),
        (dict(gpus=2, extra_specs={"gpus": "= 1"}), "unknown key 'gpus': write it as gpus in extra_specs"),
        (dict(xpus="many"), "extra_specs.gpus is 's== many': give the number of GPUs"),
        (dict(extra_specs={"gpus": "= 1", "xpus": "= 2"}), "extra_specs.xpus is another name of gpus: write gpus"),
        (dict(extra_specs=["gpus"], xpus=2), "extra_specs is ['gpus']: give a mapping"),
        (dict(xpu_info='{"model":"Tesla 2050"}'), "unknown key 'xpu_info': leave it out: no node tells it"),
        (dict(net_arch="ethernet"), "unknown key 'net_arch': leave it out: no node tells it"),
        (dict(net_info='{"MTU":"8000"}'), "unknown key 'net_info': leave it out: no node tells it"),
        (dict(net_mbps=10000), "unknown key 'net_mbps': leave it out: no node tells it"),
        (dict(xpus=False), "unknown key 'xpus': write it as gpus in extra_specs"),
        (7, "is 7: give a mapping with memory_mb, vcpus"),
    ],
)
def test_what_has_no_meaning_is_named(given, said):
    """Lost: hours, to `write vcpus` where GPUs were asked for."""
    with pytest.raises(AnsibleFilterError) as error:
        flavors({}, {"mine": {**AMOUNTS, **given} if isinstance(given, dict) else given})
    assert said in str(error.value)
    assert "flavor mine: " in str(error.value)
