# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Banks of PDUs as people write them. If these fail, a breaker trips by a bank that nobody meant."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.pdu_banks import banks_of


def test_banks_are_ranges_and_lists():
    """Lost: the pace of outlets that are taken for another bank's."""
    assert banks_of(["1-3", " 4 - 4 ,6", "A1,B2", 9]) == {
        "1": "1-3",
        "2": "1-3",
        "3": "1-3",
        "4": " 4 - 4 ,6",
        "6": " 4 - 4 ,6",
        "A1": "A1,B2",
        "B2": "A1,B2",
        "9": "9",
    }
    assert banks_of([]) == {}


@pytest.mark.parametrize("written", [["1-4", "4-8"], ["8-1"], ["1,,3"], [""], ["2,2"], "1-8", {"a": 1}, None, 7])
def test_what_is_none(written):
    """Lost: that a slip is said when the node is set up, and not by the breaker."""
    assert banks_of(written) is None
