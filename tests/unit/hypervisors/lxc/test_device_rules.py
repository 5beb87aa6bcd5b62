# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers with GPUs that are about to run. If these fail, one opens a GPU that was taken back, or lacks its own."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import rules
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import device_rules

CONTAINER = SimpleNamespace(name="ml-8", thing="container ml-8", lock_name="ml-8", wait_running=lambda seconds: None)
CONTAINER.init_pid = 41
MINE, BEFORE = "c 195:0 rw", "c 195:1 rw"


class Played:
    """A container's cgroup, and what is done to it and to its device nodes, in order."""

    def __init__(self, allowed, everything, v1):
        self.did, self._allowed, self._everything = [], allowed, everything
        known = [rules.parse(rule) for rule in allowed]
        side = SimpleNamespace(may=lambda *rule: rule in known, allow=lambda rule: self.did.append(("v1", str(rule))))
        self.v1 = side if v1 else None

    def allows_everything(self):
        return self._everything

    def verdict(self, rule):
        return "allowed" if str(rule) in self._allowed else "denied"

    def changing(self, cgroup, container=None):
        assert cgroup is self

        def plan(state, wanted):
            by = "LXC" if container else "us"
            return [SimpleNamespace(act=lambda rule=rule: self.did.append((state, str(rule), by))) for rule in wanted]

        return SimpleNamespace(alone=lambda deadline: nullcontext(self.did.append("alone")), plan=plan)

    def made(self, _container, *nodes, base, pid):
        assert base == "/run/private"
        self.did.append(("made", [node.path for node in nodes], pid))

    def removed(self, _container, *paths, pid):
        self.did.append(("removed", list(paths), pid))


@pytest.fixture
def play(monkeypatch):
    """A function that plays a container of which this is written, whose cgroup allows these rules; returns Played."""

    def make(written, allowed=(), everything=False, v1=False, below=()):
        played = Played(allowed, everything, v1)
        monkeypatch.setattr(device_rules.identity, "file_of", lambda container: "file")
        monkeypatch.setattr(device_rules.persistence, "read_file", lambda path: written)
        monkeypatch.setattr(device_rules.persistence, "read", lambda container: written)
        monkeypatch.setattr(device_rules.private_nodes, "numbers_below", lambda container, folder: list(below))
        monkeypatch.setattr(device_rules.device_nodes, "remove", played.removed)
        monkeypatch.setattr(device_rules.device_nodes, "make", played.made)
        monkeypatch.setattr(device_rules.devices, "of_container", lambda pid, name: played)
        monkeypatch.setattr(device_rules, "Changing", played.changing)
        monkeypatch.setattr(device_rules, "_later", lambda container: played.did.append("later"))
        monkeypatch.setattr(device_rules, "lock", lambda *words: nullcontext())
        return played

    return make


@pytest.fixture
def settled(play):
    """A function that settles such a container; what was done."""

    def settle(*given, **more):
        played = play(*given, **more)
        device_rules.settle(CONTAINER, 77, SimpleNamespace(private="/run/private"))
        return played.did

    return settle


def written(*paths):
    return SimpleNamespace(nodes=[SimpleNamespace(path=path) for path in paths], rules=[MINE], before=[BEFORE])


def test_what_was_taken_back_is_closed_before_the_container_runs(settled):
    """Lost: another tenant's GPU, to a container that reboots itself with the configuration that LXC read long ago."""
    did = settled(written("/dev/nvidia0"), allowed=[MINE], below=["/dev/nvidia0", "/dev/nvidia1"])
    assert did[:2] == [("removed", ["/dev/nvidia1"], 77), ("made", ["/dev/nvidia0"], 77)]
    assert did[2:] == ["alone", ("denied", BEFORE, "us")]


def test_what_was_given_since_is_opened(settled):
    """Lost: a GPU that a container was given, after it rebooted itself."""
    one, closed = written("/dev/nvidia0"), ["alone", ("denied", BEFORE, "us")]
    assert settled(one, v1=True)[2:] == [*closed, ("v1", MINE), "later"], "in version 1 anybody may allow"
    assert settled(one, allowed=[MINE], v1=True)[2:] == closed
    assert settled(one)[2:] == [*closed, "later"], "in version 2 its monitor does, once it answers"


def test_a_container_without_devices_or_without_bounds_is_left_alone(settled):
    """Lost: the start of each container that was given no device; rules of one that may open everything."""
    assert settled(None) == []
    did = settled(written("/dev/nvidia0"), everything=True)
    assert [word for word, *_more in did] == ["removed", "made"]


def test_its_monitor_opens_what_is_written_once_it_answers(play, monkeypatch):
    """Lost: a GPU of each container on a host with cgroups of version 2, after its reboot from inside."""
    played = play(written("/dev/nvidia0"))
    device_rules.open_again(CONTAINER)
    assert played.did == ["alone", ("allowed", MINE, "LXC")]
    played = play(None)
    device_rules.open_again(CONTAINER)
    assert played.did == [], "what was taken back meanwhile is not opened"
    played = play(written("/dev/nvidia0"))
    monkeypatch.setattr(CONTAINER, "init_pid", None)
    device_rules.open_again(CONTAINER)
    assert played.did == [], "it has ended again"
