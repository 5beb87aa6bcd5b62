# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of others is shown, never obeyed."""

from __future__ import annotations

import unicodedata

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import (
    one_line,
    printable,
    printable_data,
)

#: What a terminal obeys, what reorders or hides text → how it is shown.
UNSAFE = {
    "\x00": r"\x00",
    "\r": r"\x0d",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x1b[2J": r"\x1b[2J",
    "\x7f": r"\x7f",
    "\x9b2J": r"\x9b2J",
    "\xad": r"\xad",
    "\u061c": r"\u061c",
    "\u200b": r"\u200b",
    "\u200f": r"\u200f",
    "\u2028": r"\u2028",
    "\u2029": r"\u2029",
    "\u202e": r"\u202e",
    "\u2066": r"\u2066",
    "\u2069": r"\u2069",
    "\ufeff": r"\ufeff",
    "\U000e0041": r"\U000e0041",
    "\udc80": r"\udc80",
}


@pytest.mark.parametrize(("said", "shown"), UNSAFE.items())
def test_what_a_terminal_obeys_or_an_eye_cannot_see_is_shown_escaped(said, shown):
    """Lost: a board's console clears the screen of whoever reads it, or shows a line as another one."""
    assert printable(f"a{said}b") == one_line(f"a{said}b") == f"a{shown}b"


def test_no_control_or_direction_character_is_forgotten():
    """Lost: one that is not in the list above still reaches the terminal."""
    every = [chr(code) for code in range(0x110000)]
    left = [char for char in every if char == printable(char)]
    assert [char for char in left if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")] == ["\t", "\n"]
    assert not [char for char in left if unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF"}]
    assert not [char for char in left if unicodedata.bidirectional(char) in {"LRI", "RLI", "FSI", "PDI"}]


def test_printable_text_stays_as_it_is():
    """Lost: paths, names and words in any language become unreadable."""
    text = "outlet 3 → off, read back · été 日本 עברית 🙂 C:\\x1b\n\tnext"
    assert printable(text) == text
    assert printable(printable("\x1b[2J\u202e")) == printable("\x1b[2J\u202e")


def test_one_line_stays_one_line():
    """Lost: what a board says goes on with a line that looks like one of ours."""
    assert one_line("kernel\nboard0 is running\there") == r"kernel\x0aboard0 is running\x09here"


def test_a_result_is_made_printable_at_any_depth():
    """Lost: an escape sequence in a board's fact, deep in a result, reaches the terminal through a debug task."""
    result = {"boards": [{"\x1bkey": "a\x1b", "phases": {"power": 0.5}, "said": ("\u202e", None, True)}]}
    shown = {"boards": [{r"\x1bkey": r"a\x1b", "phases": {"power": 0.5}, "said": [r"\u202e", None, True]}]}
    assert printable_data(result) == shown
