# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, an operator who swapped two lines of the inventory learns it from verbs that refuse, days later."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    Claim,
    ClaimRecords,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight, wiring_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan

BOARDS = "".join(
    f'{n} 10.0.2.{n + 1} 00:1A:CA:00:57:9{n} 10 16218 0 476 0 tilera_hv 1 {{"arch":"TILEPro64"}}\n' for n in range(3)
)
WIRING = {str(n): {"pdu": "pdu-a", "outlet": str(n + 5)} for n in range(3)}
PDU = {"driver": "apc", "host": "10.0.100.1"}


def kept(board, name, fed):
    claim = Claim(board, name, name, "jo", {"name": "tp64.8x8"}, "demo", "ssh-rsa AAAA", 1.5, image_hash="ab")
    return Kept(claim, "running", "", True, fed)


@pytest.fixture
def plan(tmp_path):
    """Jackie runs on board 0 by outlet 5, carol on board 1 by outlet 6, as proxy.json and the records have it."""
    records = ClaimRecords(str(tmp_path / FOLDER))
    for board, name in enumerate(("jackie", "carol")):
        records.write(board, kept(board, name, Fed("pdu-a", str(board + 5), "10.0.100.1")))
    config = tmp_path / "proxy.json"
    config.write_text(json.dumps(dict(server="10.0.2.254", pdus={"pdu-a": PDU}, boards=WIRING)))
    return Plan(
        server="10.0.2.254",
        state_folder=str(tmp_path),
        config=str(config),
        boards_text=BOARDS,
        pdus={"pdu-a": PDU},
        credentials_for=["pdu-a"],
        wiring=WIRING,
    )


def notes(plan, **outlets):
    """What is said of a wiring with these outlets changed (`board0="6"`)."""
    wiring = {
        board: dict(wire, outlet=outlets.get(f"board{board}", wire["outlet"])) for board, wire in plan.wiring.items()
    }
    found = Findings()
    plan = replace(plan, wiring=wiring)
    preflight.wiring(plan, preflight.boards_of(plan, found), found)
    assert not found.defects, "the file may be written: no verb switches what is in doubt"
    return [str(note) for note in found.notes]


def test_a_wiring_as_the_records_have_it_is_not_spoken_of(plan):
    assert notes(plan) == []
    renamed = replace(
        plan,
        pdus={"rack-1": PDU},
        credentials_for=["rack-1"],
        wiring={n: dict(w, pdu="rack-1") for n, w in WIRING.items()},
    )
    assert notes(renamed) == [], "a PDU may get another name"


def test_two_outlets_that_are_swapped_are_said_of_both(plan):
    first, second = notes(plan, board0="6", board1="5")
    assert first.startswith(
        "board0: its wiring names pdu-a outlet 6, by which carol on board1 had power last, and jackie had its power by "
        "pdu-a outlet 5 last: nothing is switched: correct tftp_proxy_boards"
    )
    assert "reconcile -e adopt=jackie takes the wiring's word" in first
    assert second.startswith("board1: its wiring names pdu-a outlet 5, by which jackie on board0 had power last")


def test_a_free_board_that_gets_a_tenants_outlet_is_said(plan):
    both = notes(plan, board1="9", board2="6")
    assert [note.split(":")[0] for note in both] == ["board1", "board2"]
    assert "pdu-a outlet 6, by which carol on board1 had power last" in both[1]


def test_a_record_that_knows_no_outlet_goes_by_the_file_that_is_there(plan, tmp_path):
    """Lost: the warning for instances of an earlier release."""
    ClaimRecords(str(tmp_path / FOLDER)).write(0, kept(0, "jackie", None))
    (said,) = notes(plan, board0="9")
    assert "its wiring names pdu-a outlet 9, and jackie had its power by pdu-a outlet 5 last" in said


def test_a_second_name_of_a_tenants_pdu_is_said(plan):
    """Lost: the warning that a board is to get a tenant's outlet, by another name of its PDU."""
    pdus = {"pdu-a": PDU, "pdu-c": dict(PDU, port=23, transport="telnet")}
    wiring = {"0": WIRING["0"], "2": {"pdu": "pdu-c", "outlet": "6"}, "1": {"pdu": "pdu-a", "outlet": "9"}}
    both = notes(replace(plan, pdus=pdus, credentials_for=list(pdus), wiring=wiring))
    assert "board2: its wiring names pdu-c outlet 6, by which carol on board1 had power last" in both[1]


def test_who_never_ran_had_no_power_by_what_the_wiring_named(plan, tmp_path):
    """Lost: trust in what is said: `had its power by` an outlet that never was there."""
    made = replace(kept(0, "jackie", None), ran=False, state="error")
    ClaimRecords(str(tmp_path / FOLDER)).write(0, made)
    assert notes(plan, board0="9") == []


def test_a_board_in_use_without_an_outlet_is_said(plan):
    wiring = {number: wire for number, wire in WIRING.items() if number != "0"}
    (unwired, said) = notes(replace(plan, wiring=wiring))
    assert said == (
        "board0: no outlet feeds it any more, and jackie had its power by pdu-a outlet 5 last: no verb can switch it: "
        "name its pdu and outlet in tftp_proxy_boards"
    )
    assert unwired.startswith("board0: no outlet feeds it")


def test_a_node_without_records_has_nothing_to_say(plan, tmp_path):
    assert notes(replace(plan, state_folder=str(tmp_path / "new"), config=str(tmp_path / "none")), board0="9") == []


def test_a_record_that_cannot_be_read_is_said_once(plan, tmp_path):
    """Lost: the one line that matters, among one for each board that may have power by the outlet which it named."""
    (tmp_path / FOLDER / "board0.json").write_text("{")
    (said,) = notes(plan)
    assert "board0.json" in said
    assert "cannot be read" in said


def test_one_damaged_record_keeps_no_other_boards_doubt_from_being_said(plan, tmp_path):
    """Lost: the warning that carol's board is to be switched by another outlet, to jackie's damaged record."""
    (tmp_path / FOLDER / "board0.json").write_text("{")
    found, boards = Findings(), preflight.boards_of(plan, Findings())
    swapped = replace(plan, wiring={**plan.wiring, "1": {"pdu": "pdu-a", "outlet": "9"}})
    wiring_check.contradictions(swapped, boards, found)
    first, second = found.notes
    assert "board0.json" in str(first)
    assert second.thing == "board1"
    assert "names pdu-a outlet 9, and carol had its power by pdu-a outlet 6 last" in second.what
