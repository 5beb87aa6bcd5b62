# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for some of NAME-1 … NAME-N only. If these fail, a program that counts its instances by itself gets others
than it asked for, or ends those of somebody else's job.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop, Wait
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_request_steps import asked, claim, node


def part(number, board, **more):
    return claim(f"lab-{number}", board, request="lab", **more)


def test_find_has_the_asked_numbers_only():
    """Lost: the boards of all other jobs, ended with this one's."""
    answers = [node("p1", claims=[part(1, 0), part(5, 1)]), node("p2", claims=[part(2, 0)])]
    plan = request_steps.find(asked(numbers=[2, 5]), answers, [])
    assert {part["item"]: part["numbers"] for part in plan["parts"]} == {"p1": [5], "p2": [2]}


def test_find_takes_an_instance_of_the_name_itself_for_none_of_them():
    """Lost: an instance that is called as the request is."""
    plan = request_steps.find(asked(numbers=[2]), [node("p1", claims=[claim("lab")])], [])
    assert plan["parts"] == []


def test_choose_asks_for_the_missing_ones():
    """Lost: a slot for which another instance boots, and its own never."""
    answers = [node("p1", 1, claims=[part(1, 0), part(2, 1)]), node("p2", 2)]
    plan = request_steps.choose(asked(count=9, numbers=[2, 4, 7]), answers, [], {})
    assert {visit["item"]: visit["numbers"] for visit in plan["visits"]} == {"p1": [2], "p2": [4, 7]}


def test_as_many_as_numbers_are_wanted():
    """Lost: a request for two that is told it lacks seven."""
    request = asked(count=9, numbers=[2, 4])
    plan = request_steps.choose(request, [node("p1", 2)], [], {})
    said = {"p1": dict(instances=[dict(part(2, 0), state="power off"), dict(part(4, 1), state="power off")])}
    done = request_steps.claimed(request, [node("p1", 2)], plan, said, Wait())
    assert (done["placed"], done["text"], done["surplus"]) == (True, "", [])
    with_one = {"p1": dict(instances=[dict(part(2, 0), state="power off")])}
    again = request_steps.claimed(request, [node("p1", 2)], plan, with_one, Wait())
    assert (again["placed"], again["again"]) == (False, True)


@pytest.mark.parametrize(("numbers", "placed"), [([2], True), ([3], False)])
def test_another_owner_keeps_only_the_names_that_are_asked(numbers, placed):
    """Lost: a request that clashes with nobody, refused; or another owner's name, given."""
    answers = [node("p1", 2, claims=[claim("lab-3", 0, owner="ann")])]
    plan = request_steps.choose(asked(count=9, numbers=numbers), answers, [], {})
    assert bool(plan["visits"]) is placed


def test_settle_looks_at_these_numbers():
    """Lost: what a play beside this one has claimed of the same request, given back by this one."""
    request = asked(count=9, numbers=[2])
    answers = [node("p1", claims=[part(2, 0), part(3, 1)])]
    plan = dict(parts=[dict(item="p1", claims=[part(2, 0)])], before=[])
    settled = request_steps.settle(request, answers, plan, [])
    assert (settled["surplus"], settled["visits"], settled["moves"]) == ([], [], [])


def test_all_are_meant_without_numbers():
    """Lost: an end of all that a request has."""
    with pytest.raises(Stop, match="belongs to ann"):
        request_steps.find(asked(), [node("p1", claims=[part(1, 0), part(2, 1, owner="ann")])], [])
    plan = request_steps.find(asked(), [node("p1", claims=[part(1, 0), part(2, 1)])], [])
    assert plan["parts"][0]["numbers"] == [1, 2]
