# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What LXC's hooks do when a container with devices of ours starts: refuse what is stale, and settle what has changed.

LXC reads a configuration when it is told to start a container, and never again while its monitor lives: a reboot from
inside starts it with what was read then, its device rules too. What was given since would be missing, and what was
taken back would be there.
"""

from __future__ import annotations

import os
import syslog

from ..cgroup import devices, rules
from ..cgroup.changing import Changing
from ..deadline import Deadline
from ..errors import BadInput, HeteroError, Refused
from ..locks import lock
from . import device_nodes, identity, persistence, private_nodes
from .liblxc import Container
from .persistence import COPY_REMEDY, HERE

RESTORE = "see systemctl status hetero-gpu-restore, or run hetero gpu-restore"
RUN_FOLDER = "/run/hetero"
#: Seconds for the rest of a start, until the monitor takes rules, and for who else works on the container.
LATER_TIME = 120.0


def started(arguments, environ, host=HERE):
    """Run as a hook: `arguments` are those of identity.py's line and what LXC adds, `environ` is LXC's.

    :raises HeteroError: why the container must not start.
    """
    # With lxc.hook.version = 1 LXC says it in the environment, else in three more words.
    hook = environ.get("LXC_HOOK_TYPE") or "".join(arguments[-1:])
    if len(arguments) not in (2, 5) or hook not in identity.HOOKS:
        raise BadInput("is run by LXC, as a hook", f"hetero {identity.VERB}", "start the container by lxc-start")
    container = Container(arguments[1], arguments[0])
    if hook == "pre-start":
        check(container, environ.get("LXC_NAME"), environ.get("LXC_CONFIG_FILE"), host)
    else:
        settle(container, int(environ["LXC_PID"]), host)


def check(container, name, config_file, host=HERE):
    """Refused where the container must not start with what is written for it."""
    written = persistence.read_file(identity.file_of(container))
    same = name == container.name and os.path.normpath(config_file or "") == container.config_file
    if not same or (written is not None and written.key != identity.key_of(container)):
        what = f"its configuration includes the devices of {container.folder}, of which it is a copy"
        raise Refused(what, container.thing if same else f"container {name} ({config_file})", COPY_REMEDY)
    if written is None:
        return
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


def settle(container, pid, host=HERE):
    """Bring a container that is about to run, from what LXC had read, to what is written; its init waits meanwhile.

    Its monitor does not answer now. Version 1 takes rules from anybody. With version 2 only the monitor can allow: what
    is closed too much is opened as soon as it answers; what is open too much, a program of ours closes now.
    """
    written = persistence.read_file(identity.file_of(container))
    if written is None:
        return
    kept = {node.path for node in written.nodes}
    gone = [path for path in private_nodes.there(container, host.private) if path not in kept]
    device_nodes.remove(container, *gone, pid=pid)
    device_nodes.make(container, *written.nodes, base=host.private, pid=pid)
    cgroup = devices.of_container(pid, container.name)
    if cgroup.allows_everything():
        return  # only nodes are between it and a device
    changing = Changing(cgroup)
    for step in changing.plan("denied", _parsed(written.before)):
        step.act()
    granted = _parsed(written.rules)
    if cgroup.v1 is not None:
        for rule in granted:
            if cgroup.v1.may(*rule) is False:
                cgroup.v1.allow(rule)
    if any(cgroup.verdict(rule) != "allowed" for rule in granted):
        _later(container)


def open_again(container, run_folder=RUN_FOLDER):
    """Have a container that has just started may open what is written; through LXC."""
    deadline = Deadline(LATER_TIME)
    container.wait_running(deadline.left)
    with lock(run_folder, container.lock_name, "start", identity.VERB, deadline):
        found = persistence.read(container)
        pid = container.init_pid
        if found is None or pid is None:
            return
        changing = Changing(devices.of_container(pid, container.name), container)
        for step in changing.plan("allowed", _parsed(found.rules)):
            step.act()


def _parsed(texts):
    return [rules.parse(text) for text in texts]


def _later(container):
    """`open_again` in a process of its own: the start waits for this hook and for who holds its output."""
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
