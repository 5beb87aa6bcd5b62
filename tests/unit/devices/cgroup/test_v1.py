# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of real device cgroups of cgroup v1: what the kernel accepts and does not do, and what it does not show."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import v1 as v1_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_path, of_process
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rule_changes import narrow
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import EVERYTHING, parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup

GPU = parse("c 195:0 rw")


def only(cgroup, *rules):
    """A list that denies all but these."""
    cgroup.v1.deny(EVERYTHING)
    for rule in rules:
        cgroup.v1.allow(parse(rule))


def test_allowed_and_denied_are_read_back(v1, inside):
    """A GPU would be reported as given or taken that is not."""
    only(v1, "c 1:3 rwm")
    assert not v1.may("c", 195, 0, "rw")
    v1.allow_v1(GPU)
    assert v1.may("c", 195, 0, "rw")
    assert inside.may("c 195:0 rw")
    v1.v1.deny(GPU)
    assert v1.verdict(GPU) == "denied"
    assert not inside.may("c 195:0 r")
    assert inside.may("c 1:3 rw")


def test_a_deny_under_a_wildcard_is_refused(v1, inside):
    """Trap: the kernel takes 'deny 195:0' under 'allow 195:*', says nothing, and leaves it open."""
    only(v1, "c 195:* rw")
    with open(os.path.join(v1.v1.path, "devices.deny"), "w", encoding="ascii") as deny:
        deny.write("c 195:0 rw")
    assert inside.may("c 195:0 rw")
    with pytest.raises(Refused, match=r"wider rule 'c 195:\* rw' would stay.*deny 'c 195:\* rw' itself"):
        v1.v1.deny(GPU)
    v1.v1.deny(parse("c 195:* rwm"))
    assert not inside.may("c 195:0 r")


def test_a_wide_deny_takes_the_narrow_rules_with_it(v1, inside):
    """The same trap the other way round: the kernel denies 195:* and leaves the rule 195:0."""
    only(v1, "c 195:0 rw", "c 195:1 rwm", "c 1:3 rwm")
    v1.v1.deny(parse("c 195:* rw"))
    assert [inside.may(text) for text in ("c 195:0 r", "c 195:1 w", "c 195:1 m", "c 1:3 rw")] == [0, 0, 1, 1]
    assert v1.verdict(parse("c 195:* rw")) == "denied"


def test_a_cgroup_gets_no_more_than_its_parent(stack, v1):
    """'Operation not permitted', as if root were missing."""
    only(v1, "c 1:3 rwm")
    child = V1(stack.enter_context(new_cgroup("v1", v1.v1.path)))
    with pytest.raises(Refused, match=f"its parent {v1.v1.path} does not have it: allow it there first"):
        child.allow(GPU)
    v1.allow_v1(GPU)
    assert GPU in child.rules
    v1.v1.deny(GPU)
    assert GPU not in child.rules


def test_cgroups_below_get_what_the_parent_gets_unless_they_are_narrower(stack, v1):
    """A service inside a container would not see the container's new GPU; or one that was locked up would."""
    only(v1, "c 1:3 rwm", "c 1:5 rwm")
    same, narrow = (V1(stack.enter_context(new_cgroup("v1", v1.v1.path))) for _child in range(2))
    narrow.deny(parse("c 1:5 rwm"))
    v1.allow_v1(GPU)
    assert same.may("c", 195, 0, "rw")
    assert not narrow.may("c", 195, 0, "rw")


def test_everything_with_cgroups_below_is_explained(stack, v1):
    """'Invalid argument' tells nobody what to do."""
    stack.enter_context(new_cgroup("v1", v1.v1.path))
    for change in (v1.allow_v1, v1.v1.deny):
        with pytest.raises(Refused, match="while there are cgroups below it"):
            change(EVERYTHING)


def test_what_a_list_does_not_show_is_asked_of_the_kernel(v1, inside):
    """Trap: a list that reads 'a *:* rwm' may deny devices, and does not show which."""
    assert v1.v1.rules == [EVERYTHING]
    assert v1.may("c", 195, 0, "rw")
    v1.v1.deny(parse("c 195:0 w"))
    assert v1.v1.rules == [EVERYTHING]
    questions = ("c 195:0 rw", "c 195:0 w", "c 195:0 r", "c 195:0 m", "c 195:1 rw", "b 195:0 rw")
    assert [v1.may(*parse(text)) for text in questions] == [0, 0, 1, 1, 1, 1]
    assert [inside.may(text) for text in questions] == [0, 0, 1, 1, 1, 1]
    assert v1.allows_everything()
    v1.allow_v1(GPU)
    assert v1.may("c", 195, 0, "rw")


def test_a_no_of_our_own_cgroup_is_no_answer(stack, v1, inside):
    """Run inside of a locked-up service, each device of a container would be called closed."""
    path = stack.enter_context(new_cgroup("v2"))
    ours = of_path(path)
    script = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
side = V1(sys.argv[2])
print(side.may("c", 195, 1, "rw"))
side.may("c", 195, 0, "rw")
"""
    ours.forbid([GPU], "ledger-7")
    done = subprocess.run([sys.executable, "-c", script, path, v1.v1.path], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"
    assert "cannot tell whether it may rw c 195:0: programs on our own cgroup deny it" in done.stderr


def test_an_allow_under_a_denied_wildcard_is_refused(v1, inside):
    """Trap: the deny under a wildcard, turned round: accepted, and 195:0 stays closed."""
    v1.v1.deny(parse("c 195:* rwm"))
    with pytest.raises(Refused, match="a wider rule that was denied stays"):
        v1.allow_v1(GPU)
    assert not inside.may("c 195:0 rw")


def test_one_rule_is_taken_out_and_the_others_stay(v1):
    """Narrowing a list to exact rules would drop one that is to stay."""
    only(v1, "c 195:* rw", "c 195:0 rwm")
    v1.v1.remove(parse("c 195:* rw"))
    assert v1.v1.rules == [parse("c 195:0 rwm")]


def test_a_list_is_narrowed_to_each_bit(v1, inside):
    """A container that may make the node of any GPU opens it by another number."""
    only(v1, "c 1:3 rwm", "c 195:0 r")
    narrow(v1.v1, [parse("c 1:3 rw"), GPU])
    assert set(v1.v1.rules) == {parse("c 1:3 rw"), GPU}
    assert [inside.may(text) for text in ("c 1:3 rw", "c 1:3 m", "c 195:0 rw")] == [1, 0, 1]


def test_the_cgroups_below_are_counted_and_not_deeper_than_is_agreed(tmp_path, monkeypatch):
    """A service deep in a container would not see its new GPU; or a container with millions would hold the host up."""
    for name in ("a/b/c/d", "e/f"):
        (tmp_path / name).mkdir(parents=True)
    cgroup = V1(str(tmp_path))
    assert {os.path.relpath(one.path, tmp_path) for one in cgroup.inner} == {"a", "a/b", "a/b/c", "a/b/c/d", "e", "e/f"}
    monkeypatch.setattr(v1_module, "DEEPEST", 1)
    assert {os.path.relpath(one.path, tmp_path) for one in cgroup.inner} == {"a", "a/b", "e", "e/f"}
    monkeypatch.setattr(v1_module, "MOST_INNER", 3)
    assert len(cgroup.inner) == 3


def test_of_a_container_with_very_many_cgroups_ten_thousand_are_looked_at(tmp_path):
    """Who is root in it would hold up each verb on it for as long as it likes."""
    for number in range(10001):
        (tmp_path / str(number)).mkdir()
    assert len(V1(str(tmp_path)).inner) == 10000


def test_a_cgroup_that_went_away_is_named():
    """A container that stopped meanwhile would end in a traceback."""
    with new_cgroup("v1") as path:
        gone = of_path(path)
    with pytest.raises(HeteroError, match=path):
        gone.may("c", 195, 0, "rw")
    with pytest.raises(HeteroError, match="no such cgroup"):
        gone.v1._write("devices.allow", GPU)


def test_on_a_host_with_both_a_device_must_pass_both(stack, v1, inside):
    """A GPU would be called open that one of the two denies."""
    path = stack.enter_context(new_cgroup("v2"))
    stack.callback(inside.end)
    inside.enter(path)
    both = of_process(inside.pid)
    assert both.version == "hybrid"
    questions = ("c 195:0 rw", "c 195:1 rw", "c 1:3 rw")
    both.forbid([parse("c 195:1 rw")], "ledger-7")
    assert [both.may(*parse(text)) for text in questions] == [1, 0, 1]
    assert [inside.may(text) for text in questions] == [1, 0, 1]
    only(both, "c 1:3 rwm", "c 195:1 rw")
    assert [both.may(*parse(text)) for text in questions] == [0, 0, 1]
    assert [inside.may(text) for text in questions] == [0, 0, 1]
    assert {side.version: side.allows for side in both.sides(parse("c 195:1 rw"))} == {"v1": True, "v2": False}
