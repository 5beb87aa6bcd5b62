# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node counts as opened or closed, and how that is said. Real containers are in tests/unit/attaching."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils.gpus import access, reach

NODE = SimpleNamespace(path="/dev/nvidia0", number=("c", 195, 0), kind="c", major=195, minor=0)


@pytest.fixture
def running(monkeypatch):
    """A container as it is after a node was opened or closed; `said` is what open() inside says then."""
    one = access.Running.__new__(access.Running)
    one.container, one.pid, one.base = SimpleNamespace(thing="container ml"), 7, "/base"

    def seen(allowed, node, said):
        monkeypatch.setattr(one, "_states", lambda nodes, asked: [dict(allowed=allowed, node=node)])
        monkeypatch.setattr(access.opening, "opens_each", lambda *given, **more: {NODE.path: said})
        monkeypatch.setattr(access.opening, "reaches", lambda *given, **more: {NODE.number: said})
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

    monkeypatch.setattr(access.opening, "reaches", nobody)
    one._prove_closed([NODE], proofs)
    assert proofs[0].opens is None


def test_who_can_open_more_than_its_own_is_given_nothing():
    """Lost: one tenant's GPU beside another's program; or a container is refused for the GPUs that it has."""
    open_, closed = (
        SimpleNamespace(address=address, state=state, why="its list has all")
        for address, state in (("0000:05:00.0", reach.OPEN), ("0000:06:00.0", "closed"))
    )
    reaches = {one.address: one for one in (open_, closed)}
    access.refuse_wild("ml", reaches, {"0000:05:00.0"})
    told = "0000:05:00.0: its list has all"
    with pytest.raises(Refused, match="container ml: can open GPUs that it was not given") as refused:
        access.refuse_wild("ml", reaches, set())
    assert told in str(refused.value)
    assert refused.value.facts["open"] == told
