# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plays decide about a request, step by step. If these fail, an instance is made twice, a part of a request is
kept that nobody gets, or a person is told to end what somebody works with.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop, Wait

FLAVOR = dict(name="tp64", memory_mb=1024, vcpus=1, local_gb=0, extra_specs={})
ROOTS = dict(promised=0, there=1 << 60, taken=0, overcommit=1.0, root_gb=8)
TERMINATE = "or give it back with ansible-playbook hetero.compute.terminate_instance -e instance=lab -e without=p2"


def claim(name, board=0, owner="jo", created=10.0, image_hash=None, request=None):
    where = dict(board=board, name=f"board{board}", ip=f"10.0.2.{board + 1}")
    return dict(where, instance=name, request=request or name, owner=owner, created=created, image_hash=image_hash)


def node(name, free=0, claims=(), **more):
    """What a proxy node answers that has `free` free boards besides those of the claims."""
    columns = dict(arch="TILEPro64", vcpus=10, memory_mb=16384, local_gb=100, cpu_info={"arch": "TILEPro64"})
    taken = [dict(columns, id=one["board"], state="running", instance=one["instance"]) for one in claims]
    boards = [*taken, *(dict(columns, id=20 + number, state="power off") for number in range(free))]
    boards = [dict(one, name=f"board{one['id']}", ip="10.0.2.1") for one in boards]
    return dict(item=name, claims=list(claims), boards=boards, roots=ROOTS, **more)


def asked(name="lab", **more):
    fixed = dict(flavor=FLAVOR, count=1, partial=False, placement="spread", boot_source="nfs", image="")
    return dict(fixed, board="", proxy="", instance=name, owner="jo") | more


SILENT = dict(item="p2", unreachable=True, msg="Task failed: no route")
FAILED = dict(item="p2", msg="Task failed: state.db is no SQLite database")
NOT_ASKED = [
    (SILENT, "p2 cannot be asked, and may hold lab: no route. Mend that, or leave it out: -e without=p9,p2"),
    (FAILED, "p2: state.db is no SQLite database"),
    (dict(item="p2", msg="was not asked"), "p2: was not asked"),
]
LEFT = dict(instance="lab", name="board3", text="its root lies there")
MADE_TWICE = [node(f"p{made}", claims=[claim("lab", created=made, image_hash="ab")]) for made in (1, 2)]


# ---- find


@pytest.mark.parametrize(("answer", "why"), NOT_ASKED)
def test_a_node_that_was_not_asked_stops_each_step(answer, why):
    """Lost: an instance that this node has, taken for none, or made a second time elsewhere."""
    answers = [node("p1", 2), answer]
    for step in (
        lambda: request_steps.find(asked(), answers, ["p9"]),
        lambda: request_steps.choose(asked(), answers, ["p9"], {}),
        lambda: request_steps.settle(asked(), answers, dict(before=[], parts=[]), ["p9"]),
    ):
        with pytest.raises(Stop) as stop:
            step()
        assert str(stop.value) == why
        assert (stop.value.result, stop.value.ending) == ({}, "owner")


@pytest.mark.parametrize(
    ("answers", "more", "why"),
    [
        (
            [node("p1", claims=[claim("lab", owner="bob")])],
            {},
            "lab belongs to bob, not to jo: ask bob, or add -e force=true",
        ),
        (
            [node("p1", claims=[claim("lab-1", owner="bob", request="lab")]), node("p2", claims=[claim("lab-2", 1)])],
            {},
            "lab belongs to bob, not to jo: ask bob, or add -e force=true",
        ),
        ([node("p1", unclaimed=[LEFT])], {}, "lab on p1: its root lies there"),
        ([node("p1", unclaimed=[LEFT])], dict(force=True, to="stop"), "lab on p1: its root lies there"),
        (
            MADE_TWICE,
            dict(force=True),
            "lab is there 2 times, on board0 of p1 (since 1970-01-01T00:00:01Z), board0 of p2 (since 1970-01-01T00:00:0"
            "2Z): say which is meant: leave out the nodes of the others, -e without=NODE",
        ),
        (
            [dict(one, claims=[dict(one["claims"][0], created=1, name=one["item"])]) for one in MADE_TWICE],
            dict(force=True, to="stop"),
            "lab is there 2 times, on p1 of p1 (since 1970-01-01T00:00:01Z), p2 of p2 (since 1970-01-01T00:00:01Z): it "
            "has moved, and a database is older than that: run ansible-playbook hetero.compute.reconcile; where that "
            "does not end it, a host was put back as a whole, and its root is older: say which is meant: leave out the "
            "nodes of the others, -e without=NODE",
        ),
        (
            [dict(one, claims=[dict(one["claims"][0], owner="bob")]) for one in MADE_TWICE],
            dict(force=True, to="stop"),
            "lab is there 2 times, on board0 of p1 (since 1970-01-01T00:00:01Z), board0 of p2 (since 1970-01-01T00:00:0"
            "2Z): say which is meant: leave out the nodes of the others, -e without=NODE",
        ),
        (
            [node("p1"), node("p2")],
            dict(to="reboot"),
            "There is no instance lab to reboot: ansible-playbook hetero.compute.status shows who has what; ask for it "
            "with ansible-playbook hetero.compute.provision_instance -e instance=lab -e flavor=FLAVOR",
        ),
    ],
)  # fmt: skip
def test_find_stops(answers, more, why):
    """Lost: another's instance, or the right one of two, to a verb that was meant for something else."""
    with pytest.raises(Stop) as stop:
        request_steps.find(asked(), answers, [], **more)
    assert str(stop.value) == why


#: Who misspelt a name reads here that it may be another's, or still be there by its own.
STATUS = "ansible-playbook hetero.compute.status shows who has what"
OVER = [dict(instance=name, owner="jo", time=1.0) for name in ("lab", "lab-2", "eve")]
SAID = " (p2 ended lab, lab-2 at 1970-01-01T00:00:01Z, as the lease was over: what it had is removed)"


@pytest.mark.parametrize(
    ("owner", "force", "said"), [("jo", False, SAID), ("bob", False, ""), ("bob", True, SAID), ("jo", True, SAID)]
)
def test_find_tells_its_owner_that_a_lease_is_over(owner, force, said):
    """Lost: where an instance went, to whoever slept over the end of its lease; or what others had, to anybody. A node
    speaks of no other instances.
    """
    answers = [node("p1"), dict(node("p2"), ended=OVER)]
    request = dict(asked(), owner=owner)
    with pytest.raises(Stop) as stop:
        request_steps.find(request, answers, [], force=force, to="stop")
    assert str(stop.value).startswith(f"There is no instance lab to stop{said}: ansible-playbook")
    nowhere = f"lab: no such instance on p1, p2{said}: {STATUS}"
    assert request_steps.find(request, answers, [], force=force)["lines"] == [nowhere]


@pytest.mark.parametrize(
    ("owner", "force", "said"), [("jo", False, "is lap meant? "), ("eve", True, "is lob meant? "), ("bob", True, "")]
)
def test_who_misspelt_a_name_is_told_which_of_their_own_is_meant(owner, force, said):
    """Lost: the time of who looks for a missing letter; or the names of what others have, to anybody."""
    alike = [dict(instance="lap", owner="jo"), dict(instance="lob", owner="eve")]
    answers = [node("p1"), dict(node("p2"), alike=alike)]
    request = dict(asked(), owner=owner)
    with pytest.raises(Stop) as stop:
        request_steps.find(request, answers, [], force=force, to="stop")
    assert str(stop.value).startswith(f"There is no instance lab to stop: {said}ansible-playbook")
    assert request_steps.find(request, answers, [], force=force)["lines"] == [
        f"lab: no such instance on p1, p2: {said}{STATUS}"
    ]


def test_find_has_all_parts_of_a_request():
    """Lost: the part on the second node, which nobody acts on."""
    of_bob = claim("lab-2", 1, owner="bob", request="lab")
    answers = [node("p1", claims=[claim("lab-1", request="lab"), claim("other", 5)]), node("p2", claims=[of_bob])]
    found = request_steps.find(asked(), answers, [], force=True)
    assert found["lines"] == []
    assert [(part["item"], part["kind"], part["numbers"], part["boards"]) for part in found["parts"]] == [
        ("p1", "board", [1], [0]),
        ("p2", "board", [2], [1]),
    ]


def test_find_has_what_belongs_to_the_asker():
    """Lost: each verb, for all who do not use force."""
    (part,) = request_steps.find(asked(), [node("p1"), node("p2", claims=[claim("lab")])], [], to="stop")["parts"]
    assert (part["item"], part["claims"]) == ("p2", [claim("lab")])


def test_find_of_nothing_says_where_it_looked():
    """Lost: on which nodes the instance that was to be ended is not, and what lies on them."""
    answers = [node("p1"), node("p2", unclaimed=[dict(LEFT, harmless=True)])]
    found = request_steps.find(asked(), answers, [])
    nowhere = f"lab: no such instance on p1, p2: {STATUS}"
    assert found == dict(parts=[], lines=[nowhere, "board3 on p2: its root lies there"])
    which = f"lab-2, lab-5: no such instance on p1, p2: {STATUS}"
    alone = [node("p1", claims=[claim("lab")]), node("p2")]
    assert request_steps.find(asked(numbers=[5, 2]), alone, [])["lines"] == [which], "lab is there, and is not meant"


# ---- choose


def test_choose_asks_several_nodes_for_their_shares():
    """Lost: a request that no single node has room for."""
    plan = request_steps.choose(asked(count=3), [node("p1", 2), node("p2", 1)], [], {})
    assert plan == dict(
        visits=[dict(item="p1", kind="board", numbers=[1, 2]), dict(item="p2", kind="board", numbers=[3])],
        before=[], new=True, refused=[], looked=True,
    )  # fmt: skip


def test_choose_asks_the_proxy_that_was_named():
    """Lost: the choice of a proxy, to the board of that number on the first one."""
    for name in ("p1", "p2"):
        visits = request_steps.choose(asked(proxy=name), [node("p1", 2), node("p2", 1)], [], {})["visits"]
        assert [visit["item"] for visit in visits] == [name]


def test_choose_says_that_it_runs_elsewhere_than_on_the_proxy_that_was_named():
    """Lost: which proxy it is on, to who asked for one: it was told as running, with a board of the same number."""
    answers = [node("p1", 2), node("p2", 1, [claim("lab")])]
    with pytest.raises(Stop, match=r"lab is on p2, not on p1: leave out proxy=, or terminate it first"):
        request_steps.choose(asked(proxy="p1"), answers, [], {})
    assert request_steps.choose(asked(proxy="p2"), answers, [], {})["before"] == ["lab"]


def test_choose_asks_nobody_if_there_is_too_little():
    """Lost: boards of a request that cannot be met, which others wait for."""
    assert request_steps.choose(asked(count=3), [node("p1", 2)], [], {})["visits"] == []
    visits = request_steps.choose(asked(count=3, partial=True), [node("p1", 2)], [], {})["visits"]
    assert [visit["numbers"] for visit in visits] == [[1, 2]]


def test_choose_asks_nobody_for_a_name_of_another_owner():
    """Lost: whose the name is; or a board, for one that no verb would know from the other."""
    answers = [node("p1", 1, [claim("lab", owner="bob")]), node("p2", 1)]
    plan = request_steps.choose(asked(), answers, [], {})
    assert plan["visits"] == []
    done = request_steps.claimed(asked(), answers, plan, {}, Wait(minutes=5))
    assert (done["placed"], done["waits"]) == (False, False)
    assert done["text"] == "lab: belongs to bob (p1): choose another name"


def test_choose_stops_if_several_have_made_it():
    """Lost: the older of two instances of a name, for the younger is brought up in its place."""
    with pytest.raises(Stop, match=r"^lab is there 2 times, on board0 of p1"):
        request_steps.choose(asked(), MADE_TWICE, [], {})
    others = [node(one["item"], 1, [dict(one["claims"][0], owner="bob")]) for one in MADE_TWICE]
    assert request_steps.choose(asked("new"), others, [], {})["visits"] != []


def test_choose_remembers_what_was_there_at_the_first_look():
    """Lost: what ran before this request, which is given back with it."""
    ran = claim("lab-1", created=1.0, request="lab", image_hash="ab")
    first = request_steps.choose(asked(count=2), [node("p1", 1, [ran])], [], {})
    assert (first["before"], first["new"]) == (["lab-1"], False)
    since = claim("lab-2", 1, created=2.0, request="lab")
    second = request_steps.choose(asked(count=2), [node("p1", 0, [ran, since])], [], first)
    assert (second["before"], second["new"]) == (["lab-1"], False)


def test_choose_does_not_ask_again_who_refused_for_good():
    """Lost: the look for a node that has room, to one that never has it."""
    refused = [
        dict(item="p1", failure=dict(rejected={"board20": ["too small"]}, unfit={"board20": ["too small"]})),
        dict(item="p2", failure=dict(rejected={"board20": ["in use"]})),
    ]
    plan = request_steps.choose(asked(), [node("p1", 1), node("p2", 1)], [], dict(refused=refused, before=[], new=True))
    assert [visit["item"] for visit in plan["visits"]] == ["p2"]
    assert plan["refused"] == refused[:1]


# ---- claimed

ANSWERS = [node("p1", 2), node("p2", 1)]
GAVE = {"p1": dict(changed=True, instances=[claim("lab-1", 20), claim("lab-2", 21)]),
        "p2": dict(changed=True, instances=[claim("lab-3", 20)])}  # fmt: skip
IN_USE = dict(msg="none free", failure=dict(rejected={"board20": ["in use by bob"]}))
BROKE = dict(msg="Task failed: the disk is full", failure=dict(what="is full"))
GONE = dict(unreachable=True, msg="no route")


def planned(answers=ANSWERS, count=3, **more):  # pylint: disable=dangerous-default-value
    request = asked(count=count, **more)
    return request, request_steps.choose(request, answers, [], {})


def names(parts):
    return [(part["item"], [one["instance"] for one in part["claims"]]) for part in parts]


def test_all_is_placed():
    request, plan = planned()
    done = request_steps.claimed(request, ANSWERS, plan, GAVE, Wait())
    assert names(done["parts"]) == [("p1", ["lab-1", "lab-2"]), ("p2", ["lab-3"])]
    assert [part["boards"] for part in done["parts"]] == [[20, 21], [20]]
    told = {key: done[key] for key in ("placed", "again", "surplus", "waits", "text", "lines")}
    assert told == dict(placed=True, again=False, surplus=[], waits=False, text="", lines=[])


def test_another_was_quicker():
    """Lost: a request that the second look would place; and the boards of one that it does not."""
    request, plan = planned()
    once = request_steps.claimed(request, ANSWERS, plan, dict(GAVE, p2=IN_USE), Wait())
    assert (once["placed"], once["again"], once["waits"], once["surplus"]) == (False, True, False, [])
    assert once["refused"] == [dict(item="p2", failure=IN_USE["failure"])]
    twice = request_steps.claimed(request, ANSWERS, once, dict(GAVE, p2=IN_USE), Wait())
    assert (twice["placed"], twice["again"], twice["waits"]) == (False, False, False)
    assert names(twice["surplus"]) == [("p1", ["lab-1", "lab-2"])]
    assert len(twice["refused"]) == 1
    assert twice["text"].startswith("lab wants 3 tp64")
    assert "board20 of p2: in use by bob" in twice["text"]


@pytest.mark.parametrize("gives", ["p1", "p2", "p4", "nobody"])
@pytest.mark.parametrize("minutes", [0, 5])
def test_a_node_that_refuses_what_looks_free_is_asked_once_and_then_the_next(gives, minutes):
    """Lost: a free board, to a request that the first node refuses for its owner's limit, or as it is reserved; and
    what the others say. Before, the same node was asked twice, and the others never.
    """
    answers = [node(name, 1) for name in ("p1", "p2", "p3", "p4")]
    limit = dict(IN_USE, failure=dict(rejected={"board20": ["ann has 1 board, and may have 1 at once"]}, room=0))
    request, plan, seen = asked(count=1), {}, []
    for _round in range(len(answers) + 1):
        plan = request_steps.choose(request, answers, [], plan)
        (node_asked,) = [visit["item"] for visit in plan["visits"]]
        seen.append(node_asked)
        said = dict(instances=[claim("lab", 20)]) if node_asked == gives else limit
        plan = request_steps.claimed(request, answers, plan, {node_asked: said}, Wait(float(minutes)))
        if not plan["again"]:
            break
    every = ["p1", "p2", "p3", "p4"]
    assert seen == every[: every.index(gives) + 1 if gives in every else None]
    assert (plan["placed"], plan["again"]) == (gives in every, False)
    if gives not in every:
        assert plan["waits"] == bool(minutes)
        assert "4 boards: ann has 1 board, and may have 1 at once" in plan["text"]
        # while it waits, the places in the queue say which node it is
        turn = dict(plan, waits=True, visits=[dict(item="p1", kind="board", numbers=[])])
        assert not request_steps.claimed(request, answers, turn, {"p1": limit}, Wait(5.0))["again"]


def test_a_refusal_without_a_reason_is_a_failure():
    """Lost: which node refused."""
    request, plan = planned()
    done = request_steps.claimed(request, ANSWERS, plan, dict(GAVE, p2=dict(IN_USE, failure=dict(rejected={}))), Wait())
    assert (done["placed"], done["refused"], done["text"]) == (False, [], "p2: none free")


def test_what_is_there_is_enough_where_less_will_do():
    request, plan = planned(partial=True)
    done = request_steps.claimed(request, ANSWERS, plan, dict(GAVE, p2=IN_USE), Wait())
    assert (done["placed"], done["surplus"]) == (True, [])


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    ("broke", "why"),
    [
        (BROKE, "the disk is full"),
        (dict(BROKE, failed=False, instances=GAVE["p2"]["instances"]), "the disk is full"),
        ({}, "failed without a word"),
        (dict(skipped=True), "failed without a word"),
    ],
)
def test_one_of_several_fails(partial, broke, why):
    """Lost: two boards, claimed for a request that failed; and what ran before, given back with it."""
    ran = claim("lab-1", created=1.0, request="lab")
    answers = [node("p1", 1, [ran]), node("p2", 1)]
    request, plan = planned(answers, partial=partial)
    said = dict(p1=dict(instances=[ran, claim("lab-2", 21)]), p2=broke)
    done = request_steps.claimed(request, answers, plan, said, Wait(minutes=5))
    assert (done["placed"], done["again"], done["waits"], done["text"]) == (False, False, False, f"p2: {why}")
    assert names(done["surplus"]) == [("p1", ["lab-2"])]


@pytest.mark.parametrize(
    ("there", "remedy"),
    [
        ([], TERMINATE),
        ([claim("lab-1", request="lab")], None),
        # none of those that are asked for, and ended by the name all the same
        ([claim("lab-7", request="lab")], None),
        ([claim("label", owner="bob")], TERMINATE),
    ],
)
def test_one_of_several_goes_away(there, remedy):
    """Lost: what ran for weeks under this name, to whoever types what the error says."""
    answers = [node("p1", 3, there), node("p2", 3)]
    request, plan = planned(answers, count=6 - len(there))
    with pytest.raises(Stop) as stop:
        request_steps.claimed(request, answers, plan, dict(GAVE, p2=GONE), Wait(), [])
    text = "p2 cannot be reached any more: no route. What others gave of lab stays claimed: run this again"
    assert str(stop.value) == (f"{text}, {remedy}" if remedy else text)
    assert stop.value.ending == "owner"
    if remedy:
        with pytest.raises(Stop, match=r"-e without=p8,p9,p2$"):
            request_steps.claimed(request, answers, plan, dict(GAVE, p2=GONE), Wait(), ["p8", "p9"])


def test_the_only_node():
    """Lost: what a program reads of the failure; or the reasons, which a look tells, where there is no room."""
    plan = dict(visits=[dict(item="p1", kind="board", numbers=[])], refused=[], looked=False)
    placed = request_steps.claimed(asked(), [], plan, {"p1": dict(instances=[claim("lab")])}, Wait())
    assert (placed["placed"], placed["surplus"], placed["text"]) == (True, [], "")
    refused = request_steps.claimed(asked(), [], plan, {"p1": IN_USE}, Wait(minutes=5))
    assert (refused["placed"], refused["again"], refused["waits"], refused["surplus"]) == (False, True, False, [])
    assert refused["text"] == ""
    with pytest.raises(Stop, match=r"^the disk is full$") as stop:
        request_steps.claimed(asked(), [], plan, {"p1": BROKE}, Wait())
    assert (stop.value.result, stop.value.ending) == (BROKE, "boot")
    booted = dict(IN_USE, step="boot")  # of one that was claimed, and had no room for its root
    with pytest.raises(Stop, match=r"^none free$"):
        request_steps.claimed(asked(), [], plan, {"p1": booted}, Wait())
    with pytest.raises(Stop) as stop:
        request_steps.claimed(asked(), [], plan, {"p1": GONE}, Wait())
    text = "p1 cannot be reached: no route. What it has claimed of lab, if anything, stays: run this again"
    assert str(stop.value) == text


def test_a_dry_run_gives_nothing_back_and_waits_for_nothing():
    """Lost: a board, to somebody who only looked."""
    request, plan = planned()
    said, wait = dict(GAVE, p2=IN_USE), Wait(minutes=5, check=True)
    once = request_steps.claimed(request, ANSWERS, plan, said, wait)
    twice = request_steps.claimed(request, ANSWERS, once, said, wait)
    assert (twice["placed"], twice["waits"], twice["surplus"]) == (False, False, [])


def test_nothing_was_to_be_claimed():
    """Lost: the parts that were claimed, where no node is asked again after the claims were compared."""
    request, plan = planned()
    done = request_steps.claimed(request, ANSWERS, plan, GAVE, Wait())
    settled = request_steps.claimed(request, ANSWERS, dict(done, visits=[], surplus=[1]), {}, Wait())
    assert settled == dict(done, visits=[], surplus=[])
    moved = request_steps.claimed(request, ANSWERS, done, dict(GAVE, p1=BROKE), Wait())
    assert (moved["placed"], moved["text"]) == (False, "p1: the disk is full")
    request, plan = planned([node("p1", 2)])
    none = request_steps.claimed(request, [node("p1", 2)], plan, {}, Wait())
    assert (none["placed"], none["again"], none["parts"], none["text"].splitlines()[0][-14:]) == (
        False, False, [], "2 of 3 boards.",
    )  # fmt: skip


def test_a_node_speaks_for_the_request_alone():
    """Lost: three instances, for a node calls others' instances, or one of its own three times, parts of them."""
    request, plan = planned()
    lies = [claim("lab-3", 20), claim("lab-3", 21), claim("lab-9", 22), claim("eve", 23)]
    done = request_steps.claimed(request, ANSWERS, plan, dict(GAVE, p1=dict(instances=lies)), Wait())
    assert (done["placed"], names(done["parts"])[0]) == (False, ("p1", ["lab-3", "lab-3"]))
    assert done["text"].endswith("\n  p1 gave 1 of the 2 that it was asked for")


@pytest.mark.parametrize("wrong", [None, True, -1, 10**400, float("nan"), "x", [], [[]], {}, {"x": 1}, [{}], [None]])
@pytest.mark.parametrize(
    "place", ["instances", "failure", "msg", "step", "failed", "unreachable", *claim("lab-3"), "kind", "rejected"]
)
def test_a_result_of_wrong_types_is_its_nodes_fault(place, wrong):
    """Lost: the boards of all other nodes, claimed for a request that ended with a traceback."""
    result = dict(GAVE["p2"], failure={})
    if place in result or place in ("msg", "step", "failed", "unreachable"):
        result[place] = wrong
    elif place == "rejected":
        result.update(IN_USE, failed=True, failure=dict(rejected=wrong))
    else:
        result["instances"] = [dict(claim("lab-3", 20), **{place: wrong})]
    request, plan = planned()
    said = dict(GAVE, p2=checked(result, "instance"))
    try:
        once = request_steps.claimed(request, ANSWERS, plan, said, Wait())
        done = request_steps.claimed(request, ANSWERS, once, said, Wait())
    except Stop as stop:
        assert str(stop).startswith("p2 cannot be reached any more: ")  # noqa: PT017
        return
    assert done["placed"] or "p2" in done["text"]
    if not done["placed"]:
        assert names(done["surplus"]) == [("p1", ["lab-1", "lab-2"])]


# ---- wait


def test_a_request_waits_only_without_its_claims():
    """Lost: what two requests wait for, of which each keeps what the other one needs."""
    request, plan = planned()
    said = dict(GAVE, p2=IN_USE)
    once = request_steps.claimed(request, ANSWERS, plan, said, Wait(5.0))
    assert (once["again"], once["waits"]) == (True, False)
    twice = request_steps.claimed(request, ANSWERS, once, said, Wait(5.0))
    assert (twice["waits"], names(twice["surplus"])) == (True, [("p1", ["lab-1", "lab-2"])])
    assert [one["item"] for one in twice["queue"]] == ["p1", "p2"]


# ---- confirmed


def after(name, *claims):
    """What a node answers that is asked again after its claims."""
    return node(name, 0, claims)


MADE = [GAVE["p1"]["instances"], GAVE["p2"]["instances"]]
AGAIN = [after("p1", *MADE[0]), after("p2", *MADE[1])]


def test_claims_that_are_all_are_settled_at_once():
    """Lost: one of two boards of a name, or whose it is, by two plays at once."""
    request, plan = planned()
    done = request_steps.confirmed(request, AGAIN, plan, GAVE, Wait())
    assert (done["placed"], done["surplus"], done["moves"], done["taken"]) == (True, [], [], "")
    assert names(done["parts"]) == [("p1", ["lab-1", "lab-2"]), ("p2", ["lab-3"])]
    of_bob = after("p1", *MADE[0], claim("lab-3", 22, owner="bob", created=9.0))
    done = request_steps.confirmed(request, [of_bob, AGAIN[1]], plan, GAVE, Wait())
    assert done["taken"] == "lab-3: belongs to bob (p1): choose another name"
    assert [part["item"] for part in done["surplus"]] == ["p1", "p2"]
    older = after("p1", *MADE[0], claim("lab-3", 22, created=9.0))
    done = request_steps.confirmed(request, [older, AGAIN[1]], plan, GAVE, Wait())
    assert (names(done["surplus"]), done["moves"]) == ([("p2", ["lab-3"])], ["p1", "p2"])


@pytest.mark.parametrize("answer", [SILENT, FAILED])
def test_a_node_that_is_lost_after_the_claim_stops_what_is_all(answer):
    """Lost: an older claim that this node has."""
    request, plan = planned()
    with pytest.raises(Stop, match=r"^p2"):
        request_steps.confirmed(request, [AGAIN[0], answer], plan, GAVE, Wait())


@pytest.mark.parametrize("answer", [AGAIN[1], SILENT, FAILED])
def test_what_is_not_enough_is_given_back_whoever_answers(answer):
    """Lost: two boards, claimed for a request that failed, where the node that failed says nothing more; or what
    another play of the same owner has claimed meanwhile.
    """
    request, plan = planned()
    meanwhile = dict(AGAIN[1], claims=[claim("lab-3", 23), claim("eve", 24, owner="eve")])
    for again in (answer, meanwhile):
        done = request_steps.confirmed(request, [AGAIN[0], again], plan, dict(GAVE, p2=BROKE), Wait(minutes=5))
        assert (done["placed"], done["again"], done["waits"]) == (False, False, False)
        assert done["text"] == "p2: the disk is full"
        assert names(done["surplus"]) == [("p1", ["lab-1", "lab-2"])]
        assert "moves" not in done
    quicker = request_steps.confirmed(request, [AGAIN[0], meanwhile], plan, dict(GAVE, p2=IN_USE), Wait())
    assert (quicker["placed"], quicker["again"], quicker["surplus"]) == (False, True, [])


def test_what_was_there_at_the_first_look_is_kept_after_the_claim():
    """Lost: what ran before this request, given back with it."""
    ran = claim("lab-1", created=1.0, request="lab")
    first = [node("p1", 1, [ran]), node("p2", 1)]
    request, plan = planned(first)
    new = claim("lab-2", 21)
    said = dict(p1=dict(instances=[ran, new]), p2=BROKE)
    done = request_steps.confirmed(request, [after("p1", ran, new), node("p2", 1)], plan, said, Wait())
    assert names(done["surplus"]) == [("p1", ["lab-2"])]


def test_nothing_was_to_be_claimed_at_all():
    """Lost: why there is no node for a request: none was asked again, and the first answers count."""
    answers = [node("p1", 2)]
    request, plan = planned(answers)
    done = request_steps.confirmed(request, answers, plan, {}, Wait())
    assert (done["placed"], done["text"].splitlines()[0][-14:]) == (False, "2 of 3 boards.")


def test_the_only_node_and_a_dry_run_are_not_settled():
    """Lost: each request at a site with one node; or a board, to somebody who only looked."""
    plan = dict(visits=[dict(item="p1", kind="board", numbers=[])], refused=[], looked=False)
    said, answers = {"p1": dict(instances=[claim("lab", created=9.0)])}, [dict(item="p1", msg="was not asked")]
    alone = request_steps.confirmed(asked(), answers, plan, said, Wait())
    assert (alone["placed"], "moves" in alone) == (True, False)
    request, plan = planned()
    dry = request_steps.confirmed(request, ANSWERS, plan, GAVE, Wait(check=True))
    assert (dry["placed"], dry["moves"], dry["taken"]) == (True, [], "")
    double = [node("p1", 0, [claim("lab", created=9.0)]), node("p2", 0, [claim("lab")])]
    request, plan = planned(double, count=1)
    dry = request_steps.confirmed(request, double, plan, said, Wait(check=True))
    assert (dry["placed"], dry["moves"], names(dry["surplus"])) == (True, ["p2"], [("p2", ["lab"])])


# ---- settle


def settled(*answers, count=1, before=(), parts=("p2",)):
    plan = dict(before=list(before), parts=[dict(item=item) for item in parts], visits=[1], placed=True)
    return request_steps.settle(asked(count=count), answers, plan, [])


def test_nobody_else_asked():
    done = settled(node("p1", 1), node("p2", 0, [claim("lab")]))
    assert (done["surplus"], done["taken"], done["visits"], done["placed"]) == ([], "", [], True)
    assert done["moves"] == [], "each node of it would cost a task that does nothing"


@pytest.mark.parametrize(
    ("count", "others", "taken"),
    [
        (1, claim("lab", owner="bob", created=9.0), "lab: belongs to bob (p1): choose another name"),
        (2, claim("lab-2", owner="bob", created=9.0), "lab-2: belongs to bob (p1): choose another name"),
        (1, claim("lab-2", owner="bob", created=9.0, request="lab"), "lab: belongs to bob (p1): choose another name"),
        (1, claim("lab", owner="bob", created=11.0), ""),
        (1, claim("lab-2", owner="bob", created=9.0), ""),
    ],
)
def test_the_name_is_another_owners(count, others, taken):
    """Lost: one of two instances of a name, or of two that a verb takes for one."""
    own = claim("lab" if count == 1 else "lab-1", request="lab")
    done = settled(node("p1", 0, [others]), node("p2", 0, [own]), count=count)
    assert done["taken"] == taken
    assert done["visits"] == []
    assert names(done["surplus"]) == ([("p2", [own["instance"]])] if taken else [])
    assert ("p2" in done["moves"]) == bool(taken), "what is given back, where it is"


def test_what_ran_before_stays_where_the_name_is_another_owners():
    """Lost: a claim of weeks ago that nothing was made on yet; it is there once more when the name is free."""
    own = [claim("lab-1", 1, created=10.0, request="lab"), claim("lab-2", 2, created=11.0, request="lab")]
    of_bob = node("p1", 0, [claim("lab-2", owner="bob", created=9.0)])
    done = settled(of_bob, node("p2", 0, own), count=2, before=["lab-1"])
    assert done["taken"].startswith("lab-2: belongs to bob (p1)")
    assert names(done["surplus"]) == [("p2", ["lab-2"])]


def test_the_oldest_claim_stays():
    """Lost: one of two boards that one owner got for one name, by two plays at once."""
    done = settled(node("p1", 0, [claim("lab", created=9.0)]), node("p2", 0, [claim("lab")]))
    assert (names(done["surplus"]), done["taken"]) == ([("p2", ["lab"])], "")
    assert names(done["visits"]) == [("p1", ["lab"])]
    assert done["moves"] == ["p1", "p2"]
    gone = settled(node("p1", 0, [claim("lab")]), node("p2", 1))
    assert (gone["surplus"], names(gone["visits"])) == ([], [("p1", ["lab"])])
    assert gone["moves"] == ["p1", "p2"], "also the node of which this play was told before"


def test_what_was_made_ready_is_never_given_back():
    """Lost: an instance that runs, to an older claim on which nothing was made."""
    done = settled(node("p1", 0, [claim("lab", created=9.0)]), node("p2", 0, [claim("lab", image_hash="ab")]))
    assert names(done["surplus"]) == [("p1", ["lab"])]
    assert names(done["visits"]) == [("p2", ["lab"])]


WAITS = dict(request="lab", owner="bob", asked=100.0)


@pytest.mark.parametrize(
    ("name", "more", "before"),
    [("lab", {}, {}), ("lab-2", {}, {}), ("la", dict(count=3), None), ("lab", {}, dict(asked=50.0)),
     ("lab", dict(owner="bob"), {})],
)  # fmt: skip
def test_a_name_for_which_another_waits_is_asked_of_no_node(name, more, before):
    """Lost: the name of who waits, to who asks a node for it at which that one does not wait."""
    answers = [node("p1", 3), node("p2", 0, queue=[WAITS])]
    if before == {} and not more:
        with pytest.raises(Stop) as stop:
            request_steps.choose(asked(name), answers, [], before)
        why = "lab: bob waits for what is to have that name, and asked before (p2): choose another name"
        assert (str(stop.value), stop.value.ending) == (why, "request")
    else:
        assert request_steps.choose(asked(name, **more), answers, [], before or {})["visits"]
