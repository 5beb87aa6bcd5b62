# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes said, read from Ansible's variables. If these fail, a node that could not be asked counts as one that has
nothing.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import heard

CLAIMS = dict(claims=[])


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        (dict(_asked=dict(CLAIMS, item="another")), dict(CLAIMS, item="p1")),
        (dict(_asked=heard.packed(dict(CLAIMS, item="another"))), dict(CLAIMS, item="p1")),
        (dict(_asked=dict(unreachable=True, msg="x")), dict(unreachable=True, msg="x", item="p1")),
        ({}, dict(msg="was not asked", item="p1")),
        (dict(_asked=dict(skipped=True)), dict(msg="was not asked", item="p1")),
        (dict(_asked={}), dict(msg="was not asked", item="p1")),
    ],
)
def test_each_node_has_an_answer(variables, answer):
    """Lost: that one of them has none; or whose answer it is, to a node that says another's name."""
    assert heard.answers({"p1": variables, "p2": {}}, ["p1"]) == [answer]


def test_answers_come_in_the_order_of_the_nodes():
    """Lost: the inventory's order, by which equal nodes are asked."""
    said = {name: dict(_asked=CLAIMS) for name in ("p1", "p2", "p3")}
    assert [one["item"] for one in heard.answers(said, ["p3", "p1"])] == ["p3", "p1"]


@pytest.mark.parametrize("results", [dict(changed=False, claims=[]), "claims", [dict(CLAIMS, item="p1")], dict(p1=1)])
def test_what_is_no_mapping_of_answers_is_left_as_it_is(results):
    """Lost: what a user is told who gives a filter something else."""
    assert heard.listed(results) is results


def test_answers_by_node_are_those_of_a_loop():
    """Lost: whose answer it is, to a node that says another's name."""
    answers = dict(p2=dict(CLAIMS, item="p1"), p1=dict(msg="no route"), p3=heard.packed(CLAIMS))
    told = [dict(CLAIMS, item="p2"), dict(msg="no route", item="p1"), dict(CLAIMS, item="p3")]
    assert heard.listed(answers) == told
    assert heard.listed({}) == []


@pytest.mark.parametrize("given", [None, "x", [dict(name="board0")], dict(p1=None), dict(p1=CLAIMS)])
def test_what_did_not_come_as_a_text_is_seen_as_it_is(given):
    """Lost: what a user gives to the filters, who asks nodes by the modules themselves."""
    assert heard.seen(given) == given
    assert heard.seen(dict(p1=dict(heard.packed(CLAIMS), error=None))) == dict(p1=CLAIMS)


def test_what_is_packed_is_json_to_everyone():
    """Lost: status as JSON, of all nodes, to a number of one node that programs do not read."""
    text = heard.packed(dict(odd=[float("nan"), float("inf"), -float("inf"), 1.5]))["packed"]
    assert json.loads(text, parse_constant=pytest.fail) == dict(odd=["NaN", "Infinity", "-Infinity", 1.5])


def test_what_a_node_did():
    """Lost: that a claim on the only node failed; the task of the claim says of itself that it did not."""
    done = dict(instances=[], failed=False)
    said = dict(done, failed_when_result=False, failed_when_suppressed_exception="x")
    assert heard.done({"p1": dict(_done=said)}, "p1") == done
    assert heard.done({"p1": {}}, "p1") == {}


@pytest.mark.parametrize(
    ("msg", "words"),
    [
        ("Task failed: no route", "no route"),
        (" no route\n", "no route"),
        ("closed by remote host\r\nConnection closed\r\n", "closed by remote host\nConnection closed"),
        ("", "failed without a word"),
        (None, "failed without a word"),
        (["no"], "['no']"),
        (5, "5"),
    ],
)
def test_why_a_task_failed(msg, words):
    assert heard.words_of(dict(msg=msg)) == words
    assert heard.words_of({}) == "failed without a word"


DOWN = dict(unreachable=True, msg="Task failed: no route")


@pytest.mark.parametrize(
    ("results", "without", "why"),
    [
        ([], [], ""),
        ([dict(CLAIMS, item="p1")], [], ""),
        (
            [dict(DOWN, item="p1"), dict(CLAIMS, item="p2"), dict(DOWN, item="p3")],
            ["p9"],
            "p1, p3 cannot be asked, and may hold jackie: no route. Mend that, or leave it out: -e without=p9,p1,p3",
        ),
        (
            [dict(item="p1", msg="Task failed: Timed out after 20 second(s).", timedout=dict(period=20))],
            [],
            "p1 cannot be asked, and may hold jackie: Timed out after 20 second(s). Mend that, or leave it out: "
            "-e without=p1",
        ),
        ([dict(item="p1", msg="no database"), dict(item="p2")], [], "p1: no database; p2: failed without a word"),
        (
            [dict(DOWN, item="p1"), dict(item="p2", msg="no database")],
            [],
            "p2: no database; p1 cannot be asked, and may hold jackie: no route. Mend that, or leave it out: "
            "-e without=p1",
        ),
    ],
)
def test_who_was_not_asked_and_why(results, without, why):
    """Lost: the nodes to mend, or the words that leave them out; of two faults one, until the other one is mended."""
    assert heard.unasked(results, "jackie", without) == why
    assert heard.unasked(iter(results), "jackie", iter(without)) == why
