# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules cgroup_devices and cgroup_info on real cgroups of both versions, judged by what a process inside can open.

Tests devices/cgroup/program_owners.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_path
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program_owners import way
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import EVERYTHING, parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import Program
from ansible_collections.hetero.compute.plugins.modules import cgroup_devices, cgroup_info
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import Foreign, new_cgroup

COLLECTIONS = Path(cgroup_devices.__file__).parents[5]
NULL, GPU, OTHER = "c 1:3 rw", "c 195:0 rw", "c 195:1 rw"


def module(cgroup, state, *rules, check=False):
    path = cgroup if isinstance(cgroup, str) else (cgroup.v1 or cgroup.v2).path
    params = dict(cgroup=path, container=None, lxcpath="/var/lib/lxc", rules=list(rules), state=state)
    return cgroup_devices.work(params, check)


def info(cgroup, *rules):
    params = dict(cgroup=(cgroup.v1 or cgroup.v2).path, container=None, lxcpath="/var/lib/lxc", rules=list(rules))
    return cgroup_info.work(params, False)


def foreign(cgroup, *rules, default=0):
    return Foreign(cgroup.v2.path, device_programs.lxc([parse(rule) for rule in rules], default))


def opens(inside, *rules):
    return [inside.may(rule) for rule in rules]


@pytest.fixture(params=["v1", "v2"])
def cgroup(request, v1, v2, inside):
    """A cgroup without rules, of each version, with the process inside."""
    inside.enter({"v1": v1.v1, "v2": v2.v2}[request.param].path)
    return {"v1": v1, "v2": v2}[request.param]


def test_denied_and_allowed_again(cgroup, inside):
    """A device would be closed for ever, or its neighbours with it; a second run would change something."""
    assert module(cgroup, "allowed", GPU)["changed"] is False
    found = module(cgroup, "denied", GPU, OTHER)
    assert found["changed"] is True
    assert found["version"] == cgroup.version
    assert found["before"] == {GPU: "allowed", OTHER: "allowed"}
    assert found["after"] == {GPU: "denied", OTHER: "denied"}
    assert opens(inside, GPU, OTHER, NULL, "c 195:0 m") == [False, False, True, True]
    again = module(cgroup, "denied", GPU, OTHER)
    assert (again["changed"], again["steps"]) == (False, [])
    assert module(cgroup, "allowed", GPU)["changed"] is True
    assert opens(inside, GPU, OTHER, NULL) == [True, False, True]
    assert module(cgroup, "allowed", OTHER)["changed"] is True
    assert opens(inside, GPU, OTHER, NULL) == [True, True, True]
    if cgroup.v2:
        assert cgroup.v2.direct == []


def test_a_part_of_what_was_denied_is_allowed_again(cgroup, inside):
    """Reading would stay closed, or writing would be opened with it."""
    module(cgroup, "denied", "c 195:0 rwm")
    assert module(cgroup, "allowed", "c 195:0 r")["changed"] is True
    assert opens(inside, "c 195:0 r", "c 195:0 w", "c 195:0 m") == [True, False, False]
    assert module(cgroup, "denied", "c 195:0 rwm")["before"] == {"c 195:0 rwm": "partly"}
    assert opens(inside, "c 195:0 r", "c 195:0 w") == [False, False]


def test_exact(cgroup, inside):
    """A cgroup that is to have one device would keep others, or lose this one meanwhile."""
    found = module(cgroup, "exact", NULL, GPU)
    assert found["before"] == {NULL: "allowed", GPU: "allowed", "all else": "partly"}
    assert found["after"] == {NULL: "allowed", GPU: "allowed", "all else": "denied"}
    assert opens(inside, NULL, GPU, OTHER, "c 1:5 r", "c 1:3 m", "b 43:0 r") == [True, True, False, False, False, False]
    assert module(cgroup, "exact", NULL, GPU)["changed"] is False
    assert module(cgroup, "exact", GPU, NULL, "c 195:* r")["changed"] is True
    assert opens(inside, NULL, GPU, "c 195:1 r", "c 195:1 w") == [True, True, True, False]
    assert module(cgroup, "exact", OTHER)["changed"] is True
    assert opens(inside, NULL, GPU, OTHER) == [False, False, True]
    assert module(cgroup, "exact")["after"] == {"all else": "denied"}
    assert opens(inside, NULL, OTHER) == [False, False]


def test_check_mode_says_and_does_nothing(cgroup, inside):
    """A dry run would take a device from a running program."""
    for state, rule in (("denied", GPU), ("exact", NULL)):
        found = module(cgroup, state, rule, check=True)
        assert found["changed"] is True
        assert found["after"][rule] == ("denied" if state == "denied" else "allowed")
        assert len(found["steps"]) == 1
        assert found["diff"][0]["before"] != found["diff"][0]["after"]
    assert opens(inside, GPU, OTHER) == [True, True]
    assert cgroup.v2 is None or cgroup.v2.direct == []


def test_what_may_be_opened_is_told(cgroup, inside):
    """Who wants to know what a program may open would have to ask the module that changes it."""
    found = info(cgroup, GPU)
    assert (found["changed"], found["version"]) == (False, cgroup.version)
    assert found["now"] == {GPU: "allowed", "all else": "partly"}
    module(cgroup, "exact", NULL, "c 195:0 r")
    found = info(cgroup, NULL, GPU, OTHER)
    assert found["now"] == {NULL: "allowed", GPU: "partly", OTHER: "denied", "all else": "denied"}
    assert [all(side["allows"] for side in found["proof"][rule]) for rule in (NULL, GPU, OTHER)] == [True, False, False]
    assert info(cgroup, OTHER)["now"] == {OTHER: "denied", "all else": "partly"}
    assert opens(inside, NULL, "c 195:0 r", GPU, OTHER) == [True, True, False, False]
    with pytest.raises(BadInput, match="no device rule"):
        info(cgroup, "c 195:x rw")


def test_what_nobody_here_can_change_is_told_all_the_same(v2, inside):
    """In check mode, the module that changes it fails where it could not."""
    owner = foreign(v2, NULL)
    found = info(v2, NULL, GPU)
    assert found["now"] == {NULL: "allowed", GPU: "denied", "all else": "denied"}
    assert [(side["version"], side["allows"]) for side in found["proof"][GPU]] == [("v2", False)]
    assert [program.id for program in v2.v2.direct] == [owner.id]


@pytest.mark.parametrize("check", [False, True])
def test_what_a_foreign_program_denies_is_refused(v2, inside, check):
    """It would be reported as allowed, or somebody else's program would be swapped."""
    owner = foreign(v2, NULL)
    for state in ("allowed", "exact"):
        with pytest.raises(Refused, match=f"program {owner.id} .*only who loaded it.*bpftool prog show id {owner.id}"):
            module(v2, state, NULL, GPU, check=check)
    assert [program.id for program in v2.v2.direct] == [owner.id]
    assert opens(inside, NULL, GPU) == [True, False]


def test_what_a_foreign_program_allows_is_denied_beside_it(v2, inside):
    """As long as its owner says nothing else, a device would stay open."""
    owner = foreign(v2, NULL, "c 195:* rwm")
    found = module(v2, "denied", GPU)
    assert found["steps"] == [f"forbid {GPU} by a program of our own"]
    assert [side["allows"] for side in found["proof"][GPU]].count(False) == 1
    assert opens(inside, NULL, GPU, OTHER) == [True, False, True]
    module(v2, "exact", OTHER)
    assert opens(inside, NULL, GPU, OTHER) == [False, False, True]
    assert owner.id in [program.id for program in v2.v2.direct]


def test_nothing_is_changed_where_one_rule_cannot_be(v2, inside):
    """Half of what was asked would be done, and the run would fail."""
    foreign(v2, NULL, GPU)
    module(v2, "denied", GPU)
    with pytest.raises(Refused):
        module(v2, "allowed", GPU, OTHER)
    assert opens(inside, GPU, OTHER) == [False, False]


def test_a_program_of_ours_higher_up_is_named(stack, v2, inside):
    """The rule would be allowed in the wrong place, for more than was asked."""
    child = of_path(stack.enter_context(new_cgroup("v2", v2.v2.path)))
    module(v2, "denied", GPU)
    with pytest.raises(Refused, match=f"allow it there: cgroup: {v2.v2.path}"):
        module(child, "allowed", GPU)


@pytest.mark.parametrize("check", [False, True])
def test_a_wide_own_rule_is_not_split(v2, inside, check):
    """195:0 would be allowed and stay closed, or 195:* would be opened for it; or half of what was asked be done."""
    module(v2, "denied", "c 195:* rw", NULL)
    with pytest.raises(Refused, match=r"denies the wider rule 'c 195:\* rw': allow 'c 195:\* rw' itself"):
        module(v2, "allowed", NULL, GPU, check=check)
    assert opens(inside, OTHER, NULL) == [False, False]


def test_a_wider_rule_of_v1_is_refused_before_anything_is_written(v1, inside):
    """Trap: the kernel would accept it, and leave the device open."""
    module(v1, "exact", "c 195:* rw", NULL)
    with pytest.raises(Refused, match=r"wider rule 'c 195:\* rw' would stay"):
        module(v1, "denied", NULL, GPU)
    assert opens(inside, GPU, NULL) == [True, True]


def test_a_name_means_the_cgroup_of_both_versions(stack, v1, inside):
    """LXC and systemd use one name in both hierarchies; only half of what counts would be judged."""
    name = os.path.basename(v1.v1.path)
    point = mounts.mounts()["v2"][0].point
    twin = os.path.join(point, name)
    os.mkdir(twin)
    stack.callback(os.rmdir, twin)
    inside.enter(twin)
    foreign(of_path(twin), NULL)
    for path in (name, f"/{name}", twin, v1.v1.path):
        found = module(path, "denied", GPU)
        assert (found["version"], found["changed"], found["before"]) == ("hybrid", False, {GPU: "denied"})
    assert not inside.may(GPU)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/sys/fs/cgroup/lxc.payload.ml-8", "lxc-cgroup -n ml-8 devices.allow 'c 195:0 rw'"),
        ("/x/lxc.payload.ml-8/system.slice/a.service", "systemctl set-property --runtime 'a.service' DeviceAllow="),
        ("/x/system.slice/a.service", "'a.service' DeviceAllow='/dev/char/195:0 rw'"),
        ("/x/system.slice/a.service/inner", "'a.service' DeviceAllow="),
        ("/x/system.slice/docker-0123456789abcdef0123.scope", "container 0123456789ab anew with the device"),
        ("/x/machine.slice/machine-qemu\\x2d3\\x2dml.scope/libvirt", "virsh attach-device"),
        ("/x/whoever", "bpftool prog show id 7"),
    ],
)
def test_the_owners_way_is_named(path, words):
    """'Operation not permitted' tells nobody whom to ask."""
    assert words in way(path, Program(7, "", []), parse(GPU))


def test_a_typing_error_changes_nothing(v2, inside):
    """The rules before it would be changed."""
    with pytest.raises(BadInput, match="rule 'c 195:x rw'"):
        module(v2, "denied", GPU, "c 195:x rw")
    with pytest.raises(BadInput, match="is no device cgroup"):
        module("/etc", "denied", GPU)
    assert inside.may(GPU)


def test_everything(cgroup, inside):
    """The way back from any mistake: allow a."""
    module(cgroup, "exact", NULL)
    assert module(cgroup, "allowed", "a")["after"] == {str(EVERYTHING): "allowed"}
    assert opens(inside, NULL, GPU, "b 43:0 rw") == [True, True, True]


def test_two_changes_at_once_lose_nothing(v2, inside):
    """Two plays deny a device each: one of the two would stay open, and both would report success."""
    rules = [f"c 195:{minor} rw" for minor in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda rule: module(v2, "denied", rule), rules))
    assert all(one["changed"] for one in found)
    assert not any(opens(inside, *rules))
    assert len(v2.v2.direct) == 1


def test_as_users_run_it(v2, inside, tmp_path):
    """Packed by Ansible and run on the system's Python, it would miss a file, or its result would be no JSON."""
    arguments = {"cgroup": v2.v2.path, "rules": [GPU], "state": "denied"}
    argv = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-i", "localhost,", "-c", "local", "--diff"]
    argv += ["-e", "ansible_python_interpreter=/usr/bin/python3", "-m", "hetero.compute.cgroup_devices"]
    argv += ["-a", json.dumps(arguments)]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        **shared(),
    }
    for changed in (True, False):
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=1200, check=False)
        _head, found, text = done.stdout.partition(" => ")
        assert found, done.stdout + done.stderr
        result = json.JSONDecoder().raw_decode(text)[0]
        assert (result["changed"], result["after"]) == (changed, {GPU: "denied"})
        assert (f'"{GPU}": "denied"' in _head) == changed
    assert not inside.may(GPU)
