# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `one_line_boards`: the boards file for a reader that takes one line a board."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.one_line_boards import one_line_boards
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

SAMPLE = (ROOT / "roles" / "lab" / "files" / "tilera_boards").read_text()


def test_novas_reader_finds_each_board():
    """Lost: all boards but the first of a site that Nova drives, whose reader splits lines at blanks."""
    lines = [line.split() for line in one_line_boards(SAMPLE).splitlines() if not line.startswith("#")]
    assert [len(words) for words in lines] == [11] * 10
    assert {json.loads(words[10])["arch"] for words in lines} == {"TILEPro64"}
    assert parse(one_line_boards(SAMPLE), "copy") == parse(SAMPLE, "sample")


def test_a_wrong_file_is_named():
    with pytest.raises(AnsibleFilterError, match="boards file:1:"):
        one_line_boards("0 10.0.2.300\n")
