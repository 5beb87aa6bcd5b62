# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards files just at and just beyond what is taken; all else of them is in test_boards_file.py."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import (
    BoardsFileError,
    parse,
    read,
    render,
    write,
)

LINE = '0 10.0.2.1 00:1a:ca:00:57:90 10 16218 917 476 1 tilera_hv 1 {"arch":"TILEPro64"}'


def places(text):
    with pytest.raises(BoardsFileError) as caught:
        parse(text, "f")
    return [(line, column, reason) for _source, line, column, reason in caught.value.defects]


def test_a_written_file_says_what_its_columns_are():
    """Lost: which number is the memory, for whoever edits the file by hand."""
    sizes = "vcpus memory_mb local_gb memory_mb_used local_gb_used"
    assert render([]) == f"# id ip mac {sizes} hypervisor_type hypervisor_version cpu_info\n"


@pytest.mark.parametrize("name", ["Xen", "XX", "x"])
def test_any_word_may_be_a_hypervisors_name(name):
    """Lost: all boards, for a hypervisor whose name begins as no board's of ours does."""
    assert parse(LINE.replace("tilera_hv", name))[0].hypervisor_type == name


def test_a_board_is_where_its_first_column_stands():
    """Lost: the line to look at, for who is told of a board."""
    (board,) = parse("\n" + LINE.replace(" ", " \\\n", 1))
    assert board.line == 2
    assert boards_file.Board(**{**vars(board), "line": 0}) == board
    fields = {key: value for key, value in vars(board).items() if key != "line"}
    assert boards_file.Board(**fields).line == 0, "of one that stands in no file"


@pytest.mark.parametrize(
    ("character", "reason"),
    [
        ("\udc7f", "U+DC7F is not UTF-8"),
        ("\udc80", "byte 0x80 is not UTF-8"),
        ("\udcff", "byte 0xff is not UTF-8"),
        ("\udd00", "U+DD00 is not UTF-8"),
    ],
)
def test_a_byte_that_is_no_text_is_named_as_it_lies_in_the_file(character, reason):
    """Lost: what to look for in an editor that shows bytes."""
    assert places(f"# {character}") == [(1, 3, reason)]


def test_only_a_token_longer_than_a_line_is_cut():
    """Lost: the last digit of what is wrong, or a screen to what stands where a number should."""
    fits, longer = "9" * 60, "9" * 61
    assert places(LINE.replace(" 917 ", f" {fits} "))[0][2] == f"local_gb is not a whole number: '{fits}'"
    assert places(LINE.replace(" 917 ", f" {longer} "))[0][2] == f"local_gb is not a whole number: '{fits}...'"


@pytest.mark.parametrize(("number", "good"), [("9" * 15, True), ("9" * 16, False)])
def test_the_largest_number(number, good):
    """Lost: a number that another program reads as another one."""
    text = LINE.replace(" 917 ", f" {number} ")
    if good:
        assert parse(text)[0].local_gb == int(number)
    else:
        assert "is not a whole number" in places(text)[0][2]


def test_columns_of_a_board_that_is_cut_off_are_checked_where_they_are_all_there():
    """Lost: a run for each mistake; or a column that is said to be wrong for one that is missing before it."""
    columns = LINE.rpartition(" ")[0].replace("00:1a", "zz")
    cut = "a backslash at the end of the file: the line that it announces is missing"
    wrong = "mac is not a MAC address: 'zz:ca:00:57:90'"
    assert places(columns + " \\\n") == [(1, 12, wrong), (1, len(columns) + 2, cut)]
    fewer = columns.rpartition(" ")[0]
    assert places(fewer + " \\\n") == [(1, len(fewer) + 2, cut)]
    assert places(columns + " more more \\\n") == [(1, len(columns) + 12, cut)]


def test_lines_may_end_as_on_windows():
    """Lost: all boards of a file that went over on, as the sample does, for the editor that saved it."""
    text = "\n\n" + LINE.replace(" {", " \\\n {")
    assert parse(text.replace("\n", "\r\n")) == parse(text)
    assert parse(text.replace("\n", "\r\n"))[0].line == 3
    assert places(text.replace("\n", "\r\n").replace("917", "x"))[0][:2] == (3, 39)


@pytest.mark.parametrize("more", [0, 1])
def test_a_line_is_as_wide_as_the_samples(more):
    """Lost: the sample's own lines, each of which would show as changed in a site's repository."""
    first = '{"a":"' + "x" * (78 - 6 - 2 - 6 + more) + '",'
    board = replace(parse(LINE)[0], cpu_info=json.loads(first + '"b":1}'))
    lines = render([board]).splitlines()[2:]
    whole = first + '"b":1}'
    assert lines == ([whole] if not more else [f"{first} \\", '"b":1}'])
    assert max(map(len, lines)) <= 80


def test_a_file_is_written_as_the_sample_is_and_everybody_may_read_it(tmp_path):
    """Lost: what in.tftpd and people must read; or the sample's spelling."""
    path = tmp_path / "tilera_boards"
    write(path, parse(LINE))
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_text().splitlines()[1:] == [
        LINE.rpartition(" ")[0].replace("ca", "CA").replace("1a", "1A") + " \\",
        '{"arch":"TILEPro64"}',
    ]
    assert read(path) == parse(LINE)
