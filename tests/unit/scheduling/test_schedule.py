# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom to ask for a flavor, in what order, and what is said of the others. If these fail, a request goes to a node that
cannot serve it, misses one that can, goes elsewhere each time, or a user is not told why.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.holders import FilterModule as Holders
from ansible_collections.hetero.compute.plugins.filter.schedule import FilterModule
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.schedule import STRATEGIES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import read

ROOT = Path(__file__).parents[3]
TYPES = yaml.safe_load((ROOT / "playbooks" / "vars" / "instance_types.yml").read_text(encoding="utf-8"))[
    "hetero_instance_types"
]
BOARDS = read(ROOT / "roles" / "lab" / "files" / "tilera_boards")
TP64, CG1 = TYPES["tp64.8x8"], TYPES["cg1.xlarge"]
KVM = dict(
    name="kvm.gpu", memory_mb=8192, vcpus=4, extra_specs={"hypervisor": "s== KVM", "pci_passthrough:alias": "a1:1"}
)
ANY_TWO = dict(name="any.two", memory_mb=1024, vcpus=1, extra_specs={"hypervisor": "s== LXC", "gpus": "= 2"})
schedule = FilterModule().filters()["schedule"]
holders = Holders().filters()["holders"]


def board(number, state="power off", instance=None, **more):
    columns = dict(BOARDS[number % len(BOARDS)].columns, id=number, name=f"board{number}")
    return dict(columns, state=state, instance=instance, since_seconds=120, note="", disks=[], **more)


def proxy(name, *boards, claims=()):
    return dict(item=name, boards=list(boards), claims=list(claims))


def gpu(number, instance=None, arch="fermi", **more):
    known = dict(address=f"0000:0{number}:00.0", uuid=f"GPU-{number}", arch=arch, healthy=True, unsupported=None)
    return dict(known, why_unhealthy=None, instance=instance, holder=instance, since=None, **more)


def host(name, *gpus, hypervisors=("LXC",), free=65536, devices=(), claims=()):
    capacity = {key: dict(total=65536, free=free) for key in ("memory_mb", "vcpus", "local_gb")}
    known = dict(item=name, name=name, hypervisor=hypervisors[0], hypervisors=list(hypervisors), cpu_arch="x86_64")
    return dict(known, capacity=capacity, gpus=list(gpus), devices=list(devices), claims=list(claims))


def device(number, instance=None, unsupported=None, alias="a1"):
    known = dict(address=f"0000:8{number}:00.0", ids="10de:11bf", arch=alias, healthy=True, why_unhealthy=None)
    return dict(known, unsupported=unsupported, instance=instance, holder=instance, since=None)


def claim(instance, request=None, created=1.0, owner="jo", image_hash=None, **more):
    known = dict(instance=instance, request=request or instance, created=created, owner=owner)
    return dict(known, image_hash=image_hash, **more)


def with_roots(node, promised, there, overcommit=1.0, images=("debian",)):
    """A proxy whose roots are promised so many GiB of so many."""
    known = {name: dict(arch="tilepro64", ram=name.startswith("ram")) for name in images}
    roots = dict(promised=promised << 30, there=there << 30, taken=0, overcommit=overcommit, root_gb=8)
    boards = [dict(one, arch=one["cpu_info"]["arch"]) for one in node["boards"]]
    return dict(node, boards=boards, roots=roots, images=known)


def names(found):
    return [(one["owner"], one["name"]) for one in found]


def test_of_an_owners_boards_those_that_failed_least_come_first():
    """Lost: an hour, to the board that everybody gets first and that boots every other time."""
    nodes = [
        proxy("p1", board(0, health=dict(score=80)), board(1, health=None), board(2)),
        proxy("p2", board(0), board(1, health=dict(score=95)), board(2, health=dict(score=100))),
    ]
    found = names(schedule(nodes, TP64, name="x")["candidates"])
    assert found == [(owner, f"board{number}") for owner, number in
                     (("p1", 1), ("p1", 2), ("p1", 0), ("p2", 0), ("p2", 2), ("p2", 1))]  # fmt: skip


def test_a_board_that_is_being_checked_serves_as_the_last():
    """Lost: a request that finds no other, to the check of a board that would end for it."""
    checked = board(0, "shutting down") | dict(note="its health is being checked; found off")
    others = board(1, health=dict(score=0)), board(2, "shutting down")
    found = schedule([proxy("p1", checked, *others)], TP64, name="x")
    assert names(found["candidates"]) == [("p1", "board1"), ("p1", "board0")]
    assert names(found["rejected"]) == [("p1", "board2")]
    taken = checked | dict(instance="jackie")
    assert schedule([proxy("p1", taken)], TP64, name="x")["room"] == 0


def test_one_answer_over_all_kinds_as_the_tour_shows_it():
    """The words of the tour, letter for letter: a reason for each kind, not one for each node."""
    nodes = [proxy("p1", *map(board, range(10))), host("gpu1", gpu(5)), host("gpu2", gpu(5))]
    found = schedule(nodes, TYPES["tgx.8x8"], name="bob")
    assert found["text"] == (
        "bob wants tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB): no node.\n"
        "  10 boards: cpu_arch TILEPro64 is not tile-gx64\n"
        "   2 GPU hosts: cpu_arch x86_64 is not tile-gx64"
    )
    assert (found["candidates"], found["enough"], found["possible"]) == ([], False, False)
    assert len(found["rejected"]) == 12
    assert all(one["never"] and one["reasons"] for one in found["rejected"])


def test_each_flavor_goes_to_its_kind():
    """A flavor without a hypervisor is for boards, one with LXC or KVM for hosts that run it, or both."""
    nodes = [
        proxy("p1", board(0)),
        host("gpu1", *map(gpu, range(4))),
        host("kvm1", hypervisors=("KVM",), devices=[device(5)]),
        host("both", *map(gpu, range(4)), hypervisors=("KVM", "LXC"), devices=[device(5), device(6)]),
    ]
    kinds = {"board": [("p1", "board0")], "container": [("gpu1", "gpu1"), ("both", "both")]}
    for flavor, kind, wanted in (
        (TP64, "board", kinds["board"]),
        (CG1, "container", kinds["container"]),
        (KVM, "guest", [("both", "both"), ("kvm1", "kvm1")]),
    ):
        found = schedule(nodes, flavor, name="x")
        assert names(found["candidates"]) == wanted
        assert [visit["kind"] for visit in found["visits"]] == [kind]
        assert len(found["rejected"]) + len(wanted) == 4
    plain = dict(name="plain", memory_mb=1)
    why = {one["name"]: one["reasons"] for one in schedule(nodes, plain)["rejected"]}
    assert why["gpu1"] == ["the flavor does not ask for it (extra_specs: hypervisor: s== LXC)"]


@pytest.mark.parametrize(
    ("node", "flavor", "why"),
    [
        (board(0, "running", "jackie"), TP64, "running jackie since 2 min"),
        (board(0, "power off", "jackie", created=None), TP64, "claimed for jackie since 0 s"),
        (board(0, "maintenance") | dict(note="its fan rattles"), TP64, "maintenance: its fan rattles"),
        (board(0, "error"), TP64, "error"),
        (board(0, "shutting down"), TP64, "shutting down since 2 min"),
        (host("h", *(gpu(n) for n in range(4)), free=8), CG1, "16384 MB of memory wanted, 8 of 65536 left"),
        (
            host("h", gpu(1, "ml-7"), gpu(2, "ml-7"), gpu(3), gpu(4, arch="kepler")),
            CG1,
            "2 fermi GPUs wanted: 0000:01:00.0, 0000:02:00.0 allocated to ml-7 since 0 s",
        ),
        (
            host("h", gpu(1, "ml-7"), gpu(2, arch="kepler")),
            ANY_TWO,
            "2 GPUs wanted: 0000:01:00.0 allocated to ml-7 since 0 s",
        ),
        (
            host("h", gpu(1, "ml-7"), gpu(2) | dict(healthy=False, why_unhealthy="fell off the bus")),
            ANY_TWO,
            "2 GPUs wanted: 0000:01:00.0 allocated to ml-7 since 0 s; 0000:02:00.0 is not healthy: fell off the bus",
        ),
        (
            host("h", gpu(1) | dict(healthy=False, why_unhealthy="fell off the bus"), gpu(2)),
            CG1,
            "2 fermi GPUs wanted: 0000:01:00.0 is not healthy: fell off the bus",
        ),
        (
            host("h", hypervisors=("KVM",), devices=[device(5, "g1")]),
            KVM,
            "1 × a1 wanted: 0000:85:00.0 allocated to g1 since 0 s",
        ),
        (
            host("h", hypervisors=("KVM",), devices=[device(5, unsupported="is on nouveau")]),
            KVM,
            "1 × a1 wanted: 0000:85:00.0 is on nouveau",
        ),
    ],
)
def test_what_is_taken_now_may_be_free_later(node, flavor, why):
    """It is a reason to wait, with the name of who has it, and not one to give up."""
    nodes = [node if "item" in node else proxy("p1", node)]
    found = schedule(nodes, flavor, name="x")
    (rejected,) = found["rejected"]
    assert rejected["reasons"][0] == why
    assert (rejected["never"], found["possible"], found["enough"], found["visits"]) == (False, True, False, [])
    assert found["waiting"]


@pytest.mark.parametrize(
    ("node", "flavor", "why"),
    [
        (host("h", gpu(1)), CG1, "gpus 1 does not satisfy '= 2'"),
        (host("h", gpu(1), gpu(2) | dict(unsupported="no driver")), CG1, "gpus 1 does not satisfy '= 2'"),
        (host("h", hypervisors=("KVM",), devices=[device(5, alias="b2")]), KVM, "has no of alias a1, 1 wanted"),
        (host("h", hypervisors=("LXC",)), KVM, "hypervisor LXC does not satisfy 's== KVM'"),
        (proxy("p1", board(0)), dict(TP64, vcpus=99), "vcpus 10 < 99"),
        (proxy("p1", board(0)), dict(TP64, cpu_info={"topology": {"cores": 65}}), "topology.cores 64 < 65"),
        (proxy("p1", board(0)), dict(TP64, cpu_info={"colour": "red"}), "has no colour"),
        (proxy("p1", board(0)), dict(TP64, extra_specs={"capabilities:vcpus": "<= 2"}), "vcpus 10 does not satisfy"),
    ],
)
def test_what_never_serves_is_no_reason_to_wait(node, flavor, why):
    found = schedule([node], flavor, name="x")
    assert found["rejected"][0]["reasons"][0].startswith(why)
    assert (found["rejected"][0]["never"], found["possible"]) == (True, False)
    assert schedule([proxy("p1", board(0))], dict(TP64, extra_specs={"hw:cpu_policy": "dedicated"}))["room"] == 1


def test_one_board_and_boards_with_disks_only():
    nodes = [proxy("p1", board(0), board(1)), proxy("p2", board(0), board(1) | dict(disks=["/dev/sda"]))]
    assert names(schedule(nodes, TP64, board="1")["candidates"]) == [("p1", "board1"), ("p2", "board1")]
    found = schedule(nodes, TP64, boot_source="disk")
    assert names(found["candidates"]) == [("p2", "board1")]
    assert "\n  3 boards: no disk to boot from is configured for it" in found["text"]
    nodes.append(proxy("p3", board(7, "error")))
    nodes[0]["boards"].append(board(7, "running", "x"))
    assert "\n  board7 of p3: error" in schedule(nodes, TP64, board=7)["text"]


def test_boards_of_one_proxy_only():
    """Lost: which of two boards called board1 is booted, or the name's other owner on the proxy that was not meant."""
    nodes = [proxy("p1", board(0), board(1)), proxy("p2", board(0), board(1)), host("gpu1")]
    assert names(schedule(nodes, TP64, board=1, proxy="p2")["candidates"]) == [("p2", "board1")]
    assert {owner for owner, _board in names(schedule(nodes, TP64, proxy="p1", count=9)["candidates"])} == {"p1"}
    found = schedule(nodes, TP64, board=5, proxy="p2")["text"]
    assert found.endswith("\n  there is no board 5: p2 has 0, 1")
    nodes[0]["claims"] = [dict(instance="x", request="x", owner="bob", board=0, name="board0", created=1.0)]
    assert "bob" in schedule(nodes, TP64, name="x", owner="jo", proxy="p2")["text"]


def test_a_board_that_is_nowhere_is_answered_with_those_that_there_are():
    """Lost: what to type instead, to who mistyped it."""
    nodes = [proxy("p1", board(0), board(1), board(2)), proxy("p2", board(0), board(5)), host("gpu1")]
    text = schedule(nodes, TP64, board="12")["text"]
    assert text.endswith("\n  there is no board 12: p1 has 0 to 2; p2 has 0, 5")
    assert schedule([host("gpu1")], TP64, board=1)["text"].endswith("\n  there is no board 1: no node has any")
    assert "there is no board" not in schedule(nodes, TP64, board=5)["text"]
    assert "there are no boards" not in schedule([proxy("p1", board(0))], TP64, board=1)["text"]


def owners(*rooms):
    return [proxy(f"p{n}", *map(board, range(room))) for n, room in enumerate(rooms, 1)]


@pytest.mark.parametrize(
    ("rooms", "count", "strategy", "shares"),
    [
        ((2, 5, 3), 1, "spread", {"p2": 1}),
        ((2, 5, 3), 1, "pack", {"p1": 1}),
        ((2, 5, 3), 3, "pack", {"p3": 3}),
        ((2, 5, 3), 4, "pack", {"p2": 4}),
        ((2, 5, 3), 7, "pack", {"p2": 5, "p3": 2}),
        ((2, 5, 3), 10, "spread", {"p2": 5, "p3": 3, "p1": 2}),
        ((3, 3), 2, "spread", {"p1": 2}),
        ((3, 3), 2, "pack", {"p1": 2}),
        ((0, 1), 1, "spread", {"p2": 1}),
        ((2, 5, 3), 11, "spread", {}),
    ],
)
def test_who_is_asked_for_how_many(rooms, count, strategy, shares):
    """The first takes what it has room for, the next the rest; nobody is asked where all of them have not enough."""
    found = schedule(owners(*rooms), TP64, name="lab", count=count, strategy=strategy)
    assert {visit["item"]: len(visit["numbers"]) or 1 for visit in found["visits"]} == shares
    if count > 1:
        assert [number for visit in found["visits"] for number in visit["numbers"]] == list(
            range(1, sum(shares.values()) + 1)
        )
    few = schedule(owners(*rooms), TP64, name="lab", count=count, partial=True)
    assert sum(len(visit["numbers"]) or 1 for visit in few["visits"]) == min(count, sum(rooms))


def test_asked_again_the_same_owners_have_the_same_numbers():
    """A rerun that spread a request anew would claim it twice; what is missing goes where there is room."""
    held = [claim(f"lab-{n}", "lab", created=n) for n in (1, 2, 3)]
    nodes = owners(1, 3)
    nodes[0]["claims"], nodes[1]["claims"] = held[:2], [held[2], claim("other")]
    again = schedule(nodes, TP64, name="lab", count=3, owner="jo")
    assert [(v["item"], v["numbers"]) for v in again["visits"]] == [("p1", [1, 2]), ("p2", [3])]
    assert again["surplus"] == []
    more = schedule(nodes, TP64, name="lab", count=5, owner="jo")
    assert [(v["item"], v["numbers"]) for v in more["visits"]] == [("p1", [1, 2]), ("p2", [3, 4, 5])]
    single = schedule(nodes, TP64, name="other", owner="jo")
    assert [(v["item"], v["numbers"]) for v in single["visits"]] == [("p2", [])]


@pytest.mark.parametrize(
    ("there", "asked", "words"),
    [
        (
            ("lab-2", "lab-2"),
            dict(count=3),
            "lab-2: is an instance by itself, and cannot be one of several: choose another name for several",
        ),
        (
            ("lab", "lab"),
            dict(count=3),
            "lab: is an instance by itself, and cannot be several: choose another name for several",
        ),
        (
            ("lab-1", "lab"),
            {},
            "lab: stands for several that are there (lab-1): add -e count=2, or choose another name",
        ),
        (
            ("lab-1-2", "lab-1"),
            dict(count=3),
            "lab-1: stands for several that are there, and cannot be one of several: choose another name for several",
        ),
        (("lab-4-1", "lab-4"), dict(count=3), ""),
        (("lab-4", "lab-4"), dict(count=3), ""),
        (("lab-4", "lab"), dict(count=3), ""),
        (("lab", "lab"), {}, ""),
    ],
)
def test_what_is_there_by_itself_is_no_part_of_a_request(there, asked, words):
    """Lost: an instance that was asked for by itself, when the request that its owner gave the same name is ended."""
    nodes = [proxy("p1", *map(board, range(3)), claims=[claim(*there, owner="jo")])]
    found = schedule(nodes, TP64, name="lab", owner="jo", **asked)
    assert bool(found["visits"]) == (not words)
    assert not words or found["text"] == words


def test_what_is_there_twice_is_named():
    """Lost: the older of two instances that somebody works with, to a verb that was meant for the younger."""
    made = dict(owner="jo", image_hash="ab", name="board0")
    old, new = claim("x", **made, created=1), claim("x", **made, created=2)
    nodes = [proxy("p1", board(0), claims=[new]), proxy("p2", board(0), claims=[old])]
    (text,) = holders(nodes, "x", owner="jo")["twice"]
    assert text == (
        "x is there 2 times, on board0 of p2 (since 1970-01-01T00:00:01Z), board0 of p1 (since 1970-01-01T00:00:02Z): "
        "say which is meant: leave out the nodes of the others, -e without=NODE"
    )
    assert holders(nodes, "x", owner="eve")["twice"] == []
    assert holders(nodes[1:], "x")["twice"] == []
    new["owner"] = "eve"
    assert holders(nodes, "x", owner="jo")["twice"] == []
    assert len(holders(nodes, "x")["twice"]) == 1
    new.update(image_hash=None)
    assert holders(nodes, "x")["twice"] == []
    # one node by two names
    nodes[0]["claims"] = [old]
    assert holders(nodes, "x")["twice"] == []
    # a node that has heard of another's claim, and says the same of an address of its own
    nodes[0]["claims"] = [dict(old, ip="10.0.2.253")]
    assert len(holders(nodes, "x")["twice"]) == 1


def test_a_claim_of_another_name_is_none_of_the_requests():
    """Lost: the way into alice, or its end, to a node that says that alice is one of jackie's request."""
    made = dict(owner="jo", image_hash="ab", name="board0")
    own, foreign = claim("jackie", **made), claim("alice", **made) | dict(request="jackie")
    (part,) = holders([proxy("p2", board(0), claims=[own, foreign])], "jackie", owner="jo")["parts"]
    assert [one["instance"] for one in part["claims"]] == ["jackie"]


def test_one_of_a_request_that_is_an_instance_by_itself_elsewhere_is_named():
    """Lost: the same of an instance whose name is like those of the request."""
    alone = claim("lab-7", owner="ann", image_hash="ab", name="board0", created=1)
    lie = claim("lab-7", owner="jo", image_hash="cd", name="board1", created=2) | dict(request="lab")
    nodes = [proxy("p1", board(0), claims=[alone]), proxy("p2", board(0), claims=[lie])]
    (text,) = holders(nodes, "lab", owner="jo")["twice"]
    assert text.startswith("lab-7 is there 2 times, on board0 of p1 (")


def test_what_was_made_ready_is_not_given_up_for_an_older_claim_that_was_not():
    """Lost: a second board, and the way in to the one with one's work, to a node that comes back after weeks."""
    old, made = claim("x", owner="jo", created=1), claim("x", owner="jo", created=2, image_hash="ab")
    nodes = [proxy("p1", board(0), claims=[old]), proxy("p2", board(0), claims=[made])]
    found = schedule(nodes, TP64, name="x", owner="jo")
    assert [visit["item"] for visit in found["visits"]] == ["p2"]
    assert [part["item"] for part in found["surplus"]] == ["p1"]


def test_of_one_name_twice_the_oldest_stays_and_nothing_that_is_in_use_goes():
    a, b, c = claim("x", created=3), claim("x", created=2), claim("x", created=1, owner="eve")
    nodes = [
        proxy("p1", board(0), claims=[a]),
        proxy("p2", board(0), claims=[b]),
        host("h", claims=[c | dict(kind="kvm")]),
    ]
    found = holders(nodes, "x", owner="jo")
    assert [(part["item"], part["kind"]) for part in found["parts"]] == [("h", "guest")]
    assert [part["item"] for part in found["surplus"]] == ["p2", "p1"]
    assert [part["item"] for part in holders(nodes, "x", owner="eve")["surplus"]] == []
    a["image_hash"] = "ab" * 32
    assert [part["item"] for part in holders(nodes, "x", owner="jo")["surplus"]] == ["p2"]
    a["created"] = b["created"] = 0
    nodes.reverse()
    assert holders(nodes, "x", owner="jo")["parts"][0]["item"] == "p1"


@pytest.mark.parametrize(
    ("theirs", "ours", "name"),
    [
        (("lab-2", "lab"), dict(name="lab-2"), "lab-2"),
        (("lab-2", "lab-2"), dict(name="lab", count=3), "lab-2"),
        (("lab-2", "lab"), dict(name="lab"), "lab"),
        (("lab", "lab"), dict(name="lab", count=3), "lab"),
    ],
)
def test_a_name_of_another_on_any_owner(theirs, ours, name):
    """Lost: one name on two owners, and neither of the two who have it can end what is theirs. A later claim of eve's
    is no reason to refuse what was there before it.
    """
    taken = claim(*theirs, owner="eve", created=5)
    nodes = [proxy("p1", *map(board, range(3))), host("h", claims=[taken | dict(kind="lxc")])]
    found = schedule(nodes, TP64, owner="jo", **ours)
    assert (found["visits"], found["enough"], found["possible"]) == ([], False, False)
    assert found["taken"] == [dict(name=name, owner="eve", item="h")]
    assert found["text"] == f"{name}: belongs to eve (h): choose another name"
    assert holders(nodes, ours["name"], ours.get("count", 1), "jo")["taken"] == found["text"]
    assert schedule(nodes, TP64, owner="eve", **ours)["taken"] == []
    first = f"{ours['name']}-1" if "count" in ours else ours["name"]
    nodes[0]["claims"] = [claim(first, ours["name"], owner="jo", created=4)]
    assert schedule(nodes, TP64, owner="jo", **ours)["taken"] == []


@pytest.mark.parametrize(
    ("there", "ours", "text"),
    [
        (("lab-2", "lab"), dict(name="lab"), "lab: stands for several that are there (lab-2): add -e count=2"),
        (("lab", "lab"), dict(name="lab", count=3), "lab: is an instance by itself, and cannot be several"),
        (
            ("lab-2", "lab-2"),
            dict(name="lab", count=3),
            "lab-2: is an instance by itself, and cannot be one of several",
        ),
    ],
)
def test_a_name_of_one_and_of_several_on_any_owner(there, ours, text):
    """Lost: what is on another node, ended by who meant the one that came here under its name."""
    ours_there = claim(*there, owner="jo", created=5) | dict(kind="lxc")
    nodes = [proxy("p1", *map(board, range(3))), host("h", claims=[ours_there])]
    found = schedule(nodes, TP64, owner="jo", **ours)
    assert (found["visits"], found["enough"], found["possible"]) == ([], False, False)
    assert found["text"].startswith(text)
    assert schedule(nodes, TP64, owner="jo", name="lab-2")["text"].startswith("lab-2 wants")


@pytest.mark.parametrize(("ours", "lost"), [(dict(name="ml"), "ml"), (dict(name="ml", count=2), "ml-2")])
def test_what_lies_on_a_host_without_a_claim_is_not_made_anew_on_another(ours, lost):
    """Lost: what a tenant has, to an empty instance of its name on another node, which verbs take from then on."""
    left = dict(instance=lost, name="h", text="no claim of it is in the database")
    nodes = [proxy("p1", *map(board, range(3))), dict(host("h"), unclaimed=[left])]
    found = schedule(nodes, TP64, owner="jo", **ours)
    assert (found["visits"], found["enough"], found["possible"]) == ([], False, False)
    assert found["text"] == f"{lost} on h: no claim of it is in the database"
    assert schedule(nodes, TP64, owner="jo", name="other")["visits"]
    names = ["ml"] if "count" not in ours else ["ml-1", "ml-2"]
    nodes[0]["claims"] = [claim(one, "ml", owner="jo") for one in names]
    assert schedule(nodes, TP64, owner="jo", **ours)["text"] != found["text"]


def test_what_goes_back_when_it_is_not_enough():
    """All or nothing: what was claimed for this request goes, what was there before and what runs stays."""
    nodes = [
        proxy("p1", board(0), claims=[claim("lab-1", "lab"), claim("lab-2", "lab"), claim("lab-9", "lab")]),
        proxy("p2", claims=[claim("lab-3", "lab", image_hash="ab"), claim("lab-4", "lab", owner="eve")]),
    ]
    found = holders(nodes, "lab", 4, "jo", ["lab-1"])
    assert [(part["item"], part["numbers"]) for part in found["surplus"]] == [("p1", [2])]
    assert holders(nodes, "lab", 4, "jo")["surplus"] == []
    assert [part["item"] for part in holders(nodes, "lab", 4, "jo", [])["surplus"]] == ["p1"]


def test_what_an_owner_refused_is_said_and_kept_in_mind():
    """An image for another architecture will not come right by waiting; a lost race may."""
    nodes = owners(2)
    rejected = {"board0": ["image debian is for arm"], "board1": ["running eve since 0 s"]}
    failure = dict(rejected=rejected, unfit={"board0": rejected["board0"]})
    found = schedule(nodes, TP64, name="bob", refused=[dict(item="p1", failure=failure)])
    assert (found["room"], found["possible"]) == (1, True)
    assert [(one["name"], one["reasons"], one["never"]) for one in found["rejected"]] == [
        ("board0", rejected["board0"], True)
    ]
    assert found["text"].splitlines()[1:] == ["  board0: image debian is for arm", "  board1: running eve since 0 s"]
    assert found["text"].splitlines()[0].endswith(": no node.")
    failure["unfit"] = rejected
    assert schedule(nodes, TP64, refused=[dict(item="p1", failure=failure)])["possible"] is False


@pytest.mark.parametrize(
    ("many", "said"),
    [(3, "board0 and board1 and board2 shutting down"), (4, "4 boards shutting down")],
)
def test_what_is_waited_for_is_named_while_it_is_short(many, said):
    """Lost: the names of the boards that one waits for, or a line that forty of them fill."""
    boards = [board(number, "shutting down") for number in range(many)]
    assert schedule([proxy("p1", *boards)], TP64, name="x")["waiting"] == said


def test_forty_busy_boards_are_not_forty_lines():
    nodes = [proxy("p1", *(board(n, "running", f"i-{n}") for n in range(40)), board(40, "error"))]
    text = schedule(nodes, TP64, name="bob")["text"].splitlines()
    assert text[1:] == ["  40 boards: in use", "  board40: error"]
    assert schedule(nodes, TP64)["waiting"] == "40 boards in use, board40 error"
    assert schedule(nodes, TP64, name="bob", count=2)["text"].startswith("bob wants 2 tp64.8x8 (")
    few = schedule([proxy("p1", board(0, "running", "a"), board(1, "running", "b"))], TP64, name="bob")["text"]
    assert few.splitlines()[1:] == ["  board0: running a since 2 min", "  board1: running b since 2 min"]


def without_item(result):
    """A result that is registered without a loop."""
    return {key: value for key, value in result.items() if key != "item"}


@pytest.mark.parametrize(
    ("nodes", "more", "why"),
    [
        ("p1", {}, "needs a list of results"),
        ([{"item": "p1", "unreachable": True}], {}, "p1 has no answer of board_info or host_info"),
        ([{"item": "p1", "failed": True}], {}, "p1 has no answer of board_info or host_info"),
        ([{"x": 1}], {}, "is no result of board_info"),
        ([without_item(proxy("p1", board(0)))], {"name": "bob"}, "needs, with name, results .* of a loop over nodes"),
        ([proxy("p1", board(0))], {"strategy": "random"}, "strategy: is 'random': give spread or pack"),
        ([], {"flavor": {"name": "x", "vcpus": -1}}, "flavor x: vcpus is -1"),
    ],
)
def test_what_cannot_be_meant(nodes, more, why):
    with pytest.raises(AnsibleFilterError, match=why):
        schedule(nodes, **{"flavor": TP64, **more})


def some(draw):
    """Nodes of all kinds in all states, and a flavor."""
    states = [("power off", None)] * 6 + [("power off", "a"), ("running", "b"), ("booting", "c"), ("error", None)]
    nodes = []
    for number in range(draw.randint(1, 4)):
        taken = (draw.choice(states) for _one in range(draw.randint(0, 6)))
        nodes.append(proxy(f"p{number}", *(board(n, *one) for n, one in enumerate(taken))))
    for number in range(draw.randint(0, 4)):
        archs = [gpu(n, draw.choice([None, "ml"]), draw.choice(["fermi", "kepler"])) for n in range(draw.randint(0, 5))]
        kinds = draw.choice([("LXC",), ("KVM",), ("LXC", "KVM")])
        cards = [device(n, draw.choice([None, "g"])) for n in range(draw.randint(0, 3))]
        nodes.append(host(f"h{number}", *archs, hypervisors=kinds, free=draw.choice([0, 9000, 65536]), devices=cards))
    draw.shuffle(nodes)
    return nodes, draw.choice([TP64, TP64, CG1, CG1, KVM, TYPES["tgx.4x4"], dict(name="any")])


def test_whatever_the_nodes_are():
    """400 sites: the same answer each time, every node a candidate or with a reason, no more asked of it than it has,
    and another order of the inventory changes who is first of equals, never how many there are.
    """
    draw, seen = random.Random(7), {"enough": 0, "not": 0}
    for _turn in range(400):
        nodes, flavor = some(draw)
        count, strategy = draw.randint(1, 5), draw.choice(STRATEGIES)
        request = dict(name="lab", count=count, strategy=strategy)
        found = schedule(nodes, flavor, **request)
        assert found == schedule(nodes, flavor, **request)
        every = [(n["item"], b["name"]) for n in nodes if "boards" in n for b in n["boards"]]
        every += [(n["item"], n["name"]) for n in nodes if "boards" not in n]
        assert sorted(names(found["candidates"]) + names(found["rejected"])) == sorted(every)
        assert all(one["reasons"] for one in found["rejected"])
        rooms = {}
        for one in found["candidates"]:
            rooms[one["owner"]] = rooms.get(one["owner"], 0) + one["room"]
        assert sum(rooms.values()) == found["room"]
        assert found["enough"] is (found["room"] >= count)
        asked = {visit["item"]: len(visit["numbers"]) or 1 for visit in found["visits"]}
        assert all(rooms[owner] >= many for owner, many in asked.items())
        assert sum(asked.values()) == (count if found["enough"] else 0)
        assert found["possible"] or not found["enough"]
        ranks = list(dict.fromkeys(one["owner"] for one in found["candidates"]))
        if strategy == "spread":
            assert [rooms[owner] for owner in ranks] == sorted(rooms.values(), reverse=True)
        shuffled = schedule(draw.sample(nodes, len(nodes)), flavor, **request)
        assert (shuffled["room"], shuffled["possible"]) == (found["room"], found["possible"])
        assert sorted(names(shuffled["candidates"])) == sorted(names(found["candidates"]))
        seen["enough" if found["enough"] else "not"] += 1
    assert min(seen.values()) >= 80, seen


# ---- images and roots on the proxies


def test_a_proxy_without_room_for_the_root_is_passed_over():
    """Before, it got the claim, found that out when it made the root, and no other proxy was asked."""
    full, free = proxy("p1", board(0), board(1)), proxy("p2", board(0))
    found = schedule([with_roots(full, 800, 1200), with_roots(free, 0, 500)], TP64, name="x", image="debian")
    assert names(found["candidates"]) == [("p2", "board0")]
    why = "no room for a root of 500 GiB: 800 GiB of the 1200 GiB for roots are promised already"
    why += " (tftp_proxy_roots_overcommit is 1)"
    assert [one["reasons"] for one in found["rejected"]] == [[why]] * 2
    assert not any(one["never"] for one in found["rejected"])
    # its own disk takes nothing of the proxy's
    on_disk = dict(board(0), disks=["/dev/sda"])
    assert schedule([with_roots(proxy("p1", on_disk), 800, 1200)], TP64, boot_source="disk")["room"] == 1


def test_as_many_boards_are_free_as_there_is_room_for_roots():
    node = with_roots(proxy("p1", board(0), board(1), board(2), board(3)), 0, 600, 2)
    found = schedule([node], TP64, name="x", count=3)
    assert (names(found["candidates"]), found["room"]) == ([("p1", "board0"), ("p1", "board1")], 2)
    assert (found["enough"], found["possible"]) == (False, False)
    assert "\n  2 boards: no room for a root of 500 GiB: 1000 GiB of the 1200 GiB" in found["text"]
    assert schedule([node], TP64, name="x", count=2)["enough"]
    busy = with_roots(proxy("p1", board(0), board(1)), 900, 600, 2)
    found = schedule([busy], TP64, name="x", count=2)
    assert (found["room"], found["possible"]) == (0, True)
    assert found["waiting"] == "board0 and board1 without room for a root"


def test_a_root_larger_than_all_there_is_is_not_waited_for():
    found = schedule([with_roots(proxy("p1", board(0)), 0, 120)], TP64, name="x")
    assert (found["enough"], found["possible"]) == (False, False)
    assert "no room for a root of 500 GiB: all roots together have 120 GiB" in found["text"]


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("nope", "no image nope in its store (known: debian, ram-tile)"),
        ("debain", "no image debain in its store (known: debian, ram-tile): is debian meant?"),
        ("ram-tiel", "no image ram-tiel in its store (known: debian, ram-tile)"),
        ("ram-tile", "image ram-tile is a RAM image, not for instances"),
    ],
)
def test_a_proxy_without_the_image_is_passed_over(image, why):
    """Before, a board was claimed first, and its proxy gave it back."""
    node = with_roots(proxy("p1", board(0)), 0, 1000, images=("debian", "ram-tile"))
    found = schedule([node, with_roots(proxy("p2", board(0)), 0, 1000, images=(image,))], TP64, image=image)
    assert names(found["candidates"]) == ([] if image.startswith("ram") else [("p2", "board0")])
    [reasons] = [one["reasons"] for one in found["rejected"] if one["owner"] == "p1"]
    assert reasons == [why]
    # what the board could not run anyway, it need not have
    other = schedule([node], TYPES["tgx.8x8"], image="nope")["rejected"][0]["reasons"]
    assert not any("nope" in reason for reason in other)


@pytest.mark.parametrize(
    ("boot", "source", "why"),
    [
        (dict(driver="pxe", arguments=True), "nfs", None),
        (
            dict(driver="tilera", arguments=False),
            "nfs",
            "image debian has arguments for the kernel (cmdline), and boot driver tilera passes none: build them into",
        ),
        (
            dict(driver="pxe", arguments=True),
            "disk",
            "image debian has no kernel for it with its root on disk (it has: nfs): give it one",
        ),
        (None, "disk", None),
    ],
)
def test_a_proxy_whose_boards_would_not_get_all_is_passed_over(boot, source, why):
    """Lost: a request that another proxy serves, sent to the one that refuses it."""
    told = dict(dict(flash=False, cmdline=False, ram_image=None), **boot) if boot else None
    node = with_roots(proxy("p1", dict(board(0), boot=told, disks=["/dev/sda"])), 0, 1000)
    node["images"]["debian"].update(arguments=True, kernels=["nfs"])
    other = with_roots(proxy("p2", dict(board(0), disks=["/dev/sda"])), 0, 1000)
    found = schedule([node, other], TP64, image="debian", boot_source=source)
    assert names(found["candidates"]) == [*([] if why else [("p1", "board0")]), ("p2", "board0")]
    reasons = [reason for one in found["rejected"] for reason in one["reasons"]]
    assert [reason[: len(why or "")] for reason in reasons] == ([why] if why else [])


def test_a_host_takes_no_end_of_what_asks_for_nothing():
    """A slip in a flavor, and one request would fill a host with containers until it falls over."""
    assert schedule([host("h1")], dict(name="tiny", extra_specs={"hypervisor": "s== LXC"}))["room"] == 500


def test_a_claimed_board_says_how_long_it_was_claimed():
    """Who waits for one would be told the age of its state, which each stop and start begins anew."""
    claimed = board(1, instance="jackie", created=time.time() - 7200.5)
    (rejected,) = schedule([proxy("p1", claimed)], TP64)["rejected"]
    assert rejected["reasons"] == ["claimed for jackie since 2 h"]


@pytest.mark.parametrize(("asked", "wanted"), [("a1:1", 1), ("a1:2", 2), ("a1:0", 1), ("a1:1, a1:2", 2)])
def test_a_guest_gets_as_many_devices_as_its_flavor_says(asked, wanted):
    """A guest would be sent to a host that has too few; and one is the least that an alias can mean."""
    flavor = dict(KVM, extra_specs={"hypervisor": "s== KVM", "pci_passthrough:alias": asked})
    found = schedule([host("h1", hypervisors=("KVM",), devices=[device(1), device(2)])], flavor)
    assert found["room"] == 2 // wanted
