# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device nodes of a running container: opened and closed, each step only where it is needed, and each proven.

Which nodes, and who may have them, is attaching.py's to say.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ..cgroup.devices import of_container
from ..cgroup.rules import Rule
from ..errors import HeteroError, Refused
from ..lxc import device_nodes, opening
from . import reach

#: What a granted rule says. On cgroup v2 a deny must say exactly the same, or it does nothing.
ACCESS = "rw"
#: Other words for the same right in rules that were not written here.
OTHER_ACCESS = ("rwm", "r", "w", "rm", "wm")
#: How a node is made: from the host's side, or by mknod in the container as the blueprint did it.
HOST, INSIDE = "host", "lxc-attach"
#: What open() says of a node that the device cgroup, or its mode, keeps closed, or that is not there.
CLOSED_ERRORS = (errno.EPERM, errno.EACCES, errno.ENOENT)


@dataclass
class Proof:
    """A node of a container: before and after.

    :param opens: what open() inside said last: "ok", or the name of an error; None where it was not asked.
    """

    path: str
    rule: str
    before: dict
    after: dict
    opens: str | None = None

    @property
    def changed(self):
        return self.before != self.after


class Running:
    """A container that runs, and its device cgroup.

    :param owner: key of the container, by which our own programs in its cgroup are found again.
    """

    def __init__(self, container, pid, owner):
        self.container = container
        self.pid = pid
        self.owner = owner
        self.cgroup = of_container(pid, container.name)

    def give(self, nodes, method=HOST, check=False):
        """Have the container open these nodes; [Proof].

        :raises HeteroError: a node that was opened is still closed, or the container's own is in the way.
        """
        proofs = self._seen(nodes)
        for node, proof in zip(nodes, proofs):
            proof.after = dict(allowed=True, node=True)
            if check:
                continue
            if not proof.before["allowed"]:
                self._allow(node)
            if not proof.before["node"]:
                self._make(node, method)
        if not check:
            self._prove_open(nodes, proofs)
        return proofs

    def take(self, nodes, check=False):
        """Close these nodes and take them away; [Proof]. What has one open keeps it: see users.py."""
        proofs = self._seen(nodes)
        for node, proof in zip(nodes, proofs):
            proof.after = dict(allowed=False, node=False)
            if check:
                continue
            if proof.before["allowed"] or reach.may_open(self.cgroup, node):
                self._deny(node)
            if proof.before["node"]:
                device_nodes.remove(self.container, node.path, pid=self.pid)
        if not check:
            self._prove_closed(nodes, proofs)
        return proofs

    def _seen(self, nodes):
        asked = self.cgroup.snapshot()
        return [Proof(node.path, reach.rule_of(node), self._state(node, asked), {}) for node in nodes]

    def _state(self, node, asked):
        there = device_nodes.look(self.container, node.path, self.pid) == node.number
        return dict(allowed=asked.may(*node.number, ACCESS), node=there)

    def _allow(self, node):
        """Through LXC, which keeps the container's rules, and only where it is denied now: a container without rules
        would get its first one by it, and be denied all else.
        """
        if self.cgroup.v2 and self.cgroup.unforbid(self._program(node)) and self.cgroup.may(*node.number, ACCESS):
            return
        if not self.cgroup.v1 and not self.cgroup.v2.direct:
            what = f"has no device rules, and a cgroup around it denies {reach.rule_of(node)}"
            raise Refused(what, self.container.thing, f"allow it there: see the programs of {self.cgroup.v2.path}/..")
        rule = self._rule(node)
        self.container.allow(str(rule))
        if self.cgroup.v1:
            # On v1 a cgroup inside the container, as systemd makes them, does not get what its parent gets later.
            for inner in self.cgroup.v1.inner:
                inner.allow(rule)

    def _deny(self, node):
        """Through LXC; what is still open then is closed by our own program, or not at all on v1 alone.

        A container without rules is not told to deny one thing: by that it would deny everything.
        """
        if not reach.allows_unknown(self.cgroup):
            for access in (ACCESS, *OTHER_ACCESS):
                self.container.deny(str(self._rule(node, access)))
                if not reach.may_open(self.cgroup, node):
                    return
        if self.cgroup.v2:
            self.cgroup.forbid([self._rule(node, "rwm")], self._program(node))
        else:
            self.cgroup.deny_v1(self._rule(node, "rwm"))

    def _make(self, node, method):
        if method == INSIDE:
            device_nodes.make_inside(self.container, node)
        else:
            device_nodes.make(self.container, node, pid=self.pid)

    def _prove_open(self, nodes, proofs):
        asked = self.cgroup.snapshot()
        opened = opening.opens_each(self.container, [node.path for node in nodes], pid=self.pid)
        for node, proof in zip(nodes, proofs):
            proof.after, number = self._state(node, asked), opened[node.path]
            proof.opens = error_name(number)
            if not all(proof.after.values()) or number in CLOSED_ERRORS:
                what = f"{node.path} was opened for it, and is closed ({self._words(proof)})"
                remedy = "see lxc.cap.drop, AppArmor and seccomp of it, and who else changes its device cgroup"
                raise HeteroError(what, self.container.thing, remedy, node=vars(proof))

    def _prove_closed(self, nodes, proofs):
        asked = self.cgroup.snapshot()
        for node, proof in zip(nodes, proofs):
            proof.after = dict(allowed=reach.may_open(asked, node), node=self._state(node, asked)["node"])
            if any(proof.after.values()):
                what = f"{node.path} was closed, and is open ({self._words(proof)})"
                raise HeteroError(what, self.container.thing, "see who else changes it, then run this again")

    @staticmethod
    def _words(proof):
        allowed = "allows" if proof.after["allowed"] else "denies"
        there = "is there" if proof.after["node"] else "is not there"
        return f"device cgroup {allowed} {proof.rule}, node {there}, open() says {proof.opens or 'nothing'}"

    @staticmethod
    def _rule(node, access=ACCESS):
        return Rule(node.kind, node.major, node.minor, access)

    def _program(self, node):
        return f"{self.owner} {reach.rule_of(node)}"


def error_name(number):
    """ "ok" for 0, else the name of the error."""
    return "ok" if number == 0 else errno.errorcode.get(number, str(number))


def refuse_wild(name, reaches, addresses):
    """Refused where a container can open GPUs beside its own, so that no others are closed to it.

    :param reaches: {address: Reach} of it.
    :param addresses: of its own GPUs.
    """
    wild = [far for address, far in sorted(reaches.items()) if address not in addresses and far.state == reach.OPEN]
    if wild:
        told = "; ".join(f"{far.address}: {far.why}" for far in wild)
        remedy = (
            "take the rule out of its configuration and restart it, or have module hetero.compute.gpu_reconcile "
            "(repair: true) close what it was not given"
        )
        raise Refused(f"can open GPUs that it was not given ({told})", f"container {name}", remedy, open=told)
