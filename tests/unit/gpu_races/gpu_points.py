# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs on a host's GPUs that are killed (SIGKILL) before their n-th write, as the boards' are: see sweep/killing.py.

Beside files and the table, these writes count: a rule given to LXC, a program attached to a cgroup, a node, a mount.
"""

from __future__ import annotations

import json
import os
import traceback

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import kernel, liblxc
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points

#: What is changed there is in no file that Python opens, and in no audit event.
CALLS = ((liblxc.Container, "_set_rule"), (bpf, "attach"), (bpf, "detach"), (kernel, "move_mount"), (os, "mknod"))


class GpuPoints(Points):
    """Write points of a verb on GPUs."""

    def arm(self):
        super().arm()
        for owner, name in CALLS:
            self._count_calls(owner, name)

    def _count_calls(self, owner, name):
        real = getattr(owner, name)

        def counted(*args, **kwargs):
            self._point(f"{name} {args[-1] if args else ''}")
            return real(*args, **kwargs)

        setattr(owner, name, counted)


def together(workers):
    """Run functions in processes of their own, let go at one moment; what each returned, None where it was killed.

    Each is waited for by its pid: containers that a test started may be children of this process, too.
    """
    gate, opener = os.pipe()
    started = []
    for worker in workers:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(opener)
                os.close(reader)
                os.read(gate, 1)  # ends when the opener is closed
                os.write(writer, json.dumps(_outcome(worker), default=str).encode())
            finally:
                os._exit(0)
        os.close(writer)
        started.append((pid, reader))
    os.close(gate)
    os.close(opener)
    results = []
    for pid, reader in started:
        with open(reader, "rb") as answer:
            text = answer.read()
        os.waitpid(pid, 0)
        results.append(json.loads(text) if text else None)
    return results


def alone(points, work):
    """What `work()` returned in a process of its own, with its writes counted; None where it was killed."""

    def armed():
        points.arm()
        try:
            return work()
        finally:
            points.disarm()

    return together([armed])[0]


def _outcome(worker):
    try:
        return worker()
    except HeteroError as error:
        return {"failed": True, "msg": str(error)}
    except BaseException:
        return {"failed": True, "broken": True, "msg": traceback.format_exc()}
