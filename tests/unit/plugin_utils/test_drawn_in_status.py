# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boards draw, in the table of status and on its page: only where a device tells it.

Tests plugin_utils/filters/status_page.py, plugin_utils/filters/status_table.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import drawn, status_table
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import lab
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_long_notes import LONG, board

HEAD = "Draws, has drawn"


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, ""),
        ({"watts": None, "energy_kwh": None}, ""),
        ({"watts": 41.4, "energy_kwh": 1.25}, "41 W, 1.2 kWh"),
        ({"watts": 0, "energy_kwh": None}, "0 W"),
        ({"watts": None, "energy_kwh": 0.0}, "0.0 kWh"),
        ({"watts": "much", "energy_kwh": True}, ""),
        ({"watts": -1.0, "energy_kwh": float("nan")}, ""),
    ],
)
def test_only_what_is_told_is_shown(told, text):
    """Lost: a table for all sites whose devices tell nothing; or a node that answers nonsense, to the whole site."""
    assert drawn(told) == text


def test_it_stands_in_the_boards_row():
    """Lost: energy in status, beside what is left of a lease, and also where a long note stands below."""
    measured = dict(board(0, LONG, 7200.0), watts=41.0, energy_kwh=1.2)
    _heading, first, *_below, last = status_table([measured, board(1, "short")])
    assert first.endswith("  lease 2 h left, 41 W, 1.2 kWh")
    assert last.endswith("  short")
    assert " W" not in last


def test_the_page_has_a_column_where_anything_is_measured(tmp_path):
    """Lost: energy on the page; or an empty column on everybody's."""
    result = lab(tmp_path / "lab").result()
    assert HEAD not in status_page(snapshots([dict(result, item="p1")]))
    one = next(board for board in result["boards"] if board["instance"])
    one.update(watts=41.0, energy_kwh=1.25)
    page = status_page(snapshots([dict(result, item="p1")]))
    assert HEAD in page
    assert "<td>41 W, 1.2 kWh</td>" in page
