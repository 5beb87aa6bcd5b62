# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a boards file that lost a line is written, and an instance runs on a board that no verb reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    Claim,
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import left_out_boards, preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan

ROWS = [
    f'{n} 10.0.2.{n + 1} 00:1A:CA:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {{"arch":"TILEPro64"}}\n' for n in range(3)
]
FORGET = "ansible-playbook hetero.compute.reconcile -e forget=jackie"


def kept(board, name, **more):
    claim = Claim(board, name, name, "jo", {"name": "tp64.8x8"}, "demo", "ssh-rsa AAAA", 1.5, **more)
    return Kept(claim, "running")


@pytest.fixture
def plan(tmp_path):
    """Jackie has board 1 by the database of the node, whose boards file names it."""
    with Store(str(tmp_path / "state.db"), records=str(tmp_path / FOLDER)) as store:
        store.adopt(kept(1, "jackie", image_hash="ab"), "running", "", "a test")
    (tmp_path / "tilera_boards").write_text("".join(ROWS))
    return Plan(
        server="10.0.2.254",
        state_folder=str(tmp_path),
        tftp_root=str(tmp_path),
        config=str(tmp_path / "proxy.json"),
        boards_source="files/tilera_boards",
        boards_text="".join(ROWS),
    )


def said(plan, *left):
    """What is said of a boards file of which only these rows are left."""
    found = preflight.look(replace(plan, boards_text="".join(ROWS[number] for number in left)))
    return [str(defect) for defect in found.defects if "board1" in str(defect)], [str(note) for note in found.notes]


def test_a_board_in_use_is_not_left_out(plan):
    (defect,), _notes = said(plan, 0, 2)
    assert defect.startswith("files/tilera_boards: leaves out board1, which jackie has: put its row back; or, ")
    assert "ansible-playbook hetero.compute.terminate_instance -e instance=jackie first" in defect
    assert defect.endswith(f"take the row out of {plan.tftp_root}/tilera_boards on the node, then {FORGET}")


def test_of_a_board_that_the_node_does_not_know_the_claim_is_ended_by_a_word(plan, tmp_path):
    """Lost: the way out of what an earlier set-up let pass: no verb but this word reaches such a claim."""
    (tmp_path / "tilera_boards").write_text(ROWS[0])
    (defect,), _notes = said(plan, 0)
    assert defect.endswith(f"put its row back; or, where the board is gone for good, {FORGET} first")


def test_boards_of_nobody_come_and_go(plan):
    assert said(plan, 1)[0] == []
    assert said(plan, 0, 1, 2)[0] == []


def test_a_claim_that_only_its_record_knows_counts(plan, tmp_path):
    """Lost: the board of an instance that an older copy of the database does not know."""
    (tmp_path / "state.db").unlink()
    assert len(said(plan, 0)[0]) == 1
    ClaimRecords(str(tmp_path / FOLDER)).write(1, kept(1, "jackie"))
    assert said(plan, 0)[0] == [], "nothing was made for it yet"


def test_a_new_node_has_nothing_to_say(plan, tmp_path):
    new = replace(plan, state_folder=str(tmp_path / "new"))
    assert said(new, 0)[0] == []
    assert not (tmp_path / "new").exists()


def test_a_database_that_cannot_be_read_is_said_and_stops_nothing(plan, tmp_path):
    (tmp_path / "state.db").write_text("no database" * 500)
    (tmp_path / FOLDER / "board1.json").unlink()
    defects, notes = said(plan, 0)
    assert defects == []
    assert any("state.db: is no SQLite database" in note for note in notes), notes


def test_a_file_that_says_nothing_leaves_out_nobody(plan):
    """Its own mistake is told, and no row for each board that is in use."""
    assert said(plan)[0] == []


OTHER = ROWS[1].replace("10.0.2.2", "10.0.2.9")


def moved(plan, row):
    """What is said of a boards file that has another row of board 1."""
    found = preflight.look(replace(plan, boards_text=ROWS[0] + row + ROWS[2]))
    return [str(defect) for defect in found.defects if "gives board1" in str(defect)]


@pytest.mark.parametrize("row", [OTHER, ROWS[1].replace(":91 ", ":99 ")], ids=["address", "network card"])
def test_a_board_that_is_on_keeps_its_row(plan, tmp_path, row):
    """Lost: jackie's address, and what is exported to it, to whoever has it by the new file; or her next lease."""
    (defect,) = moved(plan, row)
    assert defect.startswith("files/tilera_boards: gives board1, which jackie has and which was not seen off, 10.0.2.")
    assert " in place of 10.0.2.2 00:1a:ca:00:57:91" in defect
    assert defect.endswith("ansible-playbook hetero.compute.stop_instance -e instance=jackie first")
    assert moved(plan, ROWS[1].upper().replace("TILERA_HV", "tilera_hv")) == [], "in other words"
    with Store(str(tmp_path / "state.db"), records=str(tmp_path / FOLDER)) as store:
        store.power_seen(1, "off")
        assert len(moved(plan, row)) == 1, "it may run by another outlet"
        store.move(1, "shutting down")
        store.power_seen(1, "on")
        assert len(moved(plan, row)) == 1, "its stop has failed"
        store.power_seen(1, "off")
        assert moved(plan, row) == [], "the way out"
        store.move(1, "power off")
    assert moved(plan, row) == [], "the way out"


def test_a_row_of_a_board_that_nobody_was_served_on_changes(plan, tmp_path):
    """Lost: the correction of a row, until whoever was given its board by mistake is terminated."""
    with Store(str(tmp_path / "state.db")) as store:
        store.put("jackie", image_hash=None)
    ClaimRecords(str(tmp_path / FOLDER)).write(1, kept(1, "jackie"))
    assert len(moved(plan, OTHER)) == 1, "it runs"
    with Store(str(tmp_path / "state.db")) as store:
        store.move(1, "shutting down")
        store.move(1, "power off")
        assert moved(plan, OTHER) == []
        store.power_seen(1, "on")
        assert len(moved(plan, OTHER)) == 1, "it is on"
    (tmp_path / "tilera_boards").unlink()
    with Store(str(tmp_path / "state.db")) as store:
        store.put("jackie", image_hash="ab")
    assert moved(plan, OTHER) == [], "it is not known what the row was"


def test_who_has_a_board_is_known_by_either_and_the_database_is_believed_first(plan, tmp_path):
    """Lost: a board whose claim only its record tells of, where the database is lost; or who has it now."""
    records = ClaimRecords(str(tmp_path / FOLDER))
    records.write(0, kept(0, "carol", image_hash="ab"))
    records.write(1, kept(1, "eve", image_hash="ab"))
    found = Findings()
    assert left_out_boards.users(plan, found) == {0: "carol", 1: "jackie"}
    assert left_out_boards.unreadable(plan) == found.notes == []
    (tmp_path / FOLDER / "board0.json").write_text("{")
    (tmp_path / "state.db").write_text("no database, which is what the set-up may mend")
    assert left_out_boards.users(plan, found) == {1: "eve"}
    assert [note.thing for note in found.notes] == [str(tmp_path / "state.db")]
    (error,) = left_out_boards.unreadable(plan)
    assert "board0.json" in str(error), "somebody may have that board, too"
