# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One change of a cgroup at a time, and what is planned for lists and programs that are played.

Changes of real cgroups are in test_module.py.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks as core_locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import rule_changes as module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import DeviceCgroup
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import (
    compile_rules,
    mark_of,
    name_of,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rule_changes import (
    Changing,
    grants,
    narrow,
    without,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import Program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs

GPU, OTHER = parse("c 195:0 rw"), parse("c 195:1 rw")


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """The folder of the locks of this test's own."""
    monkeypatch.setattr(core_locks, "TURNS", str(tmp_path / "locks"))
    return tmp_path / "locks"


def test_a_cgroup_that_somebody_else_changes_is_waited_for_no_longer_than_asked(tmp_path, locks):
    """Lost: the end of a play beside one that hangs, and where to look for it."""
    cgroup = DeviceCgroup("jackie", None, SimpleNamespace(path=str(tmp_path)))
    passed = SimpleNamespace(passed=True, seconds=0.5, nap=lambda: pytest.fail("it waits on"))
    why = rf"jackie: is being changed by pid {os.getpid()} for 0\.5 s: wait for it, or end that process"
    with Changing(cgroup).alone(passed), pytest.raises(TimedOut, match=why), Changing(cgroup).alone(passed):
        pytest.fail("two change it at once")
    with Changing(cgroup).alone(passed):
        pass  # it is free again


def test_nobody_else_keeps_a_cgroup_from_being_changed(tmp_path, locks):
    """Lost: that a GPU is taken back, and each start of a container with one, to an account of the host or to a tenant
    who locks the cgroup's folder, which both can open, for ever."""
    cgroup = DeviceCgroup("jackie", None, SimpleNamespace(path=str(tmp_path)))
    passed = SimpleNamespace(passed=True, seconds=0.5)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with Changing(cgroup).alone(passed):
            assert stat.S_IMODE(locks.stat().st_mode) == 0o700
            assert [stat.S_IMODE(file.stat().st_mode) for file in locks.iterdir()] == [0o600]
    finally:
        os.close(held)


def test_each_folder_has_a_lock_that_is_let_go(tmp_path, locks, monkeypatch):
    """Lost: rules, where two change one cgroup at once; a file of the process for each change; or each change, where
    both folders have one inode number."""
    folders = [tmp_path / "v1", tmp_path / "v2"]
    for folder in folders:
        folder.mkdir()
    cgroup = DeviceCgroup("jackie", *(SimpleNamespace(path=str(folder)) for folder in folders))
    naps = []
    before = len(os.listdir("/proc/self/fd"))
    for one in (cgroup._replace(v1=None), cgroup._replace(v2=None)):
        with ExitStack() as other:
            other.enter_context(Changing(one).alone(None))
            waits = SimpleNamespace(passed=False, seconds=1, nap=lambda: naps.append(other.close()))
            with Changing(cgroup).alone(waits):
                pass
    assert naps == [None] * 2
    monkeypatch.setattr(core_locks, "MOST_TURNS", 1)
    with Changing(cgroup).alone(SimpleNamespace(passed=True, seconds=1)):
        assert {file.name for file in locks.iterdir()} >= {"cgroup-v1-0", "cgroup-v2-0"}
    assert len(os.listdir("/proc/self/fd")) == before
    folders[1].rmdir()
    with pytest.raises(HeteroError, match=str(folders[1])), Changing(cgroup).alone(None):
        pytest.fail("it is gone")


class Side:
    """The v2 side of a cgroup with these programs, which keeps what is done to it."""

    def __init__(self, path, *programs, limitable=True):
        self.path, self.direct, self.effective, self.limitable = str(path), list(programs), list(programs), limitable
        self.done = []

    def of(self, owner):
        return next((one for one in self.direct if one.name == name_of(owner) and one.own), None)

    def forbid(self, rules, owner):
        self.done.append(("forbid", sorted(map(str, rules)), owner))

    def only(self, rules, owner):
        self.done.append(("only", sorted(map(str, rules)), owner))

    def rewrite(self, program, rules):
        self.done.append(("rewrite", program.id, sorted(map(str, rules))))

    def drop(self, program):
        self.done.append(("drop", program.id))


def own(number, kind, *rules):
    instructions = compile_rules(kind, [parse(rule) for rule in rules], mark_of(module.OWNER))
    return Program(number, name_of(module.OWNER), instructions)


def foreign(number, *rules, default=0):
    return Program(number, "foreign", device_programs.lxc([parse(rule) for rule in rules], default))


class Container:
    """A container of LXC that keeps what it is asked."""

    def __init__(self):
        self.asked = []

    def allow(self, rule):
        self.asked.append(("allow", rule))

    def deny(self, rule):
        self.asked.append(("deny", rule))


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """What is done, in order, to have a cgroup in a state; its programs are attached to itself."""
    (tmp_path / "cgroup.procs").touch()

    def plan(side, state, *rules, container=None, v1=None):
        monkeypatch.setattr(module, "V2", {side.path: side}.__getitem__ if side else None)
        one = Changing(DeviceCgroup("jackie", v1, side), container)
        steps = one.plan(state, [parse(rule) for rule in rules])
        for step in steps:
            step.act()
        return [step.words for step in steps]

    return plan


@pytest.mark.parametrize(
    ("programs", "state", "rules", "done"),
    [
        ([], "denied", ["c 195:0 rw"], [("forbid", ["c 195:0 rw"], "cgroup_devices")]),
        ([own(7, "forbid", "c 195:0 rw")], "denied", ["c 195:0 rw"], []),
        (
            [own(7, "forbid", "c 195:0 rw")],
            "denied",
            ["c 195:1 r", "c 195:1 w"],
            [("forbid", ["c 195:0 rw", "c 195:1 rw"], "cgroup_devices")],
        ),
        ([own(7, "forbid", "c 195:0 rw")], "allowed", ["c 195:0 rw"], [("drop", 7)]),
        ([own(7, "forbid", "c 195:0 rwm")], "allowed", ["c 195:0 rw"], [("rewrite", 7, ["c 195:0 m"])]),
        (
            [own(7, "forbid", "c 195:0 rw", "c 195:1 r")],
            "allowed",
            ["c 195:0 rw"],
            [("rewrite", 7, ["c 195:1 r"])],
        ),
        ([own(7, "allow", "c 1:3 r")], "allowed", ["c 1:3 w"], [("rewrite", 7, ["c 1:3 rw"])]),
        ([own(7, "allow", "c 1:3 rw")], "allowed", ["c 1:3 w"], []),
        (
            [foreign(6, default=1), own(7, "allow", "c 1:3 r")],
            "allowed",
            ["c 195:0 r"],
            [("rewrite", 7, ["c 195:0 r", "c 1:3 r"])],
        ),
        ([], "exact", ["c 195:0 rw"], [("only", ["c 195:0 rw"], "cgroup_devices exact")]),
        ([own(7, "allow", "c 195:0 rw")], "exact", ["c 195:0 rw"], []),
        ([own(7, "allow", "c 195:0 rw")], "exact", ["c 195:0 r"], [("only", ["c 195:0 r"], "cgroup_devices exact")]),
    ],
)
def test_what_is_done_to_our_own_programs(planned, tmp_path, programs, state, rules, done):
    """Lost: other rules that stood in the same program; or a program, and with it what it keeps closed."""
    side = Side(tmp_path, *programs)
    words = planned(side, state, *rules)
    assert side.done == done
    assert len(words) == len(done)


def test_a_wider_rule_of_ours_is_refused_before_anything_is_done(tmp_path, monkeypatch):
    """Lost: half of what was asked, done; or any rule beside a wider one, where that only allows."""
    (tmp_path / "cgroup.procs").touch()
    side = Side(tmp_path, own(7, "forbid", "c 195:* rw"))
    monkeypatch.setattr(module, "V2", lambda _path: side)
    one = Changing(DeviceCgroup("jackie", None, side))
    with pytest.raises(Refused, match="denies the wider rule"):
        one.plan("allowed", [GPU])
    side.direct = side.effective = [own(7, "allow", "c 195:* r")]
    assert len(one.plan("allowed", [GPU])) == 1


def test_a_second_look_at_our_own_programs_leaves_foreign_ones(planned, tmp_path):
    """Lost: a program of somebody else's, which came between the plan and what was done."""
    side = Side(tmp_path, own(7, "forbid", "c 195:0 rw"))
    one = Changing(DeviceCgroup("jackie", None, side))
    planned(side, "denied", "c 195:0 rw")
    (step,) = one.plan("allowed", [GPU])
    side.direct = [foreign(6, "c 1:3 rw"), own(9, "forbid", "c 1:5 r"), own(7, "forbid", "c 195:0 rw")]
    step.act()
    assert side.done == [("drop", 7)]


@pytest.mark.parametrize("with_container", [True, False])
def test_lxc_is_asked_for_its_own_rules(planned, tmp_path, with_container):
    """Lost: a rule that LXC does not know of: the next one that it writes would take the device again."""
    side, container = Side(tmp_path, foreign(6, "c 1:3 rw")), Container()
    if with_container:
        assert planned(side, "allowed", "c 195:0 rw", container=container) == ["have LXC allow c 195:0 rw"]
        assert container.asked == [("allow", "c 195:0 rw")]
    else:
        with pytest.raises(Refused, match=r"program 6 .*only who loaded it can change that"):
            planned(side, "allowed", "c 195:0 rw")
    assert side.done == []


@pytest.mark.parametrize(
    ("programs", "asked"),
    [([], ["allow", "deny"]), ([own(7, "forbid", "c 1:3 rw")], ["allow", "deny"]), ([foreign(6, default=1)], ["deny"])],
)
def test_what_lxc_leaves_open_is_closed_beside_it(planned, tmp_path, programs, asked):
    """Lost: a GPU that stays open; or everything, to the first rule of a list that there was not."""
    side, container = Side(tmp_path, *programs), Container()
    assert planned(side, "denied", "c 195:0 rw", container=container) == ["have LXC deny c 195:0 rw"]
    assert [one[0] for one in container.asked] == asked
    assert container.asked[-1] == ("deny", "c 195:0 rw")
    assert "a" in container.asked[0] or len(asked) == 1
    before = ["c 1:3 rw"] if programs and programs[0].own else []
    assert side.done == [("forbid", sorted([*before, "c 195:0 rw"]), "cgroup_devices")]


def test_what_lxc_has_closed_needs_no_program_of_ours(planned, tmp_path):
    """Lost: the rule for its owner: our program would keep closed what LXC opens again."""
    side, container = Side(tmp_path, foreign(6, "c 195:0 rw")), Container()
    container.deny = lambda _rule: setattr(side, "effective", [foreign(8, "c 1:3 rw")])
    planned(side, "denied", "c 195:0 rw", container=container)
    assert side.done == []


def test_a_program_above_is_named_with_where_it_is(monkeypatch, tmp_path):
    """Lost: where a rule is to be allowed, which this cgroup cannot be given alone."""
    inner = tmp_path / "inner"
    inner.mkdir()
    for folder in (tmp_path, inner):
        (folder / "cgroup.procs").touch()
    ours, theirs, hidden = own(7, "forbid", "c 195:0 rw"), foreign(6, "c 1:3 rw"), foreign(5, "c 1:5 rw")
    side = Side(inner)
    side.effective = [hidden, theirs, ours]
    sides = {str(inner): side, str(tmp_path): Side(tmp_path, ours, theirs, foreign(4))}
    monkeypatch.setattr(module, "V2", sides.__getitem__)
    one = Changing(DeviceCgroup("jackie", None, side), Container())
    found = [(path, program.id) for path, program in one._programs()]
    assert found == [(str(tmp_path), 7), (str(tmp_path), 6), ("an outer cgroup", 5)]
    with pytest.raises(Refused, match=f"of {tmp_path} denies it: allow it there: cgroup: {tmp_path}"):
        one.plan("allowed", [GPU])
    side.effective = [theirs]
    with pytest.raises(Refused, match=f"program 6 .foreign. of {tmp_path} denies it, and only who loaded it"):
        one.plan("allowed", [GPU])


@pytest.mark.parametrize(
    ("programs", "state", "seen", "wrong"),
    [
        ([], "allowed", {"c 195:0 rw": "allowed"}, None),
        (
            [],
            "denied",
            {"c 195:0 rw": "allowed"},
            "is allowed, not denied, after all was done (no list and no program)",
        ),
        ([foreign(6, "c 1:3 r")], "denied", {"c 195:0 rw": "denied"}, None),
        ([foreign(6, "c 195:0 rw")], "exact", {"c 195:0 rw": "allowed", "all else": "denied"}, None),
        (
            [foreign(6, "c 195:0 rwm"), foreign(7, default=1)],
            "exact",
            {"c 195:0 rw": "allowed", "all else": "partly"},
            "is partly, not denied, after all was done (program 6 (foreign) denies it; program 7 (foreign) allows it)",
        ),
    ],
)
def test_what_was_done_is_proven(tmp_path, programs, state, seen, wrong):
    """Lost: a GPU that is called given, taken, or a container's only one, and is not."""
    one = Changing(DeviceCgroup("jackie", None, Side(tmp_path, *programs)))
    assert one.seen(state, [GPU]) == seen
    if wrong:
        with pytest.raises(HeteroError) as error:
            one.proven(state, [GPU])
        assert error.value.what == wrong
        assert error.value.thing in ("rule 'c 195:0 rw' of jackie", "rule 'all else' of jackie")
    else:
        assert one.proven(state, [GPU]) == one.wanted(state, [GPU]) == seen


class List:
    """A v1 list that does as it is told."""

    def __init__(self, *rules):
        self.rules, self.done = [parse(rule) for rule in rules], []

    def allow(self, rule):
        self.done.append(f"allow {rule}")

    def remove(self, rule):
        self.done.append(f"remove {rule}")

    def deny(self, rule):
        self.done.append(f"deny {rule}")
        self.rules = []


@pytest.mark.parametrize(
    ("there", "wanted", "done"),
    [
        (["a"], ["c 195:0 rw"], ["deny a *:* rwm", "allow c 195:0 rw"]),
        (["a"], ["a"], []),
        (["c 195:0 rw"], ["c 195:0 rw"], []),
        (["c 195:0 rwm", "c 1:3 r"], ["c 195:0 rw"], ["remove c 195:0 m", "remove c 1:3 r"]),
        (["c 195:0 r"], ["c 195:0 rw"], ["allow c 195:0 rw"]),
        (["c 195:* rw"], ["c 195:0 rw"], ["remove c 195:* rw"]),
        (["c 195:0 rw"], ["c 195:* r", "c *:0 w"], ["allow c 195:* r", "allow c *:0 w"]),
    ],
)
def test_how_a_list_is_narrowed(there, wanted, done):
    """Lost: one access of one device too many; or a device, for as long as the list is changed."""
    listed = List(*there)
    narrow(listed, [parse(rule) for rule in wanted])
    assert listed.done == done


def test_what_one_program_grants():
    """Lost: a program that has no say against a rule, which would be changed or refused; or one that has."""
    assert grants(foreign(6, "c 195:* rwm"), GPU) is True
    assert grants(foreign(6, "c 195:0 r"), GPU) is False
    assert grants(foreign(6, "c 195:1 rw"), GPU) is False


@pytest.mark.parametrize(
    ("one", "rule", "left"),
    [
        ("c 195:0 rw", "c 195:1 rw", ["c 195:0 rw"]),
        ("c 195:0 rw", "c 195:0 rw", []),
        ("c 195:0 rwm", "c 195:0 r", ["c 195:0 wm"]),
        ("c 195:0 rw", "c 195:* r", ["c 195:0 w"]),
        ("c 195:* rw", "c 195:0 r", None),
        ("c 195:* m", "c 195:0 rw", ["c 195:* m"]),
    ],
)
def test_what_is_left_of_a_denied_rule(one, rule, left):
    """Lost: what else was denied by it, or the device that was to be allowed."""
    if left is None:
        with pytest.raises(Refused, match="program 7 denies the wider rule"):
            without(parse(one), parse(rule), "program 7")
    else:
        assert without(parse(one), parse(rule), "program 7") == [parse(text) for text in left]


def test_what_is_done_to_lists_of_both_versions(planned, monkeypatch, tmp_path):
    """Lost: a device that one of the two versions opens, or that one of them keeps closed."""
    (tmp_path / "devices.list").write_text("c 195:0 rw\nc 1:* rwm\n")
    done, v1 = [], V1(str(tmp_path))
    for what in ("allow", "deny", "remove_within"):
        monkeypatch.setattr(V1, what, lambda _side, rule, what=what: done.append(f"{what} {rule}"))
    side = Side(tmp_path)
    assert len(planned(side, "denied", "c 195:0 rw", v1=v1)) == 1
    assert len(planned(side, "denied", "c 1:3 rw", v1=v1)) == 2
    assert planned(side, "denied", "c 195:1 rw", v1=v1) == []
    assert len(planned(side, "allowed", "c 195:0 rw", "c 195:1 rw", v1=v1)) == 1
    assert done == ["deny c 195:0 rw", "remove_within c 1:3 rw", "allow c 195:1 rw"]
    assert side.done == [("forbid", ["c 1:3 rw"], "cgroup_devices")]
    for no_way in (Side(tmp_path, limitable=False), None):
        with pytest.raises(Refused, match=r"the wider rule 'c 1:\* rwm' would stay"):
            planned(no_way, "denied", "c 1:3 rw", v1=v1)
    narrowed = []
    monkeypatch.setattr(module, "narrow", lambda list_, rules: narrowed.append((list_, rules)))
    assert len(planned(side, "exact", "c 195:0 rw", v1=v1)) == 1
    assert narrowed == [(v1, [GPU])]
