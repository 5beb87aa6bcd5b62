# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for several instances of which only some are meant, or some cannot be reached any more. If these fail, what
nobody asked for is done to an instance, or what was asked for is not done, and nobody hears of it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board as board_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import provision
from ansible_collections.hetero.compute.tests.unit.verbs.test_another_boards_file import deploy
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, fake, root

GIVEN = {"rebuilt": dict(fresh=True), "extended": dict(lease_hours=1), "rebooted": dict(how="hard"), "running": {}}


@pytest.fixture
def two(site):
    """lab-1 on board 0, lab-2 on board 1, both running, with work in their roots."""
    result = ask(site, **REQUEST)
    assert not result.get("failed"), result
    for board in (0, 1):
        (root(site, board) / "root" / "data").write_text("work")
    return site


def ask(site, state="running", **given):
    given = dict({"instance": "lab", "count": 2, "timeout": 10}, **given)
    return site.module("instance", kind="board", state=state, **given)


def test_a_rebuild_of_some_takes_no_root_of_the_others(two):
    """Lost: lab-1's work and power, by the rebuild of lab-2."""
    before = two.record(0)
    result = ask(two, "rebuilt", numbers=[2], fresh=True)
    assert not result.get("failed"), result
    assert [one["instance"] for one in result["instances"]] == ["lab-2"]
    assert two.record(0) == before
    assert two.outlets() == {"1": "on", "2": "on"}
    assert (root(two) / "root" / "data").read_text() == "work"
    assert not (root(two, 1) / "root" / "data").exists()


@pytest.mark.parametrize(
    ("there", "asked", "words"),
    [
        (
            dict(instance="lab-3", count=1),
            dict(count=3),
            "lab-3: is an instance by itself, and cannot be one of several",
        ),
        (
            dict(instance="lab", count=2),
            dict(count=1),
            "lab: stands for several that are there (lab-1, lab-2): add -e count=2",
        ),
        (dict(instance="lab", count=1), dict(count=2), "lab: is an instance by itself, and cannot be several"),
    ],
)
def test_an_instance_of_its_own_is_no_part_of_a_request(site, there, asked, words):
    """Lost: the one, when the other that its owner gave the same name is ended."""
    assert not ask(site, **dict(REQUEST, **there)).get("failed")
    before = site.what_is_there()
    result = ask(site, **dict(REQUEST, instance="lab", **asked))
    assert result.get("failed")
    assert words in result["msg"]
    assert site.what_is_there() == before
    # what is there is asked for again
    assert not ask(site, **dict(REQUEST, **there)).get("failed")


def test_fewer_than_there_are_is_what_was_asked_for(site):
    """Lost: a playbook whose count went from 3 to 2: it told that lab-3 was claimed anew, and did so each time."""
    first = ask(site, **dict(REQUEST, count=3, numbers=[1, 3]))
    assert not first.get("failed"), first
    there = site.what_is_there()
    result = ask(site, **dict(REQUEST, count=2, partial=True, created=[site.record(0).claim.created]))
    assert not result.get("failed"), result
    assert not result["changed"]
    assert [one["instance"] for one in result["instances"]] == ["lab-1"]
    assert site.what_is_there() == there


def test_a_lease_of_some_is_not_that_of_the_others(two):
    """Lost: lab-1, at the end of a lease that was asked for lab-2."""
    (lease,) = ask(two, "extended", numbers=[2], lease_hours=1)["instances"]
    assert lease["instance"] == "lab-2"
    assert two.record(0).claim.expires is None


@pytest.mark.parametrize("state", ["running", "stopped", "rebooted", "rebuilt", "extended"])
def test_numbers_that_nobody_has_are_no_success(two, state):
    """Lost: the truth: nothing was done, and it was told as done."""
    there = two.what_is_there()
    result = ask(two, state, count=3, numbers=[3], **GIVEN.get(state, {}))
    assert "no such instance" in result["msg"], state
    assert two.what_is_there() == there


@pytest.mark.parametrize("state", ["running", "stopped", "rebooted", "rebuilt", "extended"])
def test_a_board_that_the_file_does_not_name_is_no_success(two, state):
    """Lost: the truth: lab-1 was neither stopped nor started, and it was told as done."""
    deploy(two, {1})
    power = two.outlets()
    for name in ("lab", "lab-1"):
        result = ask(two, state, instance=name, count=1, **GIVEN.get(state, {}))
        assert result["failed"], (state, name)
        assert not result.get("changed")
        assert "lab-1: has board0, which is not in the boards file: add it" in result["msg"]
    assert two.outlets() == power


def test_what_is_left_of_a_request_is_ended_beside_such_a_board(two):
    """Lost: lab-2's board, for as long as nobody mends the boards file; or lab-1, to a guess."""
    deploy(two, {1})
    result = ask(two, "absent")
    assert "lab-1: has board0, which is not in the boards file: add it" in result["msg"]
    assert two.record(1).claim is None
    assert two.outlets() == {"1": "on", "2": "off"}


def test_some_that_were_given_back_since_they_were_looked_up_are_missed(site):
    """Lost: one instance of two, and it was told as done."""
    created = [claim["created"] for claim in ask(site, "present", **REQUEST)["instances"]]
    assert ask(site, "absent", instance="lab-2", count=1)["changed"]
    result = ask(site, created=created, **REQUEST)
    assert "1 of its 2 instances were given back meanwhile" in result["msg"]
    assert site.outlets() == {"1": "off", "2": "off"}


@pytest.mark.parametrize("given", [dict(fresh=True), dict(image="debian-13")])
def test_a_rebuild_that_is_refused_for_one_is_done_for_the_others(two, given):
    """Lost: lab-1, which has no root any more by its record, keeps running from it, and is neither rebooted nor rebuilt
    as long as lab-2 is refused.
    """
    with two.proxy() as proxy:
        proxy.store.move(1, "error", "its fan is loud")
        before = proxy.store.claim_of("lab-1")
    for check in (True, False):
        result = ask(two, "rebuilt", check=check, **given)
        assert result["failed"]
        assert result["msg"].startswith("board1: is in error: its fan is loud")
        assert (result["step"], result["changed"]) == ("rebuild", True)
        assert (root(two, 1) / "root" / "data").read_text() == "work"
    with two.proxy() as proxy:
        claim = proxy.store.claim_of("lab-1")
    assert claim.image_hash
    assert claim.host_key != before.host_key
    assert (two.record(0).state, two.outlets()) == ("running", {"1": "on", "2": "on"})
    assert not (root(two) / "root" / "data").exists()
    assert not ask(two, "rebooted", instance="lab-1", count=1, how="hard").get("failed")


def test_a_rebuild_is_of_the_claim_that_was_there_when_it_began(two, monkeypatch):
    """Lost: the power of an instance that got the name and board of one whose rebuild was written down just before."""
    rebuild = board_module.rebuilds.rebuild

    def written_down_and_claimed_anew(proxy, *args):
        result = rebuild(proxy, *args)
        old = proxy.store.claim_of("lab-1")
        proxy.store.forget(old, "its owner ended it meanwhile")
        with proxy.store.transaction():
            proxy.store._insert(replace(old, created=old.created + 1))
        return result

    monkeypatch.setattr(board_module.rebuilds, "rebuild", written_down_and_claimed_anew)
    result = ask(two, "rebuilt", instance="lab-1", count=1, fresh=True)
    assert "claimed anew by jackie" in result["msg"]
    assert two.outlets()["1"] == "on"


@pytest.mark.parametrize("step", ["stop", "remove"])
def test_what_can_be_ended_of_a_request_is(two, monkeypatch, step):
    """Lost: lab-2's board, on or off, for as long as nobody mends lab-1's."""
    monkeypatch.setattr(provision, "UNMOUNT_TIME", 0.1)
    before = two.record(0).claim
    if step == "stop":
        two.pdu(faults={"stuck": ["1"]})
    with (root(two) / "root" / "data").open() if step == "remove" else nullcontext():
        result = ask(two, "absent")
    assert (result["failed"], result["changed"], result["step"]) == (True, True, step)
    assert ("and then" in result["msg"], "lab-2" in result["msg"]) == (False, False)
    assert [(one["instance"], one.get("error")) for one in result["instances"]] == [
        ("lab-1", result["msg"]),
        ("lab-2", None),
    ]
    assert (two.record(0).claim, two.record(1).claim) == (before, None)
    assert two.outlets() == {"1": "on" if step == "stop" else "off", "2": "off"}
    assert (root(two) / "root" / "data").read_text() == "work"
    assert not root(two, 1).parent.exists()
    assert two.provision("bob")[0]["boards"][0]["board"] == 1, "what was given back is free"
    two.terminate("bob")
    two.pdu()
    result = ask(two, "absent")
    assert not result.get("failed"), result
    assert two.what_is_there() == two.clean()


def test_a_board_that_is_on_for_somebody_is_not_cut_for_an_image(site):
    """Lost: the work of whoever is on board 0, to an image that does not boot on board 1; or board 1, claimed for
    nobody's use.
    """
    fake(site, 1, stall="nfs")
    site.pdu(board0="on")
    result = ask(site, timeout=2, **REQUEST)
    assert (result["failed"], result["blame"], result["step"]) == (True, "image", "boot")
    assert site.outlets() == {"1": "on", "2": "off"}
    board0, board1 = site.record(0), site.record(1)
    assert (board0.state, board0.claim.instance) == ("error", "lab-1")
    assert (board1.state, board1.claim) == ("power off", None)
    assert not root(site, 1).parent.exists()
