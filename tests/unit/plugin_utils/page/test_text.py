# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts and times of the status page. If these fail, a tenant's text takes over the page, or a time is shown that is
none.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.page.text import MOST, cell_text, clean, moment, since


@pytest.mark.parametrize("bad", ["\x1b", "\x00", "\u202e", "\ue000", "\ud800", "\U000e0001"])
def test_what_has_no_look_is_not_shown_as_it_is(bad):
    """Lost: the terminal or the browser of who reads the page."""
    assert bad not in clean(f"a{bad}b")
    assert clean(f"a{bad}b").startswith("a")


def test_lines_and_tabs_stay_and_the_rest_is_cut():
    """Lost: the page, to one text."""
    assert clean("a\tb\nü") == "a\tb\nü"
    assert len(clean("x" * (MOST + 1))) == MOST
    assert clean("x" * (MOST + 1)).endswith("x…")
    assert clean("x" * MOST) == "x" * MOST


def test_a_cell_has_the_first_line_and_the_rest_behind_a_click():
    """Lost: the rest of a note."""
    assert cell_text("short") == ("short", None)
    assert cell_text(None) == ("", None)
    assert cell_text("one\ntwo") == ("one", "one\ntwo")
    assert cell_text("x" * 11, 10) == ("x" * 9 + "…", "x" * 11)


@pytest.mark.parametrize("value", [None, True, -1, "7", float("nan"), float("inf"), 1e30])
def test_what_is_no_time_is_a_dash(value):
    """Lost: the page, to one node's answer."""
    assert moment(value) == ("-", None)


def test_a_time_with_its_zone():
    """Lost: which of two hours a year is meant."""
    shown, iso = moment(86400.0 * 200, "%Y")
    assert shown == "1970"
    assert iso.startswith("1970-07-")
    assert iso[-6] in "+-"
    assert (since(7200), since(-1), since("x")) == ("2 h", None, None)
