# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes of a running container, opened and closed: each step only if it is needed, and each proven.

attachment.py knows which nodes, and who may have them.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Collection, Mapping, Sequence

from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused
from ...devices.cgroup import stillness
from ...devices.cgroup.devices import of_container
from ...devices.cgroup.rule_changes import Changing
from ...devices.cgroup.rules import Rule
from ..lxc import device_nodes, open_trial
from . import open_rights

if TYPE_CHECKING:
    from ...devices.cgroup.view import View
    from ...devices.gpus.nodes import DeviceNode
    from ...devices.gpus.processes import Number
    from ..lxc.liblxc import Container
    from .open_rights import Reach

#: Access of a granted rule. In cgroup v2 a deny must say exactly the same, or it has no effect.
ACCESS = "rw"
#: How a node is made: from the host's side, or by mknod through lxc-attach in the container.
HOST, INSIDE = "host", "lxc-attach"
#: open()'s errors for a node that the device cgroup or its mode keeps closed, or that is missing.
CLOSED_ERRORS = (errno.EPERM, errno.EACCES, errno.ENOENT)

#: Seconds to wait for others who change the same container's rules, which takes milliseconds.
TURN = 10.0


@dataclass
class Proof:
    """A node of a container, before and after.

    :param opens: open()'s last answer in the container: "ok", or the name of an error; None if it was not tried.
    """

    path: str
    rule: str
    before: dict[str, bool]
    after: dict[str, bool]
    opens: str | None = None

    @property
    def changed(self) -> bool:
        return self.before != self.after


#: Returns whether a device cgroup allows a node: may_all, or open_rights.may_open.
Allowed = Callable[["View", "DeviceNode"], bool]


class Running:
    """A running container and its device cgroup.

    :param base: folder of the nodes that are bound into containers (hypervisors/lxc/private_nodes.py).
    """

    def __init__(self, container: Container, pid: int, base: str) -> None:
        self.container = container
        self.pid = pid
        self.base = base
        self.cgroup = of_container(pid, container.name)

    @property
    def is_left_still(self) -> bool:
        """Return whether it stands still since a look was killed."""
        return stillness.is_left(self.cgroup.folders)

    def go_on(self) -> None:
        stillness.let_go_on(self.cgroup.folders)

    def give(self, nodes: Sequence[DeviceNode], method: str = HOST, check: bool = False) -> list[Proof]:
        """Let the container open these nodes.

        :raises HeteroError: a node that was opened is still closed, or something of the container's is in the way.
        """
        if not check:
            self.go_on()
        proofs = self._seen(nodes, may_all)
        if not check:
            self._change("allowed", [node for node, proof in zip(nodes, proofs) if not proof.before["allowed"]])
            self._make([node for node, proof in zip(nodes, proofs) if not proof.before["node"]], method)
            self._prove_open(nodes, proofs)
        for proof in proofs if check else ():
            proof.after = dict(allowed=True, node=True)
        return proofs

    def take(self, nodes: Sequence[DeviceNode], check: bool = False) -> list[Proof]:
        """Close these nodes and remove them. A process that has one open keeps it (devices/gpus/gpu_users.py)."""
        if not check:
            self.go_on()
        proofs = self._seen(nodes, open_rights.may_open)
        if not check:
            self._change("denied", [node for node, proof in zip(nodes, proofs) if proof.before["allowed"]])
            paths = [proof.path for proof in proofs if proof.before["node"]]
            if paths:
                device_nodes.remove(self.container, *paths, pid=self.pid)
            self._prove_closed(nodes, proofs)
        for proof in proofs if check else ():
            proof.after = dict(allowed=False, node=False)
        return proofs

    def _seen(self, nodes: Sequence[DeviceNode], allowed: Allowed) -> list[Proof]:
        states = self._states(nodes, allowed)
        return [Proof(node.path, open_rights.rule_of(node), state, {}) for node, state in zip(nodes, states)]

    def _states(self, nodes: Sequence[DeviceNode], allowed: Allowed) -> list[dict[str, bool]]:
        asked = self.cgroup.look()
        there = device_nodes.look_each(self.container, [node.path for node in nodes], self.pid)
        return [dict(allowed=allowed(asked, node), node=there[node.path] == node.number) for node in nodes]

    def _change(self, state: str, nodes: Sequence[DeviceNode]) -> None:
        """Change the rules of nodes.

        Only needed ones may be given: a container without rules would come to deny all else.
        """
        if nodes:
            changing = Changing(self.cgroup, self.container)
            with changing.alone(Deadline(TURN)):
                for step in changing.plan(state, [rule_for(node) for node in nodes]):
                    step.act()

    def _make(self, nodes: Sequence[DeviceNode], method: str) -> None:
        if nodes and method == INSIDE:
            device_nodes.make_inside(self.container, *nodes)
        elif nodes:
            device_nodes.make(self.container, *nodes, base=self.base, pid=self.pid)

    def _prove_open(self, nodes: Sequence[DeviceNode], proofs: Sequence[Proof]) -> None:
        opened = open_trial.opens_each(self.container, [node.path for node in nodes], pid=self.pid)
        for node, proof, state in zip(nodes, proofs, self._states(nodes, may_all)):
            proof.after, number = state, opened[node.path]
            proof.opens = error_name(number)
            if not all(proof.after.values()) or number in CLOSED_ERRORS:
                what = f"{node.path} was opened for it, and is closed ({words(proof)})"
                remedy = "see lxc.cap.drop, AppArmor and seccomp of it, and who else changes its device cgroup"
                raise HeteroError(what, self.container.thing, remedy, node=vars(proof))

    def _prove_closed(self, nodes: Sequence[DeviceNode], proofs: Sequence[Proof]) -> None:
        opened = self._tried(nodes)
        for node, proof, state in zip(nodes, proofs, self._states(nodes, open_rights.may_open)):
            proof.after, number = state, opened.get(node.number)
            proof.opens = None if number is None else error_name(number)
            if any(proof.after.values()) or (number is not None and number not in CLOSED_ERRORS):
                what = f"{proof.path} was closed, and is open ({words(proof)})"
                raise HeteroError(what, self.container.thing, "see who else changes it, then run this again")

    def _tried(self, nodes: Sequence[DeviceNode]) -> dict[Number, int]:
        """Return {number: open()'s answer}, also of hidden nodes.

        :returns: {} if no process can be started in the container, which it can prevent; then only lists and programs
            count.
        """
        try:
            return open_trial.reaches(self.container, [node.number for node in nodes], pid=self.pid, base=self.base)
        except HeteroError:
            return {}


def may_all(asked: View, node: DeviceNode) -> bool:
    """Return whether reading and writing at once is allowed, as programs open a GPU."""
    return asked.may(*open_rights.known(node), ACCESS)


def rule_for(node: DeviceNode) -> Rule:
    """Return the rule that gives a node."""
    return Rule(node.kind, node.major, node.minor, ACCESS)


def words(proof: Proof) -> str:
    """Return a proof in words."""
    allowed = "allows" if proof.after["allowed"] else "denies"
    there = "is there" if proof.after["node"] else "is not there"
    return f"device cgroup {allowed} {proof.rule}, node {there}, open() says {proof.opens or 'nothing'}"


def error_name(number: int) -> str:
    """Return "ok" for 0, else the name of the error."""
    return "ok" if number == 0 else errno.errorcode.get(number, str(number))


def refuse_wild(name: str, reaches: Mapping[str, Reach], addresses: Collection[str]) -> None:
    """Raise Refused if a container can open other GPUs than its own.

    :param reaches: {address: Reach} of the container.
    :param addresses: of its own GPUs.
    """
    wild = [
        far for address, far in sorted(reaches.items()) if address not in addresses and far.state == open_rights.OPEN
    ]
    if wild:
        told = "; ".join(f"{far.address}: {far.why}" for far in wild)
        remedy = (
            "take the rule out of its configuration and restart it, or have module hetero.compute.gpu_reconcile "
            "(repair: true) close what it was not given"
        )
        raise Refused(f"can open GPUs that it was not given ({told})", f"container {name}", remedy, open=told)
