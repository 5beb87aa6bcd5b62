# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a board in error is suspected itself. If these fail, a tenant's root puts board after board out of use, or a
broken board is given to the next one.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import suspect_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Record


@pytest.mark.parametrize(
    ("state", "note", "suspect"),
    [
        ("error", f"stalled at running after 300 s; {suspect_boards.MAY_WORK}", False),
        ("error", f"stalled at running after 300 s; {suspect_boards.UNSEEN.format(cut='reboot')}", True),
        ("error", f"stalled at running after 300 s; pdu-a outlet 5 {suspect_boards.CUT}", False),
        ("error", "its fan rattles", True),
        ("running", "", False),
    ],
)
def test_a_board_that_has_mounted_its_instances_root_is_none(state, note, suspect):
    """Lost: what is said above."""
    assert suspect_boards.is_suspect(Record(0, state, note=note)) == suspect
