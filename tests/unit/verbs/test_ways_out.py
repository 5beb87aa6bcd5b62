# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a record of a claim that is lost, damaged or in another board's place leads somewhere. If these fail,
a verb reports done what was not, or names a remedy that is refused, and a board or a lease is lost for ever.
"""

from __future__ import annotations

import json
import re
import shutil
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_work import BoardWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import ANOTHER, found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_another_boards_file import deploy
from ansible_collections.hetero.compute.tests.unit.verbs.test_lost_records import damage
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import forget, is_refused, stop


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


def note(site, board=0):
    """What status shows of a board."""
    return site.module("board_info")["boards"][board]["note"]


# ---- the end of an instance


@pytest.mark.parametrize("text", ["{", "", "\udcff"])
def test_terminate_ends_a_record_that_cannot_be_read(jackie, text):
    """Lost: a board, for ever, although its tenant was told that it was given back."""
    record(jackie).write_bytes(text.encode("utf-8", "surrogateescape"))
    results = jackie.terminate()
    assert not any(result.get("failed") for result in results)
    assert results[-1]["lines"][-1]["text"] == "off and clean, given back"
    assert jackie.what_is_there() == jackie.clean()
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    assert jackie.board_of("carol") == 0


def test_terminate_ends_a_copy_of_another_boards_record(tenants):
    """Lost: the same, by a hand that copied; and Carol's own record, by the end of Jackie's."""
    shutil.copy(record(tenants, 1), record(tenants))
    theirs = record(tenants, 1).read_text()
    assert tenants.terminate()[-1]["lines"][-1]["text"] == "off and clean, given back"
    assert not record(tenants).exists()
    assert record(tenants, 1).read_text() == theirs
    assert list(tenants.what_is_there()["claims"]) == ["carol"]


def ends_but_for_its_record(site):
    """Jackie's instance; what is said then."""
    left = record(site).read_text()
    results = site.terminate()
    assert not any(result.get("failed") for result in results)
    text = results[-1]["lines"][-1]["text"]
    assert text.startswith(f"off and clean, and its claim is ended; nobody gets the board yet: {record(site)}: ")
    assert "given back" not in text
    assert record(site).read_text() == left
    return text


def test_terminate_says_which_record_is_left(jackie):
    """Lost: whoever believes that the board is free, and looks for it in vain."""
    record(jackie).write_text("{")
    (jackie.state / "board-roots" / "fs_0" / "made.json").write_text("{")
    assert "remove it once it is known that nobody has the board" in ends_but_for_its_record(jackie)
    record(jackie).unlink()
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    assert jackie.board_of("bob") == 0


def test_terminate_ends_no_other_boards_only_record(tenants):
    """Lost: the only word of Carol's instance, which was moved by a hand, where the database is from before her."""
    with tenants.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    record(tenants, 1).rename(record(tenants))
    assert "that is a record of board1" in ends_but_for_its_record(tenants)
    record(tenants).rename(record(tenants, 1))
    assert found(reconcile(tenants), 1)[0][1] == "adopted"
    assert tenants.board_of("carol") == 1


def test_a_dry_terminate_writes_no_record(jackie):
    """Lost: what could still be read of a record, by a look at what would be done."""
    record(jackie).write_text("{")
    result = jackie.module("board_image", boards=[0], state="absent", instance="jackie", check=True)
    assert not result.get("failed")
    assert record(jackie).read_text() == "{"


# ---- records in another board's place


def copy_of_carols(site, place):
    shutil.copy(record(site, 1), record(site, place))


@pytest.mark.parametrize("place", [3, 99])
def test_a_copy_of_a_good_record_makes_no_outlet_unknown(ten, place):
    """Lost: what every tenant can do with a board whose outlet no record names, by a file that says nothing new."""
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in ten.provision(name))
    forget(ten)
    copy_of_carols(ten, place)
    assert not stop(ten).get("failed")
    assert ten.outlets()["1"] == "off"
    result = reconcile(ten)
    texts = [text for text, _done in found(result, 3)] if place == 3 else result["others"]
    assert any("board1" in text for text in texts), texts
    if place == 3:
        assert "that is a record of board1, not of board3" in note(ten, 3)


@pytest.mark.parametrize("how", ["of a claim", "of a root"])
def test_a_copy_over_a_record_leaves_the_outlet_unknown(ten, how):
    """Lost: Carol's power, by a slip in the wiring, where a copy was laid over the one record that knew her outlet."""
    for name in ("jackie", "carol", "eve"):
        assert not any(result.get("failed") for result in ten.provision(name))
    forget(ten)
    copy_of_carols(ten, 2)
    if how == "of a root":
        with ten.proxy() as proxy:
            proxy.store._db.write("DELETE FROM claims WHERE board = 2")
    ten.wire(0, outlet="3")
    is_refused(stop(ten), "pdu-a outlet 3", "may feed", "board2")
    assert ten.outlets()["3"] == "on"


def test_a_file_that_no_record_is_called_is_named(jackie):
    """Lost: what a hand put aside there and forgot, which no verb reads."""
    stray = record(jackie).with_name("board0 copy.json")
    shutil.copy(record(jackie), stray)
    result = reconcile(jackie)
    assert found(result) == []
    assert [text for text in result["others"] if str(stray) in text] == [
        f"file {stray}: record of jackie's claim on board0 (lease without end), which nothing reads there: "
        "its place has the same one: remove this one once nobody wants it"
    ]
    stray.unlink()
    (stray.parent / ".board0.json.1~").write_text("a writer's")
    assert reconcile(jackie)["others"] == []


def test_a_board_stays_unknown_that_showed_its_key_and_has_no_record(tenants):
    """Lost: Carol's power in the same call that looked at Jackie first: her record is gone, so nothing was noted."""
    damage(tenants, 0, how="lost")
    with tenants.proxy() as proxy:
        feeds, board = Feeds(proxy), proxy.board(0)
        assert list(feeds.unknown(proxy.board(1))) == [0]
        work = BoardWork(proxy, board, Change(False))
        work.read()
        feeds.remember(work, True)
        assert proxy.store.kept(0) is None
        assert list(feeds.unknown(proxy.board(1))) == [0]
        proxy.store.keep_anew(0)
        feeds.remember(work, True)
        assert proxy.store.kept(0).fed.outlet == "1"
        assert not feeds.unknown(proxy.board(1)), "now it is known"


# ---- what status names


def test_status_names_a_lost_record_and_its_remedy(jackie):
    """Lost: an instance's board, for as long as nobody hears that its lease does not end."""
    jackie.lease(1)
    record(jackie).unlink()
    said = note(jackie)
    assert said.startswith("the record of jackie's claim is lost")
    assert said.endswith("reconcile -e adopt=jackie has it written anew")
    assert (
        found(reconcile(jackie, adopt=["jackie"]))[0][1]
        == "written anew, the record only (root and board are not touched)"
    )
    reconcile(jackie, adopt=["jackie"])  # what feeds it
    assert note(jackie) == ""


def test_status_names_a_lost_record_without_a_lease(jackie):
    record(jackie).unlink()
    assert (
        note(jackie) == "the record of jackie's claim is lost: ansible-playbook hetero.compute.reconcile writes it anew"
    )
    assert found(reconcile(jackie))[0][1] == "written beside it, too"
    assert "is lost" not in note(jackie)


@pytest.mark.parametrize("hours", [0, 1])
@pytest.mark.parametrize("damaged", ["made.json", "root"])
def test_what_is_named_for_a_damaged_record_beside_a_damaged_root_works(jackie, damaged, hours):
    """Lost: the way out: status named a word that reconcile refused."""
    if hours:
        jackie.lease(hours)
    record(jackie).write_text("{")
    made = jackie.state / "board-roots" / "fs_0" / "made.json"
    right = made.read_text()
    made.write_text("{" if damaged == "made.json" else ANOTHER)
    if damaged == "root":
        # another's root there is a contradiction: no word for jackie settles that
        assert "adopt" not in note(jackie)
        return
    said = note(jackie)
    ((told, done),) = found(reconcile(jackie, adopt=["jackie"]))
    assert done is None
    way = re.search(r"neither it nor .* remove the record; ansible-playbook \S+reconcile -e adopt=jackie .*", said)[0]
    assert way in told
    # As it says.
    record(jackie).unlink()
    assert found(reconcile(jackie, adopt=["jackie"]))[0][1].startswith("written")
    made.write_text(right)
    reconcile(jackie, adopt=["jackie"])
    assert note(jackie) == ""
    assert jackie.what_is_there() == jackie.running("jackie")


# ---- leases


@pytest.mark.parametrize("how", ["lost", "unreadable"])
def test_who_extends_a_lease_that_will_not_end_hears_of_it(jackie, how):
    """Lost: a board, long after a lease that its tenant was told ends."""
    jackie.lease(1)
    damage(jackie, 0, how=how)
    result = jackie.lease(2)
    assert not result.get("failed")
    (line,) = result["lines"]
    assert "reconcile -e adopt=jackie" in line["text"]
    assert "is not ended" in line["text"]
    reconcile(jackie, adopt=["jackie"])
    with jackie.proxy() as proxy:
        assert proxy.store.kept(0).claim.expires == proxy.store.claim_of("jackie").expires > time.time() + 3600
    assert "adopt" not in jackie.lease(3)["lines"][0]["text"]


# ---- a word that was given before


@pytest.mark.parametrize("known", ["claim", "record"])
def test_a_claim_that_was_ended_by_a_word_is_not_missed_the_second_time(tenants, known):
    """Lost: whoever runs what failed half-way again, and is told that nothing was ended."""
    deploy(tenants, {0})
    tenants.cut(1)
    if known == "record":
        with tenants.proxy() as proxy:
            proxy.store._db.write("DELETE FROM claims WHERE board = 1")
            proxy.store._db.write("DELETE FROM events WHERE instance = 'carol'")
    words = dict(forget=["carol", "carl", "jackie"])
    dry = reconcile(tenants, check=True, **words)
    assert (dry["ended"], dry["gone"], dry["kept"]) == (["carol"], [], ["jackie"])
    first = reconcile(tenants, **words)
    assert (first["ended"], first["gone"], first["kept"]) == (["carol"], [], ["jackie"])
    again = reconcile(tenants, **words)
    assert (again["ended"], again["gone"], again["kept"]) == ([], ["carol"], ["jackie"])
    assert not again["changed"]


# ---- what is refused


def test_an_end_that_is_refused_writes_no_record(jackie):
    """Lost: what a record said that a person could still read, by an end that did not come."""
    jackie.wire(0, disk="/dev/sda")
    jackie.cut(0)
    (mark,) = (jackie.state / "wipes").glob("*.json")
    mark.write_text(json.dumps({"used by": "eve", "disks": ["/dev/sda"]}))
    record(jackie).write_text("{")
    with jackie.proxy() as proxy:
        proxy.store.move(0, "shutting down")
        proxy.store.power_seen(0, "off")
    result = jackie.module("board_image", boards=[0], state="absent", instance="jackie")
    assert "was used by eve since" in result["msg"]
    assert record(jackie).read_text() == "{"
