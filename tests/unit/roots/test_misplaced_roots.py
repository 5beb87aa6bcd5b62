# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots in the place of another board than their claim's. If these fail, the only root of an instance is removed with
the board in whose place a person put it.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import misplaced_roots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.misplaced_roots import (
    misplaced,
    misplaced_of,
    refuse_to_remove,
)


def claim(instance, board, created=5.0):
    one = SimpleNamespace(instance=instance, board=board, created=created)
    one.is_same = lambda other: bool(other) and (other.instance, other.created) == (instance, created)
    return one


EVE = claim("eve", 1)
EVES = "eve 5.0"


class Place:
    """A root in a board's place: the claim that its made.json names, None for no root."""

    def __init__(self, token, folder):
        self.folder, self._token, self.is_asked = folder, token, False

    def made(self):
        return SimpleNamespace(claim=self._token) if self._token else None

    def must_be_removable(self, *_given):
        self.is_asked = True


@pytest.fixture
def node(monkeypatch, tmp_path):
    """A function that makes a proxy node of {(board, boot source): whose root lies there} and its claims, each with its
    record, or with those of `kept` alone.
    """

    def make(there, *claims, kept=None, ended=(), read=None):
        places, records = {}, [SimpleNamespace(claim=one) for one in (claims if kept is None else kept)]

        def place(_proxy, board, source="nfs"):
            return places.setdefault((board, source), Place(there.get((board, source)), str(tmp_path / f"fs_{board}")))

        by_board = {one.board: one for one in claims}
        store = SimpleNamespace(
            claims=lambda: list(claims),
            kept=read or (lambda board: next((one for one in records if one.claim.board == board), None)),
            kept_anywhere=lambda: [("path", one) for one in records],
            record=lambda board: SimpleNamespace(claim=by_board.get(board)),
            has_ended=lambda one: one.instance in ended,
        )
        monkeypatch.setattr(misplaced_roots, "files_of_board", place)
        monkeypatch.setattr(misplaced_roots, "root_of_board", place)
        monkeypatch.setattr(misplaced_roots, "disk_of_board", lambda proxy, board: place(proxy, board, "disk"))
        lying = [
            (board, str(tmp_path / f"fs_{board}"), Place(token, "").made()) for (board, _kind), token in there.items()
        ]
        monkeypatch.setattr(misplaced_roots, "roots_there", lambda _state: lying)
        return SimpleNamespace(store=store, config=SimpleNamespace(state_folder=str(tmp_path))), places

    return make


@pytest.mark.parametrize("source", ["nfs", "disk"])
@pytest.mark.parametrize("known", ["database", "record"])
def test_the_only_root_of_another_board_is_not_removed(node, tmp_path, source, known):
    """Lost: eve's root, which a person put into the place of board 3, with whatever is removed there."""
    proxy, places = node({(3, source): EVES}, *([EVE] if known == "database" else []), kept=[EVE])
    with pytest.raises(Refused) as refused:
        refuse_to_remove(proxy, 3, None)
    assert str(refused.value).startswith(f"{tmp_path}/fs_3: is the root of eve, who has board1, and none of that claim")
    assert f"mv -T {tmp_path}/fs_3 {tmp_path}/fs_1" in str(refused.value)
    assert "look whose" not in str(refused.value)
    assert not any(place.is_asked for place in places.values())
    (tmp_path / "fs_1").mkdir()
    assert f"look whose {tmp_path}/fs_1 is, and put it anywhere out" in str(misplaced(proxy, 3))


def test_where_something_of_the_claim_lies_in_its_own_place_this_is_a_copy(node):
    """Lost: each end of board 3's instance, to a copy of eve's root that a person left there."""
    proxy, places = node({(3, "nfs"): EVES, (1, "nfs"): EVES}, EVE)
    assert misplaced(proxy, 3) is None
    refuse_to_remove(proxy, 3, None)
    assert places[3, "nfs"].is_asked
    assert places[3, "disk"].is_asked, "what the removal would take besides is asked, too"
    proxy, _places = node({(3, "nfs"): EVES, (1, "nfs"): "bob 1.0"}, EVE)
    assert misplaced(proxy, 3) is not None, "what lies in its place is another's"


def test_a_root_of_nobody_or_of_the_board_itself_is_not_misplaced(node):
    """Lost: each end, to roots that are where they belong, or whose claim is over."""
    own, newer = claim("eve", 3), claim("eve", 1, created=6.0)
    assert misplaced(node({(3, "nfs"): EVES}, own)[0], 3) is None
    assert misplaced(node({(3, "nfs"): EVES})[0], 3) is None
    assert misplaced(node({}, EVE)[0], 3) is None
    assert misplaced(node({(3, "nfs"): EVES}, newer)[0], 3) is None, "that claim ended, and the name was claimed anew"
    assert misplaced(node({(3, "nfs"): EVES}, kept=[EVE], ended=["eve"])[0], 3) is None
    assert misplaced(node({(3, "nfs"): EVES}, kept=[EVE])[0], 3) is not None, "the database may be older"


def test_an_instance_without_a_root_is_told_where_it_lies(node, tmp_path):
    """Lost: eve's root, for a new one is made in its place."""
    proxy, _places = node({(3, "nfs"): EVES, (2, "nfs"): "bob 1.0"}, EVE)
    assert misplaced_of(proxy, EVE).thing == f"{tmp_path}/fs_3"
    assert misplaced_of(proxy, claim("bob", 2, created=1.0)) is None
    assert misplaced_of(proxy, claim("eve", 1, created=6.0)) is None


def test_a_root_that_its_instance_has_moved_to_is_put_nowhere(node, tmp_path):
    """Lost: the one root that two boards boot from. The database is older than eve's move to board 3."""
    proxy, _places = node({(3, "nfs"): EVES}, EVE, kept=[claim("eve", 3), claim("bob", 3)])
    for found in (misplaced(proxy, 3), misplaced_of(proxy, EVE)):
        assert str(found).startswith(f"{tmp_path}/fs_3: board3 is eve's by the record of its claim, though the data")
        assert "database has it on board1: nothing is touched: the database may be older" in str(found)
        assert "mv -T" not in str(found)
    with pytest.raises(Refused):
        refuse_to_remove(proxy, 3, None)
    proxy, _places = node({(3, "nfs"): EVES}, EVE, kept=[EVE, claim("eve", 3, created=6.0)])
    assert "mv -T" in str(misplaced(proxy, 3)), "that record is another claim's"


def test_a_root_is_put_nowhere_of_whose_move_no_record_tells(node, tmp_path):
    """Lost: the same, where the record that the move wrote is damaged, or gone; the move has removed the one before."""
    proxy, _places = node({(3, "nfs"): EVES}, EVE, kept=[claim("bob", 1)])
    for found in (misplaced(proxy, 3), misplaced_of(proxy, EVE)):
        assert str(found).startswith(f"{tmp_path}/fs_3: board3 may be eve's since a move: its root lies there")
        assert "mv -T" not in str(found)
        assert "put it back once that board is off" in str(found)
    with pytest.raises(Refused):
        refuse_to_remove(proxy, 3, None)


def test_a_root_is_put_nowhere_while_its_boards_record_cannot_be_read(node):
    """Lost: the same, where that record is damaged: it may be eve's, who may run from there."""

    def read(_board):
        raise HeteroError("what it says of a claim cannot be read", "/claims/board3.json", "correct it")

    proxy, _places = node({(3, "nfs"): EVES}, EVE, read=read)
    for found in (misplaced(proxy, 3), misplaced_of(proxy, EVE)):
        assert str(found).endswith("fs_3: /claims/board3.json: what it says of a claim cannot be read: correct it")
