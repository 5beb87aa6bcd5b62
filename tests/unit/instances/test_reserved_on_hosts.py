# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations of a compute host's instances and GPUs by date. If these fail, the GPUs of a course are others' when it
begins, or its memory is.

Tests claims/reservations.py.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_queue import HostQueue
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.conftest import CG1
from ansible_collections.hetero.compute.tests.unit.instances.test_gpus_that_are_waited_for import (
    ONE,
    PLAIN,
    gpus_of,
    wait,
)


def reserve(site, begin, end, owner="ann", **more):
    """Reserve from so many hours from now to so many; without more, one instance with two GPUs."""
    dates = [time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(time.time() + hours * 3600)) for hours in (begin, end)]
    entry = {"owner": owner, "from": dates[0], "until": dates[1], "why": "course"}
    entry.update(more or {"flavor": CG1["name"]})
    table = {"table": [entry], "flavors": {CG1["name"]: CG1}}
    site.config.write_text(json.dumps(dict(site.settings, reservations=table)))


def reserved(site):
    with site.host(create=False) as host:
        return HostQueue(host).reserved()


def test_gpus_are_left_for_who_reserved_them(claims):
    """Lost: the GPUs of a course, to who came before it; or two others, to nobody."""
    reserve(claims, 5, 15)
    claims.claim("a", flavor=ONE)
    claims.claim("b", flavor=ONE)
    with pytest.raises(NoneFree) as error:
        claims.claim("c", flavor=ONE)
    assert "reserved for ann from " in str(error.value)
    assert "(course): until then with -e hours=4.9" in str(error.value)
    assert error.value.facts["unfit"] == {}
    claims.claim("c", flavor=ONE, lease_hours=4.9)
    claims.claim("lab", owner="ann", lease_hours=20, flavor=ONE)
    late = claims.do(lifecycle.extended, "c", lease_hours=6)
    assert "c: would keep what is reserved for ann from " in late["msg"]
    assert reserved(claims)[0]["lacks"] is None


@pytest.mark.parametrize("asked", [0, 20])
def test_beside_a_limit_of_hours_on_a_host_what_is_nearer_is_named(claims, asked):
    """Lost: a second refusal, to who gives the hours that the first one said are possible."""
    reserve(claims, 5, 15)
    claims.claim("a", flavor=ONE)
    claims.claim("b", flavor=ONE)
    claims.claim("c", flavor=ONE, lease_hours=1)
    settings = json.loads(claims.config.read_text())
    claims.config.write_text(json.dumps(dict(settings, owner_limits={"*": {"hours": 8}})))
    late = claims.do(lifecycle.extended, "c", lease_hours=asked)
    assert "c: would keep what is reserved for ann from " in late["msg"]
    assert "-e hours=4.9 is possible" in late["msg"]
    settings["owner_limits"] = {"*": {"hours": 3}}
    claims.config.write_text(json.dumps(settings))
    assert "who may have it for 3 h from now" in claims.do(lifecycle.extended, "c", lease_hours=asked)["msg"]
    assert not claims.do(lifecycle.extended, "c", lease_hours=3).get("failed")


def test_certain_gpus_are_reserved_by_their_addresses(claims):
    """Lost: the card that the course is about, while others are free."""
    (first, *others) = [gpu["address"] for gpu in claims.info()["gpus"]]
    reserve(claims, -1, 5, which=[first.upper()])
    claims.claim("a", flavor=ONE, count=3)
    assert first not in gpus_of(claims, "a-1") + gpus_of(claims, "a-2") + gpus_of(claims, "a-3")
    with pytest.raises(NoneFree, match="reserved for ann until "):
        claims.claim("b", flavor=ONE)
    claims.claim("lab", flavor=ONE, owner="ann")
    assert gpus_of(claims, "lab") == [first]


def test_memory_is_left_for_who_reserved_it(claims):
    """Lost: an instance of the course, whose GPUs are there and whose memory is not."""
    reserve(claims, 5, 15)
    claims.claim("a", flavor=PLAIN, lease_hours=4)
    with pytest.raises(NoneFree) as error:
        claims.claim("b", flavor=PLAIN, count=2)
    assert "reserved for ann from " in str(error.value)
    assert "32768 MB of memory wanted" in str(error.value)
    claims.claim("b", flavor=dict(PLAIN, memory_mb=16384))


def test_a_part_is_given_up_to_what_is_reserved(claims):
    """Lost: what is left to a request that several nodes share."""
    reserve(claims, 5, 15)
    assert claims.claim("lab", flavor=ONE, count=4, partial=True)["new"] == ["lab-1", "lab-2"]


def test_what_runs_beyond_its_begin_is_told(claims):
    """Lost: the warning that the course will have no GPUs; or an instance, to a table."""
    claims.claim("a", flavor=CG1)
    claims.claim("b", flavor=ONE)
    reserve(claims, 5, 15)
    assert len(claims.info()["claims"]) == 2
    (one,) = reserved(claims)
    assert one["owner"] == "ann"
    assert one["text"].startswith("1 cg1.xlarge for ann from ")
    assert one["lacks"] == (
        "1 of it cannot be had then by present leases: a is jo's without end, b is jo's without end"
    )
    with pytest.raises(NoneFree, match="reserved for ann"):
        claims.claim("c", flavor=ONE)  # one GPU of two is left for her


def test_who_waits_is_told_when_it_is_over(claims):
    """Lost: the time at which a request can start."""
    reserve(claims, -1, 5, flavor=CG1["name"], count=2)
    assert wait(claims, flavor=ONE)["may"] == 1, "ann has reserved it"
    reserve(claims, -1, 5, owner="bob", flavor=CG1["name"], count=2)
    place = wait(claims, flavor=ONE)
    assert (place["may"], place["held"]) == (0, 0)
    assert [one["name"] for one in place["ends"]] == ["reserved"]
    assert place["steps"] == [[place["ends"][0]["when"], 1]]


@pytest.mark.parametrize("entry", [{"owner": "ann"}, {"owner": "ann", "from": "2026-12-07 08:00", "until": "x"}])
def test_a_mistake_is_told(claims, entry):
    """Lost: the reservation itself, to a mistake that nobody is told."""
    claims.config.write_text(json.dumps(dict(claims.settings, reservations={"table": [entry], "flavors": {}})))
    with pytest.raises(HeteroError, match=r"reservations\[0\]\.from: "):
        read_config(str(claims.config))


def test_what_is_offered_is_what_a_claim_gives(claims):
    """Lost: the time of who asks for GPUs, or memory, that flavors says are free, and no claim gives."""

    def offers(owner):
        with claims.host(create=False) as host:
            said = HostQueue(host).offers(owner, {one["name"]: one for one in (ONE, PLAIN)})
        return {name: (one["may"], [why.partition(" from ")[0] for why in one["why"]]) for name, one in said.items()}

    assert offers("jo") == {}
    reserve(claims, 5, 15)
    assert offers("jo") == {ONE["name"]: (4, []), PLAIN["name"]: (2, [])}, "with a lease that is over by then"
    reserve(claims, -1, 5)
    told = ["reserved: 1 cg1.xlarge for ann"]
    assert offers("jo") == {ONE["name"]: (2, told), PLAIN["name"]: (1, told)}
    assert offers("ann")[ONE["name"]] == (4, [])
    assert claims.claim("a", flavor=ONE, count=3, partial=True, lease_hours=0.1)["new"] == ["a-1", "a-2"]
    assert offers("jo")[ONE["name"]] == (0, told)
