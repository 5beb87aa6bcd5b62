# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status says of those who wait. If this fails, nobody sees whom a board that is off is for."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.filter.status_table import FilterModule
from ansible_collections.hetero.compute.plugins.plugin_utils import answers
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.waiting_lines import TOLD, clock, waiting

status_table = FilterModule().filters()["status_table"]
BOARD = dict(name="board1", arch="TILEPro64", state="power off", vcpus=1, memory_mb=1, local_gb=1)


def place(request="lab", asked=0.0, **more):
    fixed = dict(request=request, owner="ann", flavor="tp64.8x8", need=8, position=1, priority=0, held=3, expected=None)
    return dict(fixed, asked=asked or time.time() - 300, **more)


def test_a_board_says_who_gets_it_next_and_the_queue_is_below():
    """Lost: the one, or the other."""
    seen = dict(boards=[dict(BOARD, next="lab (queue 1)"), dict(BOARD, lease_seconds=3600.0, next="two (queue 2)")])
    table = status_table({"p1": dict(seen, queue=[place()])})
    assert table[1].endswith(" next: lab (queue 1)")
    assert table[2].endswith(" lease 1 h left, next: two (queue 2)")
    assert table[3:] == ["waits: lab of ann, 8 tp64.8x8, 1st in the queue since 5 min, 3 free and held for it"]


def test_a_time_that_could_be_another_days_has_its_date():
    """Lost: a day. A lease that ends tomorrow at 04:15 was told at 04:26 as `expected 04:15`, as if it were over."""
    now = 1_800_000_000.0
    for hours in (-11, 1, 11):
        assert clock(now + hours * 3600, now) == time.strftime("%H:%M", time.localtime(now + hours * 3600))
    for hours in (-23, 13, 23.8, 50):
        assert clock(now + hours * 3600, now) == time.strftime("%Y-%m-%d %H:%M", time.localtime(now + hours * 3600))


def test_a_request_is_one_line_whichever_nodes_keep_its_place():
    """Lost: who is first, among lines of each node."""
    now = time.time()
    nodes = [
        dict(queue=[place("one", now - 60, need=1, held=0, position=2), place(asked=now - 90, expected=now + 99)]),
        dict(queue=[place(asked=now - 90, held=1, expected=None)]),
        dict(queue=[place("vip", now - 10, priority=1, owner="b\nob", need=2, held=0)]),
        dict(boards=[], error="no route"),
    ]
    lines = waiting(nodes)
    assert [line.split()[1] for line in lines] == ["vip", "lab", "one"]
    assert lines[0].startswith("waits: vip of b\\x0aob, 2 tp64.8x8, 1st in the queue since 10 s, none free for it")
    assert ", 4 free and held for it: expected " in lines[1]
    assert lines[2] == "waits: one of ann, tp64.8x8, 2nd in the queue since 1 min, none free for it"


def test_a_request_that_nobody_can_serve_says_why_nothing_is_held():
    """Lost: why a request for three waits beside free boards, and what an operator has to do."""
    stuck = [dict(name=f"board{number}", why="is in er\nror: it smells") for number in (1, 2, 3)]
    since = dict(asked=time.time() - 300, held=0, enough=False)
    nodes = [dict(queue=[place(**since, stuck=stuck)]), dict(queue=[place(**since, stuck=[])])]
    (line,) = waiting(nodes)
    assert line.endswith(
        " since 5 min, nothing is held for it; board1 is in er\\x0aror: it smells; "
        "board2 is in er\\x0aror: it smells; …"
    )


def test_a_long_queue_is_counted():
    lines = waiting([dict(queue=[place(f"n{number}", 1.0 + number) for number in range(TOLD + 3)])])
    assert (len(lines), lines[-1]) == (TOLD + 1, "and 3 more wait")


def test_it_comes_from_the_answer():
    """Lost: the lines, between the module and the table; or the status of a node of an earlier release."""
    answer = dict(item="p1", claims=[], boards=[], roots=None, pdu_errors={}, queue=[place()])
    assert snapshots([answer])["p1"]["queue"] == answer["queue"]
    assert snapshots([dict(item="p1", claims=[], boards=[])])["p1"]["queue"] == []
    assert snapshots([dict(item="h1", claims=[], queue=[place()])], hosts=True)["h1"]["queue"] != []
    assert waiting([dict(boards=[])]) == []


@pytest.mark.parametrize("odd", ["no", [None], [dict(place(), need="x")], [dict(place(), request="-x")]])
def test_an_answer_of_another_form_counts_as_none(odd):
    """Lost: the status of all owners, for the odd answer of one."""
    for module in ("board_info", "host_info"):
        shape = dict(queue=answers.SHAPES[module]["queue"])
        assert answers.wrong(dict(queue=odd), shape) == "queue"
        assert answers.wrong(dict(queue=[place()]), shape) is None
        assert answers.wrong({}, shape) is None


@pytest.mark.parametrize("odd", [5, dict(may=1), [], dict(steps=[[1]])])
def test_a_place_of_another_form_counts_as_none(odd):
    """Lost: the wait of a play, for the odd answer of one node."""
    told = answers.checked(dict(place=odd), "ticket")
    assert told["msg"].startswith("what the node answers to ticket cannot be")
