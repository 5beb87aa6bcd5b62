# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file: what is read, what is refused with which place and reason, and what is written back."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import (
    Board,
    BoardsFileError,
    geometry,
    parse,
    read,
    render,
    write,
)

SAMPLE = Path(__file__).parents[3] / "roles" / "lab" / "files" / "tilera_boards"
LINE = '0 10.0.2.1 00:1A:CA:00:57:90 10 16218 917 476 1 tilera_hv 1 {"arch":"TILEPro64"}'


def line(**changed):
    """A good board's line with some columns changed."""
    columns = dict(zip(boards_file.COLUMNS, LINE.split()))
    return " ".join(str(value) for value in dict(columns, **changed).values())


def defects(text):
    with pytest.raises(BoardsFileError) as caught:
        parse(text, "f")
    return [(line, column, reason) for _source, line, column, reason in caught.value.defects]


def test_blueprints_sample_is_read():
    """The blueprint's own file must be usable as it is, board 9's other size included."""
    boards = read(SAMPLE)
    assert [board.id for board in boards] == list(range(10))
    assert boards[0] == Board(
        id=0,
        ip="10.0.2.1",
        mac="00:1a:ca:00:57:90",
        vcpus=10,
        memory_mb=16218,
        local_gb=917,
        memory_mb_used=476,
        local_gb_used=1,
        hypervisor_type="tilera_hv",
        hypervisor_version="1",
        cpu_info=boards[9].cpu_info,
    )
    assert (boards[0].name, boards[0].arch, boards[0].geometry, boards[0].line) == ("board0", "TILEPro64", "8x8", 2)
    assert (boards[9].memory_mb, boards[9].local_gb, boards[9].local_gb_used, boards[9].line) == (16385, 1000, 0, 38)


def test_boards_may_be_members_of_a_set():
    """Whoever sorts boards by what they share (a driver, a PDU) would get a traceback for their cpu_info."""
    assert len({read(SAMPLE)[0], read(SAMPLE)[0]}) == 1


def test_sample_is_written_back_as_it_stands():
    """Rewriting a site's file would otherwise show each of its lines as changed."""
    written = render(read(SAMPLE)).split("\n", 1)
    assert written[1] == SAMPLE.read_text(encoding="utf-8").split("\n", 1)[1]


def test_both_spellings_comments_and_blank_lines():
    """Nova's reader took one line a board and crashed on a blank one; a site may have either spelling."""
    wide, *_rest = read(SAMPLE)
    text = f"\n  # one line a board\n\n{render([wide], one_line=True)}\n# end"
    assert parse(text) == [wide]
    assert parse("\ufeff" + text.replace("\n", "\r\n")) == [wide]
    assert [board.id for board in parse("\ufeff" + line(id=10))] == [10]


def test_lines_may_end_in_a_carriage_return():
    """A file of one such line that begins with a comment had no boards, and no defect: a site would lose them all."""
    text = SAMPLE.read_text(encoding="utf-8")
    assert parse(text.replace("\n", "\r")) == parse(text)
    assert parse(text.replace("\n", "\r", 1)) == parse(text)
    assert defects(f"# comment\r{line(vcpus='x')}\r") == [(2, 30, "vcpus is not a whole number: 'x'")]


@pytest.mark.parametrize(
    ("ip", "mac"),
    [("223.255.255.254", "02:00:00:00:00:00"), ("169.253.1.1", "fe:ff:ff:ff:ff:ff"), ("1.0.0.1", "0" * 11 + "1")],
)
def test_addresses_beside_those_that_no_board_has(ip, mac):
    """Lost: a board that is there and could not be used."""
    assert parse(line(ip=ip, mac=mac))[0].ip == ip


def test_spaces_behind_a_backslash_and_comments_between_lines_do_no_harm():
    """Both are invisible or harmless to a person who looks at the file."""
    head, tail = line(cpu_info="").rstrip(), '{"arch":"TILEPro64"}'
    assert parse(f"{head} \\ \t\n# why\n{tail}\n") == parse(LINE)


@pytest.mark.parametrize(
    ("mac", "read_as"),
    [("00-1A-CA-00-57-90", "00:1a:ca:00:57:90"), ("001aca005790", "00:1a:ca:00:57:90")],
)
def test_spellings_of_a_mac(mac, read_as):
    """The boot entry's name is made from the MAC: one form inside, whatever the site writes."""
    assert parse(line(mac=mac))[0].mac == read_as


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (line(ip="10.0.2.300"), (1, 3, "ip is not an IPv4 address: '10.0.2.300'")),
        (line(ip="10.0.02.1"), (1, 3, "ip is not an IPv4 address: '10.0.02.1'")),
        (line(ip="fe80::1"), (1, 3, "ip is not an IPv4 address: 'fe80::1'")),
        (line(ip="0.0.0.0"), (1, 3, "ip is no board's address: 0.0.0.0 (this network)")),
        (line(ip="127.0.0.1"), (1, 3, "ip is no board's address: 127.0.0.1 (loopback)")),
        (line(ip="169.254.9.9"), (1, 3, "ip is no board's address: 169.254.9.9 (link-local)")),
        (line(ip="224.0.0.1"), (1, 3, "ip is no board's address: 224.0.0.1 (multicast)")),
        (line(ip="239.1.2.3"), (1, 3, "ip is no board's address: 239.1.2.3 (multicast)")),
        (line(ip="240.0.0.1"), (1, 3, "ip is no board's address: 240.0.0.1 (reserved, or broadcast)")),
        (line(ip="255.255.255.255"), (1, 3, "ip is no board's address: 255.255.255.255 (reserved, or broadcast)")),
        (line(mac="00:00:00:00:00:00"), (1, 12, "mac is no board's MAC: 00:00:00:00:00:00 (none)")),
        (line(mac="FF-FF-FF-FF-FF-FF"), (1, 12, "mac is no board's MAC: FF-FF-FF-FF-FF-FF (broadcast)")),
        (line(mac="01:00:5e:00:00:01"), (1, 12, "mac is no board's MAC: 01:00:5e:00:00:01 (multicast)")),
        (line(mac="00:1A:CA:00:57"), (1, 12, "mac is not a MAC address: '00:1A:CA:00:57'")),
        (line(mac="00:1A-CA:00:57:90"), (1, 12, "mac is not a MAC address: '00:1A-CA:00:57:90'")),
        (line(id=-1), (1, 1, "id is negative: '-1'")),
        (line(memory_mb="16218.5"), (1, 33, "memory_mb is not a whole number: '16218.5'")),
        (line(local_gb=-917), (1, 39, "local_gb is negative: '-917'")),
        (line(vcpus="9" * 5000), (1, 30, f"vcpus is not a whole number: '{'9' * 60}...'")),
        (
            line(cpu_info="{'arch':1}"),
            (1, 62, "cpu_info is not JSON: Expecting property name enclosed in double quotes"),
        ),
        (line(cpu_info='{"a":1} x'), (1, 69, "cpu_info is not JSON: Extra data")),
        (line(cpu_info='{"a":NaN}'), (1, 61, "cpu_info is not JSON: NaN is no JSON number")),
        (line(cpu_info='{"a":1e999}'), (1, 61, "cpu_info is not JSON: 1e999 is too large")),
        (line(cpu_info="[1]"), (1, 61, 'cpu_info is not a JSON object {"vendor": ...}')),
        (line(cpu_info="7"), (1, 61, 'cpu_info is not a JSON object {"vendor": ...}')),
        ('{"arch":1}', (1, 1, "a cpu_info without its board: does the line above lack its backslash?")),
    ],
)
def test_a_defect_has_its_place_and_reason(text, expected):
    """An operator must find the wrong token without searching."""
    found = defects("# comment\n" + text)
    assert found == [(expected[0] + 1, *expected[1:])]


@pytest.mark.parametrize(
    ("text", "place", "count"),
    [
        (line(vcpus=""), (1, 59), 10),
        (line(vcpus="10 10"), (1, 62), 12),
        (line(cpu_info=""), (1, 60), 10),
        (line(cpu_info="x y"), (1, 61), 12),
        ("0 10.0.2.1", (1, 11), 2),
    ],
)
def test_wrong_count_of_columns(text, place, count):
    """A column too few or too many shifts all others: only the count itself is worth saying."""
    [(number, column, reason)] = defects(text)
    assert (number, column) == place
    assert reason.startswith(f"{count} columns where 11 are needed: id ip mac")


def test_bad_json_is_placed_in_the_right_physical_line():
    """cpu_info goes on over lines; the JSON error counts from its own start."""
    text = SAMPLE.read_text(encoding="utf-8").replace('"5.6MBCache","443BOPS"', '"5.6MBCache" "443BOPS"', 1)
    assert defects(text) == [(4, 46, "cpu_info is not JSON: Expecting ',' delimiter")]


@pytest.mark.parametrize("column", ["ip", "mac", "local_gb"])
def test_a_defect_far_down_in_one_board_is_placed_in_its_physical_line(column):
    """Who is sent to the line beside it corrects the wrong number."""
    number = list(boards_file.COLUMNS).index(column) + 1
    text = line(**{column: "-"}).replace(" ", " \\\n")
    assert [place[:2] for place in defects(text)] == [(number, 1)]


def test_duplicates_name_the_first_line():
    """Two boards with one address boot each other's kernels."""
    other = line(id="00", ip="10.0.2.1", mac="001ACA005790")
    assert defects(f"{LINE}\n\n{other}") == [
        (3, 1, "duplicate id 00: line 1 has it already"),
        (3, 4, "duplicate ip 10.0.2.1: line 1 has it already"),
        (3, 13, "duplicate mac 001ACA005790: line 1 has it already"),
    ]


@pytest.mark.parametrize("end", ["", "\n", "\n# comment\n", "\n  "])
def test_backslash_at_the_end_of_the_file(end):
    """A file cut off while it was copied must not lose its last board silently."""
    reason = "a backslash at the end of the file: the line that it announces is missing"
    assert defects(f"{LINE} \\{end}") == [(1, len(LINE) + 2, reason)]
    assert defects(f"{line(cpu_info='')}\\{end}") == [(1, 61, reason)]


def test_all_defects_at_once():
    """Each defect found only after the last was mended costs an operator a run."""
    text = "\n".join(
        [
            line(ip="10.0.2.300", memory_mb=-5),
            line(id=1, ip="10.0.2.2", mac="00:1A:CA:00:57:91", cpu_info='{"a":}'),
            line(id=1, ip="10.0.2.3", mac="zz"),
            "3 10.0.2.4",
            line(id=4, mac="zz", cpu_info="{") + " \\",
        ]
    )
    places = [(1, 3), (1, 35), (2, 66), (3, 1), (3, 12), (4, 11), (5, 12), (5, 48)]
    assert [place[:2] for place in defects(text)] == places


def test_error_text_and_facts(tmp_path):
    """The text is what a person reads, the facts are what a module returns."""
    path = tmp_path / "boards"
    path.write_bytes(b"# M\xfcller\n" + line(id=-1).encode() + b"\n")
    with pytest.raises(BoardsFileError) as caught:
        read(path)
    assert str(caught.value) == f"{path}:1:4: byte 0xfc is not UTF-8\n{path}:2:1: id is negative: '-1'"
    assert caught.value.failure["what"] == "2 defects"
    assert caught.value.failure["defects"][0] == {
        "file": str(path),
        "line": 1,
        "column": 4,
        "reason": "byte 0xfc is not UTF-8",
    }


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_of_another_encoding_names_it(tmp_path, encoding):
    """Lost: the one thing to do, in two hundred lines about bytes that are no UTF-8."""
    path = tmp_path / "boards"
    path.write_bytes(line().encode(encoding))
    with pytest.raises(BoardsFileError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: is in {encoding[:6].upper()}: save it as UTF-8"


def test_a_byte_order_mark_of_utf_8_is_no_mistake(tmp_path):
    (tmp_path / "boards").write_bytes(line().encode("utf-8-sig"))
    assert [board.id for board in read(tmp_path / "boards")] == [0]


def test_a_zero_byte_is_named(tmp_path):
    """Lost: a board whose hypervisor ends in a byte that no program shows."""
    path = tmp_path / "boards"
    path.write_bytes(b"# a comment\n" + line().replace("tilera_hv", "tilera\0hv").encode())
    with pytest.raises(BoardsFileError) as caught:
        read(path)
    assert str(caught.value).endswith(":2:55: byte 0x00 is no text")


def test_a_long_list_of_defects_is_cut_in_the_text_only():
    """Somebody who names a binary file must not get megabytes on the screen."""
    with pytest.raises(BoardsFileError) as caught:
        parse("x\n" * 150, "f")
    assert len(caught.value.defects) == 150
    assert str(caught.value).endswith("\nf: and 50 more")
    assert len(str(caught.value).splitlines()) == 101
    with pytest.raises(BoardsFileError) as caught:
        parse("x\n" * 100, "f")
    assert len(str(caught.value).splitlines()) == 100


def test_file_that_cannot_be_read(tmp_path):
    """A wrong path must be named, not shown as a traceback."""
    with pytest.raises(BoardsFileError, match="nothing: cannot be read: No such file or directory"):
        read(tmp_path / "nothing")
    with pytest.raises(BoardsFileError, match="cannot be read: Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("cpu_info", "expected"),
    [
        ({"features": ["8x4Grid", "x"], "topology": {"cores": "64"}}, "8x4"),
        ({"geometry": "6x6", "features": ["8x8Grid"]}, "6x6"),
        ({"topology": {"cores": "36"}}, "6x6"),
        ({"topology": {"cores": 100}}, "10x10"),
        ({"topology": {"cores": "60"}}, None),
        ({"features": "8x8Grid", "topology": [64]}, None),
        ({"features": [8, None, ["8x8Grid"]], "topology": {"cores": True}}, None),
        ({"features": {"8x8Grid": 1}, "topology": {"cores": -4}, "geometry": 8}, None),
        ({}, None),
    ],
)
def test_geometry(cpu_info, expected):
    """Flavors ask for a geometry that the sample's cpu_info has only between its lines."""
    assert geometry(cpu_info) == expected


def test_write_is_atomic_and_keeps_the_mode(tmp_path):
    """A board must never fetch by a half-written file, and in.tftpd must still be able to read it."""
    boards = read(SAMPLE)
    target = tmp_path / "real"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "tilera_boards"
    link.symlink_to(target)
    before = target.stat().st_ino
    write(link, boards[:3], one_line=True)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.stat().st_ino != before
    assert read(link) == boards[:3]
    assert sorted(os.listdir(tmp_path)) == ["real", "tilera_boards"]


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    """A mistake in a board must leave the old file in place."""
    board = read(SAMPLE)[0]
    path = tmp_path / "boards"
    path.write_text("old")
    with pytest.raises(BoardsFileError, match="duplicate id 0"):
        write(path, [board, board])
    with pytest.raises(BoardsFileError, match="12 columns"):
        write(path, [replace(board, hypervisor_type="tilera hv")])
    assert path.read_text() == "old"
    with pytest.raises(HeteroError, match="cannot be written: No such file or directory"):
        write(tmp_path / "no" / "boards", [board])
    assert os.listdir(tmp_path) == ["boards"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
numbers = st.integers(0, 10**15 - 1)
words = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters='{["#\\'), min_size=1, max_size=9
)
board_lists = st.lists(
    st.builds(
        Board,
        id=numbers,
        ip=st.ip_addresses(network="10.0.0.0/8").map(str),
        mac=st.binary(min_size=5, max_size=5).map(lambda mac: f"02:{mac.hex(':')}"),
        vcpus=numbers,
        memory_mb=numbers,
        local_gb=numbers,
        memory_mb_used=numbers,
        local_gb_used=numbers,
        hypervisor_type=words,
        hypervisor_version=words,
        cpu_info=st.dictionaries(st.text(max_size=8), json_values, max_size=5),
    ),
    max_size=4,
    unique_by=(lambda board: board.id, lambda board: board.ip, lambda board: board.mac),
)


@pytest.mark.dear
@settings(max_examples=100, deadline=None)
@given(board_lists, st.booleans())
def test_whatever_is_written_is_read_back(boards, one_line):
    """A rewritten file must hold the same boards, whatever strings cpu_info has."""
    again = parse(render(boards, one_line))
    assert again == boards
    assert parse(render(again)) == again
    assert [geometry(board.cpu_info) for board in again] == [board.geometry for board in boards]


sample_lines = st.lists(
    st.sampled_from([*SAMPLE.read_text(encoding="utf-8").splitlines()[:9], LINE, "\\", "", "{", '"', "\\\\", "\x00"]),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), sample_lines.map("\n".join).map(str.encode)), st.binary(max_size=3), numbers)
def test_a_bad_file_is_an_error_and_never_a_traceback(data, splinter, where):
    """Whatever lies in the file, an operator gets places and reasons that can be printed and sent as JSON."""
    where %= len(data) + 1
    text = (data[:where] + splinter + data[where:]).decode("utf-8", errors="surrogateescape")
    boards, error = [], None
    try:
        boards = parse(text)
    except BoardsFileError as caught:
        error = caught
    if error is None:
        assert parse(render(boards)) == boards
        return
    assert str(error).encode("utf-8")
    assert json.dumps(error.failure)
    lines = re.split("\r\n|\r|\n", text)
    for _source, number, column, reason in error.defects:
        assert 1 <= number <= len(lines), reason
        assert 1 <= column <= len(lines[number - 1]) + 1, reason
