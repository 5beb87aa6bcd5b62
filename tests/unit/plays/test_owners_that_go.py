# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners of which one dies, hangs, says what cannot be, or is left out, while a play asks them or has them act. If
these fail, a user is told of parts that nobody touched, or one bad node hides all others.
"""

from __future__ import annotations

import json
import os
import re
from itertools import product

import pytest

from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def said(output):
    return " ".join(output.split())


@pytest.fixture
def lab(proxies):
    """({"p1": Proxy, "p2": Proxy}, the playbooks, a folder of ways in) of lab-1 and lab-2 on p1, and lab-3 on p2."""
    folders, plays = proxies
    ways = plays.folder / "ways"
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=3, hetero_ssh_folder=ways)
    assert rc == 0, output
    assert sorted(os.listdir(ways)) == ["lab-1", "lab-2", "lab-3"]
    return folders, plays, ways


def test_one_that_dies_between_question_and_verb(lab):
    """Lost: the truth of lab-3, which runs on and is told as stopped; and the way in to it, as if it were ended."""
    folders, plays, ways = lab
    answers = folders["p2"].folder / "answers"
    answers.write_text("1")
    rc, output = plays.play("stop_instance", instance="lab")
    assert rc != 0
    assert "lab is stopped" not in output
    assert "p2 did not do it, or broke off" in output
    answers.write_text("1")
    rc, output = plays.play("terminate_instance", instance="lab", hetero_ssh_folder=ways)
    assert rc != 0
    assert "lab-3" in os.listdir(ways)
    answers.unlink()
    rc, output = plays.play("terminate_instance", instance="lab", hetero_ssh_folder=ways)
    assert rc == 0, output


@pytest.mark.parametrize("fatal", ["false", "true"])
def test_one_that_dies_before_it_claims(proxies, fatal):
    """Lost: boards that are claimed, that nothing is made on, and of which nobody was told; also at a site whose
    ansible.cfg ends plays at the first error.
    """
    folders, plays = proxies
    plays.env["ANSIBLE_ANY_ERRORS_FATAL"] = fatal
    answers = folders["p2"].folder / "answers"
    answers.write_text("1")
    request = dict(instance="lab", flavor=FLAVOR, count=3)
    rc, output = plays.play("provision_instance", **request)
    assert rc == 2, output
    assert "p2 cannot be reached any more: " in said(output)
    assert "terminate_instance -e instance=lab -e without=p2" in said(output)
    rc, output = plays.play("terminate_instance", instance="lab", without="p2")
    assert rc == 0, output
    answers.unlink()
    rc, output = plays.play("status")
    assert rc == 0, output
    assert "lab-" not in output


def test_one_that_dies_before_it_claims_more_of_what_runs(lab):
    """Lost: instances that ran for weeks, to whoever types what an error says about a part that is missing."""
    folders, plays, _ways = lab
    (folders["p2"].folder / "answers").write_text("1")
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=4)
    assert rc != 0
    assert "p2" in output
    assert "terminate_instance" not in said(output)


def test_the_only_one_is_down(tmp_path):
    """Lost: that nothing is lost, and what to do, to a bare error of ssh; a single node is asked to claim at once."""
    (tmp_path / "p1").mkdir()
    (tmp_path / "p1" / "down").touch()
    rc, output = Playbooks(tmp_path, ["p1"]).play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 2, output
    words = "p1 cannot be reached: Failed to connect to p1: No route to host. What it has claimed of jackie, if any"
    assert f"{words}thing, stays: run this again" in said(output)
    assert "has no attribute" not in output


def test_one_that_dies_before_it_gives_back(proxies):
    """Lost: the truth of lab-1 and lab-2, which are told as running by what their node said before it died."""
    folders, plays = proxies
    refuses = folders["p2"].folder / "says-instance"
    none = dict(failed=True, msg="none free", failure=dict(rejected={"board0": ["in use"], "board1": ["in use"]}))
    refuses.write_text(json.dumps(none))
    # two looks with two claims; what is not enough is given back then
    (folders["p1"].folder / "answers").write_text("4")
    request = dict(instance="lab", flavor=FLAVOR, count=3)
    rc, output = plays.play("provision_instance", wait=1, hetero_wait_interval=1, **request)
    assert rc != 0, output
    assert "lab waits for" not in output, "it has not given back what it has no use for"
    assert "is running on" not in output
    assert "Failed to connect to p1: No route to host" in said(output)


def test_one_that_fails_while_plays_go_on(lab):
    """Lost: the truth, by a strategy that knows nothing of any_errors_fatal: a part that failed is told as running."""
    folders, plays, _ways = lab
    broke = dict(failed=True, msg="p2 broke", instances=[dict(instance="lab-3", name="board0", ip="10.0.2.1")])
    (folders["p2"].folder / "says-instance").write_text(json.dumps(broke))
    plays.env["ANSIBLE_STRATEGY"] = "free"
    rc, output = plays.play("start_instance", instance="lab")
    assert rc == 2, output
    assert "is running on" not in output
    assert "p2 did not do it, or broke off" in output


def test_one_that_speaks_for_others(lab):
    """Lost: what is typed into lab-1 and alice, to p2, which calls them its part: their ways lead to a stranger."""
    folders, plays, ways = lab
    before = (ways / "lab-1").read_text()
    stranger = dict(name="board0", ip="192.0.2.66", known_hosts="192.0.2.66 ssh-ed25519 AAAA")
    given = [dict(stranger, instance=name, state="running") for name in ("lab-1", "alice")]
    own = dict(stranger, instance="lab-3", ip="10.0.2.1", state="running")
    (folders["p2"].folder / "says-instance").write_text(json.dumps(dict(changed=False, instances=[*given, own])))
    claims = [dict(CLAIM, instance=name, request="lab", image_hash="ab") for name in ("lab-3", "alice")]
    answer = dict(changed=False, claims=claims, boards=[], roots=ROOTS)
    (folders["p2"].folder / "says-board_info").write_text(json.dumps(answer))
    rc, output = plays.play("start_instance", instance="lab", hetero_ssh_folder=ways, force="true")
    assert rc == 0, output
    assert re.search(r"lab-3 is running on board0: ssh -F \S+/lab-3 lab-3\n", output), output
    assert "192.0.2.66" not in output
    assert sorted(os.listdir(ways)) == ["lab-1", "lab-2", "lab-3"]
    assert (ways / "lab-1").read_text() == before


def test_a_node_that_is_the_controller_itself(tmp_path):
    """Lost: each verb after the first: an instance that was given cannot be found any more."""
    tmp_path.chmod(0o755)
    node = Proxy(tmp_path / "localhost", 1)
    try:
        plays = Playbooks(tmp_path, ["localhost"])
        inventory = json.loads((tmp_path / "inventory.json").read_text())
        inventory["all"]["hosts"]["localhost"]["ansible_connection"] = "folder"
        (tmp_path / "inventory.json").write_text(json.dumps(inventory))
        rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
        assert rc == 0, output
        rc, output = plays.play("status")
        assert (rc, "jackie" in output) == (0, True), output
        rc, output = plays.play("terminate_instance", instance="jackie")
        assert rc == 0, output
    finally:
        node.remove()


def test_an_address_that_is_a_command(lab):
    """Lost: the shell of who pastes the line that says how to log in."""
    folders, plays, _ways = lab
    given = dict(changed=True, instances=[dict(instance="lab-3", name="board0", ip="10.0.2.1;reboot")])
    (folders["p2"].folder / "says-instance").write_text(json.dumps(given))
    rc, output = plays.play("start_instance", instance="lab")
    assert rc == 2, output
    assert "ssh root@10.0.2.1;reboot" not in output
    assert "what the node answers to instance cannot be (instances is" in said(output)


@pytest.mark.parametrize("fatal", ["false", "true"])
def test_one_that_is_down_hides_nothing_of_the_others(proxies, fatal):
    """Lost: what reconcile mended on the others, and the table of them; whatever the site's ansible.cfg says."""
    folders, plays = proxies
    plays.env["ANSIBLE_ANY_ERRORS_FATAL"] = fatal
    (folders["p2"].folder / "down").touch()
    rc, output = plays.play("reconcile")
    assert rc == 2, output
    assert "2 boards: 2 as recorded" in output
    assert "p2: Failed to connect to p2: No route to host" in said(output), output
    assert "Traceback" not in output
    rc, output = plays.play("status")
    assert rc == 2, output
    assert "board1" in output


def test_a_board_that_could_not_be_looked_at_is_no_success(proxies):
    """Lost: nightly runs that say ok, month for month, of boards whose PDU nobody reaches."""
    folders, plays = proxies
    (folders["p2"].folder / "etc" / "hetero" / "pdu.json").write_text(json.dumps({"outlets": {}}))
    rc, output = plays.play("reconcile")
    assert rc == 2, output
    assert "4 boards: 2 as recorded, 0 mended, 2 to look at" in output
    assert "Not looked at, as the table says why: p2: board0, board1. Mend that, and run this again." in said(output)


def test_one_that_hangs_is_one_that_does_not_answer(proxies):
    """Lost: hours, and what all others have, to one node whose disk is gone."""
    folders, plays = proxies
    os.mkfifo(folders["p2"].folder / "says-board_info")  # nobody writes to it
    for limit in (20, 200):  # a busy machine needs longer to ask the other one
        rc, output = plays.play("status", hetero_ask_timeout=limit)
        if "Could not be asked: p2." in said(output):
            break
    assert rc == 2, output
    assert "board1" in output
    assert f"Timed out after {limit} second" in said(output) or f"expected time frame ({limit})" in said(output)
    assert "Could not be asked: p2." in said(output)


CLAIM = dict(instance="jackie", request="jackie", owner="jo", name="board0", created=1.0)
ROOTS = dict(promised=0, there=1, taken=0, overcommit=1.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (dict(claims=[1], boards=[], roots=ROOTS), "claims is [1]"),
        (dict(claims=[], boards=[dict(x=1)], roots=ROOTS), "boards is [{'x': 1}]"),
        (dict(boards=[], roots=ROOTS), "claims is not there"),
        (dict(claims=[dict(CLAIM, name="x; reboot")], boards=[], roots=ROOTS), "claims is [{"),
        (dict(claims=[], boards=[], roots=ROOTS, failed=True, msg=["no"]), "['no']"),
    ],
)
def test_one_that_says_what_cannot_be(proxies, answer, words):
    """Lost: the table of all nodes, or the reason why nothing is done, to one node's nonsense."""
    folders, plays = proxies
    (folders["p2"].folder / "says-board_info").write_text(json.dumps(dict(answer, changed=False)))
    rc, output = plays.play("status")
    assert rc == 2, output
    assert "board1" in output
    assert words in said(output)
    rc, output = plays.play("terminate_instance", instance="jackie")
    assert rc == 2, output
    assert words in said(output)
    assert "no such instance" not in output


def test_two_that_have_an_instance_of_one_name(proxies):
    """Lost: the older of two instances that somebody works with, to a verb that was meant for the younger: the older
    one's node was down, and left out, when the younger was asked for.
    """
    folders, plays = proxies
    for created, proxy in enumerate(folders.values(), 1):
        claims = [dict(CLAIM, created=created, image_hash="ab")]
        answer = dict(changed=False, claims=claims, boards=[], roots=ROOTS)
        (proxy.folder / "says-board_info").write_text(json.dumps(answer))
    for given in ({}, {"force": "true"}):
        rc, output = plays.play("terminate_instance", instance="jackie", **given)
        assert rc == 2, output
        assert "jackie is there 2 times, on board0 of p1 (since 1970-01-01T00:00:01Z), board0 of p2" in said(output)
        assert "TASK [Switch it off" not in output


#: Those for localhost alone, which --limit leaves no host.
HOSTLESS = ["repair p1", "maintenance localhost", "cabling p2", "check p2", "image p1", "console localhost"]


@pytest.mark.parametrize(
    "playbook_limit",
    [
        *map(" ".join, product(["reconcile", "status", "terminate_instance"], ["p1", "localhost", "localhost,p1"])),
        *in_turns(["provision_instance web", "status web", "reconcile web", "stop_instance web", "image web"], 2),
        *in_turns(HOSTLESS, 3),
        *["reconcile @hosts", *in_turns(["maintenance @hosts", "provision_instance @hosts", "image @hosts"], 1)],
    ],
)
def test_one_that_limit_leaves_out(tmp_path, playbook_limit):
    """Lost: what reconcile does to one node, without its checks and without a word; a table without a board, and rc 0;
    or a board that is called free by nobody. The nodes are not there: who asked them would fail with other words.
    """
    playbook, limit = playbook_limit.split()
    hostless = playbook_limit in HOSTLESS or playbook == "maintenance"
    given = {"node": "board3"} if hostless else {"instance": "jackie"}
    given = {} if playbook == "image" else given
    plays = Playbooks(tmp_path, ["p1", "p2"])
    inventory = json.loads((tmp_path / "inventory.json").read_text())
    inventory["all"]["hosts"]["web"] = {}  # a host that no play is for
    (tmp_path / "inventory.json").write_text(json.dumps(inventory))
    hosts = tmp_path / "hosts"
    hosts.write_text("p1\n")
    rc, output = plays.play(playbook, "--limit", limit.replace("@hosts", f"@{hosts}"), **given)
    assert rc == 2, output
    assert output.count("fatal: ") == 1
    left_out = [name for name in ("localhost", "p1", "p2") if name not in limit.split(",")]
    assert f"--limit leaves out {', '.join(left_out)}: give none; owners that are down" in said(output)
    assert "UNREACHABLE" not in output
