# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several owners at one time. If these fail, a site of a hundred owners waits for each of them in turn, and the second
part of a request boots when the first one runs.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def asked_together(plays, folders, playbook, **extra):
    """A play whose proxies say nothing before each was asked; (exit code, output)."""
    for proxy in folders.values():
        (proxy.folder / "asked").unlink(missing_ok=True)
    (plays.folder / "together").write_text(" ".join(folders))
    try:
        return plays.play(playbook, **extra)
    finally:
        (plays.folder / "together").unlink()
        assert all((proxy.folder / "asked").exists() for proxy in folders.values())


@pytest.mark.parametrize(
    ("playbook", "given", "words"),
    [
        ("status", {}, "board0"),
        ("terminate_instance", {"instance": "jackie"}, "jackie: no such instance on p1, p2"),
        ("reconcile", {}, "4 boards: 4 as recorded"),
    ],
)
def test_owners_are_asked_at_one_time(proxies, playbook, given, words):
    """Lost: a timeout or a slow line of each, one after the other, before anything happens."""
    folders, plays = proxies
    rc, output = asked_together(plays, folders, playbook, **given)
    assert rc == 0, output
    assert words in output


def times(proxy, instance):
    """When its board got its power and when it ran (seconds since 1970)."""
    with Store(proxy.state_db, create=False) as store:
        (claim,) = [claim for claim in store.claims() if claim.instance == instance]
        found = {event.phase: event.time for event in store.newest_events(claim.board, 50)}
    return found["power"], found["running"]


def test_parts_of_a_request_boot_side_by_side(proxies):
    """Lost: the sum of all boots, for a request whose parts lie on several owners; also their first look."""
    folders, plays = proxies
    for proxy in folders.values():
        path = proxy.folder / "etc" / "hetero" / "proxy.json"
        config = json.loads(path.read_text())
        for wiring in config["boards"].values():
            wiring["fake"]["running"] = 4.0
        path.write_text(json.dumps(config))
    rc, output = asked_together(plays, folders, "provision_instance", instance="lab", flavor=FLAVOR, count=3)
    assert rc == 0, output
    first, second = times(folders["p1"], "lab-1"), times(folders["p2"], "lab-3")
    assert max(first[0], second[0]) < min(first[1], second[1]), output


def test_a_request_goes_step_by_step_whatever_the_strategy(proxies):
    """Lost: each request at a site of several nodes whose ansible.cfg has a free strategy: localhost would decide
    before the nodes have answered.
    """
    _folders, plays = proxies
    plays.env["ANSIBLE_STRATEGY"] = "free"
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=3)
    assert rc == 0, output
    assert "lab-3 is running on board0" in output


@pytest.mark.parametrize(("names", "nodes"), [(["p1"], 2), (["p1", "p2"], 4)])
def test_what_is_said_last_is_believed(proxies, names, nodes):
    """Lost: why there is no board for a request, to what was said before the claim, or to an error about it."""
    _folders, plays = proxies
    rc, output = plays.end(plays.start("provision_instance", order=names, instance="lab", flavor=FLAVOR, count=5))
    assert rc == 2, output
    assert f"lab wants 5 {FLAVOR} (tilepro64, 8x8, 16384 MB, 500 GB): {nodes} of 5 boards." in output


@pytest.mark.parametrize("playbook", ["terminate_instance", "provision_instance"])
def test_an_owner_that_fails_stops_the_play(proxies, playbook):
    """Lost: an instance that it may hold, taken for none, or made a second time elsewhere."""
    folders, plays = proxies
    with Store(folders["p1"].state_db):
        pass
    with open(folders["p2"].state_db, "wb") as file:
        file.write(b"no database" * 1000)
    given = {"flavor": FLAVOR} if playbook == "provision_instance" else {}
    rc, output = plays.play(playbook, instance="jackie", **given)
    assert rc == 2, output
    assert "p2: " in output
    assert "is no SQLite database" in output
    assert "no such instance" not in output
    with Store(folders["p1"].state_db, create=False) as store:
        assert store.claims() == []
