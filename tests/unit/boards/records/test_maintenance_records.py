# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file beside the database says of a board out of use. If these fail, a damaged one frees its board, or a
traceback ends every verb on all boards.

Tests boards/records/board_record_files.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.maintenance_records import (
    MaintenanceRecords,
    OutOfUse,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"reason": "fan"}',
        '{"reason": "fan", "since": null}',
        '{"reason": "fan", "since": 1' + "0" * 400 + "}",
        '{"reason": "fan", "since": "1e999"}',
        '{"reason": "fan", "since": "nan"}',
        '{"reason": "fan", "since": 1.0, "since": 2.0}',
        '{"reason": "fan", "since": -1e300}',
        '{"reason": "fan", "since": 1e300}',
        '{"reason": "\\ud800", "since": 1.0}',
        '{"reason": "a\\u0000b", "since": 1.0}',
        '{"reason": ["fan"], "since": 1.0}',
        "[" * 100000,
    ],
)
def test_one_that_cannot_be_read_keeps_its_board_out_of_use(tmp_path, text):
    """Lost: a board that an operator has open on the bench gets power."""
    path = tmp_path / "board3.json"
    path.write_text(text)
    assert MaintenanceRecords(str(tmp_path)).read(3) == OutOfUse(f"{path} cannot be read", 0.0)
