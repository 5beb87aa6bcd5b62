# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for more than one proxy node has free, and for what is not free yet. If these fail, a request is served by
halves, a rerun claims it twice, a verb forgets what is elsewhere, or a play that waits leaves a claim behind.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
ALL = {"p1": ["lab-1", "lab-2"], "p2": ["lab-3"]}


def claims(folders):
    """{proxy: [instances claimed there]}."""
    found = {}
    for name, proxy in folders.items():
        with Store(proxy.state_db, create=False) as store:
            found[name] = sorted(claim.instance for claim in store.claims())
    return found


def waiting_for(folders):
    """The requests that have a place."""
    found = set()
    for proxy in folders.values():
        with Store(proxy.state_db, create=False) as store:
            found.update(ticket.request for ticket in store.tickets.living())
    return found


def take(proxy, *instances):
    """Give the first boards of a proxy to somebody else."""
    with Store(proxy.state_db) as store:
        store.claim(
            "full", list(instances), ClaimTerms("alice", {"name": "x"}, "debian", KEY), list(range(len(instances)))
        )


def test_three_boards_of_two_proxies(proxies):
    """Two here and one there; again without a change; never some of five; and all of them end by their one name."""
    folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=3)
    assert rc == 0, output
    assert claims(folders) == ALL
    assert all(f"{name} is running on board" in output for names in ALL.values() for name in names)
    again = plays.start("provision_instance", instance="lab", flavor=FLAVOR, count=3)
    big = plays.start("provision_instance", instance="big", flavor=FLAVOR, count=5)
    rc, output = plays.end(again)
    assert (rc, changed(output)) == (0, 0), output
    rc, output = plays.end(big)
    assert (rc, changed(output)) == (2, 0), output
    assert "big wants 5 tp64.8x8 (tilepro64, 8x8, 16384 MB, 500 GB): 1 of 5 boards." in output
    assert "\n  take what there is: -e partial=true" in output
    assert claims(folders) == ALL
    rc, output = plays.play("terminate_instance", instance="lab")
    assert (rc, changed(output) > 0) == (0, True), output
    assert claims(folders) == {"p1": [], "p2": []}


def test_a_name_of_another_elsewhere(proxies):
    """Nothing is claimed on the proxy that has room, where the other one has one of the names for somebody else."""
    folders, plays = proxies
    take(folders["p2"], "lab-2")
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=2, wait=1)
    assert (rc, changed(output)) == (2, 0), output
    assert "lab-2: belongs to alice (p2): choose another name" in output
    assert claims(folders) == {"p1": [], "p2": ["lab-2"]}


def test_the_proxy_that_was_named(proxies):
    """Lost: a choice between two proxy nodes' boards of one number: the first one's was taken, rc 0."""
    folders, plays = proxies
    plays.env["ANSIBLE_DISPLAY_SKIPPED_HOSTS"] = "true"
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, board=0, proxy="p2")
    assert rc == 0, output
    assert "skipping: [p1]" not in output, "each task costs the controller time for each node that has no part in it"
    assert claims(folders) == {"p1": [], "p2": ["jackie"]}
    rc, output = plays.play("provision_instance", instance="dora", flavor=FLAVOR, proxy="p3")
    assert (rc, "proxy: the inventory has no proxy node p3: give one of p1, p2" in output) == (2, True), output


@pytest.mark.long
def test_verbs_go_to_all_owners(proxies):
    folders, plays = proxies
    take(folders["p1"], "full-1")
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=3, placement="pack")
    assert rc == 0, output
    assert claims(folders) == {"p1": ["full-1", "lab-3"], "p2": ["lab-1", "lab-2"]}
    rc, output = plays.play("extend_instance", instance="lab", hours=5)
    assert [f"lab-{n} has board" in output for n in (1, 2, 3)] == [True] * 3, output
    rc, output = plays.play("stop_instance", instance="lab")
    assert rc == 0, output
    rc, output = plays.play("start_instance", instance="lab")
    assert [f"lab-{n} is running on board" in output for n in (1, 2, 3)] == [True] * 3, output
    rc, output = plays.play("terminate_instance", instance="lab-3")
    assert rc == 0, output
    assert claims(folders) == {"p1": ["full-1"], "p2": ["lab-1", "lab-2"]}


@pytest.mark.long
def test_two_requests_for_the_same_boards(proxies):
    """Each looks before the other has claimed. One of them gets its three boards or none; never do both keep some."""
    folders, plays = proxies
    both = [plays.start("provision_instance", instance=name, flavor=FLAVOR, count=3) for name in ("a", "b")]
    ended = [plays.end(process) for process in both]
    held = claims(folders)
    for name, (rc, output) in zip("ab", ended):
        mine = [one for names in held.values() for one in names if one.startswith(f"{name}-")]
        assert len(mine) == (3 if rc == 0 else 0), (name, held, output)


def test_waiting_for_a_free_board(proxies):
    """It says what it waits for, takes the board as soon as it is given back, and leaves nothing when that never is."""
    folders, plays = proxies
    for proxy in folders.values():
        take(proxy, f"full-{proxy.folder.name}-1", f"full-{proxy.folder.name}-2")
    before = claims(folders)
    request = dict(flavor=FLAVOR, hetero_wait_interval=1)
    never = plays.start("provision_instance", instance="never", wait=0.05, **request)
    wrong = plays.start("provision_instance", instance="bob", wait=10, flavor="tgx.8x8")
    waiting = plays.start("provision_instance", instance="jackie", wait=10, **request)
    rc, output = plays.end(never)
    assert (rc, changed(output)) == (2, 0), output
    said = r"never waits for tp64.8x8, 0.05 min at most: (1st|2nd) in the queue, none free for it; 4 boards in use"
    assert re.search(said, output), output
    assert "waited 0.05 min" in output
    assert waiting_for(folders) <= {"jackie"}, "who waits no longer has no place"
    rc, output = plays.end(wrong)
    assert (rc, "waits for" in output, "4 boards: cpu_arch TILEPro64 is not tile-gx64" in output) == (2, False, True)
    assert claims(folders) == before
    killed = plays.start("provision_instance", instance="killed", wait=10, **request)
    # not of the play whose wait is over in 3 s, which a busy machine may need to get there
    task = r"TASK \[Wait, and ask again in 1 s: (1st|2nd|3rd) in the queue, none free for it; 4 boards"
    for play, awaited in ((killed, "killed waits for"), (waiting, "jackie waits for"), (waiting, task)):
        said = []
        while not any(re.search(awaited, line) for line in said):
            said.append(play.stdout.readline())
            assert said[-1], said
    plays.kill(killed)
    plays.end(killed)
    assert claims(folders) == before
    with Store(folders["p2"].state_db) as store:
        store.release(1, store.record(1).claim)
    rc, output = plays.end(waiting)
    assert rc == 0, output
    assert "jackie is running on board1: ssh root@10.0.2.2" in output
    assert claims(folders)["p2"] == ["full-p2-1", "jackie"]
    assert "jackie" not in waiting_for(folders)


@pytest.mark.long
def test_a_proxy_that_refuses_its_free_board_leaves_it_to_the_next_one(proxies):
    """Lost: a free board: ann has what she may have of p1, which has one more that is free, and nothing of p2."""
    folders, plays = proxies
    path = folders["p1"].folder / "etc" / "hetero" / "proxy.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), owner_limits={"ann": 1})))
    with Store(folders["p1"].state_db, "ann pid 7") as store:
        store.claim("one", ["one"], ClaimTerms("ann", {"name": FLAVOR}, "debian", KEY), [0])
    words = dict(flavor=FLAVOR, owner="ann", placement="pack")
    rc, output = plays.play("provision_instance", instance="two", **words)
    assert rc == 0, output
    assert claims(folders) == {"p1": ["one"], "p2": ["two"]}
