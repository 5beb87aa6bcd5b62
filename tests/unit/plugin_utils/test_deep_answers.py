# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of a node that lies. If these fail, one such node ends everybody's status, and nobody learns which it is.

Tests plugin_utils/filters/printable.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.action import request
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import deeper
from ansible_collections.hetero.compute.plugins.plugin_utils import short_calls
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.printable import printable
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_answers import NODE


def nested(depth, leaf="x"):
    value = leaf
    for number in range(depth):
        value = [value] if number % 2 else {"k": value}
    return value


@pytest.mark.parametrize("depth", [41, 250, 450, 5000])
def test_a_deep_answer_is_its_nodes_failure(depth):
    """Lost: the table of the whole site: Ansible fails at some hundred levels, with a "recursive loop"."""
    told = short_calls.only_data({"boards": [], "odd": nested(depth)})
    assert told == dict(failed=True, changed=False, msg=short_calls.TOO_DEEP)


def test_what_modules_answer_is_not_deep():
    """Lost: an answer that is sound."""
    answer = {"boards": [{"cpu_info": {"topology": nested(20)}}], "changed": False}
    assert short_calls.only_data(dict(answer)) == answer
    assert (deeper("x", 0), deeper([], 0), deeper([[]], 1), deeper([["x"]], 2)) == (False, True, True, False)


@pytest.mark.parametrize("text", ["no JSON", "[]", json.dumps(dict(NODE, boards=[dict(state=1)]))])
def test_a_node_packs_no_answer_of_its_own(text):
    """Lost: the table of the whole site, to a text that the filters read in place of the answer that was checked."""
    said = short_calls.only_data(dict(NODE, packed=text))
    assert said == NODE
    assert status_table(snapshots(dict(p1=said, p2=NODE)))[1:]


def test_no_error_is_longer_than_anybody_reads():
    """Lost: a terminal, a log and AWX's database, to 120 MB of one node's words."""
    lines = request.few(["x" * 10**6] * 5000)
    assert (len(lines), len(lines[0]), lines[-1]) == (request.LINES + 1, request.LINE, "and 4500 lines more")
    assert request.few(["a"]) == ["a"]


def test_a_form_s_text_is_shown_and_not_obeyed():
    """Lost: the terminal of an operator who reads the job of a user of AWX."""
    assert printable("\x1b]0;x\x07\nlocalhost: ok") == "\\x1b]0;x\\x07\\x0alocalhost: ok"
