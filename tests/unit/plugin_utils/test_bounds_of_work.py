# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in the background of a node of which a stranger is root. If these fail, that node fills the controller's memory,
its disk or AWX's database, and decides when a play ends.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError

from ansible_collections.hetero.compute.plugins.plugin_utils import progress

DAY = 86400.0
JOB = dict(job="/run/hetero/job.1", python="/usr/bin/python3", limit=100.0, after=0)


@pytest.fixture
def told(monkeypatch):
    lines = []
    monkeypatch.setattr(progress, "tell", lines.append)
    return lines


def following(looks, **args):
    """The action plugin, whose node answers its looks with `looks` in turn."""

    class Follows(progress.Follows):
        module = "hetero.compute.instance"

        def _look(self, job, _lines):
            return next(looks)

    one = Follows.__new__(Follows)
    one._task = SimpleNamespace(delegate_to="p1", args=dict(args, instance="jackie"))
    one._play_context = SimpleNamespace(remote_addr="p1", timeout=10)
    return one


def events(first, count, text="x" * 3000):
    return [(number, "board0", "jackie", "power", f"{number} {text}", None) for number in range(first, first + count)]


def done(*lines):
    return dict(events=[], done=True, result=json.dumps(dict(lines=lines)))


@pytest.mark.parametrize(("most_lines", "most"), [(10, 10**9), (10**9, 4_000)])
def test_what_is_printed_of_one_task_has_an_end_and_its_result_counts(monkeypatch, told, most_lines, most):
    """Lost: the disk of the controller, line by line; or what the work came to."""
    monkeypatch.setattr(progress, "MOST_LINES", most_lines)
    monkeypatch.setattr(progress, "MOST_CHARACTERS", most)
    looks = iter([dict(events=events(first, 50, "x" * 300), done=False) for first in range(0, 500, 50)] + [done("end")])
    assert following(looks)._follow(dict(JOB), dict(events=[], done=False)) == {"lines": ["end"]}
    assert 9 <= len(told) <= 13
    assert told[-1].startswith("p1: start of jackie says more than is shown of one task: the rest is left out")


def test_a_result_with_lines_without_end_is_printed_to_the_same_end(monkeypatch, told):
    monkeypatch.setattr(progress, "MOST_LINES", 10)
    following(iter(()))._show(dict(lines=[f"line {number}" for number in range(1000)]))
    assert len(told) == 11
    assert "says more than is shown" in told[-1]


def test_a_look_ends_with_its_play(monkeypatch, told):
    """Lost: a tenant's board, to a stop whose terminal was closed: a worker that outlived its play looked on,
    and so told the node that somebody waits.
    """
    parents, looked = iter([100, 100, 1]), []

    def looks():
        while True:
            looked.append(1)
            yield dict(events=[], done=False)

    monkeypatch.setattr(progress.os, "getppid", lambda: next(parents))
    with pytest.raises(AnsibleActionFail, match="the play has ended"):
        following(looks())._follow(dict(JOB), dict(events=[], done=False))
    assert len(looked) == 1


def test_what_honest_work_says_is_all_printed_and_nothing_of_it_twice(told):
    """Lost: the phases of 1,000 boards; or each of them shown twice."""
    said = [progress.as_text(dict(instance="jackie", node="board0", phase="power", text="7 x", seconds=None))]
    looks = iter(
        [dict(events=events(first, 1000, "x"), done=False) for first in range(0, 10_000, 1000)] + [done(*said)]
    )
    following(looks)._follow(dict(JOB), dict(events=[], done=False))
    assert len(told) == len(set(told)) == 10_000


@pytest.mark.parametrize(
    ("limit", "given", "most"),
    [
        (100.0, {}, 100.0),
        (1e9, {}, 14 * DAY),
        (1e9, dict(timeout=300, soft_timeout="30", limit=None), 14 * DAY + 3300),
        (10 * DAY, {}, 10 * DAY),
    ],
)
def test_the_node_does_not_say_when_a_play_ends(monkeypatch, told, limit, given, most):
    """Lost: a play of AWX and its place among the others, for 30 years."""
    clock, over = [0.0], most + progress.GRACE

    def looks():
        for seconds in (over - 1, over + 1):
            clock[0] = seconds
            yield dict(events=[], done=False)

    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with pytest.raises(AnsibleActionFail, match=f"has not ended within {over:.0f} s"):
        following(looks(), **given)._follow(dict(JOB, limit=limit), dict(events=[], done=False))


@pytest.mark.parametrize(
    ("timeout", "waits"), [(10, [2.0, 5.0, 0.5, 5.0]), (1, [1.5, 1.5, 0.5, 1.5])], ids=["as usual", "hasty"]
)
def test_a_look_lasts_until_there_is_something_to_tell(monkeypatch, told, timeout, waits):
    """Lost: a proxy's processor, to looks at boards that boot; or, of hasty sites, the node, called silent."""
    clock, asked = [0.0], []

    def looks():
        for seconds in (2.0, 11.9, 12.0):
            clock[0] = seconds
            yield dict(events=[], done=False)
        yield done()

    one = following(looks())
    one._play_context.timeout = timeout
    look = one._look
    one._look = lambda job, lines: asked.append(job["wait"]) or look(job, lines)
    monkeypatch.setattr(progress, "FIRST", 2.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    one._follow(dict(JOB, node="h1", limit=100.0), dict(events=[], done=False))
    assert [round(wait, 3) for wait in asked] == waits


@pytest.mark.parametrize("limit", [float("nan"), "x", None, 10**400, True])
def test_a_limit_that_is_no_number_is_none(told, limit):
    with pytest.raises(ValueError, match="limit is "):
        following(iter(()))._follow(dict(JOB, limit=limit), dict(events=[], done=False))


@pytest.mark.parametrize(
    "said", [dict(stderr="B" * 10**6), dict(stdout="x\n" + "B" * 10**6), dict(stderr="B\n" * 10**6)]
)
def test_what_a_failed_look_says_is_one_short_line(said):
    """Lost: the terminal and AWX's database, to 20 MB in an error."""
    one = progress.Follows.__new__(progress.Follows)
    one._connection = SimpleNamespace(has_pipelining=True)
    one._answer = lambda command, data, lines: dict(said, rc=1)
    with pytest.raises(AnsibleActionFail, match="cannot follow the work, which goes on in the background: B") as error:
        one._look(dict(JOB), progress.Lines("p1"))
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("said", ["", "\n \n"])
def test_a_failed_look_that_says_nothing_is_told_as_such(said):
    one = progress.Follows.__new__(progress.Follows)
    one._connection = SimpleNamespace(has_pipelining=True)
    one._answer = lambda command, data, lines: dict(rc=1, stderr=said, stdout="")
    with pytest.raises(AnsibleActionFail, match=r"in the background: nothing\. Run this again"):
        one._look(dict(JOB), progress.Lines("p1"))


@pytest.mark.parametrize("kind", [AnsibleError, AnsibleConnectionFailure])
def test_what_ansible_itself_passes_on_of_a_node_is_cut(kind):
    """Lost: the same, by a node whose ssh says it; and that a node cannot be reached, for which others are asked."""

    def asked(self, tmp, task_vars):
        raise kind("cannot do it: " + "B" * 10**6)

    class Checks(progress.Checks):
        module = "hetero.compute.board_info"
        _asked = asked

    one = Checks.__new__(Checks)
    with pytest.raises(kind, match=r"^cannot do it: BBB") as error:
        one.run()
    assert len(str(error.value)) <= 20_000


def test_what_killed_work_left_is_cut():
    result = progress.outcome("first\n" + "B" * 10**6)
    assert result["failed"]
    assert len(result["msg"]) < 700
    assert len(result["said"]) <= 20_000
