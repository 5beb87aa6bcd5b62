# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older copy of state.db put back, as the errors say, and the verbs before reconcile. If these fail, who asks for an
instance hears that there is none while it runs, or reads of an owner and a lease that were.
"""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_lost_records import damage
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, is_refused


@pytest.fixture
def tenants(jackie):
    """Jackie on board 0, Carol on board 1, both running."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    return jackie


def note(site, board=0):
    """What status shows of a board."""
    return site.module("board_info")["boards"][board]["note"]


# ---- what status shows


def test_status_says_that_a_lease_is_another_by_its_record(jackie):
    """Lost: whoever reads that the lease is about to end, and copies their data away from an instance that stays."""
    jackie.lease(1)
    copy = backups.make(jackie.params["state_db"])
    jackie.lease(48)
    put_back(jackie, copy)
    said = note(jackie)
    assert said.startswith("the record of its claim has another lease: until ")
    assert said.endswith("; the database is older than it: run ansible-playbook hetero.compute.reconcile")
    reconcile(jackie)
    assert note(jackie) == ""


def test_status_says_that_a_board_is_anothers_by_its_record(site):
    """Lost: whoever asks the owner that was: status named nobody else."""
    assert not any(result.get("failed") for result in site.provision("alice"))
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in [*site.terminate("alice"), *site.provision("bob")])
    put_back(site, copy)
    (board, _other) = site.module("board_info")["boards"]
    assert board["instance"] == "alice"
    way = "run ansible-playbook hetero.compute.reconcile"
    assert board["note"] == f"is bob's of jackie by the record of its claim; the database is older than it: {way}"
    reconcile(site)
    assert note(site) == ""


def test_status_says_nothing_of_a_record_that_is_older(jackie):
    """Lost: trust in the notes of status: a record that an ended claim left says nothing of who has the board."""
    text = record(jackie).read_text()
    assert not any(result.get("failed") for result in [*jackie.terminate(), *jackie.provision("bob")])
    record(jackie).write_text(text)
    assert note(jackie) == ""
    # nor is the instance moved by it: reconcile writes it anew
    assert ("the record of jackie's claim is older than the database's", "corrected") in found(reconcile(jackie))


# ---- what needs no outlet


@pytest.mark.parametrize("mine", ["lost", "written anew"])
def test_a_reboot_by_ssh_needs_no_outlet(tenants, mine):
    """Lost: the reboot of a healthy instance, where nobody knows what feeds it and another one."""
    for board in (0, 1):
        tenants.wire(board, fake=dict(tftp=0.0, nfs=0.0, running=0.0, soft="boots"))
    damage(tenants, 0, 1, how="lost")
    if mine == "written anew":
        reconcile(tenants, adopt=["jackie"])
        damage(tenants, 1, how="lost")
    boots = (tenants.run_folder / "fake-boots" / "board0").read_text()
    result = boot(tenants, "rebooted", how="soft", soft_timeout=5)
    assert not result.get("failed"), result
    assert (tenants.run_folder / "fake-boots" / "board0").read_text() != boots
    assert tenants.outlets() == {"1": "on", "2": "on"}
    is_refused(boot(tenants, "rebooted", how="hard"), "may feed carol on board1")


def test_a_boot_by_ssh_that_stalls_cuts_no_unknown_outlet(tenants):
    """Lost: Carol's power, by a reboot of Jackie's instance that was told by ssh and did not come up."""
    damage(tenants, 0, 1, how="lost")
    tenants.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, soft="boots", stall="running"))
    result = boot(tenants, "rebooted", how="soft", soft_timeout=5)
    assert result.get("failed")
    assert tenants.outlets() == {"1": "on", "2": "on"}


# ---- an instance that the database does not know


@pytest.fixture
def unknown(site):
    """Dave on board 0, who asked since the copy that was put back."""
    with site.proxy() as proxy:
        proxy.store.power_seen(1, "off")
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in site.provision("dave"))
    put_back(site, copy)
    return site


ASKED = {
    "terminate": ("board_claim", dict(instance="dave", owner="jackie", state="absent")),
    "extend": ("board_lease", dict(instance="dave", hours=1)),
    "rebuild": ("board_rebuild", dict(instance="dave", image="debian-13")),
}
CLAIM = f"no claim of it is in the database of {THIS_NODE}, which may be older than that (put back from a copy)"


def seen_of(site, name="dave"):
    """What a verb sees before anything is done."""
    return [
        (one["instance"], one["name"], one["text"]) for one in site.module("board_info", instance=name)["unclaimed"]
    ]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("verb", ASKED)
def test_an_instance_that_runs_is_not_said_to_be_none(unknown, verb, check):
    """Lost: a board, on which dave's instance runs on, although he was told that there is none."""
    there = unknown.what_is_there()
    name, given = ASKED[verb]
    result = unknown.module(name, check=check, **given)
    assert result.get("failed"), result
    root = unknown.state / "board-roots" / "fs_0"
    assert result["msg"].startswith(
        f"dave: {CLAIM}, and board0 has its root {root} and the record of its claim {record(unknown)} (by it running): "
        "nothing is touched: run ansible-playbook hetero.compute.reconcile, which adopts what proves itself "
        "(ansible-playbook hetero.compute.reconcile -e adopt=dave takes"
    )
    assert [one[:2] for one in seen_of(unknown)] == [("dave", "board0")]
    assert unknown.what_is_there() == there
    reconcile(unknown)
    assert not unknown.module(name, check=check, **given).get("failed") or verb == "terminate"
    assert seen_of(unknown) == []


def test_what_is_said_of_an_unknown_instance_leads_to_its_end(unknown):
    """Lost: the way out: each step that is named, in turn."""
    assert unknown.module(*ASKED["terminate"][:1], **ASKED["terminate"][1])["failed"]
    reconcile(unknown)
    assert not any(result.get("failed") for result in unknown.terminate("dave"))
    assert unknown.what_is_there() == unknown.clean()
    assert not unknown.module("board_claim", instance="dave", state="absent").get("failed"), "there is none now"
    assert seen_of(unknown) == []


def test_a_silent_instance_is_adopted_by_the_word_that_is_named(unknown):
    """Lost: the way out of an instance whose sshd does not answer."""
    unknown.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    assert found(reconcile(unknown))[0][1] is None
    assert "reconcile -e adopt=dave" in seen_of(unknown)[0][2]
    reconcile(unknown, adopt=["dave"])
    assert unknown.board_of("dave") == 0
    assert seen_of(unknown) == []


@pytest.mark.parametrize("how", ["lost", "moved", "called otherwise"])
def test_a_root_or_a_record_alone_is_enough(unknown, how):
    """Lost: the same, where only one of both says whose the board is, or a hand moved the record."""
    place = {"moved": record(unknown, 1), "called otherwise": record(unknown).with_suffix(".json.bak")}.get(how)
    if place:
        record(unknown).rename(place)
        (unknown.state / "board-roots" / "fs_0" / "made.json").unlink()
    else:
        record(unknown).unlink()
    ((instance, name, text),) = seen_of(unknown)
    assert (instance, name) == ("dave", "board0")
    if how == "lost":
        assert "board0 has its root" in text
        assert "put a newer backup of the database back" in text
    else:
        assert f"the record of its claim {place}" in text
        assert (
            f": mv --backup=numbered {place} {record(unknown)}, or, where nobody has board0 any more, remove it; then"
            in text
        )
    assert unknown.module("board_claim", instance="dave", state="absent")["failed"]


def test_who_asks_again_gets_no_empty_instance_of_the_name(unknown):
    """Lost: the way back to what is in dave's root, for an empty one on the next board, rc 0, that has his name."""
    record(unknown).unlink()
    there = unknown.what_is_there()
    (result,) = unknown.provision("dave")
    assert "and board0 has its root" in result["msg"]
    assert unknown.what_is_there() == there
    assert not any(result.get("failed") for result in unknown.provision("carol"))


def test_a_newer_copy_that_knows_it_is_named(unknown):
    """Lost: the copy that knows everything of dave, for want of a word."""
    reconcile(unknown)
    copy = backups.make(unknown.params["state_db"])
    with unknown.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims")
    record(unknown).unlink()
    assert f"the copy {copy} says that it is dave's" in seen_of(unknown)[0][2]


def test_instances_of_a_request_are_looked_for_each(unknown):
    """Lost: half of a request, which runs on after the other half was ended, rc 0."""
    request = dict(instance="web", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY, count=2)
    text = record(unknown).read_text().replace('"dave"', '"web-2"')
    record(unknown).write_text(text.replace('"request": "web-2"', '"request": "web"'))
    made = unknown.state / "board-roots" / "fs_0" / "made.json"
    made.write_text(made.read_text().replace("dave ", "web-2 "))
    assert seen_of(unknown, "dave") == []
    assert unknown.module("board_claim", **dict(request, check=True))["failed"]
    assert not unknown.module("board_claim", **dict(request, count=1, check=True)).get("failed"), "web is not web-2"
    assert [one[:2] for one in seen_of(unknown, "web")] == [("web-2", "board0")]
    assert [one[:2] for one in seen_of(unknown, "web-2")] == [("web-2", "board0")]
    record(unknown).unlink()
    assert [one[:2] for one in seen_of(unknown, "web")] == [("web-2", "board0")]
    assert unknown.module("board_claim", **dict(request, state="absent"))["failed"]


def test_a_name_that_was_claimed_anew_since_is_not_ended_by_its_older_claim(site):
    """Lost: a board on which dave runs, although the end of an earlier claim of his name was told as his."""
    assert not any(result.get("failed") for result in site.provision("dave"))
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in [*site.terminate("dave"), *site.provision("carol")])
    assert not any(result.get("failed") for result in site.provision("dave"))
    assert site.board_of("dave") == 1
    put_back(site, copy)
    assert [one[:2] for one in seen_of(site)] == [("dave", "board1")]
    assert site.module("board_claim", instance="dave", state="absent")["failed"]
    reconcile(site)
    reconcile(site)
    assert (site.board_of("dave"), site.board_of("carol")) == (1, 0)
    assert seen_of(site) == []


def test_what_nobody_can_tell_whose_it_is_may_be_its(unknown):
    """Lost: the same, where both files are damaged: the one who asks is the one who would miss it."""
    record(unknown).write_text("{")
    ((_instance, name, text),) = seen_of(unknown)
    assert (name, f"the record of its claim {record(unknown)}" in text) == ("board0", False)
    assert "its root" in text
    (unknown.state / "board-roots" / "fs_0" / "made.json").write_text("{")
    ((instance, name, text),) = seen_of(unknown)
    assert (instance, name) == ("dave", "board0")
    assert f"what lies there for board0 may be its: {record(unknown)}: what it says of a claim cannot be read" in text
    assert not any(result.get("failed") for result in unknown.provision("carol"))
    assert seen_of(unknown, "carol") == [], "hers is known"


def test_a_copy_of_a_record_of_an_ended_claim_is_nobodys(jackie):
    """Lost: the plain answer that there is no such instance, by a file that a hand has put aside."""
    text = record(jackie).read_text()
    assert not any(result.get("failed") for result in jackie.terminate())
    record(jackie).with_name("board0 copy.json").write_text(text)
    assert seen_of(jackie, "jackie") == []
    assert not jackie.module("board_claim", instance="jackie", state="absent").get("failed")


def test_a_claim_that_is_known_is_not_called_unknown(tenants):
    """Lost: each verb on intact claims."""
    for name in ("jackie", "carol"):
        assert seen_of(tenants, name) == []
        assert not tenants.module("board_lease", instance=name, hours=1).get("failed")
    assert not any(result.get("failed") for result in [*tenants.terminate(), *tenants.terminate("carol")])
    assert tenants.what_is_there() == tenants.clean()


# ---- a claim that only the database knows


class Taken:
    """Alice by the database that was put back; Bob has the board since, and the files that say so are damaged."""

    def __init__(self, site):
        self.site, self.made = site, site.state / "board-roots" / "fs_0" / "made.json"
        assert not any(result.get("failed") for result in site.provision("alice"))
        copy = backups.make(site.params["state_db"])
        assert not any(result.get("failed") for result in [*site.terminate("alice"), *site.provision("bob")])
        key = json.loads(record(site).read_text())["claim"]["host_key"]
        site.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, key=key))
        put_back(site, copy)

    def damage(self, of_record, of_root):
        for path, how in ((record(self.site), of_record), (self.made, of_root)):
            path.unlink() if how == "lost" else path.write_text("{")

    def refuses_its_end(self):
        """Nothing of the board is touched by Alice's word; what is said."""
        there = self.site.what_is_there()
        (result,) = self.site.terminate("alice")
        assert result.get("failed"), result
        assert self.site.what_is_there() == there
        assert self.site.root_is_whole()
        return result["msg"]


@pytest.fixture
def taken(site):
    return Taken(site)


DAMAGED = [(of_record, of_root) for of_record in ("lost", "unreadable") for of_root in ("lost", "unreadable")]


@pytest.mark.parametrize("power", ["on", "off", "silent"])
@pytest.mark.parametrize("damaged", DAMAGED, ids="-".join)
def test_no_board_is_taken_by_the_word_of_an_older_database_alone(taken, damaged, power):
    """Lost: Bob's root and his work, by the end of an instance that had the board before him."""
    site = taken.site
    if power == "off":
        site.cut(0)
    elif power == "silent":
        site.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    taken.damage(*damaged)
    said = taken.refuses_its_end()
    assert "neither the record of its claim nor its root bears out that it is alice's" in said
    assert "reconcile -e adopt=alice" in said
    assert "reconcile -e forget=alice" in said
    refused = site.module("board_rebuild", instance="alice", image="debian-13")
    assert "neither the record of its claim nor its root bears out" in refused["msg"]
    for name in ("board_image", "board_claim"):
        given = dict(instance="alice", state="absent", **({"boards": [0]} if name == "board_image" else {}))
        assert site.module(name, **given).get("failed")
    assert site.root_is_whole()
    reconcile(site)  # whoever does first what each error names
    assert "neither the record of its claim nor its root" in taken.refuses_its_end()
    with site.proxy() as proxy:
        proxy.store.move(0, "shutting down")  # as a terminate of another release leaves it
    result = site.module("board_image", boards=[0], instance="alice", state="absent")
    assert "neither the record of its claim nor its root" in result["msg"]
    assert site.root_is_whole()


@pytest.mark.parametrize("damaged", DAMAGED, ids="-".join)
def test_an_operators_word_for_the_database_ends_it(taken, damaged):
    """Lost: the way out, where the database is right."""
    taken.damage(*damaged)
    if damaged[0] == "unreadable":
        assert found(reconcile(taken.site, adopt=["alice"]))[0][1] is None
        assert (
            "remove the record; ansible-playbook hetero.compute.reconcile -e adopt=alice"
            in found(reconcile(taken.site))[0][0]
        )
        record(taken.site).unlink()
    assert found(reconcile(taken.site, adopt=["alice"]))[0][1].startswith("written")
    assert not any(result.get("failed") for result in taken.site.terminate("alice"))
    assert taken.site.what_is_there() == taken.site.clean()


@pytest.mark.parametrize("outlet", ["on", "off"])
@pytest.mark.parametrize("damaged", DAMAGED, ids="-".join)
def test_an_operators_word_against_the_database_touches_nothing(taken, damaged, outlet):
    """Lost: Bob's root, by the word that is to save it: it looked as left by nobody then."""
    taken.damage(*damaged)
    site = taken.site
    if outlet == "off":
        site.cut(0)
    result = reconcile(site, forget=["alice"])
    assert result["ended"] == ["alice"]
    reconcile(site)
    assert site.root_is_whole()
    assert site.outlets()["1"] == outlet
    assert [claimed["board"] for claimed in site.provision("carol")[0]["boards"]] == [1]


def test_a_board_that_is_on_is_not_taken_where_nothing_is_there(taken):
    """Lost: whoever is at work on a board of which all is lost but an older claim."""
    taken.damage("lost", "lost")
    site = taken.site
    for point in reversed(mounts_below(str(taken.made.parent))):
        unmount(point)
    shutil.rmtree(taken.made.parent)
    (result,) = site.terminate("alice")
    assert "bears out that it is alice's" in result["msg"]
    assert site.outlets()["1"] == "on"
    site.cut(0)
    assert not any(result.get("failed") for result in site.terminate("alice")), (
        "what is off and has nothing is nobody's"
    )
    assert site.what_is_there() == site.clean()


@pytest.mark.parametrize("proof", ["record", "made.json", "host key in the root", "key that its board shows"])
def test_one_proof_is_enough_to_end_an_instance(jackie, proof):
    """Lost: the end of an intact instance, by its own tenant, for one file that is damaged."""
    made = jackie.state / "board-roots" / "fs_0" / "made.json"
    if proof != "record":
        record(jackie).unlink()
    if proof != "made.json":
        made.unlink()
    if proof in ("record", "key that its board shows"):
        for point in reversed(mounts_below(str(made.parent))):
            unmount(point)
    if proof == "key that its board shows":
        shutil.rmtree(made.parent)
    assert not any(result.get("failed") for result in jackie.terminate())
    assert jackie.what_is_there() == jackie.clean()


def test_a_claim_of_which_nothing_was_made_ends_without_its_record(site):
    """Lost: a board, for a claim whose record was lost before it was served."""
    request = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert not site.module("board_claim", **request).get("failed")
    record(site).unlink()
    assert not any(result.get("failed") for result in site.terminate())
    assert site.what_is_there() == site.clean()


# ---- what a stop sees


def test_a_stop_that_saw_a_board_off_is_what_its_record_says(jackie):
    """Lost: the board, for ever: its end asked for a stop that had just been done, as often as it was done."""
    stop = dict(boards=[0], instance="jackie", state="stopped", timeout=10)
    assert not jackie.module("tilera_boot", **stop).get("failed")
    assert jackie.record(0).state == "shutting down"
    copy = backups.make(jackie.params["state_db"])
    assert not jackie.module("tilera_boot", boards=[0], instance="jackie", timeout=10).get("failed")
    # killed as its boot was written down: the record says so, and the database does not yet
    jackie.cut(0)
    put_back(jackie, copy)
    with jackie.proxy() as proxy:
        assert proxy.store.kept(0).state == "running"
    assert not any(result.get("failed") for result in jackie.terminate())
    assert jackie.what_is_there() == jackie.clean()
