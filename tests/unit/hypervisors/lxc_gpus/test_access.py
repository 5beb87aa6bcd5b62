# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node counts as opened or closed, and how that is said. Real containers: test_attachment.py.

Tests hypervisors/lxc_gpus/open_rights.py.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import access, open_rights

NODE = SimpleNamespace(path="/dev/nvidia0", number=("c", 195, 0), kind="c", major=195, minor=0)


@pytest.fixture
def running(monkeypatch):
    """A container as it is after a node was opened or closed; `said` is what open() inside says then."""
    one = access.Running.__new__(access.Running)
    one.container, one.pid, one.base = SimpleNamespace(thing="container ml"), 7, "/base"

    def seen(allowed, node, said):
        monkeypatch.setattr(one, "_states", lambda nodes, asked: [dict(allowed=allowed, node=node)])
        monkeypatch.setattr(access.open_trial, "opens_each", lambda *given, **more: {NODE.path: said})
        monkeypatch.setattr(access.open_trial, "reaches", lambda *given, **more: {NODE.number: said})
        return one, [access.Proof(NODE.path, "c 195:0 rw", {}, {})]

    return seen


@pytest.mark.parametrize(
    ("allowed", "node", "said", "shown"),
    [
        (True, True, 0, "device cgroup allows c 195:0 rw, node is there, open() says ok"),
        (True, True, errno.ENXIO, "device cgroup allows c 195:0 rw, node is there, open() says ENXIO"),
        (True, True, 9999, "device cgroup allows c 195:0 rw, node is there, open() says 9999"),
        (False, True, errno.EPERM, "device cgroup denies c 195:0 rw, node is there, open() says EPERM"),
        (True, False, errno.ENOENT, "device cgroup allows c 195:0 rw, node is not there, open() says ENOENT"),
        (True, True, errno.EACCES, "device cgroup allows c 195:0 rw, node is there, open() says EACCES"),
        (False, False, 0, "device cgroup denies c 195:0 rw, node is not there, open() says ok"),
    ],
)
def test_what_counts_as_open(running, allowed, node, said, shown):
    """Lost: a tenant is told that the GPU is there, and a program finds it closed; a driver's error is not that."""
    one, proofs = running(allowed, node, said)
    if allowed and node and said not in (errno.EPERM, errno.EACCES, errno.ENOENT):
        one._prove_open([NODE], proofs)
    else:
        with pytest.raises(HeteroError, match="was opened for it, and is closed"):
            one._prove_open([NODE], proofs)
    assert access.words(proofs[0]) == shown


@pytest.mark.parametrize(
    ("allowed", "node", "said", "opens", "is_closed"),
    [
        (False, False, errno.EPERM, "EPERM", True),
        (False, False, errno.EACCES, "EACCES", True),
        (False, False, errno.ENOENT, "ENOENT", True),
        (False, False, None, None, True),
        (False, False, 0, "ok", False),
        # the driver was asked, so the list did not keep it closed
        (False, False, errno.ENXIO, "ENXIO", False),
        (True, False, errno.EPERM, "EPERM", False),
        (False, True, errno.EPERM, "EPERM", False),
    ],
)
def test_what_counts_as_closed(running, allowed, node, said, opens, is_closed):
    """Lost: a GPU goes to the next tenant while the last one still opens it."""
    one, proofs = running(allowed, node, said)
    if is_closed:
        one._prove_closed([NODE], proofs)
    else:
        with pytest.raises(HeteroError, match="/dev/nvidia0 was closed, and is open"):
            one._prove_closed([NODE], proofs)
    assert proofs[0].opens == opens


def test_where_no_process_of_ours_can_look_the_lists_speak_alone(running, monkeypatch):
    """Lost: a GPU that is closed is not taken back, for the container lets nobody in."""
    one, proofs = running(False, False, 0)

    def nobody(*given, **more):
        raise HeteroError("lets nobody in", "container ml", "")

    monkeypatch.setattr(access.open_trial, "reaches", nobody)
    one._prove_closed([NODE], proofs)
    assert proofs[0].opens is None


def test_who_can_open_more_than_its_own_is_given_nothing():
    """Lost: one tenant's GPU beside another's program; or a container is refused for the GPUs that it has."""
    open_, closed = (
        SimpleNamespace(address=address, state=state, why="its list has all")
        for address, state in (("0000:05:00.0", open_rights.OPEN), ("0000:06:00.0", "closed"))
    )
    reaches = {one.address: one for one in (open_, closed)}
    access.refuse_wild("ml", reaches, {"0000:05:00.0"})
    told = "0000:05:00.0: its list has all"
    with pytest.raises(Refused, match="container ml: can open GPUs that it was not given") as refused:
        access.refuse_wild("ml", reaches, set())
    assert told in str(refused.value)
    assert refused.value.facts["open"] == told


OTHER = SimpleNamespace(path="/dev/nvidia1", number=("c", 195, 1), kind="c", major=195, minor=1)


class Inside:
    """What a container's kernel allows and has, and what was done to it."""

    def __init__(self, monkeypatch, allowed, there):
        self.allowed, self.there, self.done, self.turns = set(allowed), set(there), [], []
        nodes = {node.path: node for node in (NODE, OTHER)}
        container = SimpleNamespace(name="ml", thing="container ml")
        put = monkeypatch.setattr
        put(access, "of_container", lambda pid, name: SimpleNamespace(look=lambda: self, of=(pid, name), folders=[]))
        put(access, "Changing", lambda cgroup, box: self)
        put(
            access.device_nodes,
            "look_each",
            lambda box, paths, pid: {
                path: nodes[path].number if nodes[path] in self._nodes(self.there) else None for path in paths
            },
        )
        put(access.device_nodes, "make", self._make)
        put(access.device_nodes, "make_inside", lambda box, *nodes: self._made("inside", nodes))
        put(access.device_nodes, "remove", self._remove)
        put(
            access.open_trial,
            "opens_each",
            lambda box, paths, pid: {path: 0 if nodes[path].number in self.allowed else errno.EPERM for path in paths},
        )
        put(
            access.open_trial,
            "reaches",
            lambda box, numbers, pid, base: {
                number: 0 if number in self.allowed else errno.EPERM for number in numbers
            },
        )
        self.running = access.Running(container, 7, "/base")

    def _nodes(self, numbers):
        return [node for node in (NODE, OTHER) if node.number in numbers]

    def may(self, kind, major, minor, wanted):
        assert wanted in ("rw", "r", "w")
        return (kind, major, minor) in self.allowed

    @contextmanager
    def alone(self, deadline):
        self.turns.append(deadline.seconds)
        yield

    def plan(self, state, rules):
        for rule in rules:
            number = (rule.kind, rule.major, rule.minor)
            change = self.allowed.add if state == "allowed" else self.allowed.discard
            yield SimpleNamespace(
                act=lambda rule=rule, number=number, change=change: (
                    self.done.append(f"{state} {rule}"),
                    change(number),
                )
            )

    def _made(self, where, nodes):
        self.done.append((where, [node.path for node in nodes]))
        self.there.update(node.number for node in nodes)

    def _make(self, box, *nodes, base, pid):
        self._made((base, pid), nodes)

    def _remove(self, box, *paths, pid):
        self.done.append(("removed", list(paths)))
        self.there.difference_update(node.number for node in (NODE, OTHER) if node.path in paths)


@pytest.mark.parametrize(("method", "where"), [(access.HOST, ("/base", 7)), (access.INSIDE, "inside")])
def test_only_what_is_not_so_already_is_given(monkeypatch, method, where):
    """Lost: a container's first rule, which denies it all else; or its nodes, made by the way that it cannot go."""
    one = Inside(monkeypatch, [OTHER.number], [NODE.number])
    assert [proof.changed for proof in one.running.give([NODE, OTHER], method, check=True)] == [True, True]
    assert one.done == []
    proofs = one.running.give([NODE, OTHER], method)
    assert one.done == ["allowed c 195:0 rw", (where, [OTHER.path])]
    assert [(proof.before, proof.after) for proof in proofs] == [
        (dict(allowed=False, node=True), dict(allowed=True, node=True)),
        (dict(allowed=True, node=False), dict(allowed=True, node=True)),
    ]
    assert [(proof.path, proof.rule, proof.opens) for proof in proofs] == [
        (NODE.path, "c 195:0", "ok"),
        (OTHER.path, "c 195:1", "ok"),
    ]
    one.done.clear()
    assert [proof.changed for proof in one.running.give([NODE, OTHER], method)] == [False, False]
    assert [proof.changed for proof in one.running.give([NODE, OTHER], method, check=True)] == [False, False]
    assert one.done == []
    assert all(1 <= seconds <= 30 for seconds in one.turns), "others take milliseconds"


def test_only_what_is_there_is_taken(monkeypatch):
    """Lost: a GPU that stays open; or a container's other devices, by a rule more than it needs."""
    one = Inside(monkeypatch, [OTHER.number], [NODE.number])
    checked = one.running.take([NODE, OTHER], check=True)
    assert [proof.after for proof in checked] == [dict(allowed=False, node=False)] * 2
    assert one.done == []
    proofs = one.running.take([NODE, OTHER])
    assert one.done == ["denied c 195:1 rw", ("removed", [NODE.path])]
    assert [(proof.after, proof.opens) for proof in proofs] == [(dict(allowed=False, node=False), "EPERM")] * 2
    one.done.clear()
    assert [proof.changed for proof in one.running.take([NODE, OTHER])] == [False, False]
    assert one.done == []


@pytest.mark.parametrize("what", ["give", "take"])
@pytest.mark.parametrize("check", [False, True])
def test_what_an_ended_work_left_standing_still_goes_on(monkeypatch, what, check):
    """Lost: a container that stands still for ever, since the process that stopped it was killed; and a dry run that
    changes something.
    """
    one, went_on = Inside(monkeypatch, [OTHER.number], [NODE.number]), []
    monkeypatch.setattr(access.stillness, "let_go_on", lambda folders: went_on.append(list(one.done)))
    getattr(one.running, what)([NODE, OTHER], check=check)
    assert went_on == ([] if check else [[]]), "before anything is changed"


def test_words_of_options_and_results(running):
    """Lost: what playbooks write and compare; an error must say which node it is about."""
    assert (access.HOST, access.INSIDE) == ("host", "lxc-attach")
    one, proofs = running(False, False, errno.EPERM)
    with pytest.raises(HeteroError, match="was opened for it") as failed:
        one._prove_open([NODE], proofs)
    assert failed.value.facts["node"]["path"] == NODE.path
    several = {
        address: SimpleNamespace(address=address, state=open_rights.OPEN, why="all")
        for address in ("0000:07:00.0", "0000:06:00.0")
    }
    with pytest.raises(Refused) as refused:
        access.refuse_wild("ml", several, set())
    assert refused.value.facts["open"] == "0000:06:00.0: all; 0000:07:00.0: all"
