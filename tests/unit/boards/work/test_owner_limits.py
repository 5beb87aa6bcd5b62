# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of owners, in the claim and in the queue. If these fail, one user has all boards of a site whose operator said
how many each may have, or a user who has fewer is refused.

Tests claims/owner_limits.py.
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_leases, checked_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.owner_limits import limits_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.boards.work.test_board_queue import (
    boards,
    checked_board,
    present,
    wait,
)


@pytest.fixture
def limited(node):
    """A proxy with three boards, of which each owner may have two, ci all, and eve none."""
    node.image()
    node.config["owner_limits"] = {"*": 2, "ci": 3, "eve": 0}
    with node.proxy() as opened:
        yield opened


def test_an_owner_gets_no_more_than_its_limit(limited):
    """Lost: the boards of all others, to one user; or what that user has, to whom it does not say why."""
    claimed(limited, "lab", [0, 2], made=False, owner="ann")
    with pytest.raises(NoneFree) as error:
        present(limited, "jackie", owner="ann")
    why = f"ann has 2 boards of {THIS_NODE}, and may have 2 at once: lab-1, lab-2; "
    why += "end one of these first, or wait for its end"
    assert str(error.value).splitlines()[1:] == [
        "  board0: claimed for lab-1 since 0 s",
        f"  board1: {why}",
        "  board2: claimed for lab-2 since 0 s",
    ]
    assert error.value.facts["unfit"] == {}, "it can be had once one of these has ended"
    assert boards(present(limited, "jackie", owner="bob")) == [1]


def test_a_name_that_is_typed_in_another_way_has_no_more(limited):
    """Lost: what a limit is for, to a letter with an accent, which is one character or two."""
    claimed(limited, "lab", [0, 2], made=False, owner="Jos\u00e9")
    with pytest.raises(NoneFree, match="may have 2 at once"):
        present(limited, "jackie", owner="Jose\u0301")


def test_what_an_owner_has_is_its_own_also_over_the_limit(limited):
    """Lost: the second run of a play, and a limit that can be set while people work."""
    lab = claimed(limited, "lab", [0, 1, 2], made=False, owner="ann")
    assert boards(present(limited, "lab", owner="ann", count=3)) == [0, 1, 2]
    limited.store.move(0, "booting")
    limited.store.move(0, "error", "stalled at tftp")
    limited.store.release(1, lab[1])
    moved = present(limited, "lab", owner="ann", count=3, numbers=(1,), move=True)
    assert boards(moved) == [1]


def test_an_instance_that_moves_takes_no_others_with_it(limited, node):
    """Lost: the limit, and the board that is held for who waits, to each request for a part one of whose boards fails.
    """
    limited.boards[3] = replace(limited.boards[2], id=3, ip="10.0.2.4", mac="00:1a:ca:00:57:93")
    claimed(limited, "lab", [0, 1], made=False, owner="ann")
    limited.store.move(0, "booting")
    limited.store.move(0, "error", "stalled at tftp")
    moved = present(limited, "lab", owner="ann", count=4, partial=True, move=True)
    assert boards(moved) == [2, 1]
    assert boards(present(limited, "jackie", owner="bob")) == [3]


@pytest.mark.parametrize(("owner", "count", "text"), [
    ("ann", 3, f"ann may have 2 boards of {THIS_NODE} at once"),
    ("eve", 1, f"eve may have no boards of {THIS_NODE} at once"),
])  # fmt: skip
def test_more_than_the_limit_is_never_there(limited, owner, count, text):
    """Lost: an hour of waiting for what cannot be."""
    with pytest.raises(NoneFree, match=text) as error:
        present(limited, "lab", owner=owner, count=count)
    assert sorted(error.value.facts["unfit"]) == ["board0", "board1", "board2"]


def test_a_part_is_given_up_to_the_limit(limited):
    """Lost: what is left to an owner of the rest of a request that several nodes share."""
    assert boards(present(limited, "lab", owner="ann", count=3, partial=True)) == [0, 1]
    with pytest.raises(NoneFree, match="eve may have no boards"):
        present(limited, "own", owner="eve", count=3, partial=True)
    assert boards(present(limited, "test", owner="ci")) == [2]


def test_of_two_claims_at_once_one_is_over_the_limit(limited, node):
    """Lost: the limit, to who asks twice at the same moment."""
    claimed(limited, "lab", [0], made=False, owner="ann")
    found, begin, opening = [], threading.Barrier(2), threading.Lock()

    def ask(name):
        with opening:  # it writes proxy.json
            opened = node.proxy()
        with opened as proxy:
            begin.wait(30)
            try:
                found.append(boards(present(proxy, name, owner="ann")))
            except NoneFree as none:
                found.append("may have 2 at once" in str(none))

    asking = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
    for one in asking:
        one.start()
    for one in asking:
        one.join(60)
    assert sorted(map(str, found)) == ["True", "[1]"]


def test_nothing_is_held_for_who_may_not_have_it(limited, node):
    """Lost: a board that stays idle, for who has as many as it may."""
    claimed(limited, "lab", [0, 1], made=False, owner="ann")
    place = wait(node, "more", owner="ann")
    assert (place["may"], place["held"], place["steps"]) == (0, 0, [])
    assert boards(present(limited, "jackie", owner="bob")) == [2]
    limited.store.release(2, limited.store.record(2).claim)
    limited.store.release(1, limited.store.record(1).claim)
    assert wait(node, "more", owner="ann")["may"] == 1, "it kept its place"
    again = wait(node, "further", owner="ann", asked=200.0)
    assert (again["may"], again["held"]) == (0, 0), "what it may yet have is its first request's"
    assert boards(present(limited, "jackie", owner="bob")) == [2]
    assert boards(present(limited, "more", owner="ann", asked=100.0)) == [1]


def test_no_check_ends_for_who_may_have_no_more(limited, monkeypatch):
    """Lost: a check of minutes, for nothing."""
    claimed(limited, "lab", [0, 1], made=False, owner="ann")
    checked_board(limited, monkeypatch, 2)
    monkeypatch.setattr(checked_boards, "given_way", lambda proxy, request, could, count, deadline: bool(could))
    with pytest.raises(NoneFree, match="its health is being checked"):
        present(limited, "jackie", owner="ann")


@pytest.mark.parametrize(("written", "asks"), [("jos\u00e9", "jose\u0301"), ("jose\u0301", "jos\u00e9")])
def test_an_accent_is_typed_in_two_ways(node, written, asks):
    """Lost: the limit, to a keyboard that types an accent as a character of its own, which nobody sees."""
    node.image()
    node.config["owner_limits"] = {written: 1}
    with node.proxy() as proxy:
        assert boards(present(proxy, "one", owner=asks)) == [0]
        with pytest.raises(NoneFree, match="may have 1 at once"):
            present(proxy, "two", owner=asks)


def test_flavors_have_limits_of_their_own(node):
    """Lost: the few large boards of a site, to one user who may have many small ones."""
    node.image()
    node.config["owner_limits"] = {"*": {"nodes": 2, "flavors": {FLAVOR["name"]: 1, "other": 0}}}
    with node.proxy() as proxy:
        present(proxy, "one", owner="ann")
        why = f"ann has 1 board of {THIS_NODE} with flavor {FLAVOR['name']}, and may have 1 at once: one; "
        why += "end it first, or wait for its end"
        with pytest.raises(NoneFree, match=re.escape(why)):
            present(proxy, "two", owner="ann")
        with pytest.raises(NoneFree, match=f"ann may have no boards of {THIS_NODE} with flavor other at once"):
            present(proxy, "two", owner="ann", flavor=dict(FLAVOR, name="other"))
        assert wait(node, "two")["may"] == 0
        assert wait(node, "free", flavor=dict(FLAVOR, name="free"), asked=200.0)["may"] == 1
        assert wait(node, "third", flavor=dict(FLAVOR, name="free"), asked=300.0)["may"] == 0, "free has the last one"
        present(proxy, "free", owner="ann", flavor=dict(FLAVOR, name="free"))
        with pytest.raises(NoneFree, match=r"ann has 2 boards of .*, and may have 2 at once: free, one"):
            present(proxy, "third", owner="ann", flavor=dict(FLAVOR, name="free"))


def test_a_lease_is_no_longer_than_its_owner_may_have(node):
    """Lost: a board, to who keeps it for a year; or one that is there already, to a limit that is set later."""
    node.image()
    with node.proxy() as proxy:
        present(proxy, "old", owner="ann")
    node.config["owner_limits"] = {"*": {"hours": 8}, "ci": {"hours": 0.5}}
    with node.proxy() as proxy:
        assert boards(present(proxy, "old", owner="ann")) == [0]
        for hours in (None, 8.5):
            with pytest.raises(NoneFree, match=r"ann may have boards of .* for 8 h: give -e hours=8 or less") as error:
                present(proxy, "two", owner="ann", lease_hours=hours)
            assert sorted(error.value.facts["unfit"]) == ["board0", "board1", "board2"], "no wait helps"
        assert boards(present(proxy, "two", owner="ann", lease_hours=8)) == [1]
        assert boards(present(proxy, "job", owner="ci", lease_hours=0.5)) == [2]

        def extended(name, hours):
            (one,) = board_leases.extend(proxy, Instances(name), hours, Change(False), Deadline(60))["boards"]
            return one.get("error", "")

        assert extended("job", 1).startswith("job: is ci's, who may have it for 0.5 h from now: ")
        assert "-e hours=8 is possible" in extended("two", 0)
        assert extended("two", 2) == extended("old", 9) == ""


def test_without_a_limit_there_is_none(node):
    """Lost: boards of a site whose operator set none."""
    with node.proxy() as proxy:
        assert limits_of(proxy).may_have("ann") is None
        node.image()
        assert boards(present(proxy, "lab", owner="ann", count=3)) == [0, 1, 2]


@pytest.mark.parametrize(("wrong", "text"), [
    ({"nodes": -1}, r"owner_limits\.ann\.nodes: is -1: give a whole number"),
    ({"hours": 0}, r"owner_limits\.ann\.hours: is 0: give a number from 0\.01 to 87600"),
    ({"flavors": {"tp64": "many"}}, r"owner_limits\.ann\.flavors\.tp64: is \"many\": give a whole number"),
    ({"node": 1}, r"owner_limits\.ann, key: is \"node\": give nodes or hours or flavors"),
])  # fmt: skip
def test_the_parts_of_a_limit_are_checked(node, wrong, text):
    """Lost: the limit itself, to a mistake that nobody is told."""
    node.config["owner_limits"] = {"ann": wrong}
    with pytest.raises(HeteroError, match=text), node.proxy():
        pass


@pytest.mark.parametrize("wrong", ["4", -1, None, "many"])
def test_a_limit_is_a_number(node, wrong):
    """Lost: the limit itself, to a mistake that nobody is told."""
    node.config["owner_limits"] = {"ann": wrong}
    if wrong == "4":
        with node.proxy() as proxy:
            assert limits_of(proxy).of("ann").nodes == 4
        return
    with pytest.raises(HeteroError, match=r"owner_limits\.ann: is .*: give a whole number of 0 or more"), node.proxy():
        pass
