# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs on an instance, as plays. If these fail, one user stops, rebuilds or reads what is another's, or a play
that was only to say something does it.
"""

from __future__ import annotations

import json
import os
import re

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, PROJECT, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


@pytest.fixture
def jackie(proxies):
    """jackie of jo runs on p1's board 0, which has a console, and everything about it in one comparable value."""
    folders, plays = proxies
    etc = folders["p1"].folder / "etc" / "hetero"
    config = json.loads((etc / "proxy.json").read_text())
    config["boards"]["0"].update(console="/etc/hetero/board0.log", console_command="picocom /dev/ttyUSB0")
    (etc / "proxy.json").write_text(json.dumps(config))
    (etc / "board0.log").write_text("what its tenant before had\n")
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    with (etc / "board0.log").open("a") as log:
        log.write("login:\n")

    def look():
        with Store(folders["p1"].state_db, create=False) as store:
            return store.record(0), (etc / "pdu.json").read_text()

    return plays, look


VERBS = {
    "stop_instance": {},
    "start_instance": {},
    "rebuild_instance": {"fresh": "true"},
    "migrate_instance": {"board": "1"},
    "extend_instance": {"hours": "5"},
    "console": {},
    "watch": {},
}


def test_another_owners_instance_is_refused_and_left(jackie):
    plays, look = jackie
    before = look()
    requests = [(verb, dict(extra, instance="jackie")) for verb, extra in VERBS.items()]
    requests.append(("console", dict(node="board0", proxy="p1")))
    started = [plays.start(verb, owner="eve", **extra) for verb, extra in requests]
    for (verb, _extra), process in zip(requests, started):
        rc, output = plays.end(process)
        assert rc != 0, (verb, output)
        assert "force=true" in output, (verb, output)
    assert look() == before


def second_half(verb, created):
    """The last half of a verb, which has looked the instance up before it was given back and claimed by this user."""
    plays = yaml.safe_load((PROJECT / "playbooks" / f"{verb}_instance.yml").read_text(encoding="utf-8"))
    (act,) = [play for play in plays if play.get("ansible.builtin.import_playbook") == "plays/act.yml"]
    claim = {"owner": "jo", "created": created}
    part = {"item": "p1", "kind": "board", "boards": [0], "numbers": [], "claims": [claim]}
    look = {"ansible.builtin.set_fact": {"_plan": {"parts": [part]}}}
    found = dict(hosts="localhost", gather_facts=False, tasks=[look])
    variables = {"instance": "jackie", "force": True, **act["vars"]}
    return [found, {"ansible.builtin.import_playbook": f"{PROJECT}/playbooks/plays/act.yml", "vars": variables}]


@pytest.mark.parametrize("verb", in_turns(["terminate", "stop", "reboot", "rebuild", "extend"], 5))
def test_what_was_claimed_anew_since_it_was_looked_up_is_left(jackie, tmp_path, verb):
    """Also by force, which was meant for the one before."""
    plays, look = jackie
    before = look()
    book = second_half(verb, before[0].claim.created - 1)
    (tmp_path / "second_half.yml").write_text(json.dumps(book))
    rc, output = plays.end(plays.start_file(str(tmp_path / "second_half.yml"), "-e", "fresh=true", "-e", "hours=1"))
    assert (rc, look()) == (2, before), output
    assert "jackie: was given back meanwhile, and claimed anew by jo" in output


def test_a_job_names_no_way_to_sit_down_at_a_board(jackie):
    """Lost: the time of a user of AWX, who types root's login at a proxy node by a key that went with the job."""
    plays, look = jackie
    rc, output = plays.play("console", instance="jackie", owner="jo", awx_job_id="7")
    assert (rc, "  login:\n" in output) == (0, True), output
    assert not re.search(r"^ +(live|follow): ", output, re.MULTILINE), output


def test_by_force_and_what_is_said(jackie):
    """The owner's second and the operator's forced turn; a name that nobody has is said, not done."""
    plays, look = jackie
    rc, output = plays.play("extend_instance", instance="jackie", hours="none", owner="eve", force="true")
    assert (rc, changed(output)) == (0, 0), output
    assert "TASK [Set the end of its lease]" in output
    rc, output = plays.play("extend_instance", instance="jackie", hours="soon")
    assert (
        "hours is soon: give more than 0 and at most 87600, such as -e hours=24, or none for no end; "
        "ansible-playbook hetero.compute.terminate_instance" in output
    )
    rc, output = plays.play("console", node="board0", proxy="p1", owner="eve", force="true", lines="2")
    assert rc == 0, output
    assert "  login:\n" in output
    assert "tenant before" not in output
    assert "  live: ssh -t p1 'picocom /dev/ttyUSB0'" in output
    assert "WARNING" not in output
    rc, output = plays.play("rebuild_instance", instance="jackie", key_file="/srv/nobody.pub")
    assert (rc != 0, "/srv/nobody.pub: there is no such file: key_file names the .pub file" in output) == (True, True)
    rc, output = plays.play("stop_instance", instance="nobody")
    assert rc != 0
    assert "There is no instance nobody to stop: ansible-playbook hetero.compute.status shows who has what" in output
    rc, output = plays.play("stop_instance", instance="jakie")
    assert rc != 0
    assert "There is no instance jakie to stop: is jackie meant? ansible-playbook hetero.compute.status shows" in output
    rc, output = plays.play("provision_instance", instance="nobody", flavor="tp64.8x9")
    assert rc != 0, output
    assert "tp64.8x9 is no flavor: is tp64.8x8 meant? Give one of cg1.xlarge, " in output
    rc, output = plays.play("rebuild_instance", "--check", instance="jackie", fresh="true")
    assert rc == 0, output
    assert "a fresh root from debian" in output
    rc, output = plays.play("maintenance", node="board1", proxy="p1", state="on", reason="its fan rattles")
    assert rc == 0, output
    assert "on: its fan rattles\n" in output
    rc, output = plays.play("maintenance", node="board0", proxy="p1", state="on", reason="fan")
    assert "is running, and jackie of jo has it" in output
    assert look()[0].state == "running"
    assert look()[0].claim.image_hash is not None


def test_one_table_for_all_proxies(jackie):
    plays, look = jackie
    before = look()
    rc, output = plays.play("reconcile")
    assert (rc, changed(output)) == (0, 0), output
    assert "4 boards: 4 as recorded, 0 mended, 0 to look at" in output
    rc, output = plays.play("reconcile", "--check")
    assert rc == 0, output
    after = look()
    assert (after[0].state, after[0].claim, after[1]) == (before[0].state, before[0].claim, before[1])


def test_a_claim_that_cannot_be_forgotten_is_said(jackie):
    """Lost: an instance, by a slip of the name; or that nothing came of it, to who reads the last line only."""
    plays, look = jackie
    before = look()
    rc, output = plays.play("reconcile", forget="jackie")
    assert rc == 2, output
    assert "so forget does not end jackie's claim: ansible-playbook" in " ".join(output.split())
    assert "Not ended: jackie. The table says why, and what ends it." in output
    after = look()
    assert (after[0].state, after[0].claim) == (before[0].state, before[0].claim)
    rc, output = plays.play("reconcile", forget="jacky")
    assert rc == 2, output
    assert "Nothing of jacky is recorded on any proxy node, nor ever was: correct the name" in output


def test_a_claim_that_ended_before_is_not_missed(jackie):
    """Lost: whoever runs what failed half-way again, and is told that it failed."""
    plays, _look = jackie
    rc, output = plays.play("terminate_instance", instance="jackie")
    assert rc == 0, output
    rc, output = plays.play("reconcile", forget="jackie", remove="board99")
    assert (rc, changed(output)) == (0, 0), output
    assert "nothing of jackie is recorded any more: there is no claim to end" in output


def test_a_board_that_somebody_has_is_not_repaired(jackie):
    """Lost: power, root and disk of an instance, to a wrong number behind `node=`."""
    plays, look = jackie
    before = look()
    rc, output = plays.play("repair", node="board0", proxy="p1")
    assert rc != 0
    said = " ".join(output.split())
    # repair takes no instance: what may be typed is said whole
    assert "board0: is claimed for jackie: ansible-playbook hetero.compute.stop_instance -e instance=jackie and" in said
    assert "ansible-playbook hetero.compute.start_instance -e instance=jackie bring it up" in said
    assert "ansible-playbook hetero.compute.terminate_instance -e instance=jackie ends it" in said
    assert "then ansible-playbook hetero.compute.repair -e node=board0 takes the board" in said
    assert look() == before
