# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about each slot. If these fail, a board stays on for nobody, or is cut under a job."""

from __future__ import annotations

import pytest

controller = pytest.importorskip("controller")
from site_file import Pool, Site  # noqa: E402
from sync import Seen, Todo, decide, told_apart  # noqa: E402

IDLE, OFF = {"IDLE", "CLOUD"}, {"IDLE", "CLOUD", "POWERED_DOWN"}
COMING = {"ALLOCATED", "CLOUD", "POWERING_UP", "POWER_DOWN", "NOT_RESPONDING"}
RUNS = {"state": "running"}
FAULT = "hetero: board3: stalled at tftp after 41 s, twice"


def slots(*words):
    """Slots 1 … N as (state, reason, instance or None) each."""
    names = [f"tp64-{number}" for number in range(1, len(words) + 1)]
    nodes = {name: controller.Node(name, frozenset(state), reason) for name, (state, reason, _had) in zip(names, words)}
    return names, nodes, {name: had for name, (_state, _reason, had) in zip(names, words) if had}


def decided(*words, at_work=(), free=9, others=None, spent=(), **of):
    names, nodes, held = slots(*words)
    pool = Pool("tp64", "tp64.8x8", len(names), **of)
    return decide(pool, Seen(nodes, held, others or {}, frozenset(at_work), frozenset(spent)), (free, 10))


@pytest.mark.parametrize(
    ("state", "reason", "had", "todo"),
    [
        (OFF, "", None, Todo()),
        ({"ALLOCATED", "CLOUD", "POWER_DOWN"}, "", RUNS, Todo(used=["tp64-1"])),
        # slurmctld was killed before it had saved that the slot goes after its job
        ({"ALLOCATED", "CLOUD"}, "", RUNS, Todo(go=["tp64-1"], used=["tp64-1"])),
        (IDLE, "", RUNS, Todo(go=["tp64-1"], used=["tp64-1"])),
        (IDLE | {"DRAIN"}, "its fan rattles", RUNS, Todo(used=["tp64-1"])),
        ({"ALLOCATED", "CLOUD", "POWERING_UP"}, "", RUNS, Todo(go=["tp64-1"])),
        # an instance that nobody pays for: a suspend was killed
        (OFF, "", RUNS, Todo(end=["tp64-1"])),
        (OFF | {"DRAIN"}, "hetero: no node is free", RUNS, Todo(end=["tp64-1"])),
        (OFF, "", {"state": "error"}, Todo(end=["tp64-1"])),
        # what Slurm is just ending is ended by that
        ({"IDLE", "CLOUD", "POWERING_DOWN"}, "", RUNS, Todo()),
        # a resume was killed before, or after, it had claimed
        (COMING, "", None, Todo(begin=["tp64-1"])),
        (COMING, "", {"state": "booting"}, Todo(begin=["tp64-1"])),
        # it runs, and its slurmd has not said so yet
        (COMING, "", RUNS, Todo()),
        # it died under a job, or did not come
        ({"DOWN", "CLOUD", "NOT_RESPONDING"}, "Not responding", RUNS, Todo(off=["tp64-1"])),
        ({"DOWN", "CLOUD", "POWERING_UP", "NOT_RESPONDING"}, "ResumeTimeout reached", None, Todo(off=["tp64-1"])),
        ({"DOWN", "CLOUD", "POWERED_DOWN", "NOT_RESPONDING"}, "ResumeTimeout reached", RUNS, Todo(off=["tp64-1"])),
        ({"DOWN", "CLOUD", "POWERED_DOWN", "NOT_RESPONDING"}, "ResumeTimeout reached", None, Todo(off=["tp64-1"])),
        ({"DOWN", "CLOUD"}, FAULT, None, Todo(off=["tp64-1"])),
        ({"DOWN", "CLOUD", "POWERING_DOWN"}, FAULT, None, Todo()),
        # an operator's word stands
        ({"DOWN", "CLOUD"}, "its fan rattles", RUNS, Todo(used=["tp64-1"])),
        (OFF | {"DRAIN"}, "its fan rattles", None, Todo()),
        # closed by us, and there is room
        (OFF | {"DRAIN"}, "hetero: no node is free for it (0 free of 10)", None, Todo(open=["tp64-1"])),
        (OFF | {"DRAIN"}, FAULT, None, Todo(open=["tp64-1"])),
    ],
)
def test_what_is_done_about_a_slot(state, reason, had, todo):
    """Lost: power and boards for nobody, or a job's node, whatever was killed between two steps."""
    assert decided((state, reason, had)) == todo


def test_a_slot_comes_although_what_it_had_before_still_runs():
    """Lost: ten minutes of a job, where the end of its slot's last instance was killed before it had begun."""
    assert decided((COMING, "", RUNS), spent=["tp64-1"]) == Todo(begin=["tp64-1"])


def test_a_board_that_runs_gets_a_slurmd_that_stands_in_for_it():
    """Lost: salloc, where a resume was killed between the board's boot and its login."""
    assert decided((COMING, "", RUNS), slurmd=False) == Todo(begin=["tp64-1"])


def test_a_slurmd_that_stands_in_is_looked_after_while_its_board_runs():
    """Lost: a job, whose board Slurm takes for dead."""
    runs = ({"ALLOCATED", "CLOUD", "POWER_DOWN", "NOT_RESPONDING"}, "", RUNS)
    ends = ({"IDLE", "CLOUD", "POWERING_DOWN"}, "", RUNS)
    assert decided(runs, ends, (OFF, "", None), slurmd=False).keep == ["tp64-1"]
    assert decided(runs).keep == []


def test_a_job_whose_root_is_kept_is_not_told_to_go():
    """Lost: what the job before left for the next one."""
    assert decided(({"ALLOCATED", "CLOUD"}, "", RUNS), (IDLE, "", RUNS), new_root=False) == Todo()


def test_a_slot_whose_name_somebody_else_has_is_closed_and_nothing_of_it_is_ended():
    """Lost: a person's own board, or another site's job, by a guess from its name."""
    off = (OFF, "", None)
    todo = decided(off, off, others={"tp64-1": "ann"})
    why = "an instance of this name is there, of ann, that this controller did not make"
    end = "terminate_instance -e instance=tp64 -e numbers=1 -e force=true"
    assert todo == Todo(close={"tp64-1": f"{why} ({end})"})
    # it stays so, and is opened once the name is free
    closed = (OFF | {"DRAIN"}, f"hetero: {why}", None)
    assert decided(closed, others={"tp64-1": "ann"}) == Todo()
    assert decided(closed) == Todo(open=["tp64-1"])


def test_only_what_this_controller_has_made_is_its_own(tmp_path):
    """Lost: instances of another controller that has the same names and the same owner."""
    site = Site({}, [], str(tmp_path), "log", owner="slurm@ctl")
    claims = {f"tp64-{number}": {"owner": "slurm@ctl"} for number in (1, 2, 3)}
    claims["tp64-4"] = {"owner": "ann"}
    held, others = told_apart(site, claims, {"tp64-1", "tp64-2", "tp64-4"}, {"tp64-1"})
    # the second was ended since the nodes were asked
    assert (list(held), others) == (["tp64-1"], {"tp64-3": "slurm@ctl", "tp64-4": "ann"})


def test_what_another_program_works_on_is_left_alone():
    """Lost: a boot that sync takes for an orphan, and ends."""
    assert decided((OFF, "", RUNS), (COMING, "", None), at_work=["tp64-1", "tp64-2"]) == Todo()


def test_as_many_slots_are_open_as_nodes_are_free():
    """Lost: jobs that are given slots without a node, again and again, while people have the boards by hand."""
    off = (OFF, "", None)
    todo = decided(off, off, off, off, free=3)
    assert todo == Todo(close={"tp64-4": "no node is free for it (3 free of 10)"})
    assert list(decided(off, off, off, free=0).close) == ["tp64-1", "tp64-2", "tp64-3"]
    # what comes takes one of the free nodes
    assert list(decided((COMING, "", None), off, off, free=2, at_work=["tp64-1"]).close) == ["tp64-3"]
    assert decided((COMING, "", {"state": "booting"}), off, off, free=2, at_work=["tp64-1"]).close == {}


def test_the_slot_that_says_which_board_is_at_fault_is_opened_last():
    """Lost: blame's words, before an operator has read them."""
    closed = [(OFF | {"DRAIN"}, why, None) for why in (FAULT, "hetero: no node is free for it (0 free of 10)", FAULT)]
    assert decided(*closed, free=1) == Todo(open=["tp64-2"])
    assert decided(*closed, free=2) == Todo(open=["tp64-2", "tp64-1"])


def test_what_scontrol_prints_is_read():
    """Lost: all of the above, for a flag or a mark behind a state."""
    text = (
        "NodeName=tp64-1 CPUAlloc=0 AvailableFeatures=tp64.8x8 State=DOWN*+CLOUD+POWERING_UP ThreadsPerCore=1 "
        "Reason=hetero: no node: board0 is in use (ann) [slurm@2026-11-29T02:24:35]\n\n"
        "NodeName=tp64-2 Arch=x86_64 State=IDLE+CLOUD+POWERED_DOWN Partitions=boards \n"
        "NodeName=tp64-3 State=DOWN+CLOUD Reason=Not responding [slurm@2026-11-29T02:24:35] Comment=it is on board1\n"
    )
    found = controller.parsed(text)
    assert found["tp64-1"].state == {"DOWN", "CLOUD", "POWERING_UP"}
    assert found["tp64-1"].reason == "hetero: no node: board0 is in use (ann)"
    assert (found["tp64-2"].off, found["tp64-2"].reason) == (True, "")
    assert (found["tp64-3"].slurms, found["tp64-3"].reason) == (True, "Not responding")
    assert [found[f"tp64-{number}"].comment for number in (1, 2, 3)] == ["", "", "it is on board1"]
