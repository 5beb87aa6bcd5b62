# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carol's only record was put aside by a rebuild of the board in whose place it lay. If this fails, what
reconcile -e remove=BOARD prints takes it out of the folder, and she can never be adopted.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_only_records_elsewhere import carols, comes_back, misfile


def test_it_stays_where_a_board_is_removed_that_is_not_its(ten):
    misfile(ten, "jackie")
    result = ten.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)
    assert not result.get("failed"), result
    gone = ten.state / "board-roots" / "fs_77"
    gone.mkdir()
    (gone / "root.ext4").write_bytes(b"")
    [left] = carols(ten)
    result = reconcile(ten, remove=["board77"])
    assert not result.get("failed"), result["msg"]
    assert left.exists()
    assert not gone.exists()
    comes_back(ten)
