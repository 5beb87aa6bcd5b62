# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What LXC's hooks do when a container with devices of ours starts: refuse what is stale, and settle what has changed.

LXC reads a configuration when it is told to start a container, and never again while its monitor lives: a reboot from
inside starts it with what was read then. What was given since would be missing, and what was taken back would be there.
"""

from __future__ import annotations

import os

from ..cgroup import devices, rules
from ..errors import BadInput, HeteroError, Refused
from . import device_nodes, identity, persistence, private_nodes
from .liblxc import Container
from .persistence import COPY_REMEDY, HERE

RESTORE = "see systemctl status hetero-gpu-restore, or run hetero gpu-restore"


def started(arguments, environ, host=HERE):
    """Run as a hook: `arguments` are those of persistence.py's line and what LXC adds, `environ` is LXC's.

    :raises HeteroError: why the container must not start.
    """
    # LXC adds the container's name, "lxc", and the name of the hook.
    if len(arguments) != 6 or arguments[-1] not in persistence.HOOKS:
        raise BadInput("is run by LXC, as a hook", f"hetero {persistence.VERB}", "start the container by lxc-start")
    lxcpath, name, generation, hook = (*arguments[:3], arguments[-1])
    container = Container(name, lxcpath)
    if hook == "pre-start":
        check(container, generation, environ.get("LXC_NAME"), environ.get("LXC_CONFIG_FILE"), host)
    else:
        settle(container, generation, int(environ["LXC_PID"]), host)


def check(container, generation, name, config_file, host=HERE):
    """Refused where the container must not start with what is written for it."""
    written = persistence.read_file(persistence.file_of(container))
    same = name == container.name and os.path.normpath(config_file or "") == container.config_file
    if not same or (written is not None and written.key != identity.key_of(container)):
        other = f"container {name} ({config_file})"
        what = f"its configuration includes the devices of {container.folder}, of which it is a copy"
        raise Refused(what, other if not same else container.thing, COPY_REMEDY)
    if written is None:
        return  # all was taken back since LXC read its configuration
    if written.refused is not None:
        raise Refused(f"cannot have the GPUs that it was given: {written.refused}", container.thing, RESTORE)
    if written.boot != host.boot:
        raise Refused("what it starts with is of an earlier boot of this host", container.thing, RESTORE)
    drivers = host.drivers()
    for major, driver in written.drivers.items():
        if drivers.get(major) != driver:
            what = f"major {major} was {driver or 'nobody'}'s and is {drivers.get(major) or 'nobody'}'s now"
            raise Refused(what, container.thing, RESTORE)
    for node in written.nodes:
        private_nodes.ensure(container, node, host.private)
    if generation == written.generation:
        # Only now does nothing refer to the others any more: LXC has read of these.
        private_nodes.forget(container, [node.path for node in written.nodes], host.private)
        if not written.nodes and not written.gpus:
            persistence.forget(container, host)


def settle(container, generation, pid, host=HERE):
    """Bring a container that starts with what LXC has read earlier to what is written now; its init waits meanwhile.

    Its monitor, which keeps the rules of cgroup v2, has followed each change and does not answer now; those of v1 it
    starts with as it has read them.
    """
    written = persistence.read_file(persistence.file_of(container))
    if written is not None and written.generation == generation:
        return
    nodes = written.nodes if written is not None else []
    kept = {node.path for node in nodes}
    private = private_nodes.there(container, host.private)
    gone = [path for path in private if path not in kept]
    device_nodes.remove(container, *gone, pid=pid)
    device_nodes.make(container, *nodes, base=host.private, pid=pid)
    granted = [rules.parse(rule) for rule in (written.rules if written is not None else [])]
    stale = [rules.parse(rule) for rule in (written.before if written is not None else [])]
    stale += [rules.Rule(*private[path], "rw") for path in gone]
    cgroup = devices.of_container(pid, container.name)
    if cgroup.v1 is not None:
        for rule in granted:
            if not cgroup.v1.may(*rule):
                cgroup.allow_v1(rule)
        for rule in stale:
            if not any(rule[:3] == other[:3] for other in granted) and rules.EVERYTHING not in cgroup.v1.rules:
                cgroup.deny_v1(rule)
    _prove(container, cgroup, granted, stale)


def _prove(container, cgroup, granted, stale):
    closed = [rule for rule in granted if not cgroup.may(*rule)]
    numbers = {rule[:3] for rule in granted}
    still = [rule for rule in stale if rule[:3] not in numbers and any(cgroup.may(*rule[:3], one) for one in "rw")]
    if closed:
        raise HeteroError(f"{closed[0]} is not allowed after its reboot", container.thing, "stop and start it")
    if still and not cgroup.allows_everything():
        raise HeteroError(f"{still[0]} is open after its reboot", container.thing, "stop and start it")
