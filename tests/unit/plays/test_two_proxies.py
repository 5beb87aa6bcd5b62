# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two proxy nodes and one name. If these fail, one instance exists twice, or a user loses the older one of two."""

from __future__ import annotations

import json
import os
import time

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import FOLDER
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, PROJECT, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_a_proxy_that_is_down_stops_a_request_or_is_left_out(proxies):
    """Without it, one node that is down stops all of a site, or a name is given twice when nobody meant it."""
    folders, plays = proxies
    (folders["p2"].folder / "down").touch()
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert (rc != 0, changed(output)) == (True, 0), output
    assert "p2 cannot be asked, and may hold jackie: Failed to connect to p2: No route to host. Mend that," in output
    assert "or leave it out: -e without=p2" in output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, without="p2")
    assert rc == 0, output
    assert "jackie is running on board" in output
    rc, output = plays.play("extend_instance", instance="jackie", hours=2, without="p3")
    assert (rc != 0, "without: the inventory has no p3" in output) == (True, True), output
    rc, output = plays.play("reconcile", without="p3")
    assert (rc != 0, "without: the inventory has no p3" in output) == (True, True), output
    rc, output = plays.play("terminate_instance", instance="jackie", without="p2")
    assert rc == 0, output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, without="p1,p2")
    assert (rc != 0, "p1, p2 left out by without" in output) == (True, True), output


def remains(proxy, whose):
    """The folder of a root that a board 1 has left, which the boards file does not name any more."""
    rows = proxy.folder / "tftpboot" / "tilera_boards"
    rows.write_text("".join(row for row in rows.read_text().splitlines(keepends=True) if not row.startswith("1 ")))
    with Store(proxy.state_db) as store:
        assert store.claims() == []
    left = proxy.folder / "var" / "lib" / "hetero" / "board-roots" / "fs_1"
    left.mkdir(parents=True)
    (left / "made.json").write_text(json.dumps(dict(claim=f"{whose} 1.5", image="ab" * 32, whole=True)))
    return left


def test_remains_of_one_name_on_two_nodes_are_two_boards(proxies):
    """Lost: alice's root, by a word that was said of carol's."""
    folders, plays = proxies
    carols, alices = remains(folders["p1"], "carol"), remains(folders["p2"], "alice")
    for flags in ((), ("--check",)):
        rc, output = plays.play("reconcile", *flags, remove="board1")
        assert (rc, carols.exists(), alices.exists()) == (2, True, True), output
        said = " ".join(output.split())
        root = "folder /var/lib/hetero/board-roots/fs_1, made for"
        assert f"board1 is another board on each node: p1: {root} carol; p2: {root} alice. Nothing is removed:" in said
        assert "leave out all nodes but the one that is meant, such as -e without=p2" in said
    rc, output = plays.play("reconcile", remove="board1", without="p2")
    assert (rc, carols.exists(), alices.exists()) == (0, False, True), output


def doubtful(proxy, word):
    """Have the one instance of a proxy wait for this word of an operator."""
    with Store(proxy.state_db) as store:
        (claim,) = store.claims()
    if word == "adopt":
        record = proxy.folder / "var" / "lib" / "hetero" / FOLDER / f"board{claim.board}.json"
        record.write_text("{")
        return record.read_text
    rows = proxy.folder / "tftpboot" / "tilera_boards"
    of_others = [row for row in rows.read_text().splitlines(True) if not row.startswith(f"{claim.board} ")]
    rows.write_text("".join(of_others))
    pdu = proxy.folder / "etc" / "hetero" / "pdu.json"
    found = json.loads(pdu.read_text())
    pdu.write_text(json.dumps(dict(found, outlets=dict.fromkeys(found["outlets"], "off"))))
    # what answers at its client's address, on the network of who runs these tests, is nobody's
    (proxy.folder / "var" / "lib" / "hetero" / "ganesha.json").write_text("{}")
    return lambda: claims_of(proxy)


def claims_of(proxy):
    with Store(proxy.state_db) as store:
        return store.claims()


@pytest.mark.parametrize("word", ["adopt", "forget"])
def test_a_word_for_an_instance_of_one_name_on_two_nodes_is_for_one(proxies, word):
    """Lost: the claim of another's instance of that name, which was made while its node was left out."""
    folders, plays = proxies
    for left_out in ("p2", "p1"):
        # the lease is what a database that is older than the record may not know
        rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, hours=9, without=left_out)
        assert rc == 0, output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert (rc, "jackie is there 2 times, on board0 of p1" in " ".join(output.split())) == (2, True), output
    first, second = (doubtful(folders[name], word) for name in ("p1", "p2"))
    before = first(), second()
    rc, output = plays.play("reconcile", **{word: "jackie"})
    assert (rc, first(), second()) == (2, *before), output
    assert "jackie is meant on each of p1, p2. Nothing is adopted or ended: leave out" in " ".join(output.split())
    down = folders["p2"].folder / "down"
    down.touch()
    rc, output = plays.play("reconcile", **{word: "jackie"})
    assert (rc, first(), second()) == (2, *before), output
    assert "p2 cannot be asked, and may have jackie as well. Nothing is done: bring it back, or" in " ".join(
        output.split()
    )
    down.unlink()
    rc, output = plays.play("reconcile", **{word: "jackie"}, without="p2")
    assert (rc, first() == before[0], second()) == (0, False, before[1]), output


def test_remains_are_removed_nowhere_where_one_node_refuses(proxies):
    """Lost: what lay on the first node, by a name that is a board's in use on the second one."""
    folders, plays = proxies
    left = remains(folders["p1"], "carol")
    rc, output = plays.play("reconcile", remove="board1")
    assert (rc != 0, left.exists()) == (True, True), output
    assert "board1: is in the boards file: nothing is removed" in output
    assert "-e without=NODE leaves a node out" in output
    rc, output = plays.play("reconcile", remove="board1", without="p2")
    assert (rc, left.exists()) == (0, False), output
    assert "made for carol" in output


def claims(proxies):
    """{proxy: [instances claimed there]}."""
    found = {}
    for name, proxy in proxies.items():
        with Store(proxy.state_db, create=False) as store:
            found[name] = [claim.instance for claim in store.claims()]
    return found


def claim(proxy, flavor, owner="jo", ago=0.0, made_ready=False):
    """What a play that was killed after its claim has left, `ago` seconds ago."""
    with Store(proxy.state_db) as store:
        store.claim("jackie", ["jackie"], ClaimTerms(owner, flavor, "debian", KEY), [0])
        with store.transaction():
            store._db.write("UPDATE claims SET created = ?", (time.time() - ago,))
            if made_ready:
                store.put("jackie", image_hash="ab" * 32)


@pytest.fixture
def flavor():
    """The flavor as the playbook gives it to the modules."""
    types = yaml.safe_load((PROJECT / "playbooks" / "vars" / "instance_types.yml").read_text())
    return types["hetero_instance_types"][FLAVOR]


def test_a_play_claims_where_it_finds_a_board_and_nowhere_else(proxies):
    """Without it, each request takes a board of every proxy, if only for a moment; a full proxy is passed over."""
    folders, plays = proxies
    with Store(folders["p1"].state_db) as store:
        store.claim("full", ["full-1", "full-2"], ClaimTerms("alice", {"name": "x"}, "debian", KEY), [0, 1])
    for name in ("jackie", "bob"):
        rc, output = plays.play("provision_instance", instance=name, flavor=FLAVOR)
        assert rc == 0, output
        assert f"{name} is running on board" in output
    rc, output = plays.play("provision_instance", instance="eve", flavor=FLAVOR)
    assert rc != 0
    assert "no node" in output
    assert claims(folders) == {"p1": ["full-1", "full-2"], "p2": ["jackie", "bob"]}
    rc, output = plays.play("terminate_instance", instance="jackie")
    assert rc == 0, output
    with Store(folders["p1"].state_db) as store:
        store.release(0, store.record(0).claim)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    assert claims(folders) == {"p1": ["jackie", "full-2"], "p2": ["bob"]}
    with Store(folders["p2"].state_db) as store:
        assert [event.phase for event in store.events(instance="jackie")].count("claim") == 1


def test_a_proxy_without_image_or_room_claims_nothing_and_the_other_serves(proxies):
    """Before, the first proxy claimed, failed, and gave back; the other was not asked."""
    folders, plays = proxies
    config = folders["p1"].folder / "etc" / "hetero" / "proxy.json"
    config.write_text(json.dumps(dict(json.loads(config.read_text()), roots_overcommit=1)))
    with Store(folders["p1"].state_db) as store:  # a root beside none would be of one that is lost
        assert store.claims() == []
    there = folders["p1"].folder / "var" / "lib" / "hetero" / "board-roots" / "fs_9"
    there.mkdir(parents=True)
    with (there / "root.ext4").open("wb") as file:
        file.truncate(8 << 40)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    assert claims(folders)["p2"] == ["jackie"]
    for extra, why in (
        (dict(image="nope"), "no image nope in its store (known: debian)"),
        (dict(without="p2"), "no room for a root of 500 GiB: all"),
        (dict(without="p2", image="nope"), "2 boards: no image nope in its store (known: debian)"),
    ):
        rc, output = plays.play("provision_instance", instance="eve", flavor=FLAVOR, **extra)
        assert (rc != 0, changed(output)) == (True, 0), output
        assert why in output.replace("\\n", "\n"), output
    assert claims(folders)["p2"] == ["jackie"]
    with Store(folders["p1"].state_db) as store:
        assert [event for event in store.events(boards=[0, 1]) if event.phase == "claim"] == []


def test_the_oldest_claim_stays(proxies, flavor):
    """Two plays of one user were killed after their claims; the next one goes on with the older, wherever it is."""
    folders, plays = proxies
    claim(folders["p1"], flavor, ago=10)
    claim(folders["p2"], flavor, ago=60)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    assert claims(folders) == {"p1": [], "p2": ["jackie"]}
    assert "jackie is running on board0: ssh root@10.0.2.1" in output
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert (rc, changed(output)) == (0, 0), output


def test_another_users_older_claim_stays_and_ours_goes(proxies, flavor):
    folders, plays = proxies
    claim(folders["p1"], flavor, ago=10)
    claim(folders["p2"], flavor, owner="alice", ago=60)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc != 0
    assert "belongs to alice" in output
    assert claims(folders) == {"p1": [], "p2": ["jackie"]}


def test_who_asked_for_a_name_at_the_same_moment_is_told_whose_it_is(proxies, flavor):
    """Lost: why there is no instance: alice asked for the name at the same moment on the other proxy, and was first."""
    folders, plays = proxies
    process = plays.start("provision_instance", instance="jackie", flavor=FLAVOR, proxy="p1")
    before = []
    for line in process.stdout:
        before.append(line)
        if line.startswith("TASK [Claim what this node has"):
            claim(folders["p2"], flavor, owner="alice", ago=60)
            break
    rc, output = plays.end(process)
    output = " ".join(("".join(before) + output).split())
    assert rc == 2, output
    assert claims(folders) == {"p1": [], "p2": ["jackie"]}
    assert "Conditional result" not in output
    assert "belongs to alice" in output


def test_what_was_made_ready_is_never_taken_away(proxies, flavor):
    """A board that somebody may be using is a person's to give back, whatever the clocks of two proxies say."""
    folders, plays = proxies
    claim(folders["p1"], flavor, ago=10, made_ready=True)
    claim(folders["p2"], flavor, owner="alice", ago=60)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc != 0
    assert claims(folders) == {"p1": ["jackie"], "p2": ["jackie"]}


@pytest.mark.parametrize("turn", [0, *[pytest.param(turn, marks=pytest.mark.long) for turn in range(1, 6)]])
def test_two_plays_at_once_one_instance(proxies, turn):
    """Each begins with the other's proxy, so that both may find the name free; one of them stays, and both say so."""
    folders, plays = proxies
    request = dict(instance="jackie", flavor=FLAVOR)
    both = [plays.start("provision_instance", order=order, **request) for order in (["p1", "p2"], ["p2", "p1"])]
    outputs = [plays.end(process) for process in both]
    held = claims(folders)
    assert sorted(map(len, held.values())) == [0, 1], (held, outputs)
    assert any(rc == 0 for rc, output in outputs), outputs
    rc, output = plays.play("provision_instance", **request)
    assert (rc, changed(output)) == (0, 0), output
    assert claims(folders) == held
