# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a compute host could serve a request. If these fail, a request waits for a host that never serves it, or a
GPU that somebody has counts as free.
"""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import host_fit
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owner_limits import Limit

IMAGES = dict(
    box=SimpleNamespace(name="box", ram=False, arch="x86_64"),
    ram=SimpleNamespace(name="ram", ram=True, arch="x86_64"),
    arm=SimpleNamespace(name="arm", ram=False, arch="aarch64"),
)
SMALL = dict(name="small", memory_mb=64, vcpus=1, extra_specs=dict(hypervisor="s== lxc"))
CAPACITY = {name: dict(total=total, free=0) for name, total in (("memory_mb", 8192), ("vcpus", 8), ("local_gb", 100))}
FACTS = dict(capacity=CAPACITY, cpu_arch="x86_64", hypervisors=["lxc"], gpus=[])


class Images:
    def get(self, name):
        if name not in IMAGES:
            raise BadInput("is not here", f"image {name}", "import it")
        return IMAGES[name]


def host(**said):
    store = SimpleNamespace(allocations=list, claims=list)
    config = SimpleNamespace(owner_limits={"*": Limit(2)})
    given = dict(store=store, config=config, images=Images(), cpu_arch="x86_64", facts=FACTS, name="gpu1", gpus=[])
    return SimpleNamespace(**{**given, "hypervisors": ["lxc"], **said})


def request(image="box", kind="lxc", **flavor):
    return SimpleNamespace(image=image, kind=kind, flavor={**SMALL, **flavor})


def test_a_request_that_fits():
    assert host_fit.unfit(host(), request()) == []


def test_each_reason_why_it_never_fits_is_told():
    """Lost: why, for who would wait for ever."""
    [why] = host_fit.unfit(host(), request(memory_mb=1 << 20))
    assert why.startswith("memory_mb 8192")
    assert host_fit.unfit(host(), request("none")) == ["image none: is not here"]
    assert host_fit.unfit(host(), request("ram")) == ["image ram is a RAM image, which has no root: it is for boards"]
    assert host_fit.unfit(host(), request("arm")) == ["image arm is for aarch64, this host is x86_64"]


def test_which_gpus_are_free():
    """Lost: a GPU, to two; or one that is broken, to somebody."""
    gpus = [
        SimpleNamespace(address=f"0000:0{number}:00.0", healthy=number != 2, unsupported="cut" if number == 3 else None)
        for number in range(1, 5)
    ]
    taken = SimpleNamespace(allocations=lambda: [SimpleNamespace(address="0000:01:00.0")])
    assert host_fit.free_gpus(host(gpus=gpus, store=taken)) == gpus[3:]


def test_an_owners_limit_is_the_hosts():
    """Lost: the limit, or what it counts."""
    limits = host_fit.limits_of(host())
    assert limits.may_have("ann") == 2
    assert limits.why_no_more("ann", "small") == "ann has 0 instances of gpu1, and may have 2 at once"
