# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that are nearly known ones. If these fail, an operator is told to write what nobody meant, or looks for it.

Tests plugin_utils/filters/unknown_variables.py.
"""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import in_spans, instead, like
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.unknown_variables import unknown_variables

KNOWN = ["my_role_boards", "my_role_boards_file", "my_role_pdus"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("acp", "write apc"),
        ("SNMP", "write snmp"),
        ("", "use apc, snmp"),
        (None, "use apc, snmp"),
        ("x" * 10**6, "use apc, snmp"),
    ],
)
def test_the_nearest_or_all(word, said):
    assert instead(word, ["apc", "snmp"]) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((), "none"), ((3,), "3"), ((4, 3), "3, 4"), ((2, 1, 0), "0 to 2"), ((0, 1, 2, 4, 7, 8, 9), "0 to 2, 4, 7 to 9")],
)
def test_many_numbers_are_told_in_few_words(numbers, said):
    """Lost: the end of a message, behind ten thousand ids of boards."""
    assert in_spans(numbers) == said


def test_a_shared_beginning_brings_nothing_nearer():
    """Lost: trust in the proposal, where any variable of a role is near to any other by its role's name."""
    assert like("my_role_colour", KNOWN, "my_role_") is None
    assert like("my_role_bords_file", KNOWN, "my_role_") == "my_role_boards_file"


@pytest.mark.parametrize("others_first", [False, True])
def test_a_word_in_another_case_is_that_word(others_first):
    """Lost: a board of another kind, asked for because the message proposed the flavor that lacks one letter."""
    known = sorted(["t64.8x8", "tp64.8x8"], reverse=not others_first)
    assert like("TP64.8x8", known) == "tp64.8x8"
    assert like("T64.8X8", known) == "t64.8x8"


def test_unknown_variables_of_a_role():
    given = ["my_role_pdus", "my_role_bords", "my_role_colour"]
    for slips in (False, True):
        (one,) = unknown_variables(given, KNOWN, "my_role_", slips)
        assert one["thing"] == "my_role_bords"
        assert one["remedy"] == "write my_role_boards; a variable of your own needs another name"
    assert unknown_variables(["my_role_file"], KNOWN, "my_role_", slips=True) == []
    assert [one["thing"] for one in unknown_variables(["my_role_pduz_list"], KNOWN, "my_role_")] == [
        "my_role_pduz_list"
    ]
    assert unknown_variables(KNOWN, KNOWN) == []
    with pytest.raises(AnsibleFilterError, match="list of names in brackets"):
        unknown_variables(given, "my_role_pdus")
