# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at all nodes, as Schedule and plan are called without the filter, which test_schedule.py goes by."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import BOARDS, IN_USE, Verdict
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.schedule import (
    Refusal,
    Schedule,
    plan,
    refusals,
)
from ansible_collections.hetero.compute.tests.unit.scheduling.test_schedule import (
    CG1,
    KVM,
    TP64,
    board,
    claim,
    device,
    gpu,
    host,
    proxy,
    schedule,
)

FLAVOR = dict(name="any", memory_mb=1)


def verdict(name, owner="p1", room=1, most=1, **more):
    return Verdict(owner, BOARDS, name, room=room, most=most, **more)


def busy(number):
    return verdict(f"board{number}", room=0, busy=(f"running i-{number}",), brief=IN_USE)


def test_one_instance_is_asked_for_and_all_or_nothing():
    """Lost: the instance of a caller that says no number, on an owner that has room for one."""
    one = Schedule(FLAVOR, [verdict("board0")])
    assert (one.enough, one.possible, one.shares()) == (True, True, [("p1", 1)])
    two = Schedule(FLAVOR, [verdict("board0"), verdict("board1")], count=3)
    assert (two.enough, two.possible) == (False, False)


@pytest.mark.parametrize(("most", "possible"), [(0, False), (1, True), (2, True)])
def test_part_of_a_request_is_waited_for_while_any_of_it_could_be(most, possible):
    """Lost: the part that would come free; or a wait without end."""
    some = Schedule(FLAVOR, [verdict("board0", room=0, most=most)], count=5, partial=True)
    assert (some.enough, some.possible) == (False, possible)


@pytest.mark.parametrize(("never", "head"), [(True, "1 of 2 boards"), (False, "no node")])
def test_after_a_race_was_lost_no_number_of_free_nodes_is_told(never, head):
    """Lost: trust in an answer that says that nodes are free, and gives none; what is unfit loses no race."""
    refused = {("p1", "board0"): Refusal(["no"], never)}
    one = Schedule(FLAVOR, [verdict("board0"), verdict("board1")], 2, refused=refused)
    assert one.text("bob", 2).splitlines()[0].endswith(f": {head}.")


@pytest.mark.parametrize(
    ("room", "head", "some"), [(1, "1 of 3 boards", True), (0, "no node", False), (3, "no node", False)]
)
def test_after_a_refusal_it_is_told_how_many_could_be_given(room, head, some):
    """Lost: four boards at once, to somebody who asked for six and was told that there is no node."""
    failure = dict(rejected=dict(board0=["reserved for ann"], board1=["reserved for bob"]), room=room)
    refused = refusals([dict(item="p1", failure=failure)])
    one = Schedule(FLAVOR, [verdict(f"board{number}") for number in range(3)], 3, refused=refused)
    assert one.text("ci", 3).splitlines()[0].endswith(f": {head}.")
    assert one.some is some
    # what others have free counts beside that
    both = Schedule(FLAVOR, [*one.found, verdict("board0", "p2")], 3, refused=refused)
    assert both.free == room + 1


@pytest.mark.parametrize(("room", "found"), [(7, "7 of 10 boards"), (0, "no node")])
def test_what_is_there_already_is_counted_apart(room, found):
    """Lost: the sense of a refusal: 11 were asked for, and it said "7 of 10 nodes"."""
    nodes = [verdict(f"board{number}") for number in range(room)] + [busy(9)]
    first, why = Schedule(FLAVOR, nodes, count=10).text("lab", 11).splitlines()
    assert first == f"lab wants 11 any (1 MB): {found} besides the 1 that it has."
    assert why == "  board9: running i-9"


def test_what_the_nodes_do_that_could_serve_it():
    """Lost: whom one waits for: the line tells who refused from who is free, and leaves out who never serves."""
    found = [verdict("board0"), verdict("board1"), busy(2), verdict("board3", never=("has no disk",))]
    one = Schedule(FLAVOR, found, refused={("p1", "board1"): Refusal(["running eve"])})
    assert one.waiting() == "board0 free, board1 refused, board2 in use"


@pytest.mark.parametrize("many", [4, 5])
def test_who_uses_what_is_told_of_four_nodes(many):
    """Lost: with whom to talk about a board; of more the list would be longer than anybody reads."""
    lines = Schedule(FLAVOR, [busy(number) for number in range(many)]).text("bob", 1).splitlines()[1:]
    assert lines == ([f"  board{n}: running i-{n}" for n in range(4)] if many == 4 else ["  5 boards: in use"])


def test_only_several_instances_have_numbers():
    """Lost: an instance, as an owner is asked for number 1 of a request that has no numbers; or the second of two."""
    node = proxy("p1", *map(board, range(4)))
    assert schedule([node], TP64, name="lab")["visits"] == [dict(item="p1", kind="board", numbers=[])]
    assert schedule([node], TP64, name="lab-1")["visits"] == [dict(item="p1", kind="board", numbers=[])]
    both = schedule([node], TP64, name="lab", count=2)["visits"]
    assert both == [dict(item="p1", kind="board", numbers=[1, 2])]
    held = dict(node, claims=[claim("lab-2", "lab")])
    assert schedule([held], TP64, name="lab", count=2, owner="jo")["visits"] == [
        dict(item="p1", kind="board", numbers=[2, 1])
    ]
    one = Schedule(FLAVOR, [verdict("board0")])
    for theirs, request in ((claim("lab-1", "lab-1"), "lab-1"), (claim("lab-2", "lab"), "lab")):
        alone = dict(node, claims=[theirs])
        assert plan(one, [alone], request, 1, "jo")["visits"] == [dict(item="p1", kind="board", numbers=[])]


@pytest.mark.parametrize(
    ("flavor", "one", "what", "why"),
    [
        (
            CG1,
            dict(given=[gpu(0, "ml-8"), gpu(1, "ml-8"), gpu(2), gpu(3)]),
            "containers",
            "room for 1, 2 of 4 fermi GPUs free (0000:00:00.0, 0000:01:00.0 allocated to ml-8 since 0 s)",
        ),
        (CG1, dict(given=[gpu(0), gpu(1), gpu(2)]), "containers", "room for 1, 3 of 3 fermi GPUs free"),
        (
            dict(CG1, extra_specs={"hypervisor": "s== LXC"}),
            dict(free=17000),
            "containers",
            "room for 1, 17000 of 65536 MB of memory left",
        ),
        (KVM, dict(hypervisors=("KVM",), devices=[device(5)]), "guests", "room for 1, 1 of 1 a1 free"),
    ],
)
def test_a_host_with_room_for_a_part_says_what_it_is_short_of(flavor, one, what, why):
    """Lost: why a host with free GPUs gives none, and who has the others: "there are no boards and no hosts"."""
    node = host("gpu1", *one.pop("given", ()), **one)
    head, *lines = schedule([node], flavor, name="ml-9", count=2)["text"].splitlines()
    assert (head.rpartition(": ")[2], lines) == (f"1 of 2 {what}.", [f"  gpu1: {why}"])


def test_a_host_with_room_for_all_is_short_of_nothing():
    """Lost: trust in the reasons, where one is told of a host that could serve all, and was only asked too late."""
    assert schedule([host("gpu1", *map(gpu, range(4)))], CG1, count=2)["text"].endswith("\n  there are no more nodes")


def test_boards_that_are_all_free_and_too_few_are_not_none():
    """Lost: that there are boards: "there are no boards and no hosts", below "2 of 3 boards"."""
    text = Schedule(FLAVOR, [verdict("board0"), verdict("board1")], 3).text("bob", 3)
    assert text.splitlines()[1:] == ["  there are no more nodes"]
    assert Schedule(FLAVOR, []).text("bob", 1).splitlines()[1:] == ["  there are no boards and no hosts"]


def test_what_only_an_operator_can_make_free_is_no_help_to_who_waits():
    """Lost: what is free on several nodes, held for a request that no wait of theirs makes possible."""
    boards = [board(0, "running", "i-0"), board(1, "error"), board(2, "maintenance"), board(3, withheld="is on")]
    boards += [board(4, "shutting down"), board(5, "error", "i-5"), board(6)]
    gpus = [gpu(1, "ml-1"), gpu(2), gpu(3), dict(gpu(4), healthy=False, why_unhealthy="fell off the bus")]
    found = schedule([proxy("p1", *boards), host("g1", *gpus)], TP64, name="lab", count=9)
    assert (found["could"], found["most"]) == ({"p1": 3, "g1": 0}, 7)
    found = schedule([proxy("p1", *boards), host("g1", *gpus)], CG1, name="lab")
    assert (found["could"], found["most"]) == ({"p1": 0, "g1": 1}, 2)
    broken = [dict(one, healthy=False, why_unhealthy="fell off the bus") for one in gpus]
    assert schedule([host("g1", *broken)], CG1, name="lab")["could"] == {"g1": 0}
