# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of owners on a compute host, in the claim and in the queue. If these fail, one user has all GPUs of a host
whose operator said how many instances each may have, or a user who has fewer is refused.

Tests site/owner_limits.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owner_limits import Limit
from ansible_collections.hetero.compute.tests.unit.instances.test_gpus_that_are_waited_for import ONE, gpus_of, wait


def limit(site, **most):
    site.config.write_text(json.dumps(dict(site.settings, owner_limits=most)))


@pytest.fixture
def limited(claims):
    """A host with four GPUs, of whose instances each owner may have two, ci three, and eve none."""
    limit(claims, **{"*": 2, "ci": 3, "eve": 0})
    return claims


def test_an_owner_gets_no_more_than_its_limit(limited):
    """Lost: the GPUs of all others, to one user; or what that user has, to whom it does not say why."""
    limited.claim("a", flavor=ONE)
    limited.claim("b", flavor=ONE)
    with pytest.raises(NoneFree) as error:
        limited.claim("c", flavor=ONE)
    assert "jo has 2 instances of gpu1, and may have 2 at once: a, b" in str(error.value)
    assert error.value.facts["unfit"] == {}, "it can be had once one of these has ended"
    assert not limited.claim("b", flavor=ONE)["new"], "what is there stays"
    limited.claim("c", flavor=ONE, owner="bob")
    limited.do(lifecycle.absent, "a", owner="jo")
    assert limited.claim("d", flavor=ONE)["new"] == ["d"]


def test_what_an_owner_has_when_the_limit_is_set_stays(claims):
    """Lost: a limit that can be set while people work."""
    claims.claim("lab", flavor=ONE, count=3)
    limit(claims, jo=1)
    assert claims.claim("lab", flavor=ONE, count=3)["new"] == []
    assert len(claims.info()["claims"]) == 3


@pytest.mark.parametrize(("owner", "count", "text"), [
    ("ann", 3, "ann may have 2 instances of gpu1 at once"),
    ("eve", 1, "eve may have no instances of gpu1 at once"),
])  # fmt: skip
def test_more_than_the_limit_is_never_there(limited, owner, count, text):
    """Lost: an hour of waiting for what cannot be."""
    with pytest.raises(NoneFree, match=text) as error:
        limited.claim("lab", flavor=ONE, owner=owner, count=count)
    assert list(error.value.facts["unfit"]) == ["gpu1"]


def test_hours_and_flavors_have_limits_too(claims):
    """Lost: the GPUs of a host, to who keeps one for a year or has the largest flavor twice."""
    claims.config.write_text(
        json.dumps(dict(claims.settings, owner_limits={"*": {"hours": 8, "flavors": {ONE["name"]: 1}}}))
    )
    with pytest.raises(NoneFree, match="jo may have instances of gpu1 for 8 h: give -e hours=8 or less"):
        claims.claim("a", flavor=ONE)
    claims.claim("a", flavor=ONE, lease_hours=8)
    with pytest.raises(NoneFree, match=r"jo has 1 instance of gpu1 with flavor cg1\.small, and may have 1 at once: a"):
        claims.claim("b", flavor=ONE, lease_hours=8)
    claims.claim("b", flavor=dict(ONE, name="other"), lease_hours=2)
    late = claims.do(lifecycle.extended, "b", lease_hours=9)
    assert "b: is jo's, who may have it for 8 h from now: " in late["msg"]


def test_a_part_is_given_up_to_the_limit(limited):
    """Lost: what is left to an owner of the rest of a request that several nodes share."""
    assert limited.claim("lab", flavor=ONE, owner="ann", count=3, partial=True)["new"] == ["lab-1", "lab-2"]
    with pytest.raises(NoneFree, match="may have no instances"):
        limited.claim("own", flavor=ONE, owner="eve", count=3, partial=True)
    assert limited.claim("test", flavor=ONE, owner="ci", count=2)["new"] == ["test-1", "test-2"]


def test_nothing_is_held_for_who_may_not_have_it(limited):
    """Lost: a GPU that stays idle, for who has as many instances as it may."""
    limited.claim("a", flavor=ONE, owner="ann")
    limited.claim("b", flavor=ONE, owner="ann")
    place = wait(limited, "more", flavor=ONE)
    assert (place["may"], place["held"], place["steps"]) == (0, 0, [])
    limited.claim("c", flavor=ONE, owner="bob")
    limited.claim("d", flavor=ONE, owner="bob")
    assert len(gpus_of(limited, "d")) == 1
    limited.do(lifecycle.absent, "c", owner="bob")
    limited.do(lifecycle.absent, "a", owner="ann")
    assert wait(limited, "more", flavor=ONE)["may"] == 1, "it kept its place"
    assert limited.claim("more", flavor=ONE, owner="ann")["new"] == ["more"]


@pytest.mark.parametrize("wrong", [{"ann": -1}, {"ann": "many"}, ["ann"], "ann"])
def test_a_limit_is_a_number(claims, wrong):
    """Lost: the limit itself, to a mistake that nobody is told."""
    claims.config.write_text(json.dumps(dict(claims.settings, owner_limits=wrong)))
    with pytest.raises(HeteroError, match="owner_limits"):
        read_config(str(claims.config))


def test_the_sections_of_a_host_have_one_table(claims):
    """Lost: half of the limit of a host with containers and guests; or its set-up, where one role alone says it."""
    both = {kind: dict(claims.settings, owner_limits={"*": 2}) for kind in ("lxc", "kvm")}
    claims.config.write_text(json.dumps(both))
    assert read_config(str(claims.config)).owner_limits == {"*": Limit(2)}
    for nothing in (None, ""):
        both["kvm"]["owner_limits"] = nothing
        claims.config.write_text(json.dumps(both))
        assert read_config(str(claims.config)).owner_limits == {"*": Limit(2)}
    both["kvm"]["owner_limits"] = {"*": 3}
    claims.config.write_text(json.dumps(both))
    with pytest.raises(HeteroError, match="the machine has it once"):
        read_config(str(claims.config))
