# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose containers and kernel are stood in for, and whose table is a real one: what the verbs do in which order.
Real containers are in tests/unit/hypervisors/lxc_gpus.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    Allocation,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.nodes import DeviceNode
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    attachment,
    gpu_reconciliation,
    open_rights,
    restoration,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.access import Proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site

LXCPATH = "/lxc"
SHARED = DeviceNode("/dev/nvidiactl", "c", 195, 255, present=True)


def gpu(number, **more):
    node = DeviceNode(f"/dev/nvidia{number}", "c", 195, number, present=True)
    known = dict(address=f"0000:0{number}:00.0", uuid=f"GPU-{number}", index=number, minor=number, numa_node=0)
    known.update(model="Tesla M2090", arch="fermi", nodes=[node], drm_nodes=[], healthy=True, why_unhealthy=None)
    return SimpleNamespace(**{**known, "unsupported": None, "driver": "nvidia", **more})


class Box:
    """A container; `pids` are what its init is each time somebody asks, the last one from then on."""

    defined = True

    def __init__(self, name, *pids):
        self.name, self.lxcpath, self.pids = name, LXCPATH, list(pids) or [None]
        self.folder, self.thing, self.lock_name = f"{LXCPATH}/{name}", f"container {name}", f"lxc-{name}"
        self.config_file = f"{self.folder}/config"
        self.root, self.asked = f"/roots/{name}", 0

    @property
    def init_pid(self):
        self.asked += 1
        return self.pids.pop(0) if len(self.pids) > 1 else self.pids[0]

    def get(self, _key):
        return ""

    running_item = get


class Running:
    """Gives and takes nodes as access.Running does, in a set."""

    cgroup, pid = "its cgroup", 7
    is_left_still = False

    def __init__(self, host, box):
        self.host, self.box = host, box

    def _done(self, word, nodes, allowed, check):
        self.host.done.append((word, self.box.name, [node.path for node in nodes], check))
        if word in self.host.fails:
            raise HeteroError(f"{word} does not work", self.box.thing)
        is_open, proofs = self.host.open[self.box.name], []
        for node in nodes:
            before = dict(allowed=node.path in is_open, node=node.path in is_open)
            proofs.append(Proof(node.path, open_rights.rule_of(node), before, dict(allowed=allowed, node=allowed)))
        if not check:
            (is_open.update if allowed else is_open.difference_update)(node.path for node in nodes)
        return proofs

    def give(self, nodes, method, check):
        self.host.methods.append(method)
        return self._done("give", nodes, True, check)

    def take(self, nodes, check=False):
        return self._done("take", nodes, False, check)


@contextmanager
def standing_in(monkeypatch, gpus):
    """A Host, whose table is where no disk is waited for, if there is such a place."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        host = Host(monkeypatch, Path(folder), gpus)
        with host.store:
            yield host


class Host:
    """Patches what asks LXC and the kernel.

    :param done: what was done, in order; fails: words of it that raise an error.
    :param files: what each container has after a restart; keys: the keys of containers, by name.
    """

    def __init__(self, monkeypatch, folder, gpus):
        self.done, self.methods, self.fails, self.open, self.files, self.keys = [], [], set(), {}, {}, {}
        self.settled, self.states, self.boxes = set(), {}, {}
        self.store = Store(str(folder / "host.db"), "test")
        self.found = SimpleNamespace(gpus=gpus, shared=[SHARED], caps=[], driver_version="390.157", unsupported=None)
        command = folder / "hetero"
        command.write_text("")
        command.chmod(0o755)
        here = SimpleNamespace(command=str(command), private="/private", machine_id="mine")
        self.site = Site(self.store, self.found, (LXCPATH,), str(folder / "run"), "paths", here)
        self.site.running = lambda box, pid: Running(self, box)
        put = monkeypatch.setattr
        put(attachment.open_rights, "look", lambda folders, gpus, known: open_rights.Live(tuple(self._reaches())))
        put(attachment.open_rights, "reach_of", lambda box, pid, gpus: self._reaches_of(box, gpus))
        put(attachment.identity, "key_of", lambda box: self.keys.get(box.name))
        put(attachment.identity, "key_by_id", lambda box: self.keys.get(box.name))
        put(attachment.identity, "give_id", self._give_id)
        put(attachment.identity, "includes", lambda box: True)
        put(attachment.identity, "settles", lambda box: box.name in self.settled)
        put(attachment.persistence, "read", lambda box, host=None: self.files.get(box.name))
        put(attachment.persistence, "write", self._write)
        put(attachment.persistence, "remove", self._remove)
        put(attachment.libraries, "check", lambda *given: self.done.append(("libraries", given[0])) or [])
        put(attachment, "of_container", lambda pid, name: f"cgroup of {name}")
        put(attachment.gpu_users, "refuse_users", self._refuse_users)
        put(attachment.gpu_users, "let_go", self._let_go)
        put(gpu_reconciliation.device_nodes, "look", self._number)

    def _refuse_users(self, box, cgroup, nodes, paths):
        self.done.append(("users", box.name, [node.path for node in nodes], cgroup))

    def _let_go(self, box, cgroup, nodes, how, deadline, paths):
        self.done.append(("let go", box.name, how))
        return [dict(pid=7, command="python3")]

    def _reaches(self):
        return [far for box in self.boxes.values() for far in self._reaches_of(box, self.found.gpus)]

    def _reaches_of(self, box, gpus):
        for one in gpus:
            there = one.nodes[0].path in self.open[box.name] if one.nodes else False
            state = self.states.get((box.name, one.address), open_rights.OPEN if there else open_rights.CLOSED)
            yield open_rights.Reach(
                self.keys.get(box.name) or box.folder, box.name, one.address, state, f"it is {state}"
            )

    def _number(self, box, path, pid=None):
        nodes = [node for one in self.found.gpus for node in one.nodes] + self.found.shared + self.found.caps
        there = {node.path: node.number for node in nodes}
        return there.get(path) if path in self.open[box.name] else None

    def _give_id(self, box, command):
        self.keys[box.name] = f"{box.folder}#new"
        return self.keys[box.name]

    def _write(self, box, new, host):
        self.done.append(("write", box.name))
        self.files[box.name] = new

    def _remove(self, box, host):
        self.done.append(("remove", box.name))
        self.files.pop(box.name, None)

    def box(self, name, *pids, key=True):
        box = self.boxes[name] = Box(name, *pids)
        self.open[name] = set()
        if key:
            self.keys[name] = f"{box.folder}#id"
        return box

    def has(self, box, one, **more):
        """The table says that a container has a GPU."""
        nodes = tuple((node.path, *node.number) for node in one.nodes)
        known = dict(uuid=one.uuid, state=ATTACHED, since=1.0, share=False, wanted=GpuRequest(1), nodes=nodes)
        row = Allocation(one.address, **{"holder": f"{box.folder}#id", **known, **more})
        self.store.grant(row)
        return row

    def rows(self):
        """[(name of the container, its GPU's number, state)]."""
        rows = self.store.allocations()
        return [(row.holder.split("/")[-1].split("#")[0], int(row.address[6]), row.state) for row in rows]

    def events(self):
        return [(event.phase, event.address, event.text) for event in self.store.events()]

    def attach(self, box, count=None, check=False, seconds=60, **more):
        wanted = more.pop("wanted", None) or GpuRequest(count)
        return attachment.attach(self.site, box, wanted, Change(check), Deadline(seconds), **more)

    def detach(self, box, *names, check=False, seconds=60, **more):
        return attachment.detach(self.site, box, names, Change(check), Deadline(seconds), **more)

    def look(self, repair=False, check=False):
        return gpu_reconciliation.Look(self.site, repair, Change(check), Deadline(60))

    def resolve(self, box, persisted, here):
        return restoration.resolve(self.site, box, persisted, here)
