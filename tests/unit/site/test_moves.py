# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that moves has two claims. If these fail, people and verbs see two instances, or the wrong one."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import moves
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance_states import ARRIVING, LEAVING

CREATED = 1764430000.25


def answer(node, state=None, created=CREATED, instance="ml-8", request=None):
    claim = dict(instance=instance, request=request or instance, created=created, owner="jo", state=state, name=node)
    return dict(item=node, claims=[claim] if state else [])


@pytest.mark.parametrize(
    ("old", "new", "is_at"),
    [
        ("running", ARRIVING, "gpu1"),
        (LEAVING, ARRIVING, "gpu1"),
        (LEAVING, "starting", "gpu2"),
        (LEAVING, "running", "gpu2"),
        (LEAVING, "error", "gpu2"),
        ("ending", "running", "gpu2"),
        ("ending", "stopped", "gpu2"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_it_is_where_its_tenant_may_have_written_last(old, new, is_at, turned):
    """Lost: what a tenant wrote on the new host, to a verb that takes the former root for the instance."""
    answers = [answer("gpu1", old), answer("gpu2", new), answer("gpu3")]
    answers = answers[::-1] if turned else answers
    (move,) = moves.moving(answers)
    assert (move.leaves, move.arrives, move.was_started) == ("gpu1", "gpu2", is_at == "gpu2")
    told = "ml-8 moves from gpu1 to gpu2: ansible-playbook hetero.compute.migrate_instance -e instance=ml-8 goes on"
    assert move.told == told
    left = moves.without_halves(answers, [move])
    assert [one["item"] for one in left if one["claims"]] == [is_at]
    assert [one["item"] for one in left] == [one["item"] for one in answers]


@pytest.mark.parametrize(
    ("old", "new", "node", "goes_back"),
    [
        (LEAVING, "ending", "gpu2", True),
        ("ending", ARRIVING, "gpu1", False),
        ("ending", "ending", "gpu2", False),
    ],
)
def test_one_whose_end_was_cut_off_is_no_move_that_goes_on(old, new, node, goes_back):
    """Lost: what to type; or the root: a move made a new one in place of what was removed, and ended the former."""
    (move,) = moves.moving([answer("gpu1", old), answer("gpu2", new)])
    end = "ansible-playbook hetero.compute.terminate_instance -e instance=ml-8 ends all of it"
    back = "ansible-playbook hetero.compute.migrate_instance -e instance=ml-8 -e back=true has it on gpu1 again"
    or_back = f", or, by an operator's word, {back}, as it was there" if goes_back else ""
    assert move.told == move.ended == f"ml-8: its end was begun on {node}: {end}{or_back}"
    assert (move.was_started, move.goes_back) == (False, goes_back)


def test_what_only_looks_like_a_move_is_none():
    """Lost: one of two instances of one name, which are there since two plays asked at once, or a node lies."""
    for answers in (
        [answer("gpu1", "running"), answer("gpu2", "running")],
        [answer("gpu1", LEAVING), answer("gpu2", ARRIVING, CREATED + 1)],
        [answer("gpu1", LEAVING), answer("gpu2", LEAVING)],
        [answer("gpu1", "running"), answer("gpu2", "running"), answer("gpu3", ARRIVING)],
        [answer("gpu1", LEAVING), answer("gpu2", "running"), answer("gpu3", "running")],
        [answer("gpu1", LEAVING)],
        [answer("gpu1", "ending"), dict(answer("gpu1", "ending"), item="gpu1-by-another-name")],
        [dict(item="p1", claims=[dict(instance="ml-8", created=CREATED)]), answer("gpu1", LEAVING)],
        [dict(item="down", msg="no route")],
    ):
        assert moves.moving(answers) == []


def by(node, state, mover):
    found = answer(node, state)
    found["claims"][0]["mover"] = mover
    return found


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (["running", ARRIVING, ARRIVING], ["gpu1 gpu2", "gpu1 gpu3"]),
        ([LEAVING, ARRIVING, (ARRIVING, "r2")], ["gpu1 gpu2", "gpu1 gpu3"]),
        ([(LEAVING, "r2"), ARRIVING, (ARRIVING, "r2")], ["gpu1 gpu3", "gpu1 gpu2"]),
        ([LEAVING, "running", ARRIVING], ["gpu1 gpu2", "gpu2 gpu3"]),
        ([LEAVING, "ending", ARRIVING], ["gpu1 gpu2", "gpu1 gpu3"]),
        ([None, ARRIVING, ARRIVING], ["gpu2 gpu3"]),
        ([LEAVING, "running", ARRIVING, ARRIVING], ["gpu1 gpu2", "gpu2 gpu3", "gpu2 gpu4"]),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_each_claim_of_runs_to_several_hosts_is_known(there, told, turned):
    """Lost: what was claimed by a run that was killed beside another one, and ends by no verb; or the move that has
    begun, to another one.
    """
    given = [one if isinstance(one, tuple) else (one, "r1") for one in there]
    answers = [by(f"gpu{number}", *one) for number, one in enumerate(given, 1) if one[0]]
    found = moves.moving(answers[::-1] if turned else answers)
    assert [f"{move.leaves} {move.arrives}" for move in found] == told
    left = [one["item"] for one in moves.without_halves(answers, found) if one["claims"]]
    assert len(left) == 1
    assert left[0] not in {move.half[0] for move in found}


def test_a_move_is_of_the_instance_and_of_its_request():
    """Lost: that one of several moves, to a verb on all of them."""
    (move,) = moves.moving([answer(node, state, request="ml") for node, state in (("a", LEAVING), ("b", ARRIVING))])
    assert (move.is_of("ml"), move.is_of("ml-8"), move.is_of("ml-9")) == (True, True, False)


def test_notes_say_where_to_and_whether_it_runs_again():
    """Lost: an instance that was off before, and starts because its move was taken back; or one that does not."""
    for host, ran in (("gpu2", True), ("gpu2", False), ("gpu-2.site", False)):
        note = moves.leaving_note(host, ran)
        assert (moves.host_of(note), moves.ran(note)) == (host, ran)
    assert moves.host_of("moves from gpu1") == ""


@pytest.mark.parametrize("state", [LEAVING, ARRIVING])
def test_other_verbs_are_told_what_goes_on(state):
    """Lost: what to type."""
    with pytest.raises(Refused) as refused:
        moves.must_not_move("ml-8", state, "moves to gpu2")
    said = "ml-8: moves to gpu2: ansible-playbook hetero.compute.migrate_instance -e instance=ml-8 goes on"
    assert str(refused.value) == said
    moves.must_not_move("ml-8", "running", "")
    moves.must_not_move("ml-8", "ending", "")
