# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of claims that are lost, or cannot be read, beside a database that may be older than they were. If these
fail, an instance is ended before its lease, or loses its power to a slip in the wiring; or nothing leads out of it.

Tests nodes/proxy/backup.py.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import ClaimRecords
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import backup
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, is_refused, stop, swap


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


# ---- leases


@pytest.fixture
def extended(jackie):
    """Jackie, whose lease was extended after the backup that was put back; her claim's record is lost."""
    jackie.expire()
    copy = backups.make(jackie.params["state_db"])
    with jackie.proxy() as proxy:
        proxy.store.put("jackie", expires=None)
    put_back(jackie, copy)
    record(jackie).unlink()
    return jackie


@pytest.mark.parametrize("meanwhile", ["nothing", "backup", "reboot", "reconcile", "all records", "rebuild"])
def test_a_lease_whose_record_is_lost_is_not_ended(extended, meanwhile):
    """Lost: an instance whose lease was extended since the backup, whatever wrote the older end down again."""
    if meanwhile == "backup":
        backup.main(["--config", extended.params["config"]])
    elif meanwhile == "reboot":
        assert not any(result.get("failed") for result in extended.reboot())
    elif meanwhile == "reconcile":
        reconcile(extended)
    elif meanwhile == "rebuild":
        (refused, *_rest) = [result for result in extended.rebuild() if result.get("failed")]
        assert "the record of jackie's claim is lost" in refused["msg"]
    elif meanwhile == "all records":
        shutil.rmtree(record(extended).parent)
        assert not any(result.get("failed") for result in extended.provision("carol"))
        backup.main(["--config", extended.params["config"]])
    turn = extended.turn()
    assert turn["failed"]
    assert "the record of its claim is lost" in turn["said"][0]
    assert "jackie" in extended.what_is_there()["claims"]
    assert extended.outlets()["1"] == "on"
    assert extended.root_is_whole()


@pytest.mark.parametrize("written", [None, "{"])
def test_who_extends_such_a_lease_reads_in_a_line_what_it_waits_for(extended, written):
    """Lost among 400 characters: the command that lets the lease end."""
    if written:
        record(extended).write_text(written)
    (said,) = [line["text"] for line in extended.lease(30)["lines"]]
    what = "what it says of a claim cannot be read" if written else "the record of jackie's claim is lost"
    way = "ansible-playbook hetero.compute.reconcile -e adopt=jackie"
    assert re.search(rf"; but .*{what}.*: it is not ended until {way} has that written anew$", said), said
    assert len(said) < 400


def test_a_lost_record_is_written_anew_by_an_operators_word(extended):
    """Lost: the end of a lease, for ever; or whoever extends it, for nobody says that it must be done."""
    for adopt in ([], ["bob"]):
        ((text, done),) = found(reconcile(extended, adopt=adopt))
        assert "the record of jackie's claim is lost, and the database may be older than what it said" in text
        assert (text.endswith("reconcile -e adopt=jackie has it written anew"), done) == (True, None)
        assert not record(extended).exists()
    assert (
        found(reconcile(extended, adopt=["jackie"], check=True))[0][1]
        == "would be written anew, the record only (root and board are not touched)"
    )
    assert (
        found(reconcile(extended, adopt=["jackie"]))[0][1]
        == "written anew, the record only (root and board are not touched)"
    )
    assert not extended.turn()["failed"]
    assert extended.what_is_there() == extended.clean()


def test_claims_of_an_earlier_release_end_with_their_leases(jackie):
    """Lost: the ends of all leases, at an update from a release that kept no records."""
    jackie.expire()
    shutil.rmtree(record(jackie).parent)
    with closing(sqlite3.connect(jackie.params["state_db"])) as db:
        db.execute("DELETE FROM events WHERE phase = 'records'")
        db.commit()
    assert not any(result.get("failed") for result in jackie.provision("carol")), "makes the folder of records"
    with jackie.proxy() as proxy:
        assert proxy.store.kept_boards() == [0, 1]
    assert not jackie.turn()["failed"]
    assert list(jackie.what_is_there()["claims"]) == ["carol"]


# ---- outlets


def damage(site, *boards, how="unreadable"):
    for board in boards:
        record(site, board).unlink() if how == "lost" else record(site, board).write_text("{")


@pytest.mark.parametrize("how", ["unreadable", "lost"])
@pytest.mark.parametrize("verb", ["stop", "terminate", "reboot", "written anew"])
def test_swapped_outlets_and_damaged_records_cost_nobody_power(tenants, verb, how):
    """Lost: Carol's work, by what is done to Jackie's instance, where nobody knows any more what fed either."""
    damage(tenants, 0, 1, how=how)
    swap(tenants)
    if verb == "written anew":
        result = reconcile(tenants, adopt=["jackie", "carol"])
        assert found(result)[0][1].startswith("written")
    way = {"terminate": lambda: boot(tenants, "stopped"), "reboot": lambda: boot(tenants, "rebooted", how="hard")}
    result = way.get(verb, lambda: stop(tenants))()
    is_refused(result, "pdu-a outlet 2", "may feed carol on board1", "reconcile -e adopt=jackie")
    assert tenants.outlets() == {"1": "on", "2": "on"}


@pytest.mark.parametrize("boards", [[0], [0, 1]])
def test_terminate_ends_a_lost_record_where_no_other_is_lost(tenants, boards):
    """Lost: the time of whoever reads the guide to errors, and is refused what it names as the way out."""
    (row,) = [
        cells for cells in guide("errors").split("   * - ") if cells.startswith("``the record of its claim is lost``")
    ]
    assert "``terminate_instance`` ends the instance all the same, where no other board's record is lost" in " ".join(
        row.split()
    )
    damage(tenants, *boards, how="lost")
    result = tenants.terminate()[-1]
    assert bool(result.get("failed")) == (len(boards) > 1)
    if len(boards) > 1:
        is_refused(result, "which may feed carol on board1")


@pytest.mark.parametrize("how", ["unreadable", "lost"])
def test_a_board_whose_outlet_is_known_goes_on_beside_a_damaged_record(tenants, how):
    """Lost: what all tenants can do, by the record of one."""
    damage(tenants, 1, how=how)
    assert not boot(tenants, "rebooted", how="hard").get("failed")
    assert not stop(tenants).get("failed")
    assert tenants.outlets() == {"1": "off", "2": "on"}
    assert not boot(tenants).get("failed")


@pytest.mark.parametrize("how", ["unreadable", "lost"])
def test_an_operators_word_leads_out_of_damaged_records(tenants, how):
    """Lost: power over both instances, for ever: what is printed is refused."""
    damage(tenants, 0, 1, how=how)
    for _turn in range(2):
        is_refused(stop(tenants), "may feed carol on board1", "run it twice")
        reconcile(tenants, adopt=["jackie"])
    assert not stop(tenants).get("failed")
    assert tenants.outlets() == {"1": "off", "2": "on"}
    # carol's board cannot have that outlet any more; and what is off is nobody's work
    assert not boot(tenants).get("failed")
    for _turn in range(2):
        reconcile(tenants, adopt=["carol"])
    assert not stop(tenants, 1, "carol").get("failed")
    assert not reconcile(tenants)["changed"]


@pytest.mark.parametrize("power", ["on", "off"])
@pytest.mark.parametrize("how", ["unreadable", "lost"])
def test_the_first_of_two_words_says_that_there_is_a_second(jackie, how, power):
    """Lost: power over an instance, to who gave the word that was asked for and is refused as before."""
    jackie.lease(1)
    if power == "off":
        assert not stop(jackie).get("failed")
    damage(jackie, 0, how=how)
    (written, told) = found(reconcile(jackie, adopt=["jackie"]))
    assert written[1] == "written anew, the record only (root and board are not touched)"
    typed = "ansible-playbook hetero.compute.reconcile -e adopt=jackie"
    assert told[0].startswith("it has a record again, which names no outlet yet: ")
    assert told[0].endswith(f"run it again: {typed}")
    assert told[1] is None
    (noted,) = found(reconcile(jackie, adopt=["jackie"]))
    assert noted[1] == "noted, by an operator's word"
    assert found(reconcile(jackie)) == []


def test_the_first_of_two_words_says_so_beside_another_damaged_record(tenants):
    """Lost: the same: what was printed after the first said to give it twice."""
    damage(tenants, 0, 1)
    told = found(reconcile(tenants, adopt=["jackie"]))[-1][0]
    assert "may feed carol on board1" in told
    assert told.endswith("run it again: ansible-playbook hetero.compute.reconcile -e adopt=jackie")


def test_a_key_proves_no_outlet_that_a_damaged_record_may_name(ten):
    """Lost: Carol's power, by a plug that was moved to a third outlet and written down as moved to hers."""
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    damage(ten, 1)
    ten.pdu(board0="off", board2="on")
    ten.wire(0, outlet="2")
    assert {done for _text, done in found(reconcile(ten))} == {None}
    is_refused(stop(ten), "may feed carol on board1", "pdu-a outlet 1 last (off)")
    assert ten.outlets()["2"] == "on"
    ten.wire(0, outlet="3")
    ten.wire(1, outlet="2")
    assert not stop(ten, 1, "carol").get("failed"), "nobody else's outlet is unknown"


def test_a_new_instance_starts_beside_a_damaged_record(site):
    """Lost: each request, by the record of one claim: an outlet that is off feeds nobody."""
    assert not any(result.get("failed") for result in site.provision())
    damage(site, 0)
    assert not any(result.get("failed") for result in site.provision("carol"))
    assert site.outlets() == {"1": "on", "2": "on"}
    assert not stop(site, 1, "carol").get("failed")


def test_a_rebuild_forgets_no_lease_that_cannot_be_read(extended):
    """Lost: an instance whose lease was extended, to its own rebuild, which had the record written anew."""
    record(extended).write_text("{")
    (refused, *_rest) = [result for result in extended.rebuild() if result.get("failed")]
    assert "cannot be read" in refused["msg"]
    assert "reconcile -e adopt=jackie has it written anew" in refused["msg"]
    assert extended.turn()["failed"]
    reconcile(extended, adopt=["jackie"])
    assert not any(result.get("failed") for result in extended.rebuild())


def test_a_lease_is_not_ended_where_what_holds_the_roots_is_not_mounted(extended):
    """Lost: a running instance whose lease was extended: neither its record nor its root can be seen just now."""
    roots = extended.state / "board-roots"
    roots.rename(extended.state / "not-mounted")
    turn = extended.turn()
    assert turn["failed"]
    assert "the record of its claim is lost" in turn["said"][0]
    assert "jackie" in extended.what_is_there()["claims"]
    assert extended.outlets()["1"] == "on"


def test_an_end_that_was_cut_off_is_ended(tenants):
    """Lost: a board, for ever, by a power cut between the end of its record and the database's."""
    tenants.expire()
    with tenants.proxy() as proxy:
        kept = proxy.store.record(0)
    real = ClaimRecords.remove

    def cut(records, board):
        real(records, board)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClaimRecords, "remove", cut)
        with pytest.raises(AssertionError, match="KeyboardInterrupt"):
            tenants.turn()
    assert not record(tenants).exists()
    with tenants.proxy() as proxy:
        assert proxy.store.record(0).claim == kept.claim
    assert not tenants.turn()["failed"]
    assert list(tenants.what_is_there()["claims"]) == ["carol"]


def test_one_lost_record_learns_its_outlet_by_a_word(tenants):
    """Lost: a tenant's power, to a guess: by a wiring that was changed by mistake another outlet may be on as well."""
    damage(tenants, 0, how="lost")
    (written, told) = found(reconcile(tenants))
    assert written[1] == "written beside it, too"
    assert told[1] is None
    assert "what feeds it is not known" in told[0]
    assert "reconcile -e adopt=jackie takes its word" in told[0]
    with tenants.proxy() as proxy:
        assert proxy.store.kept(0).fed is None
    assert found(reconcile(tenants, adopt=["jackie"])) == [
        ("what feeds it was not known", "noted, by an operator's word")
    ]
    with tenants.proxy() as proxy:
        assert proxy.store.kept(0).fed.outlet == "1"
    kept = json.loads(record(tenants).read_text())
    assert not reconcile(tenants)["changed"]
    assert json.loads(record(tenants).read_text()) == kept


@pytest.mark.parametrize("words", [[], ["jackie"]])
def test_a_lost_record_a_slip_in_the_wiring_and_a_free_board_that_is_on(ten, words):
    """Lost: Jackie's power, by tidying up: the wiring of her board and a free one was swapped by mistake."""
    assert not any(result.get("failed") for result in ten.provision())
    damage(ten, 0, how="lost")
    ten.pdu(board3="on")
    swap(ten, 0, 3)
    reconcile(ten, adopt=words)
    assert ten.outlets()["1"] == "on"


def test_a_free_board_is_not_switched_off_by_what_may_be_a_tenants_outlet(ten):
    """Lost: Jackie's power, by tidying up: her record cannot be read, and a free board's wiring names her outlet."""
    assert not any(result.get("failed") for result in ten.provision())
    damage(ten, 0)
    ten.wire(3, outlet="1")
    result = ten.module("tilera_boot", boards=[3], state="stopped", timeout=10)
    is_refused(result, "may feed jackie on board0", "reconcile -e adopt=jackie", board="board3")
    assert ten.outlets()["1"] == "on"


def test_a_word_says_what_feeds_an_instance_that_is_off(ten):
    """Lost: a free board that is on, for ever: which outlet a stopped instance has nobody knows any more."""
    assert not any(result.get("failed") for result in ten.provision())
    assert not stop(ten).get("failed")
    damage(ten, 0)
    ten.pdu(board3="on")
    for _turn in range(2):
        is_refused(ten.module("tilera_boot", boards=[3], state="stopped", timeout=10), "run it twice", board="board3")
        reconcile(ten, adopt=["jackie"])
    assert not reconcile(ten, adopt=["jackie"])["boards"][0]["changed"]
    assert not ten.module("tilera_boot", boards=[3], state="stopped", timeout=10).get("failed")
    assert ten.outlets()["4"] == "off"
