# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container with devices that is about to run, brought from the configuration that LXC has read to the one that is
written.

LXC reads a configuration when it is told to start a container, and not again while the container's monitor lives: a
reboot from inside starts it with the old one, its device rules too. Devices given since would be missing, and devices
taken back would be there.
"""

from __future__ import annotations

import os
import syslog
from typing import TYPE_CHECKING, Iterable, Tuple, cast

from ...core.deadline import Deadline
from ...core.errors import HeteroError
from ...core.locks import lock
from ...devices.cgroup import devices, rules
from ...devices.cgroup.rule_changes import Changing
from . import device_nodes, identity, persistence, private_nodes
from .persistence import HERE

if TYPE_CHECKING:
    from .liblxc import Container
    from .persistence import Host

RUN_FOLDER = "/run/hetero"
#: Seconds for the rest of a start, until the monitor takes rules, and for others who work on the container.
LATER_TIME = 120.0
#: Seconds for another change of a cgroup that was just made.
TURN_TIME = 10.0


def settle(container: Container, pid: int, host: Host = HERE) -> None:
    """Bring a container that is about to run to what is written; its init waits meanwhile.

    Its monitor does not answer now. In version 1 anybody can set rules. In version 2 only the monitor can allow: what
    is closed too much is opened as soon as it answers, and what is open too much is closed now by a program of the
    collection.
    """
    written = persistence.read_file(identity.file_of(container))
    if written is None:
        return
    kept = {node.path for node in written.nodes}
    gone = [path for path in private_nodes.numbers_below(container, host.private) if path not in kept]
    device_nodes.remove(container, *gone, pid=pid)
    device_nodes.make(container, *written.nodes, base=host.private, pid=pid)
    cgroup = devices.of_container(pid, container.name)
    if cgroup.allows_everything():
        return  # only nodes are missing between it and a device
    granted = _parsed(written.rules)
    changing = Changing(cgroup)
    with changing.alone(Deadline(TURN_TIME)):
        for step in changing.plan("denied", _parsed(written.before)):
            step.act()
        v1 = cgroup.v1
        if v1 is not None:
            for rule in granted:
                if not v1.may(*cast(Tuple[str, int, int, str], rule)):
                    v1.allow(rule)
    if any(cgroup.verdict(rule) != "allowed" for rule in granted):
        _later(container)


def open_again(container: Container) -> None:
    """Let a container that has just started open what is written, through LXC."""
    deadline = Deadline(LATER_TIME)
    container.wait_running(deadline.left)
    with lock(RUN_FOLDER, container.lock_name, "start", identity.VERB, deadline):
        found = persistence.read(container)
        pid = container.init_pid
        if found is None or pid is None:
            return
        changing = Changing(devices.of_container(pid, container.name), container)
        with changing.alone(deadline):
            for step in changing.plan("allowed", _parsed(found.rules)):
                step.act()


def _parsed(texts: Iterable[str]) -> list[rules.Rule]:
    return [rules.parse(text) for text in texts]


def _later(container: Container) -> None:
    """Run `open_again` in a process of its own: the start waits for this hook and for all that hold its output."""
    if os.fork():
        os.wait()
        return
    try:
        os.setsid()
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            open_again(container)
    except (HeteroError, OSError) as error:
        syslog.syslog(syslog.LOG_ERR, f"hetero {identity.VERB}: {container.thing} lacks GPUs since its reboot: {error}")
    finally:
        os._exit(0)
