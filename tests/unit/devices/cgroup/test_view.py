# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lists and programs of one moment answer together, without a kernel; with it: test_v1.py, test_v2.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import view as view_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    EXIT,
    JMP,
    Instruction,
    load,
    mov,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import compile_rules
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import EVERYTHING, parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import Program
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.view import Side, View
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs

ALL = [mov(0, 1), EXIT]


def rules(*texts):
    return [parse(text) for text in texts]


def foreign(*texts, default=0):
    return Program(7, "foreign", device_programs.lxc(rules(*texts), default))


def own(kind, *texts):
    return Program(8, "hetero", compile_rules(kind, rules(*texts), b"12345678"))


def on_v2(*programs):
    return View("jackie", None, [], list(programs))


def on_v1(*texts, programs=()):
    return View("jackie", V1("/cgroup/jackie"), rules(*texts), list(programs))


@pytest.mark.parametrize(
    ("view", "verdict"),
    [
        (on_v2(), "allowed"),
        (on_v2(foreign("c 195:0 rw")), "allowed"),
        (on_v2(foreign("c 195:0 r")), "partly"),
        (on_v2(foreign("c 195:0 r"), foreign("c 195:0 w")), "denied"),
        (on_v2(foreign("c 195:0 m")), "denied"),
        (on_v2(foreign("c 195:0 rw"), foreign("c 195:1 rw")), "denied"),
        (on_v1("c 195:0 rw"), "allowed"),
        (on_v1("c 195:0 r", "c 195:* w"), "partly"),
        (on_v1("c 195:1 rw"), "denied"),
        (on_v1("c 195:0 rw", programs=[foreign("c 195:0 rw")]), "allowed"),
        (on_v1("c 195:0 rw", programs=[foreign("c 195:1 rw")]), "denied"),
        (on_v1("c 195:1 rw", programs=[foreign("c 195:0 rw")]), "denied"),
    ],
)
def test_how_much_is_allowed(view, verdict):
    """Lost: a GPU that is called given or taken and is neither."""
    assert view.verdict(parse("c 195:0 rw")) == verdict
    assert view.may("c", 195, 0, "rw") is (verdict == "allowed")


def test_two_rules_that_allow_a_half_each_are_no_whole():
    """Lost: a device that is called open, and which no program can open for reading and writing."""
    assert on_v2(foreign("c 195:0 r", "c 195:* w")).verdict(parse("c 195:0 rw")) == "partly"


def test_each_list_and_each_program_is_named_with_what_it_says():
    """Lost: whom to ask for a device that is denied."""
    view = on_v1("c 195:0 rw", programs=[foreign("c 195:1 rw"), own("allow", "c 195:0 rw")])
    assert view.sides(parse("c 195:0 rw")) == [
        Side("v1", "/cgroup/jackie", True),
        Side("v2", "program 7 (foreign)", False),
        Side("v2", "program 8 (hetero)", True),
    ]
    assert on_v2(foreign("c 195:0 r")).sides(parse("c 195:0 rw")) == [Side("v2", "program 7 (foreign)", False)]


@pytest.mark.parametrize(
    ("view", "is_open"),
    [
        (on_v2(), True),
        (on_v2(foreign("a")), True),
        (on_v2(foreign("c 195:0 rw", default=1)), False),
        (on_v2(foreign("b 8:0 m", default=1)), False),
        (on_v2(foreign(default=1), foreign("c 1:3 rwm")), False),
        (on_v1("a"), True),
        (on_v1("c *:* rwm", "b *:* rwm"), False),
        (on_v1("a", programs=[foreign("c 1:3 rwm")]), False),
        (on_v1("a", programs=[foreign(default=1)]), True),
    ],
)
def test_which_cgroups_are_open_to_everything(view, is_open):
    """Lost: a container that nothing isolates, and that is called proven closed."""
    assert view.allows_everything() is is_open


@pytest.mark.parametrize(
    ("view", "named", "beyond"),
    [
        (on_v2(), ["c 195:0 rw"], True),
        (on_v2(), ["a"], False),
        (on_v1("a"), ["c 195:0 rw"], True),
        (on_v1("c 195:0 rw"), ["c 195:0 rw"], False),
        (on_v1("c 195:0 rw"), ["c 195:0 r"], True),
        (on_v1("c 195:0 rw"), ["c 195:* rwm"], False),
        (on_v1("c 195:0 m"), ["c 195:0 rw"], True),
        (on_v1("c 195:0 r", "c 1:3 w"), ["c 195:0 r"], True),
        (on_v1("b 8:1 w"), [], True),
        (on_v1(), [], False),
        (on_v2(foreign("c 195:0 rw")), ["c 195:0 rw"], False),
        (on_v2(foreign("c 195:0 rw")), ["c 195:0 r", "c 195:0 w"], True),
        (on_v2(foreign("c 195:0 rw", "c 195:7 m")), ["c 195:0 rw"], True),
        (on_v2(foreign(default=1), own("allow", "c 195:0 rw")), ["c 195:0 rwm"], False),
        (on_v2(foreign(default=1), own("allow", "c 195:0 rw", "c 1:3 r")), ["c 195:0 rw"], True),
        (on_v2(own("forbid", "c 195:0 rw")), ["c 195:0 rw"], True),
        (on_v2(own("allow", "c 195:0 rw", "c 1:3 r"), foreign("c 195:0 rw")), ["c 195:0 rw"], False),
    ],
)
def test_whether_more_is_allowed_than_was_named(view, named, beyond):
    """Lost: a second GPU that a container keeps, which is to have one and nothing else."""
    assert view.beyond(rules(*named)) is beyond


def test_an_own_program_that_allows_less_ends_the_search(monkeypatch):
    """Lost: the minutes that a foreign program with very many numbers takes, each time that GPUs are given."""
    monkeypatch.setattr(View, "devices", lambda *_rules: pytest.fail("each device was asked for"))
    view = on_v2(foreign(default=1), own("allow", "c 195:0 rw"))
    assert view.beyond(rules("c 195:* rw", "c 1:3 rw")) is False
    assert on_v1("a").beyond(rules("c 195:0 rw")) is True


def test_a_device_stands_for_itself():
    """Lost: the question about another one; of "a" with its numbers, about the disk."""
    assert on_v2().devices(parse("c 195:7 rw")) == [("c", 195, 7)]
    assert on_v2().devices(parse("b 8:0 rw")) == [("b", 8, 0)]


def test_which_devices_stand_for_a_wildcard():
    """Lost: one GPU of many that a wildcard was to open or close."""
    lower, upper = 0, 1048575
    assert on_v2().devices(parse("c 195:* rw")) == [("c", 195, lower), ("c", 195, upper)]
    assert on_v2().devices(parse("c *:7 rw")) == [("c", 0, 7), ("c", 4095, 7)]
    assert len(on_v2().devices(EVERYTHING)) == 8
    compared = on_v2(foreign("c 195:77 rw")).devices(parse("c 195:* rw"))
    assert {("c", 195, number) for number in (lower, 77, upper)} <= set(compared)
    assert {device[:2] for device in compared} == {("c", 195)}
    listed = on_v1("c 195:3 rw", "b *:5 r")
    assert listed.devices(parse("c 195:* rw"), rules("c 1:9 r")) == [
        ("c", 195, number) for number in (lower, 3, 5, 9, upper)
    ]
    assert [device[1] for device in listed.devices(parse("c *:7 rw"))] == [0, 195, 4095]


def test_numbers_beyond_what_a_device_can_have_are_no_devices():
    """Lost: an answer that hangs on a device that cannot be."""
    above = Instruction(JMP | 0x20, 4, 0, 0, 0x100000)
    at = Instruction(JMP | 0x20, 4, 0, 0, 0)
    program = Program(7, "", [load(4, 1, 4), load(5, 1, 8), above, at, *ALL])
    found = on_v2(program).devices(parse("c *:* r"))
    assert {device[1] for device in found} == {0, 1, 4095}
    assert {device[2] for device in found} == {0, 1, 1048575}
    only_majors = on_v2(program).devices(parse("c *:3 r"))
    assert only_majors == [("c", 0, 3), ("c", 1, 3), ("c", 4095, 3)]


def test_programs_with_too_many_numbers_are_given_up(monkeypatch):
    """Lost: hours, to a program that tells each device from each other."""
    assert view_module.MOST_DEVICES == 20000
    view, rule = on_v2(foreign("c 195:77 rw")), parse("c 195:* rw")
    found = view.devices(rule)
    monkeypatch.setattr(view_module, "MOST_DEVICES", len(found))
    assert view.devices(rule) == found
    monkeypatch.setattr(view_module, "MOST_DEVICES", len(found) - 1)
    with pytest.raises(HeteroError, match=r"jackie: cannot tell: more than \d+ devices are told apart"):
        view.devices(rule)


def test_the_number_that_nobody_has_saves_the_others():
    """Lost: a second for each foreign allow list, whenever somebody asks how closed a container is."""
    asked = []

    def may(*question, compared=None):
        asked.append(question)
        return False

    program = SimpleNamespace(may=may)
    assert on_v2(program).allows_everything() is False
    assert asked == [("c", 4095, 1048575, "rwm")]
