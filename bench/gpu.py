# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU costs that a running container gets and gives back, five nodes with their proof, beside LXD's hot-plug.

`bench/gpu.py`, from the repository's root, as root: what module lxc_gpu_attach does on the host, without Ansible's own
start. GPUs are simulated; containers, device cgroups and LXD are real. Needs what `tools/setup bench` puts in.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "build")

from goals import record
from lxd import Lxd

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR, Machine
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import Boxes

TIMES = 21


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Ours:
    """A host with four GPUs, and containers to give them to."""

    def __init__(self, folder):
        self.folder = folder
        self.machine = Machine(folder / "machine")
        self.machine.load()
        for address, device, minor, numa_node in FOUR:
            self.machine.pci(address, 0x10DE, device, driver="nvidia", numa_node=numa_node)
            self.machine.serve(address, minor)
        self.machine.nodes()
        self.boxes = Boxes()
        # the hooks' command must be there; no container is started again here
        self.host = persistence.Host(private=self.boxes.private, command="/bin/true")

    def run(self, work):
        """As the module's process: tables opened, GPUs found, then the verb."""
        with Store(str(self.folder / "host.db"), "bench") as store:
            run_folder = str(self.folder / "run")
            found = self.machine.find()
            site = Site(store, found, (self.boxes.lxcpath,), run_folder, self.machine.paths, self.host)
            return work(site)

    def attach(self, box):
        done = self.run(lambda site: attachment.attach(site, box, GpuRequest(1), Change(), Deadline(20)))
        assert [node["opens"] for node in done["nodes"]] == ["ENXIO"] * 5, done

    def detach(self, box):
        done = self.run(lambda site: attachment.detach(site, box, (), Change(), Deadline(20)))
        assert not any(node["after"]["allowed"] or node["after"]["node"] for node in done["nodes"]), done

    def measure(self, **config):
        """([seconds of attach], [seconds of detach])"""
        box = self.boxes.make(**config)
        turns = [(timed(lambda: self.attach(box)), timed(lambda: self.detach(box))) for _turn in range(TIMES)]
        return [list(column) for column in zip(*turns)]

    def nodes(self):
        found = self.machine.find()
        return [*found.gpus[0].nodes, *found.shared]


def lxds(folder, nodes):
    """Seconds of ([one plugged], [one unplugged], [five plugged], [five unplugged])."""
    columns = [[], [], [], []]
    with Lxd(folder) as lxd:
        for _turn in range(TIMES):
            columns[0].append(timed(lambda: lxd.plug(0, nodes[0])))
            columns[1].append(timed(lambda: lxd.unplug(0)))
            columns[2].append(timed(lambda: [lxd.plug(*pair) for pair in enumerate(nodes)]))
            columns[3].append(timed(lambda: [lxd.unplug(number) for number in range(len(nodes))]))
    return columns


def show(name, seconds):
    milliseconds = sorted(one * 1000 for one in seconds)
    median = statistics.median(milliseconds)
    print(f"{name:48} {median:8.1f} {milliseconds[0]:8.1f} {milliseconds[-1]:8.1f}", flush=True)
    return median


def main():
    print(f"{f'ms, of {TIMES} turns each':48} {'median':>8} {'best':>8} {'worst':>8}")
    with tempfile.TemporaryDirectory() as top:
        ours = Ours(Path(top))
        nodes = ours.nodes()
        assert len(nodes) == 5, nodes
        try:
            attach, detach = map(show, ("attach, 5 nodes", "detach, 5 nodes"), ours.measure())
            hidden = ("attach, 5 nodes, unprivileged container", "detach, 5 nodes, unprivileged container")
            unprivileged, _detach = map(show, hidden, ours.measure(unprivileged=True))
        finally:
            ours.boxes.end()
        names = ("LXD, 1 device added", "LXD, 1 device removed", "LXD, 5 devices added", "LXD, 5 devices removed")
        Path(top, "lxd").mkdir()
        one, gone, five, _five_gone = map(show, names, lxds(Path(top, "lxd"), nodes))
    record("GPU attach, 5 nodes", f"{attach:.1f} ms", attach <= 9)
    record("GPU attach, 5 nodes, proof included", f"{attach:.1f} ms beside {one:.1f} ms", attach < one)
    record("GPU detach, 5 nodes, proof included", f"{detach:.1f} ms beside {gone:.1f} ms", detach < gone)
    record("the same attach, beside LXD with the same 5", f"{attach:.1f} ms beside {five:.1f} ms")
    record("the same attach, unprivileged container", f"{unprivileged:.1f} ms beside {one:.1f} ms", unprivileged < one)


if __name__ == "__main__":
    main()
