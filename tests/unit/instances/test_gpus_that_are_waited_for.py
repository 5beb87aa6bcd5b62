# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory and GPUs that are held for those who wait, as a compute host decides it in the claim. If these fail, who waits
for four GPUs is overtaken by requests for one.

Tests compute_host/host_queue.py.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import Ticket
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.claim_request import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_queue import (
    KEPT,
    HostQueue,
    kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, CG1, IMAGE

ONE = dict(CG1, name="cg1.small", memory_mb=4096, vcpus=2, local_gb=20)
ONE["extra_specs"] = dict(CG1["extra_specs"], gpus="= 1")
PLAIN = {"name": "small", "memory_mb": 32768, "vcpus": 1, "local_gb": 1, "extra_specs": {"hypervisor": "s== LXC"}}
WAITS = "held for lab of ann, which waits and goes first"


def wait(site, instance="lab", asked=100.0, flavor=None, count=1, lease_hours=None, others=None, **more):
    """The place, as module ticket returns it."""
    request = ClaimRequest(instance, "ann", flavor or CG1, IMAGE, KEY, count, lease_hours=lease_hours, **more)
    wish = {name: getattr(request, name) for name in KEPT}
    ticket = Ticket(instance, "ann", asked, json.loads(json.dumps(wish)), others=others)
    with site.host() as host:
        place = kept(host, request, ticket, False)
    assert checked(json.loads(json.dumps(dict(place=place))), "ticket").get("msg") is None
    return place


def gpus_of(site, instance):
    return [gpu["address"] for gpu in site.info()["gpus"] if gpu["instance"] == instance]


def test_gpus_are_held_for_who_waits_longest(claims):
    """Lost: two GPUs at once, to whoever asks for one."""
    claims.claim("a", flavor=ONE, lease_hours=5)
    claims.claim("b", flavor=CG1)
    place = wait(claims)
    assert (place["may"], place["held"], place["ahead"]) == (0, 0, [])
    assert place["steps"] == [[pytest.approx(time.time() + 5 * 3600, abs=120), 1]]
    assert [(end["name"], end["owner"]) for end in place["ends"]] == [("a", "jo")]
    for hours in (None, 6):
        with pytest.raises(NoneFree) as error:
            claims.claim("c", flavor=ONE, lease_hours=hours)
        assert WAITS in str(error.value)
    claims.claim("c", flavor=ONE, lease_hours=4)
    assert len(gpus_of(claims, "c")) == 1
    late = claims.do(lifecycle.extended, "c", lease_hours=6)
    assert "c: went before lab of ann by its lease, and that is to start at " in late["msg"]
    assert not claims.do(lifecycle.extended, "c", lease_hours=4.5).get("failed")
    assert not claims.do(lifecycle.extended, "b", lease_hours=9).get("failed")


def test_the_gpus_of_others_are_what_is_left(claims):
    """Lost: GPUs that nobody who waits needs; or a GPU that is held, to one that has others to choose from."""
    wait(claims)
    claims.claim("a", flavor=CG1)
    claims.claim("lab", owner="ann")
    assert not set(gpus_of(claims, "a")) & set(gpus_of(claims, "lab"))
    with claims.host() as host:
        assert host.store.tickets.living() == []


def test_memory_is_held_but_not_more_than_is_needed(claims):
    """Lost: the memory of who waits, to one that wants no GPU; or memory that nobody needs."""
    claims.claim("a", flavor=CG1)
    claims.claim("b", flavor=CG1)
    assert wait(claims)["may"] == 0
    with pytest.raises(NoneFree) as error:
        claims.claim("plain", flavor=PLAIN)
    assert f"32768 MB of memory wanted, 32768 of 65536 left (16384 {WAITS})" in str(error.value)
    claims.claim("plain", flavor=dict(PLAIN, memory_mb=16384))


def test_a_gpu_that_is_not_healthy_costs_nobody_the_others(claims):
    """Lost: three sound GPUs for hours, for a request for two pairs of which there is one; or why it waits."""
    claims.settings["gpu_overrides"] = {ADDRESSES[0]: {"healthy": False}}
    claims.config.write_text(json.dumps(claims.settings))
    place = wait(claims, count=2, others=0)
    why = "is not healthy: the operator's overrides say that it is not healthy"
    assert (place["possible"], place["held"], place["stuck"]) == (1, 0, [dict(name=ADDRESSES[0], why=why)])
    assert wait(claims, count=2, others=1)["held"] == 1, "another host has the other pair"
    with pytest.raises(NoneFree):
        claims.claim("c", flavor=CG1)
    wait(claims, count=2, others=0)
    claims.claim("c", flavor=CG1)
    del claims.settings["gpu_overrides"]
    claims.config.write_text(json.dumps(claims.settings))
    place = wait(claims, count=2, others=0)
    assert (place["possible"], place["held"], place["stuck"]) == (2, 1, []), "it is mended, and c may end"
    with pytest.raises(NoneFree):
        claims.claim("d", flavor=ONE)


def test_a_place_is_kept_only_where_it_could_be_served(claims):
    assert wait(claims, flavor=dict(CG1, memory_mb=1 << 20)) is None
    assert wait(claims, flavor=dict(CG1, extra_specs=dict(CG1["extra_specs"], gpu_arch="s== hopper"))) is None
    with claims.host() as host:
        assert host.store.tickets.living() == []


def test_status_knows_who_waits(claims):
    claims.claim("a", flavor=CG1, lease_hours=5)
    claims.claim("b", flavor=CG1)
    wait(claims)
    wait(claims, "two", 200.0)
    with claims.host(create=False) as host:
        first, second = HostQueue(host).shown()[0]
    assert (first["request"], first["position"], second["position"], second["expected"]) == ("lab", 1, 2, None)
    assert first["expected"] == pytest.approx(time.time() + 5 * 3600, abs=120)
