# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""To which host an instance moves. If these fail, it goes to one that has no room, or to a third one while the second
may have started it.

Tests plugin_utils/move_steps.py, plugin_utils/request_steps.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import move_steps, request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop

CREATED = 1764430000.25
FLAVOR = {
    "name": "cg1.xlarge",
    "memory_mb": 1024,
    "vcpus": 1,
    "local_gb": 10,
    "extra_specs": {"hypervisor": "s== LXC", "gpus": "= 1", "gpu_arch": "<or> fermi <or> kepler"},
}
CAME = dict(flavor=FLAVOR, kind="lxc", kinds=["fermi"], image="box", bytes=5 << 20, state="running", other="")
ASKED = dict(instance="ml-8", owner="jo")


def host(name, state=None, arch="fermi", free=2, **more):
    gpus = [
        dict(address=f"0000:0{number}:00.0", arch=arch, holder=None, healthy=True, unsupported=None, why_unhealthy=None)
        for number in range(free)
    ]
    amounts = dict(memory_mb=65536, vcpus=32, local_gb=640)
    size = {key: dict(total=amount, free=amount) for key, amount in amounts.items()}
    claim = dict(instance="ml-8", request="ml-8", owner="jo", name=name, kind="lxc", created=CREATED, image_hash="abc")
    claims = [dict(claim, state=state, image_hash=None if state == "arriving" else "abc")] if state else []
    known = dict(item=name, name=name, hypervisor="LXC", hypervisors=["LXC"], cpu_arch="x86_64")
    known.update(capacity=size, gpus=gpus)
    return dict(known, instances=[], unsupported=None, claims=claims, **more)


def found(answers, to="migrate"):
    return request_steps.find(ASKED, answers, [], to=to)


def target(answers, node="", back=False, came=None):
    return move_steps.target(ASKED, answers, found(answers), CAME if came is None else came, node, back)


def test_what_chooses_of_another_kind_is_refused_before_anything_is_switched():
    """Lost: an instance that is off, and minutes of a copy, to a slip that is found at the end; or a board in place
    of the host that was asked for.
    """
    answers = [host("gpu1", "running"), host("gpu2")]
    plan = found(answers)
    with pytest.raises(Stop, match="ml-8 is a container on gpu1, and board is 3: leave it out, or name the host:"):
        move_steps.target(dict(ASKED, board="3"), answers, plan, {}, "", False)
    on_board = dict(plan, parts=[dict(plan["parts"][0], kind="board", item="p1")])
    with pytest.raises(Stop, match="ml-8 has a board of p1, and node is gpu2: name another board of it: -e board=ID"):
        move_steps.target(ASKED, answers, on_board, {}, "gpu2", False)
    with pytest.raises(Stop, match=r"ml-8 has a board of p1, and back=true .*: leave it out, and name the board .*=ID"):
        move_steps.target(ASKED, answers, on_board, {}, "", True)


def test_the_best_other_host_is_chosen_by_the_flavor_and_its_present_gpus():
    """Lost: an instance whose program is made for one kind of GPU, and finds another one."""
    answers = [host("gpu1", "running"), host("gpu2", free=1), host("gpu3", free=3), host("gpu4", arch="kepler", free=9)]
    to = target(answers)
    assert (to["leaves"], to["arrives"], to["copies"], to["goes_back"]) == ("gpu1", "gpu3", True, False)
    assert to["lines"] == ["ml-8    moves from gpu1 to gpu3: 5 MiB of its root are copied"]
    assert target(answers, node="gpu2")["arrives"] == "gpu2"
    with pytest.raises(Stop, match=r"ml-8 wants cg1\.xlarge"):
        target(answers, node="gpu4")


@pytest.mark.parametrize(
    ("node", "said"),
    [("gpu9", "node is gpu9: give the name of a GPU host or KVM host, such as -e node=gpu2"), ("down", "no route")],
)
def test_a_host_that_cannot_be_is_named(node, said):
    """Lost: which name was misspelt, or that a host is down."""
    with pytest.raises(Stop, match=said):
        move_steps.target(
            ASKED, [host("gpu1", "running"), host("gpu2"), dict(item="down", msg="no route")],
            found([host("gpu1", "running"), host("gpu2")]), CAME, node,
        )  # fmt: skip


def test_where_there_is_no_other_host_or_it_is_there_already():
    """Lost: why nothing moves."""
    with pytest.raises(Stop, match="ml-8 cannot move: the site has no other GPU host or KVM host"):
        target([host("gpu1", "running")])
    to = target([host("gpu1", "running"), host("gpu2")], node="gpu1")
    assert (to["leaves"], to["arrives"], to["copies"], to["lines"]) == ("", "gpu1", False, ["ml-8 is on gpu1 already"])
    assert move_steps.moved(found([host("gpu1", "running")]), to, True, True)["parts"][0]["item"] == "gpu1"


def by(name, state, mover):
    made = host(name, state)
    return dict(made, claims=[dict(claim, mover=mover) for claim in made["claims"]])


def test_hosts_are_told_whose_the_claims_were_when_this_run_looked():
    """Lost: one life: a run that was held up since takes over what another one has claimed meanwhile."""
    to = target([by("gpu1", "running", "r0"), host("gpu2")])
    assert (to["left_by"], to["came_by"]) == ("r0", "")
    assert to["run"] not in ("", "r0")
    assert move_steps.moved(found([host("gpu1", "running")]), to, True, False)["came_by"] == to["run"]
    to = target([by("gpu1", "leaving", "r1"), by("gpu2", "arriving", "r2")])
    assert (to["copies"], to["left_by"], to["came_by"]) == (True, "r1", "r2")
    started = [by("gpu1", "leaving", "r1"), by("gpu2", "running", "r2")]
    for back in (False, True):
        to = target(started, back=back)
        assert (to["left_by"], to["came_by"]) == ("r1", "r2")
        moved = move_steps.moved(found(started), to, True, False)
        assert moved["came_by"] == "r2"
        assert moved["settles"] not in ("", "r1", "r2"), "a word that was given before would still be one"
        assert (to["run"] == "r1") == (not back), "a run before could remove the former root, to which it goes back"
    alone = target([by("gpu1", "leaving", "r1"), host("gpu2")], back=True, came=dict(CAME, other="gpu2"))
    assert (alone["left_by"], alone["came_by"]) == ("r1", "")
    assert alone["run"] not in ("", "r1")


def test_one_whose_end_was_begun_on_its_new_host_does_not_go_on():
    """Lost: what the tenant has: a new root would be made there in place of one that is being removed, and be the only
    one; or what to type.
    """
    answers = [host("gpu1", "leaving"), host("gpu2", "ending"), host("gpu3", free=9)]
    for node in ("", "gpu2", "gpu3"):
        with pytest.raises(Stop, match=r"ml-8: its end was begun on gpu2: .*terminate_instance.*, or.* -e back=true"):
            target(answers, node=node)
    to = target(answers, back=True)
    assert (to["leaves"], to["arrives"], to["copies"], to["goes_back"]) == ("gpu1", "gpu2", False, True)
    with pytest.raises(Stop, match=r"ml-8: its end was begun on gpu1: .*terminate_instance -e instance=ml-8 ends all"):
        target([host("gpu1", "ending"), host("gpu2", "arriving")], back=True)
    parts = found(answers, to=None)["parts"]
    assert sorted(part["item"] for part in parts) == ["gpu1", "gpu2"], "terminate ends both"


def test_the_end_of_a_former_root_goes_on_and_is_not_taken_back():
    """Lost: the only root, to a move that is taken back to where it is being removed; or every verb, for good, as the
    instance is there twice.
    """
    for state in ("running", "stopped"):
        answers = [host("gpu1", "ending"), host("gpu2", state)]
        to = target(answers)
        assert (to["leaves"], to["arrives"], to["copies"], to["goes_back"]) == ("gpu1", "gpu2", False, False)
        with pytest.raises(Stop, match="ml-8 is on gpu2, and what it had on gpu1 is being removed: nothing is taken"):
            target(answers, back=True)
        with pytest.raises(Stop, match=r"ml-8 moves to gpu2 already, not to gpu3: leave out node=$"):
            target(answers, node="gpu3")


@pytest.mark.parametrize(("new", "copies"), [("arriving", True), ("starting", False), ("error", False)])
def test_one_that_moves_goes_on_where_it_was_going(new, copies):
    """Lost: a second copy, on a third host, of an instance whose tenant may work on the second."""
    answers = [host("gpu1", "leaving"), host("gpu2", new), host("gpu3", free=9)]
    to = target(answers, came={} if not copies else CAME)
    assert (to["leaves"], to["arrives"], to["copies"]) == ("gpu1", "gpu2", copies)
    with pytest.raises(Stop, match="ml-8 moves to gpu2 already, not to gpu3: leave out node=, or take that back"):
        target(answers, node="gpu3")
    plan = move_steps.moved(found(answers), to, True, False)
    assert [part["item"] for part in plan["parts"]] == ["gpu2"]
    assert (plan["leaves"], plan["arrives"]) == ("gpu1", "gpu2")
    assert plan["parts"][0]["claims"][0]["created"] == CREATED
    assert move_steps.moved(found(answers), to, True, True)["parts"] == [], "a dry run would start it"


def test_an_operator_takes_a_move_back():
    """Lost: the former root, where the new one does not come up and nobody can mend it."""
    answers = [host("gpu1", "leaving"), host("gpu2", "error")]
    to = target(answers, back=True, came={})
    assert (to["leaves"], to["arrives"], to["copies"], to["goes_back"]) == ("gpu1", "gpu2", False, True)
    plan = move_steps.moved(found(answers), to, True, False)
    assert ([part["item"] for part in plan["parts"]], plan["leaves"]) == (["gpu1"], "")
    assert move_steps.moved(found(answers), to, False, False)["parts"] == []
    with pytest.raises(Stop, match="does not move, so there is nothing to take back"):
        target([host("gpu1", "running"), host("gpu2")], back=True)


@pytest.mark.parametrize("back", [False, True])
def test_a_half_alone_goes_nowhere_while_the_other_host_is_not_asked(back):
    """Lost: what a tenant wrote on a host that is down, to a former root that starts on a third one."""
    came = dict(CAME, other="gpu2", state="leaving")
    with pytest.raises(Stop, match="ml-8 leaves gpu1 for gpu2, which was not asked, and may have started it"):
        target([host("gpu1", "leaving"), host("gpu3")], came=came, back=back)
    to = target([host("gpu1", "leaving"), host("gpu2"), host("gpu3")], came=came, back=back)
    assert (to["leaves"], to["goes_back"]) == ("gpu1", back)


@pytest.mark.parametrize("back", [False, True])
def test_a_half_alone_goes_nowhere_where_the_other_host_forgot_its_own(back):
    """Lost: one life: the database of the host that runs it was put back from before the move, and the former root
    would start beside it, or on a third host.
    """
    came = dict(CAME, other="gpu2", state="leaving")
    kept = dict(instance="ml-8", name="gpu2", text="no claim of it is in the database, and container /c/ml-8 is there")
    other = dict(kept, instance="ml-81")
    answers = [host("gpu1", "leaving"), host("gpu2", unclaimed=[other, kept]), host("gpu3")]
    words = r"ml-8 leaves gpu1 for gpu2, which has something of it without a claim, and may run it: .* /c/ml-8 is there"
    plan = found([answers[0], host("gpu2", unclaimed=[kept])])
    with pytest.raises(Stop, match=words):
        move_steps.target(ASKED, answers, plan, came, "", back)
    answers[1]["unclaimed"] = [other]
    assert move_steps.target(ASKED, answers, plan, came, "", back)["goes_back"] == back


def test_several_do_not_move_at_once():
    """Lost: which of them is meant."""
    one, other = host("gpu1", "running"), host("gpu2", "running")
    one["claims"][0].update(instance="ml-8-1")
    other["claims"][0].update(instance="ml-8-2")
    with pytest.raises(Stop, match="ml-8 is 2 instances, and one at a time moves: name it, such as -e instance=ml-8-1"):
        target([one, other])


@pytest.mark.parametrize("new", ["arriving", "running"])
def test_other_verbs_see_that_it_moves_and_its_end_takes_both_halves(new):
    """Lost: a claim on one of the hosts, for good; or an instance that two verbs work on."""
    answers = [host("gpu1", "leaving"), host("gpu2", new)]
    for verb in ("stop", "start", "reboot", "rebuild", "extend"):
        with pytest.raises(Stop, match="ml-8 moves from gpu1 to gpu2: ansible-playbook"):
            found(answers, to=verb)
    assert [part["item"] for part in found(answers, to="show")["parts"]] == ["gpu1" if new == "arriving" else "gpu2"]
    assert sorted(part["item"] for part in found(answers, to=None)["parts"]) == ["gpu1", "gpu2"]
    request = dict(ASKED, flavor=FLAVOR, count=1, numbers=[], partial=False, placement="spread", board="", proxy="")
    request.update(boot_source="nfs", image="")
    with pytest.raises(Stop, match="ml-8 moves from gpu1 to gpu2"):
        request_steps.choose(request, answers, [], {})
    plan = dict(before=["ml-8"], parts=found(answers, to="show")["parts"])
    assert request_steps.settle(request, answers, plan, [])["surplus"] == [], "a half would be given back"


@pytest.mark.parametrize("state", ["arriving", "running"])
@pytest.mark.parametrize(("left", "came", "is_it"), [("d1", "d1", True), ("d2", "d1", False), (None, None, False)])
def test_a_whole_root_on_the_new_host_is_known_by_its_departure(state, left, came, is_it):
    """Lost: what a tenant wrote since, to an older root of a host that was lost, and came back."""
    old, new = by("gpu1", "leaving", "r1"), by("gpu2", state, "r1")
    old["claims"][0].update(departure=left, leaves_for="gpu2")
    new["claims"][0].update(departure=came, image_hash="abc")
    said = dict(CAME, state="leaving", other="gpu2", departure=left)
    if is_it:
        assert target([old, new], came=said)["arrives"] == "gpu2"
        return
    with pytest.raises(Stop) as stop:
        target([old, new], came=said)
    for word in ("without=gpu1 ends it, and", "without=gpu2 ends that"):
        assert word in str(stop.value)
    assert ("goes on with the other one" in str(stop.value)) == (state == "arriving")
