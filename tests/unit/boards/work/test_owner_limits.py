# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of owners, in the claim and in the queue. If these fail, one user has all boards of a site whose operator said
how many each may have, or a user who has fewer is refused.

Tests claims/owner_limits.py.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import checked_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.owner_limits import limits_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed
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
    why = f"ann has 2 boards of {THIS_NODE}, and may have 2 at once: lab-1, lab-2"
    assert str(error.value).splitlines()[1:] == [
        "  board0: claimed for lab-1 since 0 s",
        f"  board1: {why}",
        "  board2: claimed for lab-2 since 0 s",
    ]
    assert error.value.facts["unfit"] == {}, "it can be had once one of these has ended"
    assert boards(present(limited, "jackie", owner="bob")) == [1]


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
    found, begin = [], threading.Barrier(2)

    def ask(name):
        with node.proxy() as proxy:
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


def test_without_a_limit_there_is_none(node):
    """Lost: boards of a site whose operator set none."""
    with node.proxy() as proxy:
        assert limits_of(proxy).may_have("ann") is None
        node.image()
        assert boards(present(proxy, "lab", owner="ann", count=3)) == [0, 1, 2]


@pytest.mark.parametrize("wrong", ["4", -1, None, "many"])
def test_a_limit_is_a_number(node, wrong):
    """Lost: the limit itself, to a mistake that nobody is told."""
    node.config["owner_limits"] = {"ann": wrong}
    if wrong == "4":
        with node.proxy() as proxy:
            assert limits_of(proxy).most_of("ann") == 4
        return
    with pytest.raises(HeteroError, match=r"owner_limits\.ann: is .*: give a whole number of 0 or more"), node.proxy():
        pass
