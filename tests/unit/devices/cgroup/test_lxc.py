# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules cgroup_devices and cgroup_info on LXC containers of hosts with cgroup v2 alone and with both: LXC's traps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.conftest import COLLECTIONS

HERE = Path(__file__).parent
NULL, GPU, OTHER = "c 1:3 rw", "c 195:0 rw", "c 195:1 rw"
#: What Debian's common.conf allows, as far as it matters here.
RULES = ("c *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 136:* rwm")


class Asked:
    """The session of a container, in the mount namespace of its host."""

    def __init__(self, lxcpath, name, v2):
        argv = ["unshare", "-m", sys.executable, str(HERE / "on_v2.py")] if v2 else []
        argv += [sys.executable, str(HERE / "lxc_session.py"), str(lxcpath), name]
        environment = {**os.environ, "PYTHONPATH": str(COLLECTIONS)}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __getattr__(self, verb):
        def ask(*words, **named):
            self.process.stdin.write(json.dumps([verb, words, named]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            assert answer, f"the session ended on {verb}"
            return json.loads(answer)

        return ask

    def __call__(self, state, *rules, **more):
        return self.module(container="gpu-user", rules=rules, state=state, **more)


@pytest.fixture
def container(tmp_path):
    """Starts a container with these rules on a host with cgroup v2 alone (or both); its session."""
    sessions = []

    def start(rules=(), v2=True):
        root = tmp_path / "gpu-user" / "rootfs"
        for folder in ("bin", "sbin", "dev", "proc", "sys", "tmp", "etc"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy2("/bin/busybox", root / "bin")
        for name in ("sh", "sleep"):
            (root / "bin" / name).symlink_to("busybox")
        init = root / "sbin" / "init"
        init.write_text("#!/bin/sh\nexec sleep 1000\n")
        init.chmod(0o755)
        key = "lxc.cgroup2" if v2 else "lxc.cgroup"
        lines = [f"lxc.rootfs.path = dir:{root}", "lxc.net.0.type = empty", "lxc.autodev = 1"]
        lines += ["lxc.mount.auto = proc:mixed sys:mixed", "lxc.apparmor.profile = unconfined"]
        lines += [f"{key}.devices.deny = a"] if rules else []
        lines += [f"{key}.devices.allow = {rule}" for rule in rules]
        (tmp_path / "gpu-user" / "config").write_text("\n".join(lines) + "\n")
        session = Asked(tmp_path, "gpu-user", v2)
        sessions.append(session)
        assert session.start() == ("v2" if v2 else "hybrid")
        return session

    yield start
    for session in sessions:
        if session.process.poll() is None:
            session.stop()
            session.process.stdin.close()
            session.process.wait(60)
        session.process.stdout.close()


def test_a_gpu_is_given_proven_and_taken_back(container):
    """A GPU would stay open to a container after its detach, or closed after its attach."""
    ask = container(RULES)
    assert [ask.opens(GPU), ask.opens(NULL)] == [False, True]
    found = ask("allowed", GPU, check=True)
    assert (found["changed"], found["before"], found["after"]) == (True, {GPU: "denied"}, {GPU: "allowed"})
    assert not ask.opens(GPU)
    found = ask("allowed", GPU)
    assert (found["changed"], found["steps"]) == (True, [f"have LXC allow {GPU}"])
    assert [side["allows"] for side in found["proof"][GPU]] == [True]
    assert [ask.opens(text) for text in (GPU, OTHER, NULL)] == [True, False, True]
    assert not ask("allowed", GPU)["changed"]
    found = ask("denied", GPU)
    assert (found["changed"], found["before"], found["after"]) == (True, {GPU: "allowed"}, {GPU: "denied"})
    assert [ask.opens(text) for text in (GPU, OTHER, NULL)] == [False, False, True]
    assert not ask("denied", GPU)["changed"]
    assert [own for _name, own in ask.direct()] == [False]


def test_what_a_container_may_open_is_told(container):
    """Who looks after a container would have to ask inside of it."""
    ask = container(RULES)
    found = ask.info(NULL, GPU)
    assert (found["changed"], found["version"]) == (False, "v2")
    assert found["now"] == {NULL: "allowed", GPU: "denied", "all else": "partly"}
    assert [ask.opens(NULL), ask.opens(GPU)] == [True, False]
    ask.stop()
    assert "container gpu-user: does not run, so it has no cgroup" in ask.info(NULL)["failed"]


def test_a_deny_that_equals_no_rule_of_lxc_is_closed_all_the_same(container):
    """Trap: allow '195:0 rw', deny '195:0 rwm': LXC says 0 and leaves it open."""
    ask = container(RULES)
    ask("allowed", GPU)
    assert ask.lxc("devices.deny", "c 195:0 rwm") == 0
    assert ask.opens(GPU)
    found = ask("denied", "c 195:0 rwm")
    assert (found["before"], found["after"]) == ({"c 195:0 rwm": "allowed"}, {"c 195:0 rwm": "denied"})
    assert [ask.opens(GPU), ask.opens(NULL)] == [False, True]
    assert sorted(own for _name, own in ask.direct()) == [False, True]
    assert not ask("denied", "c 195:0 rwm")["changed"]
    # LXC's own program is where it was: its next call works, and what was closed is opened again
    assert ask.lxc("devices.allow", OTHER) == 0
    assert [ask.opens(OTHER), ask.opens(GPU)] == [True, False]
    assert ask("allowed", GPU)["changed"]
    assert ask.may(GPU, "c 195:0 m", NULL) == [True, False, True]
    assert ask("allowed", "c 195:0 m")["changed"]
    assert [ask.opens(GPU), ask.opens(NULL)] == [True, True]
    assert [own for _name, own in ask.direct()] == [False]


def test_a_container_without_rules_is_not_flipped_by_an_allow(container):
    """Trap, the worst: its first allowed GPU costs a container /dev/null and everything else."""
    ask = container()
    assert ask.everything()
    found = ask("allowed", GPU)
    assert (found["changed"], found["steps"]) == (False, [])
    assert ask.direct() == []
    assert [ask.opens(GPU), ask.opens(NULL)] == [True, True]
    assert ask.lxc("devices.allow", GPU) == 0  # what would have happened
    assert ask.may(GPU, NULL) == [True, False]
    ask.lxc("devices.allow", "a")
    assert ask.may(GPU, NULL) == [True, True]


def test_a_container_without_rules_is_not_flipped_by_a_deny(container):
    """Trap: a deny does the same: LXC makes a list that allows nothing."""
    ask = container()
    found = ask("denied", "c 195:0 rwm")
    assert (found["changed"], found["after"]) == (True, {"c 195:0 rwm": "denied"})
    assert [ask.opens(text) for text in (OTHER, NULL)] == [True, True]
    assert ask.may(GPU) == [False]
    assert not ask("denied", "c 195:0 rwm")["changed"]
    assert ask("allowed", "c 195:0 rwm")["changed"]
    assert [ask.opens(text) for text in (GPU, OTHER, NULL)] == [True, True, True]
    ask.lxc("devices.allow", "a")
    ask.stop()
    assert ask.start() == "v2"
    assert ask.lxc("devices.deny", GPU) == 0  # what would have happened
    assert ask.may(GPU, NULL) == [False, False]


def test_a_program_swapped_behind_lxc_is_told(unhardened, container):
    """Trap: after that, LXC's calls fail or shut everything. The module says so and does not report success."""
    ask = container(RULES)
    ask.foreign()
    assert ask.may(NULL, GPU) == [True, False]
    found = ask("allowed", GPU)
    assert re.search(r"is denied, not allowed, after all was done \(program \d+ \(swapped\) denies it", found["failed"])
    assert not ask.opens(GPU)


def test_exact_rules_of_a_container(container):
    """A container that is to have one GPU and its terminals would keep the devices it had."""
    ask = container(RULES)
    exact = ["c 1:3 rwm", "c 195:0 rw"]
    found = ask("exact", *exact)
    assert found["before"] == {"c 1:3 rwm": "allowed", "c 195:0 rw": "denied", "all else": "partly"}
    assert found["after"] == {"c 1:3 rwm": "allowed", "c 195:0 rw": "allowed", "all else": "denied"}
    assert ask.may(GPU, NULL, "c 1:5 r", "c 7:7 m") == [True, True, False, False]
    assert not ask("exact", *exact)["changed"]
    assert ask("exact", *exact, OTHER)["changed"]
    assert ask.may(GPU, OTHER, NULL, "c 1:5 r") == [True, True, True, False]
    assert ask("exact", "c 1:3 rwm")["changed"]
    assert ask.may(GPU, OTHER, NULL) == [False, False, True]


def test_with_both_versions_the_list_of_v1_is_changed(container):
    """On a hybrid host LXC's rules are v1's; v2 has none and must get none that shuts everything."""
    ask = container(RULES, v2=False)
    assert not ask.opens(GPU)
    assert ask("allowed", GPU)["version"] == "hybrid"
    assert [ask.opens(text) for text in (GPU, OTHER, NULL)] == [True, False, True]
    assert not ask("allowed", GPU)["changed"]
    assert ask("denied", GPU)["changed"]
    assert [ask.opens(GPU), ask.opens(NULL), ask.direct()] == [False, True, []]
    # v1 gives the m by the wider rule 'c *:* m'
    ask("allowed", GPU)
    assert ask("denied", "c 195:0 rwm")["after"] == {"c 195:0 rwm": "denied"}
    assert ask.may(GPU, "c 195:0 m", "c 195:1 m", NULL) == [False, False, True, True]
    assert [own for _name, own in ask.direct()] == [True]
    assert ask("allowed", "c 195:0 rwm")["changed"]
    assert [ask.opens(GPU), ask.opens(NULL), ask.direct()] == [True, True, []]


def test_a_container_that_does_not_run_is_refused(container):
    """A change would be reported that the next start forgets."""
    ask = container(RULES)
    ask.stop()
    assert "container gpu-user: does not run" in ask("allowed", GPU)["failed"]
