# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status says of PDUs that refuse us. If this fails, nobody hears why no board of a PDU can be had.

Tests plugin_utils/filters/snapshots.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.filter.status_table import FilterModule
from ansible_collections.hetero.compute.plugins.plugin_utils import answers
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots

status_table = FilterModule().filters()["status_table"]

BOARD = dict(name="board0", arch="TILEPro64", state="power off", vcpus=1, memory_mb=1, local_gb=1)
SAID = "pdu-a: refuses user 'apc' with the password given: correct its password in the vault (3 min ago)"


def test_each_pdu_is_one_line_below_the_boards():
    """Lost: the line, or the boards."""
    table = status_table({"p1": dict(boards=[BOARD], pdu_errors={"pdu-a": SAID, "pdu-b": "no answer (1 d ago)"})})
    assert table[1].startswith("board0 ")
    assert table[2:] == [f"PDU {SAID}, on p1", "PDU pdu-b: no answer (1 d ago), on p1"]


@pytest.mark.parametrize("seen", [dict(boards=[BOARD]), dict(boards=[BOARD], pdu_errors={})])
def test_where_none_refused_nothing_is_said(seen):
    """Lost: a status that can be read; or that of an owner of an earlier release, which tells no refusals."""
    assert len(status_table({"p1": seen})) == 2


def test_they_come_from_the_answer():
    """Lost: the line, between the module and the table."""
    snapshot = snapshots([dict(item="p1", claims=[], boards=[], roots=None, pdu_errors={"pdu-a": SAID})])["p1"]
    assert snapshot["pdu_errors"] == {"pdu-a": SAID}
    silent = snapshots([dict(item="p1", msg="unreachable")])["p1"]
    assert silent["pdu_errors"] == {}


@pytest.mark.parametrize("odd", [["pdu-a"], {"pdu-a": 5}, {"pdu-a": None}, "no"])
def test_an_answer_of_another_form_counts_as_none(odd):
    """Lost: the status of all owners, for the odd answer of one."""
    shape = dict(pdu_errors=answers.SHAPES["board_info"]["pdu_errors"])
    assert answers.wrong(dict(pdu_errors=odd), shape) == "pdu_errors"
    assert answers.wrong(dict(pdu_errors={"pdu-a": SAID}), shape) is None
    assert answers.wrong({}, shape) is None
