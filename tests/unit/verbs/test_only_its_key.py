# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends of the instance that has one's own key, and of no other (`only_key`). If these fail, a job of a CI that is
cancelled ends the board of another job, which its owner asked for by the same name.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, up, verb


@pytest.mark.parametrize(
    ("state", "given"),
    [
        ("absent", {}),
        ("stopped", {}),
        ("rebuilt", dict(fresh=True)),
        ("extended", dict(lease_hours=1)),
    ],
)
def test_a_board_with_another_key_is_refused_and_not_touched(site, state, given):
    """Lost: the board that another request got, with what runs on it."""
    up(site)
    there = site.what_is_there()
    result = verb(site, state, owner="jackie", only_key=OTHER_KEY, **given)
    assert "jackie: has another ssh key than only_key (SHA256:" in result["msg"], result["msg"]
    assert "leave it to who has that key" in result["msg"]
    assert site.what_is_there() == there
    if state == "absent":
        # a program is told that this fails each time it is asked
        assert (result["failure"]["refused"], "step" in result) == (True, False), result
        assert "another ssh key" in verb(site, state, owner="jackie", only_key="nonsense")["msg"]
        assert site.what_is_there() == there
        result = verb(site, state, owner="jackie", only_key=KEY.rpartition(" ")[0])
        assert not result.get("failed"), result
        assert site.record(0).claim is None


def test_of_several_those_with_the_key_are_meant(site):
    """Lost: the boards of a job that is over, as somebody else has one of its request; or the word that all went well.
    """
    several = dict(kind="board", instance="lab", count=2, timeout=10)
    assert not site.module("instance", **several, **REQUEST).get("failed")
    given = dict(kind="board", instance="lab", numbers=[2], timeout=10)
    assert not site.module("instance", **given, state="rebuilt", ssh_public_key=OTHER_KEY).get("failed")
    before = site.record(1)
    words = dict(kind="board", instance="lab", only_key=KEY, timeout=10)
    for state, more in (("extended", dict(lease_hours=1)), ("rebuilt", {}), ("stopped", {}), ("absent", {})):
        result = site.module("instance", **words, state=state, **more)
        assert not result.get("failed"), (state, result)
        assert "lab-2" not in [one["instance"] for one in result["instances"]], state
        assert site.record(1) == before, state
    assert site.record(0).claim is None
    result = site.module("instance", **words, state="absent")
    assert "lab-2: has another ssh key than only_key" in result["msg"], "none of them has it"
    assert site.record(1) == before
