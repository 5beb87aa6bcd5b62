# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reconcile closes in a container that was not given it, and what it leaves. How it is closed is in
test_wide_rules.py, real containers are in tests/unit/hypervisors/lxc_gpus.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    DETACHING,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.nodes import DeviceNode
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.persistence import Persisted
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    gpu_reconciliation,
    open_rights,
    restoration,
)
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import SHARED, Running, gpu, standing_in

ONE, TWO, THREE = gpu(1), gpu(2), gpu(3)
NODE = ONE.nodes[0]


class Asked:
    """A device cgroup: what it allows by number; `wild` allows every GPU, `all` every device."""

    def __init__(self, allowed=(), wild=False, everything=False):
        self.allowed, self.wild, self.everything = set(allowed), wild, everything
        self.v1 = None

    def look(self):
        return self

    def may(self, kind, major, minor, access):
        assert (kind, access) in (("c", "r"), ("c", "w"), ("c", "rw"))
        return self.everything or (self.wild and major == 195) or (kind, major, minor) in self.allowed


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [ONE, TWO, THREE]) as made:
        monkeypatch.setattr(gpu_reconciliation, "majors", lambda paths: {"snd": 238, "nvidia-uvm": 241})
        yield made


def kinds(look):
    return [(one.kind, one.container, one.address) for one in look.findings]


def closed(host, monkeypatch, box, asked, rows=(), by_file=()):
    """[(kind, address, paths of the nodes, paths of those that are kept)] of what is to be closed, and what is said."""
    found = []

    def close(look, running, kind, text, address, nodes, kept=()):
        found.append((kind, address, [node.path for node in nodes], [node.path for node in kept], text))

    monkeypatch.setattr(gpu_reconciliation, "_close", close)
    host.site.running = lambda box, pid: SimpleNamespace(cgroup=asked)
    look = host.look()
    gpu_reconciliation._not_granted(look, box, 7, list(rows), list(by_file))
    return found, look


def test_what_was_not_given_is_closed(host, monkeypatch):
    """Lost: a GPU that stays open to who was not given it; or the one that he was given."""
    box = host.box("ml", 7)
    rows = [host.has(box, ONE)]
    host.open["ml"].update([NODE.path, SHARED.path])
    host.states["ml", TWO.address] = open_rights.OPEN
    found, look = closed(host, monkeypatch, box, Asked(), rows)
    kept = [NODE.path, SHARED.path]
    assert found == [("not allocated", TWO.address, ["/dev/nvidia2"], kept, "it is open")]
    assert look.findings == []
    ((kind, _address, _nodes, _kept, text),) = closed(host, monkeypatch, box, Asked(wild=True), rows)[0]
    assert kind == "wildcard"
    assert text == f"it is open; {gpu_reconciliation.RESTART}"
    # what it has by its own file is its own as well
    assert closed(host, monkeypatch, box, Asked(), rows, [TWO])[0] == []


@pytest.mark.parametrize("has_id", [True, False])
def test_what_it_opened_before_it_was_closed_is_given_to_nobody(host, monkeypatch, has_id):
    """Lost: a GPU of the next tenant, to one who was not given it and opens it as soon as he was looked at."""
    box, other = host.box("ml", 7, key=has_id), host.box("other", 8)
    running = Running(host, box)
    running.cgroup, running.container = Asked(), box
    host.site.running = lambda box, pid: running
    host.states["ml", TWO.address] = open_rights.OPEN
    refused = [Refused("still has it open", box.thing, "end it")]

    def let_go(*_asked):
        host.states.clear()
        for error in refused:
            raise error
        return []

    monkeypatch.setattr(gpu_reconciliation.gpu_users, "let_go", let_go)
    look = host.look(repair=True)
    gpu_reconciliation._not_granted(look, box, 7, [], [])
    assert [(one.done, "still has it open" in one.error) for one in look.findings] == [(None, True)]
    assert host.rows() == [("ml", 2, DETACHING)]
    with pytest.raises(NoneFree):
        host.attach(other, wanted=GpuRequest(gpus=(TWO.address,)))
    refused.clear()
    gpu_reconciliation._cut_short(host.look(repair=True), box, host.keys["ml"])
    assert host.rows() == []


@pytest.mark.parametrize(
    ("state", "rows"), [(open_rights.CLOSED, [("ml", 2, DETACHING)]), (open_rights.OPEN, [])]
)
def test_what_it_has_of_a_gpu_that_was_closed_by_hand_is_given_to_nobody(host, monkeypatch, state, rows):
    """Lost: a GPU of the next tenant, to one of which the repair says that its processes have it open."""
    box, other = host.box("ml", 7), host.box("other", 8)
    running = Running(host, box)
    running.cgroup, running.container = Asked(), box
    host.site.running = lambda box, pid: running
    host.open["ml"].add(TWO.nodes[0].path)
    host.states["ml", TWO.address] = state

    def refuse(*_asked):
        raise Refused("has GPU nodes open", box.thing, "end them")

    monkeypatch.setattr(gpu_reconciliation.gpu_users, "refuse_users", refuse)
    look = host.look(repair=True)
    gpu_reconciliation._not_granted(look, box, 7, [], [])
    assert ["has GPU nodes open" in one.error for one in look.findings] == [True]
    assert host.rows() == rows  # what is open is given to nobody as it is, and closed by the next repair
    with pytest.raises(NoneFree):
        host.attach(other, wanted=GpuRequest(gpus=(TWO.address,)))


@pytest.mark.parametrize(
    ("runs", "state", "own", "rows"),
    [
        (True, DETACHING, False, [("id", DETACHING)]),
        (True, ATTACHED, False, [("old", ATTACHED)]),
        (False, DETACHING, False, [("old", DETACHING)]),
        # it was given it meanwhile
        (True, DETACHING, True, [("id", ATTACHED)]),
    ],
)
def test_what_is_being_taken_back_follows_a_new_id(host, runs, state, own, rows):
    """Lost: the end of a taking back, as nobody finds it by the former id; or a GPU that was given since."""
    box, other = host.box("ml", *([7] if runs else [])), host.box("mlx", 8)
    host.has(box, TWO, holder="/lxc/ml#old", state=state, share=own)
    host.has(other, THREE, holder="/lxc/mlx#old", state=DETACHING)
    if own:
        host.has(box, TWO, share=True)
    with host.store.transaction():
        restoration.take_along(host.site, box)
    kept = [(row.holder, row.state) for row in host.store.allocations() if row.address == TWO.address]
    assert kept == [(f"/lxc/ml#{one}", state) for one, state in rows]
    assert [row.holder for row in host.store.allocations() if row.address == THREE.address] == ["/lxc/mlx#old"]


def test_nodes_that_lie_in_a_container_are_taken_out(host, monkeypatch):
    """Lost: a node of another's GPU, with which one rule more is enough."""
    box = host.box("ml", 7)
    host.found.caps = [DeviceNode("/dev/nvidia-caps/nvidia-cap1", "c", 240, 1)]
    away = DeviceNode("/dev/nvidia-uvm", "c", None, 0)
    host.found.shared = [SHARED, away]
    host.found.gpus = [gpu(1, drm_nodes=[DeviceNode("/dev/dri/card0", "c", 226, 0)]), TWO]
    host.states["ml", ONE.address] = open_rights.CLOSED
    host.open["ml"].update([NODE.path])
    found, _look = closed(host, monkeypatch, box, Asked())
    assert found == [("left-over node", ONE.address, [NODE.path, "/dev/dri/card0"], [], f"{NODE.path} is in it")]
    host.found.gpus = [gpu(1, nodes=[NODE, *TWO.nodes])]
    host.open["ml"].add("/dev/nvidia2")
    assert closed(host, monkeypatch, box, Asked())[0][0][4] == "/dev/nvidia1, /dev/nvidia2 is in it"
    host.found.gpus = [ONE, TWO]
    # without a GPU it needs none of those that all share, and caps are nobody's
    host.open["ml"] = {SHARED.path, "/dev/nvidia-caps/nvidia-cap1"}
    found, _look = closed(host, monkeypatch, box, Asked())
    assert [(kind, address, nodes) for kind, address, nodes, _kept, _text in found] == [
        ("left-over node", None, [SHARED.path]),
        ("left-over node", None, ["/dev/nvidia-caps/nvidia-cap1"]),
    ]
    assert next(text for *_more, text in found) == f"{SHARED.path} is open, it has no GPU"
    rows = [host.has(box, TWO)]
    assert closed(host, monkeypatch, box, Asked(), rows)[0] == []
    assert closed(host, monkeypatch, box, Asked(), [], [TWO])[0] == []


@pytest.mark.parametrize(
    ("asked", "number"),
    [(Asked([SHARED.number]), 1), (Asked(), 0), (Asked(everything=True), 0), (Asked(wild=True), 1)],
    ids=["rule", "none", "every device", "every GPU"],
)
def test_a_rule_for_what_gpus_share_is_left_over(host, monkeypatch, asked, number):
    """Lost: a rule that a later node needs no more than; of who may open every device nothing can be told by rules."""
    found, _look = closed(host, monkeypatch, host.box("ml", 7), asked)
    assert len(found) == number


def test_isolation_by_missing_nodes_alone_is_said(host, monkeypatch):
    """Lost: the word that no rule closes a GPU; it is said of each, and not for those that are closed."""
    box = host.box("ml", 7)
    host.states["ml", TWO.address] = open_rights.NODE_ONLY
    found, look = closed(host, monkeypatch, box, Asked())
    assert (found, kinds(look)) == ([], [("node-only", "ml", TWO.address)])


@pytest.mark.parametrize(
    ("written", "inside", "allowed", "found"),
    [
        # by its file, and still allowed
        ([(238, 0)], {}, [(238, 0)], ["238:0"]),
        # by its file, and closed meanwhile
        ([(238, 0)], {}, [], []),
        # as it is today
        ([(241, 0)], {"/dev/nvidia-uvm": (241, 0)}, [(241, 0)], []),
        # by what is there
        ([], {"/dev/nvidia-uvm": (238, 0)}, [], ["238:0"]),
        ([], {"/dev/nvidia-uvm": (77, 0)}, [], ["77:0"]),
        ([], {}, [(238, 0)], []),
        ([(238, 0), (77, 0)], {}, [(238, 0), (77, 0)], ["238:0", "77:0"]),
    ],
)
def test_numbers_that_are_anothers_by_now(host, monkeypatch, written, inside, allowed, found):
    """Lost: another driver's device, open to a container by a number that its GPU had before."""
    box, said = host.box("ml", 7), []
    host.found.shared = [SHARED, DeviceNode("/dev/nvidia-uvm", "c", 241, 0)]
    nodes = [DeviceNode("/dev/aaa", "c", 238, 9)] + [DeviceNode("/dev/nvidia-uvm", "c", *number) for number in written]
    host.files["ml"] = Persisted([], [], nodes, []) if written else None
    numbers = {path: ("c", *number) for path, number in inside.items()}
    monkeypatch.setattr(gpu_reconciliation.device_nodes, "look", lambda box, path, pid: numbers.get(path))
    asked = Asked([("c", *number) for number in allowed])
    host.site.running = lambda box, pid: SimpleNamespace(cgroup=asked)
    monkeypatch.setattr(gpu_reconciliation, "_close", lambda *given: said.append(given[2:]))
    gpu_reconciliation._stale(host.look(), box, 7)
    assert [text.split("was given as ")[1].split(",")[0] for _kind, text, _address, _nodes in said] == sorted(
        found, key=lambda text: int(text.split(":")[0])
    )
    for kind, text, address, (old,) in said:
        assert (kind, address, old.path, old.number[0]) == ("stale major", None, "/dev/nvidia-uvm", "c")
        assert "its driver's is 241:0" in text
        assert text.endswith("238 is snd's now" if old.major == 238 else "77 is nobody's now")
