# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps a verb takes on the boards of a request, and what it gives each (instances/kinds/board.py). Whole verbs
are in verbs/test_instance_on_boards.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import wipes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board as board_module
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, claimed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.kinds.requests_of_boards import request


@pytest.fixture
def steps(monkeypatch):
    """What each step of a request was given; `bad` are those that fail, `boards` what a step says of boards."""
    done = SimpleNamespace(taken=[], bad={}, boards=dict(given_back=[]), ended=[])

    def step(name):
        def take(self, ids=(), **given):
            done.taken.append((name, list(ids), given))
            boards = done.boards.get(name, [dict(board=id, failed=False, blame=None) for id in ids])
            result = dict(boards=boards, changed=True)
            if name in done.bad:
                result.update(failed=True, msg=f"{name} fails", blame=done.bad[name])
            return self.steps.took(result, name)

        return take

    def end(proxy, ids, asked_for, options, at_fault):
        known = dict(at_fault=at_fault) if at_fault else {}
        done.taken.append(("end", list(ids), dict(known, never_ran=options.never_ran)))
        boards = done.boards.get("end", [dict(board=id, failed=False) for id in ids])
        failed = [board for board in boards if board["failed"]]
        return dict(boards=boards, changed=True, failed=bool(failed), msg="x", step="wipe", ended=done.ended)

    def given_back(proxy, instances, change, deadline, left, on):
        done.taken.append(("given_back", list(left), dict(on=on)))
        return dict(boards=done.boards["given_back"])

    for name in ("make_ready", "boot", "stop", "remove"):
        monkeypatch.setattr(board_module.Request, name, step(name))
    monkeypatch.setattr(board_module.release, "end", end)
    monkeypatch.setattr(board_module.board_releases, "absent", given_back)
    return done


# ---- what is asked for


def test_what_a_request_is_by_its_words(node, proxy):
    """Lost: one instance of several; or a verb that is cut off before it can be at its end."""
    asked = request(proxy, node, count=3, numbers=[1, 3])
    assert asked.names == ["lab-1", "lab-3"]
    assert [request(proxy, node, count=count).names for count in (0, 1)] == [["lab"], ["lab"]]
    assert len(request(proxy, node, count=10**6).names) == board_module.board_fit.MOST
    assert [request(proxy, node, attempts=number).attempts for number in (0, 1, 3)] == [1, 1, 3]
    options = request(proxy, node, check=True, how="hard", soft_timeout=7, timeout=8, created=[1.0]).options
    assert (options.check, options.instance, options.created, options.rebuilt) == (True, "lab", (1.0,), ())
    assert (options.how, options.soft_timeout, options.timeout) == ("hard", 7, 8)
    one = request(proxy, node, state="stopped", attempts=1)
    boot = 2 * one.options.limit_with_disk + board_module.IMAGE_TIME
    assert one.limit == boot
    assert request(proxy, node, state="stopped", attempts=3).limit == 3 * boot
    for state in ("running", "absent"):
        assert request(proxy, node, state=state, attempts=1).limit == boot + wipes.WipeRequest().limit
    with pytest.raises(HeteroError, match="is no instance name"):
        request(proxy, node, instance="../x")


def test_the_claims_of_a_request_are_those_that_were_looked_up(node, proxy):
    """Lost: an instance that somebody got by the name since; or that one of them is not there any more."""
    made = claimed(proxy, "lab", (0, 1), made=False)
    created = [claim.created for claim in made]
    asked = request(proxy, node, count=2, created=created)
    assert [one["instance"] for one in asked.found()] == ["lab-1", "lab-2"]
    assert [one["ran"] for one in asked.found()] == [False, False]
    assert [one["name"] for one in request(proxy, node, count=2).found()] == ["board0", "board1"]
    with pytest.raises(Refused, match="lab-1: was given back meanwhile, and claimed anew"):
        request(proxy, node, count=2, created=[1.0]).found()
    with pytest.raises(Refused, match=r"^lab: 1 of its 3 instances were given back meanwhile: ask for it anew$"):
        request(proxy, node, count=3, created=[*created, 1.0]).found()
    with pytest.raises(Refused, match=r"^bob: was given back meanwhile: ask for it anew$"):
        request(proxy, node, instance="bob", created=[1.0]).found()


def test_a_request_takes_no_boards_of_others_of_the_name(node, proxy):
    """Lost: the instance of another owner; or of one who gets the name between two steps."""
    made = claimed(proxy, "lab", (0, 1), made=False)
    asked = request(proxy, node)
    assert (asked.ids(), asked.created) == ([0, 1], tuple(claim.created for claim in made))
    told = request(proxy, node, created=[7.0], owner="ann", numbers=[2])
    assert (told.ids(), told.created) == ([1], (7.0,))
    with pytest.raises(Refused, match="belongs to ann"):
        request(proxy, node, owner="bob").ids()
    assert told.options.created == (7.0,)


# ---- verbs


def verbs(asked, name):
    return board_module.VERBS[name](asked)


def test_each_verb_takes_its_steps(node, proxy, steps, monkeypatch):
    """Lost: an instance's root, at a stop; or its disks, which nobody wiped at its end."""
    claimed(proxy, "lab", (0, 1))
    verbs(request(proxy, node), "stopped")
    assert steps.taken == [("stop", [0, 1], dict(keep=True))]
    steps.taken.clear()
    verbs(request(proxy, node), "running")
    assert steps.taken == [("make_ready", [0, 1], {}), ("boot", [0, 1], {})]
    steps.taken.clear()
    steps.bad = dict(make_ready=None)
    asked = request(proxy, node)
    verbs(asked, "running")
    assert [name for name, _ids, _given in steps.taken] == ["make_ready"]
    assert asked.steps.failure["msg"] == "make_ready fails"
    steps.taken.clear()
    steps.bad = {}
    rebooted = []
    monkeypatch.setattr(
        board_module.lifecycle,
        "reboot",
        lambda proxy, ids, options: rebooted.append((ids, options.how)) or dict(boards=[7]),
    )
    asked = request(proxy, node, how="hard")
    verbs(asked, "rebooted")
    assert (rebooted, asked.steps.boards, steps.taken) == ([([0, 1], "hard")], [7], [])


@pytest.mark.parametrize("never_ran", [True, False])
def test_the_end_of_an_instance(node, proxy, steps, never_ran):
    """Lost: the claim of a board that is not off or not clean; or what stays of a request, without a word."""
    claimed(proxy, "lab", (0, 1, 2))
    steps.boards["end"] = [dict(board=id, failed=id == 1, error="x") for id in range(3)]
    asked = request(proxy, node, never_ran=never_ran)
    verbs(asked, "absent")
    assert steps.taken == [
        ("end", [0, 1, 2], dict(never_ran=never_ran)), ("given_back", [0, 1, 2], dict(on=True)),
    ]  # fmt: skip
    assert (asked.steps.failure["step"], asked.steps.failure["msg"]) == ("wipe", "x")


def test_what_is_asked_for_anew_before_the_end_is_left(node, proxy, steps):
    """Lost: the instance that its owner asked for while the disks of the former one's other boards were wiped."""
    claimed(proxy, "lab", (5, 6))
    steps.ended = ["lab-1"]
    request(proxy, node).end([0, 1])
    assert steps.taken[-1] == ("given_back", [0, 1, 5], dict(on=True))


def test_the_boards_of_an_end_are_told_in_order(node, proxy, steps):
    """Lost: which board it was that could not be ended, among those that were."""
    claimed(proxy, "lab", (0, 1, 2))
    steps.boards["end"] = [dict(board=1, failed=True)]
    steps.boards["given_back"] = [dict(board=2), dict(board=0)]
    asked = request(proxy, node)
    asked.end([1], left=[7])
    assert [board["board"] for board in asked.steps.boards] == [0, 1, 2]
    assert steps.taken[-1] == ("given_back", [7, 1], dict(on=True))


def test_an_end_of_what_is_not_there_is_no_failure(node, proxy, steps):
    """Lost: a play that ends twice what it made."""
    asked = request(proxy, node, instance="bob")
    verbs(asked, "absent")
    assert (steps.taken, asked.steps.result["instances"], asked.steps.failure) == ([], [], {})
    claimed(proxy, "lab", (0, 1))
    del proxy.boards[0]
    verbs(request(proxy, node), "absent")
    assert steps.taken[0][1] == [1]
    with pytest.raises(Refused, match="belongs to ann"):
        verbs(request(proxy, node, owner="bob"), "absent")


@pytest.mark.parametrize("check", [True, False])
def test_what_is_taken_back_of_boards_at_fault(node, proxy, steps, check):
    """Lost: the work of whoever is on a board that was found on; or a board at fault, given to the next."""
    claimed(proxy, "lab", (0, 1, 2), made=False)
    proxy.store.move(0, "error", "its outlet was on")
    proxy.store.move(1, "booting")
    proxy.store.event(1, "switch", "pdu-a outlet 2 is to be switched on")
    proxy.store.move(1, "error", "no boot request")
    request(proxy, node, check=check).take_back([0, 1, 2])
    at_fault = {0: "its outlet was on", 1: "no boot request"}
    assert steps.taken == [
        ("end", [1, 2], dict(never_ran=True, at_fault=at_fault)), ("given_back", [0, 1, 2], dict(on=True)),
    ]  # fmt: skip


def claims(*changed):
    one = dict(board=0, state="power off", image_hash=None, ran=False, created=5.0)
    return [dict(one, **more) for more in changed]


@pytest.mark.parametrize(
    ("bad", "given", "of", "last", "again", "names"),
    [
        ({}, {}, {}, False, False, ["make_ready", "boot"]),
        (dict(make_ready=None), {}, {}, False, False, ["make_ready", "take_back"]),
        (dict(make_ready=None), {}, dict(image_hash="x"), False, False, ["make_ready"]),
        (dict(make_ready=None), {}, dict(ran=True), False, False, ["make_ready"]),
        (dict(make_ready=None), dict(check=True), {}, False, False, ["make_ready"]),
        (dict(boot="image"), {}, {}, False, False, ["make_ready", "boot", "take_back"]),
        (dict(boot="board"), {}, {}, False, True, ["make_ready", "boot", "remove"]),
        (dict(boot="board", remove=None), {}, {}, False, False, ["make_ready", "boot", "remove"]),
        (dict(boot="board"), {}, {}, True, False, ["make_ready", "boot"]),
        (dict(boot="board"), dict(board=0), {}, False, False, ["make_ready", "boot"]),
        (dict(boot="network"), {}, {}, False, False, ["make_ready", "boot"]),
    ],
)
def test_what_is_tried_and_what_is_taken_back(node, proxy, steps, monkeypatch, bad, given, of, last, again, names):
    """Lost: a board, claimed for nobody; a root with work in it; or another board, where the image is at fault."""
    steps.bad = bad
    steps.boards["boot"] = [dict(board=0, failed=True, blame="board"), dict(board=1, failed=False, blame=None)]
    monkeypatch.setattr(
        board_module.Request, "take_back", lambda self, ids: steps.taken.append(("take_back", list(ids), {}))
    )
    asked = request(proxy, node, flavor=FLAVOR, image="debian", boot_source="nfs", **given)
    two = claims(of, dict(board=1, state="error"))
    assert board_module._tried(asked, two, last) is again
    assert [name for name, _ids, _given in steps.taken] == names
    assert steps.taken[0] == ("make_ready", [0], dict(anew=True, boot_source="nfs", flavor=FLAVOR))
    for name, ids, words in steps.taken[1:]:
        if name == "boot":
            assert (ids, words) == ([0, 1], dict(boot_source="nfs", image="debian"))
        elif name == "remove":
            assert (ids, words) == ([0], dict(never_ran=True))
        else:
            assert ids == [0, 1]


@pytest.mark.parametrize(("attempts", "fails", "tries"), [(3, 0, 1), (3, 1, 2), (3, 9, 3), (1, 9, 1)])
def test_another_board_as_often_as_was_asked_for(node, proxy, monkeypatch, attempts, fails, tries):
    """Lost: an instance, to a board at fault; or board after board, to what is at fault of none."""
    claimed(proxy, made=False)
    seen, moves = [], []

    def tried(self, found, last):
        seen.append((found[0]["created"], last))
        self.steps.fail(dict(failed=True, msg="x"))
        return len(seen) <= fails and not last

    def claim(self, move=False):
        moves.append(move)
        return claims(dict(created=float(len(moves))))

    monkeypatch.setattr(board_module, "_tried", tried)
    monkeypatch.setattr(board_module.Request, "claim", claim)
    asked = request(proxy, node, instance="jackie", flavor=FLAVOR, attempts=attempts)
    monkeypatch.setattr(board_module.Request, "found", lambda self: claims({}))
    board_module.running(asked)
    assert moves == [False] + [True] * (tries - 1)
    assert seen == [(float(number), number == attempts) for number in range(1, tries + 1)]
    assert asked.created == (float(tries),)
    assert asked.steps.failure["msg"] == "x"
    again = request(proxy, node, instance="jackie", flavor=FLAVOR, created=[5.0])
    seen.clear()
    board_module.running(again)
    assert seen[0][0] == 5.0, "it was looked up"


@pytest.mark.parametrize(
    ("result", "check", "names", "image"),
    [
        (dict(boards=[1], to_rebuild=[0]), False, ["stop", "make_ready", "boot"], None),
        (dict(boards=[1], to_rebuild=[]), False, ["make_ready", "boot"], None),
        (dict(boards=[1], to_rebuild=[0]), True, ["stop", "make_ready", "boot"], "new"),
        (dict(boards=[1], to_rebuild=[], failed=True, msg="x"), False, [], None),
        (dict(boards=[1], to_rebuild=[1], failed=True, msg="x"), False, ["stop", "make_ready", "boot"], None),
    ],
)
def test_a_rebuild_stops_makes_and_boots_what_it_wrote_down(
    node, proxy, steps, monkeypatch, result, check, names, image
):
    """Lost: the power of an instance that is not rebuilt; or a rebuild that a refusal of another one keeps undone."""
    claimed(proxy, "lab", (0, 1))
    words = []
    monkeypatch.setattr(board_module.rebuilds, "rebuild", lambda proxy, *given: words.append(given) or result)
    given = dict(image="new", ssh_public_key=KEY, fresh=True, owner="ann", numbers=[])
    asked = request(proxy, node, check=check, **given)
    board_module.rebuilt(asked)
    assert [name for name, _ids, _given in steps.taken] == names
    instances, asked_for, change, deadline = words[0]
    assert (instances, asked_for) == (asked.asked, board_module.rebuilds.RebuildRequest("new", KEY, True))
    assert (instances.request, instances.owner, instances.numbers) == ("lab", "ann", [])
    assert (instances.created, change.check, deadline.seconds) == (asked.created, check, asked.options.limit)
    ids = result["to_rebuild"] if result.get("failed") else [0, 1]
    for step, of, more in steps.taken:
        if step == "stop":
            assert of == result["to_rebuild"]
        else:
            assert of == ids
        if step == "boot":
            assert more == dict(image=image)
    if names:
        kept = (asked.params["image"], asked.params["ssh_public_key"])
        assert kept == (("new", KEY) if check else (None, None))
        assert asked.options.rebuilt == (tuple(result["to_rebuild"]) if check else ())
    steps.taken.clear()
    steps.bad = dict(stop=None)
    board_module.rebuilt(request(proxy, node, check=check, **given))
    assert [name for name, _ids, _given in steps.taken] == (["stop"] if "stop" in names else names)


def test_what_stays_claimed_is_said_to_who_asked(node, proxy):
    """Lost: which boards are his, to who asked and got nothing that runs."""

    def said(msg="no boot", **given):
        asked = request(proxy, node, owner=given.pop("owner", "ann"), **given)
        if msg:
            asked.steps.fail(dict(failed=True, msg=msg))
        asked.say_what_stays()
        return asked.steps.failure.get("msg", "")

    end = "ansible-playbook hetero.compute.terminate_instance -e instance=lab"
    claimed(proxy, "lab", (0, 1))
    again = f"ask for lab again once that is mended, or {end} ends it"
    assert said(count=2) == f"no boot; lab-1 on board0, lab-2 on board1 stay claimed: {again}"
    # other nodes have the other numbers, and what ran there is not known here
    again = "ask for lab again once that is mended"
    assert said(count=2, numbers=[2]) == f"no boot; lab-2 on board1 stays claimed: {again}"
    assert (said(count=2, owner="bob"), said(None, count=2), said(count=1)) == ("no boot", "", "no boot")
    assert said(f"no boot: {end}", count=2) == f"no boot: {end}"


def test_what_is_being_ended_is_not_said_to_stay(node, proxy):
    """Lost: trust in the answer: "jackie is being ended …; jackie stays claimed"."""
    claimed(proxy, "lab", (0, 1))
    asked = request(proxy, node, owner="ann", count=2)
    of_one = dict(board=0, failed=True, evidence=dict(being_ended=True))
    boards = [of_one, dict(board=1, failed=True, evidence={})]
    asked.steps.took(dict(boards=boards, failed=True, msg="lab-1 is being ended"), "boot")
    asked.say_what_stays()
    said = asked.steps.failure["msg"]
    assert said.startswith("lab-1 is being ended; lab-2 on board1 stays claimed: ask for lab again"), said


def test_no_end_is_named_that_would_end_what_ran(node, proxy):
    """Lost: lab-1 and its root, which ran for days, by whoever types what the refusal of lab-2 names."""
    claimed(proxy, "lab", (0, 1))
    proxy.store.move(0, "booting")
    proxy.store.move(0, "running")
    asked = request(proxy, node, owner="ann", count=2)
    asked.steps.fail(dict(failed=True, msg="no boot"))
    asked.say_what_stays()
    both = "lab-1 on board0, lab-2 on board1 stay claimed"
    assert asked.steps.failure["msg"] == f"no boot; {both}: ask for lab again once that is mended"


# ---- data for cloud-init


def test_data_for_cloud_init_are_looked_at_before_anything_is_claimed(node, proxy, monkeypatch):
    """Lost: a board that was claimed, and a tenant's root that was ended, for data that nothing could come of."""
    seen = []
    monkeypatch.setattr(board_module, "must_have_cloud_init", lambda image: seen.append(image.name))
    image = "debian"
    store = SimpleNamespace(names=lambda: {image: "hash"}, get=lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(board_module, "image_store", lambda proxy: store)
    given = dict(owner="jo", flavor=FLAVOR, ssh_public_key=KEY, image=image)
    with pytest.raises(BadInput, match="user_data: does not begin as data for cloud-init do"):
        request(proxy, node, user_data="hunter2", **given).claim()
    assert proxy.store.claims() == []
    assert seen == []
    with pytest.raises(NoneFree, match="no image debian in its store"):  # what claims has a store of its own
        request(proxy, node, user_data="#cloud-config\n", **given).claim()
    assert seen == [image]
    request(proxy, node, user_data="#cloud-config\n", **given).must_take_user_data([None, "of no store"])
    assert seen == [image], "what makes roots of it says that it is not there"


def test_roots_get_the_data_that_were_asked_for(node, proxy, monkeypatch):
    asked = []

    def present(proxy, ids, asked_for, *more):
        asked.append(asked_for)
        return dict(boards=[])

    monkeypatch.setattr(board_module.board_images, "present", present)
    request(proxy, node, user_data="#!/bin/sh\n").make_ready([0])
    request(proxy, node).make_ready([0])
    assert [one.user_data for one in asked] == ["#!/bin/sh\n", None]
