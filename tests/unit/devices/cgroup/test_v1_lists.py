# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of cgroup v1 in folders that take whatever is written, and change nothing; real ones are in test_v1.py."""

from __future__ import annotations

import errno
import os
import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import v1
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import EVERYTHING, parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1, overlap

GPU = parse("c 195:0 rw")


@pytest.fixture
def listed(tmp_path):
    """A cgroup with such a list, in a folder that keeps what is written first."""

    def build(*rules):
        for file in ("devices.allow", "devices.deny"):
            (tmp_path / file).write_text("")
        (tmp_path / "devices.list").write_text("".join(f"{rule}\n" for rule in rules) + "\n")
        return V1(str(tmp_path))

    return build


def written(cgroup, file):
    with open(os.path.join(cgroup.path, file), encoding="ascii") as opened:
        return opened.read()


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("c 195:0 rw", "c 195:0 wm", True),
        ("c 195:0 rw", "c 195:0 m", False),
        ("c 195:0 rw", "c 195:1 rw", False),
        ("c 195:0 rw", "c 196:0 rw", False),
        ("c 195:* rw", "c 195:7 r", True),
        ("c 195:7 r", "c *:7 r", True),
        ("c 195:* r", "c *:7 r", True),
        ("c 195:* r", "c 196:* r", False),
        ("c 195:0 rw", "b 195:0 rw", False),
        ("a", "b 195:0 m", True),
    ],
)
def test_which_rules_have_something_in_common(one, other, common):
    """Lost: a device that stays open, or a rule that is taken away with another one."""
    assert overlap(parse(one), parse(other)) is common
    assert overlap(parse(other), parse(one)) is common


@pytest.mark.parametrize(
    ("rules", "wider"),
    [
        (["c 195:0 rwm", "c 1:3 rwm"], []),
        (["c 195:* rwm", "c 195:0 r", "c *:0 w", "c 1:* rw"], ["c 195:* rwm", "c *:0 w"]),
        (["c 195:* m"], []),
        (["a *:* rwm"], []),
    ],
)
def test_the_wider_rules_are_named_each(listed, rules, wider):
    """Lost: which rules must be denied as well, before a device is closed."""
    cgroup = listed(*rules)
    assert cgroup.wider(GPU) == [parse(rule) for rule in wider]
    if wider:
        with pytest.raises(Refused, match=re.escape(f"the wider rule '{'; '.join(wider)}' would stay")):
            cgroup.deniable(GPU)
    else:
        cgroup.deniable(GPU)


@pytest.mark.parametrize(
    ("left", "taken", "there"),
    [
        ("c 195:0 rw", "c 195:0 r", True),
        ("c 195:0 w", "c 195:0 r", False),
        ("c 195:* r", "c 195:0 r", False),
        ("c 196:0 r", "c 195:0 r", False),
    ],
)
def test_what_is_there_again_after_it_was_taken_out_is_said(listed, left, taken, there):
    """Lost: a device that somebody else opens again while it is closed, and that is called closed."""
    cgroup = listed(left)
    if there:
        with pytest.raises(HeteroError, match="was taken out, and is there again"):
            cgroup.remove(parse(taken))
    else:
        cgroup.remove(parse(taken))
    assert written(cgroup, "devices.deny") == taken


def test_of_a_list_with_exceptions_the_first_device_of_each_kind_is_asked(listed, monkeypatch):
    """Lost: whether a rule took effect that no file shows; of a wildcard, by a device that the rule names."""
    asked, says = [], {"r": False, "w": False}

    def inside(path, devices):
        asked.append((path, *devices))
        return [says[access] for _kind, _major, _minor, access in devices]

    monkeypatch.setattr(v1, "inside", inside)
    cgroup = listed(EVERYTHING)
    cgroup.deny(parse("c 195:* rw"))
    cgroup.deny(parse("b *:3 r"))
    gpus = [("c", 195, 0, "r"), ("c", 195, 0, "w")]
    assert asked == [(cgroup.path, *gpus), (cgroup.path, ("b", 0, 3, "r"))]
    says["w"] = True
    with pytest.raises(HeteroError, match="was accepted, and is still allowed"):
        cgroup.deny(GPU)
    with pytest.raises(Refused, match="was accepted and changed nothing"):
        cgroup.allow(GPU)
    with pytest.raises(HeteroError, match="was accepted, and is still allowed"):
        listed(EVERYTHING).deny(EVERYTHING)
    assert written(cgroup, "devices.deny") == "a"
    listed(EVERYTHING).allow(EVERYTHING)
    assert written(cgroup, "devices.allow") == "a"


@pytest.mark.parametrize(
    ("number", "file", "rule", "words"),
    [
        (errno.EINVAL, "devices.deny", EVERYTHING, "cannot be allowed or denied while there are cgroups below it"),
        (errno.EINVAL, "devices.allow", GPU, "the kernel takes it for no rule"),
        (errno.EPERM, "devices.allow", parse("c 195:1 rw"), "its parent {} does not have it"),
        (errno.EPERM, "devices.allow", GPU, "devices.allow says: Operation not permitted"),
        (errno.EPERM, "devices.deny", parse("c 195:1 rw"), "devices.deny says: Operation not permitted"),
        (errno.ENOENT, "devices.allow", GPU, "there is no such cgroup"),
    ],
)
def test_why_the_kernel_refuses(listed, number, file, rule, words):
    """Lost: what to do about it; "Operation not permitted" is said to root as well."""
    parent = listed("c 195:0 rw", "c 1:3 rwm")
    refused = V1(os.path.join(parent.path, "c1"))._explained(OSError(number, os.strerror(number)), file, rule)
    assert isinstance(refused, Refused)
    assert words.format(parent.path) in refused.what
    assert str(rule) in refused.thing


def test_the_topmost_cgroup_has_no_parent_to_blame(tmp_path):
    """Lost: the search for a rule in a folder that has no list."""
    top = V1(str(tmp_path / "top"))
    refused = top._explained(OSError(errno.EPERM, "Operation not permitted"), "devices.allow", GPU)
    assert refused.what == "devices.allow says: Operation not permitted"


def test_a_hundred_cgroups_deep_are_looked_at(tmp_path):
    """Lost: a service deep in a container, or the host's time to who makes more."""
    deep = os.path.join(tmp_path, *["d"] * 103)
    os.makedirs(deep)
    assert len(V1(str(tmp_path)).inner) == 101
