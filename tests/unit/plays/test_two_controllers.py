# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two controllers that know nothing of each other: one has both proxies, the other has p1 alone, by another name, for
another person. If these fail, one site's plays take, switch or remove what another site's users have.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.turns import todays
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


#: What the second controller does with the name that the first one has; one of them a day in `make test`.
VERBS = ("terminate_instance", "stop_instance", "reconcile")


@pytest.fixture
def controllers(proxies, tmp_path):
    """({"p1": Proxy, "p2": Proxy}, jo's playbooks with both, alice's with p1 as `tiles`)."""
    folders, jo = proxies
    alice = Playbooks(tmp_path, ["tiles"])
    text = json.loads((tmp_path / "inventory.json").read_text())
    text["proxies"]["hosts"]["tiles"] = {"ansible_host": "p1"}
    other = tmp_path / "alice"
    other.mkdir()
    (other / "inventory.json").write_text(json.dumps(text))
    Playbooks(tmp_path, list(folders))
    alice.folder = other
    alice.env = dict(alice.env, USER="alice")
    return folders, jo, alice


def held(folders):
    """{proxy: [(instance, owner, board) claimed there]}"""
    found = {}
    for name, proxy in folders.items():
        with Store(proxy.state_db, create=False) as store:
            found[name] = sorted((claim.instance, claim.owner, claim.board) for claim in store.claims())
    return found


def power(folders):
    """{proxy: {outlet: state}}"""
    return {
        name: json.loads((proxy.folder / "etc" / "hetero" / "pdu.json").read_text())["outlets"]
        for name, proxy in folders.items()
    }


@pytest.mark.parametrize("verbs", [todays(VERBS, 3), pytest.param(VERBS, marks=pytest.mark.long)])
def test_two_controllers_at_once_have_one_instance_of_a_name(controllers, verbs):
    """Lost: the board of whoever was first, to a controller that knows it by another name and for another person."""
    folders, jo, alice = controllers
    request = dict(instance="lab", flavor=FLAVOR)
    plays = [(jo, jo.start("provision_instance", **request)), (alice, alice.start("provision_instance", **request))]
    ends = [playbooks.end(play) for playbooks, play in plays]
    (owner,) = [owner for claims in held(folders).values() for _name, owner, _board in claims]
    (first, second) = (alice, jo) if owner == "alice" else (jo, alice)
    assert sorted(rc for rc, _output in ends) == [0, 2], ends
    assert ends[0 if owner == "jo" else 1][0] == 0, ends
    before = held(folders), power(folders)
    plays = [second.start(verb, **({} if verb == "reconcile" else {"instance": "lab"})) for verb in verbs]
    for verb, (rc, output) in zip(verbs, map(second.end, plays)):
        assert changed(output) == 0, output
        assert (rc == 0, f"belongs to {owner}" in output) == ((True, False) if verb == "reconcile" else (False, True))
    assert (held(folders), power(folders)) == before
    rc, output = first.play("terminate_instance", instance="lab")
    assert rc == 0, output
    assert held(folders) == {"p1": [], "p2": []}


@pytest.mark.long
def test_what_each_controller_has_under_one_name_is_its_own(controllers):
    """Jo's `lab` is on p2, which alice's controller does not know; hers came to p1. Each verb of his takes his own."""
    folders, jo, alice = controllers
    request = dict(instance="lab", flavor=FLAVOR)
    rc, output = jo.play("provision_instance", without="p1", **request)
    assert rc == 0, output
    rc, output = alice.play("provision_instance", **request)
    assert rc == 0, output
    assert held(folders) == {"p1": [("lab", "alice", 0)], "p2": [("lab", "jo", 0)]}
    hers = power(folders)["p1"]
    for verb, given in (
        ("provision_instance", request),
        ("extend_instance", dict(instance="lab", hours=2)),
        ("stop_instance", dict(instance="lab")),
        ("rebuild_instance", dict(instance="lab")),
        ("terminate_instance", dict(instance="lab")),
    ):
        rc, output = jo.play(verb, **given)
        assert rc == 0, output
        assert held(folders)["p1"] == [("lab", "alice", 0)], verb
        assert power(folders)["p1"] == hers, verb
    with Store(folders["p1"].state_db, create=False) as store:
        (claim,) = store.claims()
        assert (claim.expires, store.record(0).state) == (None, "running")
    assert held(folders)["p2"] == []
