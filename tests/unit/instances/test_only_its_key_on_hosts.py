# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends of the container or guest that has one's own key, and of no other (`only_key`). If these fail, a job of a CI
that is cancelled ends the container of another job, which its owner asked for by the same name.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_gpus_that_are_waited_for import ONE


def test_one_with_another_key_is_refused_and_not_touched(claims):
    """Lost: the container that another request got; or one's own, whose key somebody was added to."""
    claims.claim(key=f"{KEY}\n{OTHER_KEY}\n")
    claims.claim("ml-9")
    there = claims.info()["instances"]
    with pytest.raises(Refused, match=r"^ml-9: has another ssh key than only_key \(SHA256:"):
        claims.do(lifecycle.absent, "ml-9", only_key=OTHER_KEY)
    assert [one["instance"] for one in claims.info()["instances"]] == [one["instance"] for one in there]
    for name in ("ml-8", "ml-9"):
        result = claims.do(lifecycle.absent, name, only_key=KEY)
        assert not result.get("failed"), result
    assert claims.info()["instances"] == []


def test_of_several_those_with_the_key_are_meant(claims):
    """Lost: the word that all went well, to another's container of the same request."""
    claims.claim("lab", flavor=ONE, count=2, numbers=(1,))
    claims.claim("lab", flavor=ONE, count=2, numbers=(2,), key=OTHER_KEY)
    for check in (True, False):
        result = claims.do(lifecycle.absent, "lab", check=check, only_key=KEY)
        assert not result.get("failed"), result
        assert [one["instance"] for one in result["instances"]] == ["lab-1"]
    assert [one["instance"] for one in claims.info()["instances"]] == ["lab-2"]
    with pytest.raises(Refused, match=r"^lab-2: has another ssh key than only_key"):
        claims.do(lifecycle.absent, "lab", only_key=KEY)
