# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wiring that names another outlet than the one by which an instance has its power. If these fail, a slip in proxy.json
has one tenant's verb cut another tenant's power; or a board that was plugged elsewhere can never be switched again.
"""

from __future__ import annotations

import json
import shutil
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY, OTHER_KEY


def boot(site, state="running", board=0, name="jackie", **given):
    return site.module("tilera_boot", boards=[board], state=state, instance=name, timeout=10, **given)


def stop(site, board=0, name="jackie", **given):
    return boot(site, "stopped", board, name, keep=True, **given)


def reconcile(site, **given):
    return site.module("board_reconcile", timeout=5, **given)


def found(result, board=0):
    return [(entry["found"], entry["done"]) for entry in result["boards"][board]["found"]]


def swap(site, first=0, second=1):
    """In the wiring only."""
    boards = json.loads((site.folder / "proxy.json").read_text())["boards"]
    site.wire(first, outlet=boards[str(second)]["outlet"])
    site.wire(second, outlet=boards[str(first)]["outlet"])


def move_plug(site, board, outlet):
    """A running board's cable goes to another outlet, as of one with two power supplies."""
    old = json.loads((site.folder / "proxy.json").read_text())["boards"][str(board)]["outlet"]
    site.pdu(**{f"board{int(old) - 1}": "off", f"board{int(outlet) - 1}": "on"})
    site.wire(board, outlet=outlet)


def record(site, board=0):
    return site.state / "claims" / f"board{board}.json"


def forget(site, board=0):
    """A record as an earlier release wrote it."""
    kept = json.loads(record(site, board).read_text())
    kept.pop("fed", None)
    record(site, board).write_text(json.dumps(kept))


def is_refused(result, *names, board="board0"):
    assert result.get("failed"), result
    assert "nothing is switched" in result["msg"]
    assert all(name in result["msg"] for name in (board, *names)), result["msg"]


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


@pytest.fixture
def three(ten):
    """Jackie on board 0, Carol on board 1, of ten boards."""
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    return ten


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("verb", ["stop", "terminate", "reboot", "rebuild"])
def test_swapped_outlets_in_the_wiring_cost_nobody_power(tenants, verb, check):
    """Lost: Carol's work, by what is done to Jackie's instance."""
    there = tenants.what_is_there()
    swap(tenants)
    claim = tenants.record(0).claim
    result = {
        "stop": lambda: stop(tenants, check=check),
        "terminate": lambda: boot(tenants, "stopped", check=check),
        "reboot": lambda: boot(tenants, "rebooted", how="hard", check=check),
        "rebuild": lambda: tenants.module(
            "board_rebuild", instance="jackie", image="debian-13", ssh_public_key=OTHER_KEY, check=check
        ),
    }[verb]()
    is_refused(result, "pdu-a outlet 2", "pdu-a outlet 1", "hetero.compute.cabling", "adopt=jackie")
    assert tenants.what_is_there() == there
    assert tenants.record(0).claim == claim
    swap(tenants)
    assert not any(result.get("failed") for result in tenants.terminate())
    assert tenants.outlets() == {"1": "off", "2": "on"}


def test_an_ended_lease_cuts_nobody_elses_power(tenants):
    """Lost: Carol's work, when Jackie's lease is over: nobody looks at what the reaper does."""
    tenants.expire()
    there = tenants.what_is_there()
    swap(tenants)
    assert tenants.turn()["failed"]
    assert tenants.what_is_there() == there


def test_who_starts_a_stopped_instance_cuts_nobodys_power(tenants):
    """Lost: Carol's work: her outlet is on, so it was cycled for Jackie's board."""
    assert not stop(tenants).get("failed")
    swap(tenants)
    there = tenants.what_is_there()
    is_refused(boot(tenants), "pdu-a outlet 2", "pdu-a outlet 1")
    assert tenants.what_is_there()["power"] == there["power"]
    swap(tenants)
    assert not boot(tenants).get("failed")


def test_who_starts_proves_that_the_old_outlet_is_off(three):
    """Lost: what another outlet feeds, switched on for Jackie, whose board may have its power by the old one."""
    assert not stop(three).get("failed")
    three.pdu(board0="on")
    three.wire(0, outlet="3")
    for check in (True, False):
        is_refused(boot(three, check=check), "pdu-a outlet 3 (off)", "pdu-a outlet 1 last (on)")
    assert [three.outlets()[outlet] for outlet in "123"] == ["on", "on", "off"]


def test_a_boot_that_stalls_after_the_wiring_was_changed_costs_nobody_power(tenants):
    """Lost: Carol's power, by who waits for a boot that another call began by the right outlet."""
    tenants.wire(0, fake={"tftp": 0.0, "nfs": 0.0, "running": 86400.0})
    assert not boot(tenants, "rebooted", how="hard", wait=False).get("failed")
    swap(tenants)
    result = tenants.module("tilera_boot", boards=[0], instance="jackie", timeout=15, retries=0)
    assert result.get("failed"), result
    assert "it may be at work and its outlet stays on" in result["msg"]
    assert tenants.outlets() == {"1": "on", "2": "on"}


def test_an_older_database_forgets_no_outlet(tenants):
    """Lost: Carol's work, where the database was put back from a backup and the wiring was changed meanwhile."""
    with tenants.proxy() as proxy:
        proxy.store._db.write("DELETE FROM events")
    copy = backups.make(tenants.params["state_db"])
    for path in tenants.state.glob("state.db*"):
        path.unlink()
    shutil.copy(copy, tenants.params["state_db"])
    swap(tenants)
    is_refused(stop(tenants))


def test_other_boards_of_the_call_go_on(three):
    """Lost: what was asked of many boards, by the wiring of one."""
    swap(three, 0, 2)
    result = three.module("tilera_boot", boards=[0, 1], state="stopped", keep=True, timeout=10)
    is_refused(result, "pdu-a outlet 3", "pdu-a outlet 1")
    assert [board["failed"] for board in result["boards"]] == [True, False]
    assert [three.outlets()[outlet] for outlet in "123"] == ["on", "off", "off"]


def test_one_that_runs_is_left_alone_by_who_asks_for_it_again(tenants):
    """Lost: each rerun of a request, though nothing is to be switched."""
    swap(tenants)
    assert not any(result.get("failed") or result["changed"] for result in tenants.provision())


def test_a_free_board_is_not_switched_off_by_a_tenants_outlet(three):
    """Lost: Jackie's power, by reconcile's tidying up of a board that nobody has: no outlet that is off tells of it."""
    three.pdu(board3="on")
    for board, outlet in enumerate("2413"):
        three.wire(board, outlet=outlet)
    there = three.outlets()
    for _turn in range(2):
        assert {done for _text, done in found(reconcile(three), 2)} == {None}
    is_refused(three.module("tilera_boot", boards=[2], state="stopped", timeout=10), board="board2")
    assert three.outlets() == there


def test_a_request_for_such_a_board_says_whose_outlet_its_wiring_names(three):
    """Lost: an hour at the board, which is not at fault; `somebody may be at work there` named neither who nor why."""
    swap(three, 0, 2)
    request = dict(owner="frank", flavor=FLAVOR, image="debian", ssh_public_key=KEY, board=2)
    result = three.module("instance", kind="board", instance="frank", state="running", timeout=10, **request)
    assert "board2: its wiring names pdu-a outlet 1, by which jackie on board0 had power last" in result["msg"]
    assert (three.record(2).state, three.record(2).claim) == ("power off", None)
    assert [three.outlets()[outlet] for outlet in "123"] == ["on", "on", "off"]


# ---- boards that were really plugged elsewhere


def test_boards_that_are_off_start_by_their_new_outlets(tenants):
    """Lost: two instances, after their plugs were swapped while both were stopped."""
    for board, name in ((0, "jackie"), (1, "carol")):
        assert not stop(tenants, board, name).get("failed")
    swap(tenants)
    for board, name in ((0, "jackie"), (1, "carol")):
        result = boot(tenants, board=board, name=name)
        assert not result.get("failed"), result
    assert not stop(tenants).get("failed")
    assert tenants.outlets() == {"1": "on", "2": "off"}
    assert not boot(tenants).get("failed")
    # the wiring of before would have Carol's verbs cut Jackie's power
    swap(tenants)
    is_refused(stop(tenants))
    assert stop(tenants, 1, "carol").get("failed")
    assert tenants.outlets() == {"1": "on", "2": "on"}


def test_an_outlet_that_another_board_came_up_by_is_not_taken_for_ones_own(tenants):
    """Lost: Jackie's power, cycled for Carol's stopped board, where the wiring of before the plugs were swapped is put
    back: her record knows of nothing else.
    """
    for board, name in ((0, "jackie"), (1, "carol")):
        assert not stop(tenants, board, name).get("failed")
    swap(tenants)
    assert not boot(tenants).get("failed")
    swap(tenants)
    result = boot(tenants, board=1, name="carol")
    is_refused(result, "feeds board0 since", "by which jackie on board0 had power last", board="board1")
    assert tenants.outlets() == {"1": "off", "2": "on"}


@pytest.mark.parametrize("first", ["reconcile", "stop"])
def test_a_running_board_proves_its_new_outlet(three, first):
    """Lost: the way on after a plug was moved: only its old outlet is off, and the board runs."""
    move_plug(three, 0, "3")
    if first == "reconcile":
        dry = reconcile(three, check=True)
        assert found(dry) == [("rewired: was pdu-a outlet 1, is pdu-a outlet 3", "would be noted")]
        assert found(reconcile(three)) == [("rewired: was pdu-a outlet 1, is pdu-a outlet 3", "noted")]
        assert not reconcile(three)["changed"]
    assert not stop(three).get("failed")
    assert [three.outlets()[outlet] for outlet in "123"] == ["off", "on", "off"]
    with three.proxy() as proxy:
        assert any("rewired: was pdu-a outlet 1" in event.text for event in proxy.store.events(boards=[0]))


def test_an_outlet_that_another_instance_has_is_not_taken(three):
    """Lost: Carol's power, by a plug that was moved to one outlet and written down as moved to hers."""
    three.pdu(board0="off", board2="on")
    three.wire(0, outlet="2")
    three.wire(1, outlet="3")
    text = found(reconcile(three))[0][0]
    assert "carol" in text
    is_refused(stop(three), "carol")
    assert three.outlets()["2"] == "on"


def test_an_operators_word_settles_what_no_outlet_tells(tenants):
    """Lost: two instances whose plugs were swapped while both run: nothing proves that, for ever."""
    swap(tenants)
    for _turn in range(2):
        ((text, done),) = found(reconcile(tenants))
        assert (done, "nothing is switched" in text) == (None, True)
    result = reconcile(tenants, adopt=["jackie", "carol"])
    for board in (0, 1):
        assert [done for _text, done in found(result, board)] == ["noted, by an operator's word"]
    assert not reconcile(tenants)["changed"]
    assert not stop(tenants).get("failed")
    assert tenants.outlets() == {"1": "on", "2": "off"}


def test_a_word_for_one_takes_the_outlet_from_the_other(tenants):
    """Lost: Jackie's power, by Carol's verb, after an operator said whose the outlet is and put the wiring back."""
    swap(tenants)
    reconcile(tenants, adopt=["jackie"])
    swap(tenants)
    assert "jackie" in stop(tenants, 1, "carol")["msg"]
    assert tenants.outlets() == {"1": "on", "2": "on"}


# ---- PDUs


def pdus(site, pdus, **of):
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"] = {name: {"driver": "fake", "path": str(site.folder / file)} for name, file in pdus.items()}
    for board, wires in config["boards"].items():
        wires["pdu"] = of.get(f"board{board}", next(iter(pdus)))
    path.write_text(json.dumps(config))


def test_a_pdu_of_another_name_is_the_same(tenants):
    """Lost: all instances of a PDU, for a new name of it."""
    pdus(tenants, {"rack1": "pdu-a.json"})
    assert not stop(tenants).get("failed")
    assert not boot(tenants).get("failed")
    pdus(tenants, {"pdu-a": "pdu-a.json"})
    assert not stop(tenants).get("failed")


def test_swapped_names_of_pdus_are_not_the_same(tenants):
    """Lost: the power of whoever has that outlet of the other PDU."""
    (tenants.folder / "other.json").write_text(json.dumps({"outlets": {"1": "on", "2": "on"}}))
    pdus(tenants, {"pdu-a": "other.json", "pdu-b": "pdu-a.json"})
    is_refused(stop(tenants), "pdu-a outlet 1", "pdu-b outlet 1")
    assert json.loads((tenants.folder / "other.json").read_text())["outlets"] == {"1": "on", "2": "on"}


def test_a_pdu_that_is_gone_cannot_be_asked(tenants):
    """Lost: whoever has the outlet of that number on the new PDU; or Jackie's instance, for a PDU that broke."""
    other = tenants.folder / "other.json"
    other.write_text(json.dumps({"outlets": {"1": "on", "2": "on"}}))
    pdus(tenants, {"pdu-b": "other.json"})
    is_refused(stop(tenants), "pdu-a outlet 1 last (not in the configuration any more)", "adopt=jackie")
    assert [done for _text, done in found(reconcile(tenants, adopt=["jackie"]))] == ["noted, by an operator's word"]
    assert not stop(tenants).get("failed")
    assert json.loads(other.read_text())["outlets"] == {"1": "off", "2": "on"}
    # Carol's is off by the new one and silent: what is off is nobody's work
    other.write_text(json.dumps({"outlets": {"1": "off", "2": "off"}}))
    tenants.cut(1)
    other.write_text(json.dumps({"outlets": {"1": "off", "2": "off"}}))
    result = boot(tenants, board=1, name="carol")
    assert not result.get("failed"), result


def test_a_pdu_that_does_not_answer_proves_nothing(three):
    """Lost: Carol's power: what cannot be read is no outlet that is off."""
    (three.folder / "other.json").write_text(json.dumps({"outlets": {"1": "on"}}))
    pdus(three, {"pdu-a": "gone.json", "pdu-b": "other.json"}, board0="pdu-b")
    (three.folder / "gone.json").write_text("{")
    is_refused(stop(three), "pdu-b outlet 1")
    assert json.loads((three.folder / "other.json").read_text())["outlets"] == {"1": "on"}


# ---- claims of which no outlet is known


def test_a_record_of_an_earlier_release_learns_its_outlet(tenants):
    """Lost: all instances at an update; or what keeps their power for ever after it."""
    for way in (reconcile, lambda site: site.provision()):
        forget(tenants)
        way(tenants)
        swap(tenants)
        is_refused(stop(tenants))
        swap(tenants)
    forget(tenants)
    assert not stop(tenants).get("failed")


def test_nobody_learns_an_outlet_that_another_instance_has(tenants):
    """Lost: Carol's power: the wiring was wrong already when Jackie's record was first written."""
    forget(tenants)
    swap(tenants)
    reconcile(tenants)
    is_refused(stop(tenants), "carol")
    assert tenants.outlets() == {"1": "on", "2": "on"}


def test_a_claim_that_was_never_started_has_no_outlet(site):
    """Lost: each request whose board was wired otherwise between its claim and its start."""
    request = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert not site.module("board_claim", **request).get("failed")
    swap(site)
    assert not any(result.get("failed") for result in site.provision())
    assert site.outlets() == {"1": "off", "2": "on"}


def test_status_says_why(tenants):
    """Lost: the reason, for who looks at the board before anything is asked of it."""
    swap(tenants)
    note = tenants.module("board_info", boards=[0])["boards"][0]["note"]
    assert all(text in note for text in ("pdu-a outlet 2", "pdu-a outlet 1", "jackie"))


def test_status_says_of_a_free_board_whose_outlet_its_wiring_names(three):
    """Lost: before reconcile has run, nobody sees why that board is given to nobody, and flavors count it as free."""
    swap(three, 1, 3)
    shown = three.module("board_info")["boards"]
    assert shown[3]["note"] == shown[3]["withheld"]
    assert "its wiring names pdu-a outlet 2, by which carol on board1 had power last" in shown[3]["note"]
    assert shown[1]["withheld"] is None
    assert "carol had its power by pdu-a outlet 2 last" in shown[1]["note"]
    assert [board["withheld"] for board in shown if board["id"] not in (1, 3)] == [None] * 8


def test_a_word_for_a_record_is_none_for_its_outlet(tenants):
    """Lost: Carol's power: her outlet is in Jackie's wiring by a slip, reconcile asks for a word for a record only."""
    swap(tenants)
    record(tenants).write_text("{")
    ((text, done),) = found(reconcile(tenants))
    assert (done, "reconcile -e adopt=jackie has it written anew" in text) == (None, True)
    (anew, outlet) = found(reconcile(tenants, adopt=["jackie"]))
    assert anew[1] == "written anew, the record only (root and board are not touched)"
    assert (outlet[1], "its wiring names pdu-a outlet 2" in outlet[0]) == (None, True)
    is_refused(stop(tenants), "pdu-a outlet 2")
    assert tenants.outlets()["2"] == "on"


def test_a_stopped_instances_key_proves_no_outlet(tenants):
    """Lost: Carol's power, by a slip in the wiring and a machine that shows Jackie's key while her board is off."""
    assert not stop(tenants).get("failed")
    forget(tenants, 1)
    swap(tenants)
    played = tenants.run_folder / "fake-boots" / "board0"
    played.write_text(json.dumps(dict(json.loads(played.read_text()), on=time.monotonic())))
    stop(tenants)
    assert tenants.outlets()["2"] == "on"


def test_a_word_for_an_outlet_counts_against_a_record_without_a_claim(ten):
    """Lost: an instance that nobody can stop, while reconcile says each time that it noted the outlet."""
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    for path in ten.state.glob("state.db*"):
        path.unlink()
    for point in reversed(mounts_below(str(ten.state / "board-roots" / "fs_1"))):
        unmount(point)
    shutil.rmtree(ten.state / "board-roots" / "fs_1")
    ten.cut(1)
    reconcile(ten)
    assert not stop(ten).get("failed")
    swap(ten)
    assert not boot(ten).get("failed")  # it came up by outlet 2, with its key
    reconcile(ten, adopt=["jackie"])
    assert not reconcile(ten, adopt=["jackie"])["boards"][0]["changed"], "noted again"
    result = stop(ten)
    assert not result.get("failed"), result


def test_no_remedy_of_maintenance_names_a_tenants_outlet(three):
    """Lost: a tenant's power, by the command that a message prints: it is in a free board's wiring by a slip."""
    swap(three, 1, 5)
    given = dict(boards=[5], state="on", reason="look")
    assert not three.module("board_maintenance", **given).get("failed")
    result = three.module("board_maintenance", boards=[5], state="off")
    is_refused(result, "stays in maintenance", "by which carol on board1 had power last", board="board5")
    assert "switch pdu-a outlet" not in result["msg"]


def test_no_word_takes_an_outlet_that_is_off_under_a_running_board(three):
    """Lost: a running instance, which its next stop puts out of use: what is seen beats the word."""
    three.wire(0, outlet="8")
    ((text, done),) = [entry for entry in found(reconcile(three, adopt=["jackie"])) if "its wiring names" in entry[0]]
    assert done is None, text
    is_refused(stop(three), "pdu-a outlet 8")
    three.wire(0, outlet="1")
    assert not stop(three).get("failed")


def test_no_verb_offers_a_word_that_reconcile_would_not_take(three):
    """Lost: time, with a command that is printed and then refused by what the verb itself has seen."""
    swap(three, 1, 3)
    result = stop(three, 1, "carol")
    is_refused(result, "pdu-a outlet 4 (off)", "pdu-a outlet 2 last (on)", "correct tftp_proxy_boards", board="board1")
    assert "board1 answers while the outlet of its wiring is off, so no word is taken for that wiring" in result["msg"]
    assert "adopt=" not in result["msg"]
    (said,) = [line["text"] for line in result["lines"] if line["phase"] == "error"]
    assert said in result["msg"]
    assert "nothing is switched" not in said, "what to do is said once, where the verb ends"


# ---- a board that nobody has, by an outlet that somebody had power by


def test_a_board_whose_outlet_feeds_somebody_is_passed_over(three):
    """Lost: a sound board, kept out of use for each slip in the wiring; or Carol's power."""
    three.wire(2, outlet="2")
    request = dict(
        kind="board", state="running", timeout=10, owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY
    )
    for check in (True, False):
        named = three.module("instance", instance="bob", board=2, check=check, **request)
        assert named["failed"]
        assert "its wiring names pdu-a outlet 2, by which carol on board1 had power last" in named["msg"]
        assert not named["changed"]
    result = three.module("instance", instance="bob", **request)
    assert not result.get("failed"), result
    assert [one["board"] for one in result["instances"]] == [3]
    assert (three.record(2).state, three.record(2).claim) == ("power off", None)
    assert three.outlets()["2"] == "on"


def test_who_never_had_power_is_not_to_be_adopted(three):
    """Lost: Carol's power, by the word that was offered for Bob, who never ran."""
    request = dict(owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert three.module("board_claim", instance="bob", **request)["boards"][0]["board"] == 2
    assert not three.module("board_image", boards=[2], image="debian", instance="bob").get("failed")
    three.wire(2, outlet="2")
    for _time in range(2):
        said = " ".join(text for text, _done in found(reconcile(three), 2))
        assert "by which carol on board1 had power last: nothing is switched: correct tftp_proxy_boards" in said
        assert "name the outlet there of carol, too: ansible-playbook hetero.compute.reconcile -e adopt=carol" in said
        assert "adopt=bob" not in said
        assert boot(three, board=2, name="bob")["failed"]
    # Carol's plug is in another outlet: as it says
    three.pdu(board1="off", board8="on")
    three.wire(1, outlet="9")
    reconcile(three, adopt=["carol"])
    assert not boot(three, "stopped", board=2, name="bob").get("failed")
    assert not boot(three, board=2, name="bob").get("failed")
    assert (three.outlets()["2"], three.outlets()["9"]) == ("on", "on")
