# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that end for a request. If these fail, a site on which somebody always asks for too much never ends a check,
or plays choose a node for a board that it does not give.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import checked_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import nodes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owner_limits import Limit
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.reservations import RESERVATIONS
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.boards.work.test_board_queue import (
    boards,
    checked_board,
    present,
    proxy,
)
from ansible_collections.hetero.compute.tests.unit.boards.work.test_reserved_boards import hours_from_now

__all__ = ["proxy"]


@pytest.fixture
def ended(proxy, monkeypatch):
    """The boards whose checks end for a request, which has them at once."""
    found = []

    def end(proxy, request, could, count, deadline):
        those = [board.id for board in checked_boards.all_of(proxy, could)][:count]
        for board in those:
            proxy.store.release(board, None)
        found.extend(those)
        return bool(those)

    monkeypatch.setattr(checked_boards, "given_way", end)
    return found


@pytest.mark.parametrize(("had", "count", "partial"), [([0, 1], 2, False), ([0], 3, False), ([0, 1, 2], 1, True)])
def test_no_check_ends_for_who_would_lack_a_board_all_the_same(proxy, monkeypatch, ended, had, count, partial):
    """Lost: each check of a site where somebody asks again and again for more boards than there are."""
    claimed(proxy, "eve", [board for board in had if board != 2], made=False)
    if 2 in had:
        proxy.store.move(2, "error", "its fan")
    else:
        checked_board(proxy, monkeypatch, 2)
    with pytest.raises(NoneFree):
        present(proxy, count=count, partial=partial)
    assert ended == []


@pytest.mark.parametrize(("had", "count", "partial"), [([0, 1], 1, False), ([0], 2, False), ([0, 1], 5, True)])
def test_a_check_ends_for_who_has_all_with_its_board(proxy, monkeypatch, ended, had, count, partial):
    """Lost: a board for minutes, by a check that nobody waits for."""
    claimed(proxy, "eve", had, made=False)
    checked_board(proxy, monkeypatch, 2)
    assert boards(present(proxy, count=count, partial=partial))[-1] == 2
    assert ended == [2]


def test_no_check_ends_for_who_may_have_too_few(proxy, monkeypatch, ended):
    """Lost: the same, to an owner who asks for more than the site lets him have."""
    proxy.config.owner_limits["bob"] = Limit(2)
    claimed(proxy, "eve", [0], made=False, owner="bob")
    checked_board(proxy, monkeypatch, 2)
    with pytest.raises(NoneFree, match="1 of 2 boards"):
        present(proxy, count=2)
    assert ended == []


@pytest.mark.parametrize(("owner", "hours", "gets"), [("bob", None, []), ("bob", 1.0, [2]), ("ann", None, [2])])
def test_no_check_ends_for_whom_a_reservation_keeps_from_its_board(proxy, monkeypatch, ended, owner, hours, gets):
    """Lost: each check of a board that is reserved, to who asks for it again and again and may not have it."""
    course = dict(owner="ann", which=["2"])
    course.update({"from": hours_from_now(5), "until": hours_from_now(15)})
    object.__setattr__(proxy.config, "reservations", RESERVATIONS.read(dict(table=[course], flavors={}), "", []))
    claimed(proxy, "eve", [0, 1], made=False)
    checked_board(proxy, monkeypatch, 2)
    if gets:
        assert boards(present(proxy, owner=owner, lease_hours=hours)) == gets
    else:
        with pytest.raises(NoneFree, match="reserved for ann from"):
            present(proxy, owner=owner, lease_hours=hours)
    assert ended == gets


@pytest.mark.parametrize("living", [True, False])
def test_a_board_whose_check_was_killed_is_none_that_plays_can_have(proxy, monkeypatch, living):
    """Lost: a request, to the node that was chosen for this board, though another had a free one."""
    checked_board(proxy, monkeypatch, 2, living)
    board = information(proxy)["boards"][2]
    verdict = nodes.board_verdict(FLAVOR, board, "proxy1")
    assert (board["withheld"], verdict.room) == ((None, 1) if living else (checked_boards.KILLED, 0))
    assert verdict.busy == (() if living else (checked_boards.KILLED,))


def test_nobody_waits_on_for_a_check_that_is_killed_meanwhile(proxy, monkeypatch):
    """Lost: a minute and a half, where nothing frees the board meanwhile."""
    checked_board(proxy, monkeypatch, 2)
    looks = iter([True, True, True])  # who gives way; twice while the request waits
    monkeypatch.setattr(checked_boards.locks, "held_by_another", lambda folder, name: next(looks, False))
    deadline = Deadline(60)
    assert not checked_boards.given_way(proxy, "jackie", [proxy.board(2)], 1, deadline)
    assert deadline.left > 30
