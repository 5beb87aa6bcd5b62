# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power of a board whose claim only the database bears out, which may be older than who has the board. If these fail, a
tenant loses what runs there to the word of whoever had it before; or an intact instance cannot be stopped.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_older_copies import DAMAGED, Taken

SILENT = dict(tftp=0.0, nfs=0.0, running=0.0, stall="running")
VERBS = {
    "stopped": dict(state="stopped"),
    "started": dict(state="running"),
    "rebooted": dict(state="rebooted"),
    "by power": dict(state="rebooted", how="hard"),
}


def verb(site, name="alice", **given):
    return site.module("instance", kind="board", instance=name, timeout=3, **given)


def boot(site, name="alice", **given):
    """The same by the module of the step alone."""
    keep = dict(keep=True) if given["state"] == "stopped" else {}
    return site.module("tilera_boot", boards=[0], instance=name, timeout=3, **keep, **given)


@pytest.fixture
def taken(site):
    return Taken(site)


@pytest.mark.parametrize("given", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("by", [verb, boot])
@pytest.mark.parametrize("power", ["on", "silent"])
def test_no_power_is_cut_by_the_word_of_an_older_database_alone(taken, power, by, given):
    """Lost: Bob's work, by the reboot or stop of an instance that had the board before him."""
    site = taken.site
    if power == "silent":
        site.wire(0, fake=SILENT)
    taken.damage(*DAMAGED[0])
    there = site.what_is_there()
    switched = site.events(0, "switch")
    for check in (True, False):
        result = by(site, check=check, **given)
        assert result.get("failed"), (check, result)
        assert not result["changed"]
        if power == "silent" and "made.json" not in result["msg"]:  # of the root that would be made ready first
            for word in ("bears out that it is alice's", "reconcile -e adopt=alice", "reconcile -e forget=alice"):
                assert word in result["msg"]
    assert site.what_is_there() == there
    assert site.events(0, "switch") == switched
    assert site.root_is_whole()


def test_a_soft_reboot_needs_no_proof(taken):
    """Lost: the answer of the board itself: who is told by ssh shows the key, or nothing is done."""
    site = taken.site
    taken.damage(*DAMAGED[0])
    result = verb(site, state="rebooted", how="soft")
    assert "not rebooted" in result["msg"]
    assert "bears out" not in result["msg"]


@pytest.fixture
def damaged(jackie, request):
    """Jackie's site: neither a record nor its root says whose the board is; the board shows jackie's key."""
    for path, how in zip((record(jackie), jackie.state / "board-roots" / "fs_0" / "made.json"), request.param):
        path.unlink() if how == "lost" else path.write_text("{")
    for key in (jackie.state / "board-roots" / "fs_0" / "root" / "etc" / "ssh").glob("ssh_host_*"):
        key.unlink()
    return jackie


@pytest.mark.parametrize("how", ["rebooted", "by power"])
@pytest.mark.parametrize("damaged", DAMAGED, ids="-".join, indirect=True)
def test_what_shows_the_key_that_the_database_has_is_rebooted(damaged, how):
    """Lost: power over an intact instance, by two damaged files."""
    switched = damaged.events(0, "switch")
    result = boot(damaged, "jackie", **VERBS[how])
    assert not result.get("failed"), result["msg"]
    assert damaged.outlets()["1"] == "on"
    assert damaged.events(0, "switch") != switched


@pytest.mark.parametrize("damaged", DAMAGED, ids="-".join, indirect=True)
def test_what_shows_it_and_would_not_start_again_is_not_stopped(damaged):
    """Lost: an instance that runs, by a stop that goes through and a start that is refused."""
    result = boot(damaged, "jackie", **VERBS["stopped"])
    assert "board0: jackie would not start again, so it is not stopped" in result["msg"]
    assert damaged.outlets()["1"] == "on"


def test_an_operators_word_for_the_database_gives_power_back(taken):
    """Lost: the way out, where the database is right: what is printed is refused."""
    site = taken.site
    site.wire(0, fake=SILENT)
    taken.damage("lost", "lost")
    assert boot(site, **VERBS["stopped"]).get("failed")
    for _turn in range(2):
        reconcile(site, adopt=["alice"])
    result = boot(site, **VERBS["stopped"])
    assert not result.get("failed"), result.get("msg")
    assert site.outlets()["1"] == "off"


@pytest.mark.parametrize("of_record", ["lost", "unreadable"])
def test_what_was_only_claimed_can_be_stopped_and_started(site, of_record):
    """Lost: the first boot of an instance, or its stop: nothing was made for it yet that could be another's."""
    claim = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    assert not site.module("board_claim", **claim).get("failed")
    record(site).unlink() if of_record == "lost" else record(site).write_text("{")
    result = verb(site, "jackie", state="stopped")
    assert not result.get("failed"), result.get("msg")
    result = verb(site, "jackie", state="running")
    assert not result.get("failed"), result.get("msg")
