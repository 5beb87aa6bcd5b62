# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file that is there, as a person may have changed it since. If these fail, a board gets another number, and
with it the claim, the root and the proof of a wipe that the proxy node keeps for another machine.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving import existing_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.existing_boards import ExistingBoards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.source_site import Board, Site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file

A, B, C = (f"00:1a:ca:00:58:9{digit}" for digit in "abc")


def line(number, mac):
    """A board as its file has it."""
    return boards_file.Board(number, f"10.0.2.{number}", mac, 64, 8192, 0, 0, 0, "tilera", "1", {"arch": "tilepro64"})


def site(**macs):
    """A site that has these boards, by name: MAC."""
    found = Site()
    for name, mac in macs.items():
        board = Board(name, "boards.csv")
        board.take("mac", mac)
        found.boards.append(board)
    return found


def given(there, **macs):
    """{name: number} of a site's boards, None for one that gets the next number."""
    found = site(**macs)
    there.keep(found)
    return {board.name: board.said.get("id") for board in found.boards}


@pytest.mark.parametrize("gone", [{}, {9: A}, {9: A, 2: B}, {2: B, 9: A}, {0: A, 2: B}])
def test_the_row_that_is_there_counts_more_than_a_remark(gone):
    """Lost: the instance on board 2, whose row a person wrote under a number that another had, below remarks that tell
    of both.
    """
    assert given(ExistingBoards([line(2, A)], gone), jackie=A, other=C) == {"jackie": 2, "other": None}


def test_a_board_that_comes_back_has_its_number():
    """Lost: what the proxy node keeps of a board whose row was left out for a while."""
    assert given(ExistingBoards([line(2, A)], {7: B}), jackie=A, back=B) == {"jackie": 2, "back": 7}


def test_what_the_file_says_is_kept_beside_what_a_source_asks():
    """Lost: the row's own columns, where a source has only names and MACs."""
    there, found = ExistingBoards([line(2, A)]), site(jackie=A, new=B)
    there.keep(found)
    assert [board.before for board in found.boards] == [line(2, A), None]


def test_a_number_that_is_asked_is_not_answered_by_the_file():
    """Lost: a question that a person was to decide: two sources call one board by two numbers."""
    there, found = ExistingBoards([line(2, A)]), site(jackie=A)
    found.boards[0].ask("id", "two numbers")
    there.keep(found)
    assert "id" not in found.boards[0].said
    assert found.notes == []


@pytest.mark.parametrize(("number", "notes"), [(2, 0), (5, 1)])
def test_a_number_by_a_word_stays_and_is_told_where_it_is_another(number, notes):
    """Lost: a warning, before a tenant's root is looked for at another board."""
    there, found = ExistingBoards([line(2, A)]), site(jackie=A)
    found.boards[0].take("id", number)
    there.keep(found)
    assert found.boards[0].said["id"] == number
    assert [f"jackie was board2, and is board{number} by its id" in note for note in found.notes] == [True] * notes


def test_remarks_are_read_as_they_are_written(tmp_path):
    """Lost: a number that went is given to another machine, by the second run."""
    there = ExistingBoards([line(2, A), line(3, B)], {7: C})
    lines = [line(3, B)]
    path = tmp_path / "boards"
    path.write_text(boards_file.render(lines) + there.remarks(lines))
    read = existing_boards.read(str(path))
    assert ([one.id for one in read.boards], read.gone) == ([3], {7: C, 2: A})
    assert read.remarks(lines) == there.remarks(lines) != ""
    assert existing_boards.read(str(tmp_path / "none")) == ExistingBoards()


def test_whose_number_another_had_is_told():
    """Lost: the refusal to leave the wiring of numbers as it is, whose boards are others now."""
    there = ExistingBoards([line(2, A)], {7: C})
    assert there.passed_on([line(2, A), line(8, B)]) == []
    assert there.passed_on([line(2, B), line(7, A)]) == ["board2", "board7"]


def test_who_is_left_out_is_told_by_what_is_missing():
    """Lost: which of two is to be done: to add to the source, or to answer a question."""
    there = ExistingBoards([line(2, A), line(3, B), line(4, C)])
    told = list(there.left_out(site(jackie=A, half=B), [line(2, A)]))
    assert told == [
        "the boards file has board3, of which the source has not all that is needed: "
        "left out, and no other board gets that number",
        "the boards file has board4, which no source has: left out, and no other board gets that number",
    ]
    assert list(there.left_out(site(), [line(2, A), line(3, B), line(4, C)])) == []
