# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boards file that moves a board in use, where the database is older than the claim's own record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    ClaimRecords,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_left_out_boards import (
    OTHER,
    ROWS,
    kept,
    moved,
    plan,
)

__all__ = ["plan"]


@pytest.mark.parametrize(
    "older", ["free and off", "claimed, nothing made, off", "off by an earlier claim", "off by hers", "begun anew"]
)
def test_a_board_that_only_its_record_knows_to_run_keeps_its_row(plan, tmp_path, older):
    """Lost: jackie's address, where a backup of the database was put back."""
    for name in tmp_path.glob("state.db*"):
        name.unlink()
    with Store(str(tmp_path / "state.db"), records=str(tmp_path / "none")) as store:
        if older == "claimed, nothing made, off":
            store.adopt(kept(1, "jackie"), "power off", "", "a test")
        if older == "off by an earlier claim":
            store.adopt(kept(1, "carol", image_hash="ab"), "power off", "", "a test")
        if older == "off by hers":
            store.adopt(kept(1, "jackie", image_hash="ab"), "power off", "", "a test")
        if older != "begun anew":
            store.power_seen(1, "off")
    ClaimRecords(str(tmp_path / FOLDER)).write(1, kept(1, "jackie", image_hash="ab"))  # it runs, says its own record
    assert len(moved(plan, OTHER)) == 1


def test_a_board_that_is_given_another_number(plan):
    """Lost: jackie's board 1 by its address, which the new file gives board 7."""
    row = ROWS[1].replace("1 ", "7 ", 1)
    found = preflight.look(replace(plan, boards_text=ROWS[0] + row + ROWS[2] + OTHER.replace(":91 ", ":97 ")))
    assert [str(defect) for defect in found.defects if "board1" in str(defect)]


def test_two_boards_that_change_places(plan):
    """Lost: the same, where the rows of a free board and of hers are renumbered."""
    rows = ROWS[0] + ROWS[1].replace("1 ", "2 ", 1) + ROWS[2].replace("2 ", "1 ", 1)
    found = preflight.look(replace(plan, boards_text=rows))
    said = [str(defect) for defect in found.defects if "gives board" in str(defect)]
    assert len(said) == 1
