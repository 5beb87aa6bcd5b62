# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps from somebody's board to nobody's. Whole nodes are in verbs/test_lease.py and verbs/test_reconcile.py.

Tests boards/verbs/release.py.
"""

from __future__ import annotations

import types

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import wipes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import release
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_work import BoardWork
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def steps(monkeypatch):
    """What was done to which boards, in that order; `bad`: what fails of which; `unwiped`: those with disks to wipe."""

    class Steps(list):
        bad, unwiped, rooted = types.MappingProxyType({}), (), ()

        def each(self, name, works):
            for work in works:
                self.append((name, work.board.id))
                if self.bad.get(work.board.id) == name:
                    work.fail("board", HeteroError(f"{name} fails"))

    done = Steps()

    def clean(proxy, board, claim, change, say, deadline):
        done.append(("remove", board.id))
        if done.bad.get(board.id) == "remove":
            raise HeteroError("is in use", "its root", "look who", point="x")
        if done.bad.get(board.id) == "os":
            raise PermissionError(13, "Permission denied")
        return ["its root"] if board.id in done.rooted else []

    def wipe(proxy, works, request, options, ended):
        done.each("wipe", works)
        for work in works:
            ended(work)

    monkeypatch.setattr(release, "switch_off", lambda proxy, works, options: done.each("off", works))
    monkeypatch.setattr(release, "wipe_beside", wipe)
    monkeypatch.setattr(release, "clean", clean)
    monkeypatch.setattr(release, "unwiped", lambda proxy, board: ["/dev/sda"] if board.id in done.unwiped else [])
    return done


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        claimed(opened, "lab", (0, 1), made=False)
        for board in range(3):
            opened.store.power_seen(board, "off")
        yield opened


def works_on(proxy, check=False):
    works = [BoardWork(proxy, proxy.boards[number], Change(check)) for number in range(3)]
    for work in works:
        work.read()
    return works


def owners(proxy):
    return [claim.instance for claim in proxy.store.claims()]


def test_boards_are_freed_step_by_step(proxy, steps):
    """Lost: what lies on a board, to the next who gets it before it is off and clean."""
    works = works_on(proxy)
    release.release(proxy, works, Options())
    assert steps == [(step, board) for step in ("off", "remove", "wipe") for board in range(3)]
    assert owners(proxy) == []
    assert [(work.failed, work.claim, work.changed) for work in works] == [
        (False, None, True),
        (False, None, True),
        (False, None, False),
    ]
    (diff,) = works[0].change.diff
    assert (diff["before_header"], diff["before"], diff["after"]) == (
        "board0 claim", {"instance": "lab-1", "owner": "ann"}, {},
    )  # fmt: skip


def test_a_dry_run_frees_nothing(proxy, steps):
    """Lost: an instance, to a dry run."""
    works = works_on(proxy, check=True)
    release.release(proxy, works, Options(check=True))
    assert owners(proxy) == ["lab-1", "lab-2"]
    assert (works[0].change.changed, works[0].claim.instance) == (True, "lab-1")


@pytest.mark.parametrize(
    ("bad", "error", "evidence"),
    [
        ("off", "off fails", {}),
        ("remove", "its root: is in use: look who", {"point": "x"}),
        ("os", "board0: cannot be read or written (Permission denied): check space", {}),
        ("wipe", "wipe fails", {}),
    ],
)
def test_what_fails_of_one_board_is_its_own(proxy, steps, bad, error, evidence):
    """Lost: the claim of a board that is not clean, or the boards of all others beside it."""
    steps.bad = {0: bad}
    works = works_on(proxy)
    release.release(proxy, works, Options())
    assert (works[0].failed, works[0].error.startswith(error), works[0].evidence) == (True, True, evidence)
    assert owners(proxy) == ["lab-1"]
    order = ["off", "remove", "wipe"]
    assert [step for step, board in steps if board == 0] == order[: order.index("remove" if bad == "os" else bad) + 1]
    assert [step for step, board in steps if board == 1] == order


def test_a_board_that_is_over_is_left_alone(proxy, steps):
    """Lost: the board of whom somebody works on."""
    works = works_on(proxy)
    works[0].fail(None, HeteroError("busy"))
    works[2].over = True
    release.release(proxy, works, Options())
    assert {board for _step, board in steps} == {1}
    assert owners(proxy) == ["lab-1"]


def test_boards_with_disks_to_wipe_may_wait(proxy, steps):
    """Lost: hours, for boards that are free at once; or the data on a disk, to the next who gets its board."""
    steps.unwiped, steps.bad = (0, 2), {2: "remove"}
    works, later = works_on(proxy), []
    release.release(proxy, works, Options(), later=later)
    assert later == works[:1]
    assert [board for step, board in steps if step == "wipe"] == [1]
    assert owners(proxy) == ["lab-1"]


def test_one_that_is_not_clean_after_all_stays_claimed(proxy, steps):
    """Lost: the same."""
    proxy.store.event(0, "switch", "pdu-a outlet 1 is to be switched on")
    proxy.store.power_seen(0, "on")
    works = works_on(proxy)
    release.release(proxy, works, Options())
    assert works[0].error.startswith("board0: is not clean: its outlet was last seen on: look what holds it")
    assert owners(proxy) == ["lab-1"]


# ---- the end of a request's claims


def end(proxy, *ids, check=False):
    return release.end(proxy, ids, wipes.WipeRequest(), Options(check=check, instance="lab"))


def test_the_end_of_claims_is_told(proxy, steps):
    """Lost: what was ended, or of which board what was not, and why."""
    steps.bad = {1: "wipe"}
    result = end(proxy, 0, 1)
    assert (result["failed"], result["step"], result["ended"]) == (True, "wipe", ["lab-1"])
    assert [(board["board"], board.get("error")) for board in result["boards"]] == [(0, None), (1, "wipe fails")]
    assert [line["text"] for line in result["lines"]] == ["off and clean, given back"]
    assert list(result["seconds"]) == ["power", "wipe"]
    assert owners(proxy) == ["lab-2"]


def test_a_dry_run_of_an_end_ends_nothing(proxy, steps):
    result = end(proxy, 0, check=True)
    assert (result["ended"], result["changed"], owners(proxy)) == ([], True, ["lab-1", "lab-2"])
    assert "would be given back once clean" in result["lines"][-1]["text"]


def test_a_board_whose_claim_another_end_ended_is_left_alone(proxy, steps):
    """Lost: the power, root and disks of whoever is on a board that a claim had until its lock was let go."""
    result = end(proxy, 0, 2)
    assert {board for _step, board in steps} == {0}
    assert not result["failed"]
    assert [line["text"] for line in result["lines"] if line["node"] == "board2"] == [release.GONE]


def test_a_board_whose_claim_ends_under_the_end_is_left_as_it_is(proxy, steps, monkeypatch):
    """Lost: the root of another, which lies there although the database had a claim of this one until now."""

    def forgotten(proxy, works, options):
        proxy.store.forget(proxy.store.claim_of("lab-1"), "x")

    monkeypatch.setattr(release, "switch_off", forgotten)
    result = end(proxy, 0, 1)
    assert [step for step, board in steps if board == 0] == []
    assert (result["step"], result["ended"]) == ("remove", ["lab-2"])
    assert "nothing is touched" in result["msg"]


def test_what_is_busy_or_anothers_keeps_nothing_from_the_rest(proxy, steps, node, monkeypatch):
    """Lost: what was done of all boards, and said of it, to one that another verb works on."""
    with lock(str(node.run_folder), "board1", "wipe", "jo", Deadline(5)):
        monkeypatch.setattr(Options, "limit", 0.1)
        result = end(proxy, 0, 1)
    assert (result["failed"], result["step"], result["ended"]) == (True, "stop", ["lab-1"])
    assert "still held by wipe" in result["msg"]


def test_what_was_removed_counts_although_the_rest_fails(proxy, steps):
    """Lost: the word that a root is gone, in a handler or log that goes by changed."""
    steps.bad, steps.rooted = {0: "wipe"}, (0,)
    result = end(proxy, 0)
    assert (result["failed"], result["changed"], owners(proxy)) == (True, True, ["lab-1", "lab-2"])


def test_a_board_at_fault_is_nobodys_and_out_of_use_at_once(proxy, steps):
    """Lost: a board at fault, to the next who asks in the moment after it was given back."""
    seen = []
    lets_go = BoardWork.let_go
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            BoardWork, "let_go", lambda work: seen.append(proxy.store.record(work.board.id).state) or lets_go(work)
        )
        release.end(proxy, [0, 1], wipes.WipeRequest(), Options(instance="lab"), {0: "no boot request"})
    assert "power off" in seen
    assert seen[0] == "error"
    record = proxy.store.record(0)
    assert (record.state, record.note, record.claim) == ("error", "no boot request", None)
    assert proxy.store.record(1).state == "power off"
