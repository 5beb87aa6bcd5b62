# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards files that nobody wrote on purpose. If these failed, a slip in the file would end a play in a traceback, or a
file that was written back would describe other boards.
"""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import (
    BoardsFileError,
    parse,
    render,
)
from ansible_collections.hetero.compute.tests.unit.properties.conftest import said

SAMPLE = (Path(__file__).parents[3] / "roles" / "lab" / "files" / "tilera_boards").read_text()
TOKENS = st.sampled_from(
    ["0", "1", "01", "-1", "1e3", "9" * 15, "9" * 16, "10.0.2.1", "10.0.02.1", "00:1A:CA:00:57:90", "001aca005791"]
    + ["tilera_hv", "x\\", "\\", "#", "{}", "{", "}", "[]", '"', '{"arch":', '"TILEPro64"}', '{"geometry": 8}', "null"]
    + ['{"topology": {"cores": "64"}}', '{"topology": []}', '{"features": ["8x8Grid", 3]}', "NaN", "1e999", "[" * 3000]
    + ["\n", "\r\n", "\\\n", " \\ \n", "\t", "\x0b", "\x1c", "\u2028", "\0", "\ufeff", "\udc80", "\ud800", "é", "٣"]
)
LINES = st.lists(TOKENS | st.text(max_size=8), max_size=40).map(" ".join)
#: Whole boards, of which some columns are odd.
ODD = st.lists(
    st.tuples(
        st.integers(0, 40) | TOKENS,
        st.sampled_from(["10.0.2.1", "10.0.2.2", "10.0.2.3", "x"]),
        st.sampled_from(["00:1a:ca:00:57:90", "00-1a-ca-00-57-91", "001ACA005792"]),
        *[st.integers(0, 10**16) for _column in range(5)],
        st.text(min_size=1, max_size=5),
        st.text(min_size=1, max_size=5),
        st.sampled_from(['{"arch": "TILEPro64"}', "{}", '{"a": ["\\u0000, \\\\", {"b": null}]}', "[]", '{"a": "#"}']),
    ),
    max_size=4,
).map(lambda boards: "\n".join(" ".join(map(str, board)) for board in boards))


@st.composite
def damaged(draw):
    """The blueprint's sample with pieces cut out, put in, or put elsewhere."""
    text = SAMPLE
    for _cut in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 30))
        text = text[:at] + draw(TOKENS | st.text(max_size=3)) + text[at + length :]
    return text


def read_or_explained(text):
    """Either boards that are written and read back as they are, or defects with a place and a reason."""
    boards, error = said(parse, text, "file")
    if error:
        assert isinstance(error, BoardsFileError)
        assert error.defects
        for source, line, column, reason in error.defects:
            assert source == "file"
            assert 1 <= line <= len(re.split("\r\n|\r|\n", text))
            assert column >= 1
            assert reason
        assert str(error).encode()
        return
    for one_line in (False, True):
        assert parse(render(boards, one_line=one_line)) == boards
    for board in boards:
        assert board.name == f"board{board.id}"
        assert isinstance(board.arch, (str, type(None)))
        assert isinstance(board.geometry, (str, type(None)))


def test_damaged_samples(try_all):
    try_all(900, damaged(), read_or_explained)


def test_odd_boards(try_all):
    try_all(500, ODD, read_or_explained)


def test_heaps_of_tokens(try_all):
    try_all(400, LINES, read_or_explained)


def test_any_bytes(try_all):
    """As `read` hands them on."""
    try_all(200, st.binary(max_size=400).map(lambda data: data.decode("utf-8", "surrogateescape")), read_or_explained)
