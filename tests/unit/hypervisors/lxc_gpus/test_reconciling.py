# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a container that can open another's GPU is not found, or a repair takes away what somebody uses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import ATTACHING, DETACHING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts, stillness
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import open_trial, persistence
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_attachment import (
    BLUEPRINT,
    own_node,
    working,
)

FIRST, SECOND = ADDRESSES[:2]


@pytest.fixture(params=["hybrid", "pure v2"])
def layout(request):
    if request.param == "pure v2":
        request.getfixturevalue("pure_v2")
    return request.param


def repaired(host):
    """{kind: done} of one repair; the next one finds nothing and changes nothing."""
    check = host.reconcile(repair=True, check=True)
    done = host.reconcile(repair=True)
    assert [finding["error"] for finding in done["findings"] if finding["error"]] == []
    assert [finding["done"] for finding in check["findings"]] == [finding["done"] for finding in done["findings"]]
    assert done["changed"]
    again = host.reconcile(repair=True)
    assert (again["changed"], again["findings"]) == (False, [])
    assert {"table", "processes"} <= set(again["seconds"]), "what took how long"
    return {finding["kind"]: finding["done"] for finding in done["findings"]}


def test_where_all_is_well_nothing_is_found(host, layout):
    assert host.found() == set()
    box, other = host.boxes.make(), host.boxes.make()
    host.attach(box, 2)
    host.attach(other, 1)
    stopped = host.boxes.make(start=False)
    host.attach(stopped, 1)
    assert host.found() == set()
    done = host.reconcile(repair=True)
    assert (done["changed"], done["findings"]) == (False, [])


def test_the_blueprints_rule_is_found_and_closed(host, layout):
    """Every GPU open to every container: two users of one GPU."""
    wild, fair = host.boxes.make(BLUEPRINT), host.boxes.make()
    host.attach(fair, 1, share=True)
    assert host.can_open(wild) == ADDRESSES
    assert host.found() == {("wildcard", wild.name, address) for address in ADDRESSES} | {
        ("left-over node", wild.name, None)
    }
    assert repaired(host) == {"wildcard": "closed", "left-over node": "closed"}
    assert host.can_open(wild) == []
    assert len(host.can_open(fair)) == 1
    assert open_trial.opens(wild, "/dev/null") == 0
    assert host.attach(fair, 2)["changed"]


def test_a_wild_container_keeps_its_own(host):
    wild = host.boxes.make()
    host.attach(wild, gpus=[FIRST])
    wild.allow("c 195:* rwm")
    assert host.found() == {("wildcard", wild.name, address) for address in ADDRESSES[1:]}
    repaired(host)
    assert host.can_open(wild) == [FIRST]


def test_a_rule_and_a_node_of_a_gpu_that_was_not_given(host, layout):
    box = host.boxes.make()
    box.allow(f"c 195:{MINORS[FIRST]} rw")
    os.mknod(f"/proc/{box.init_pid}/root{own_node(SECOND)}", 0o20666, os.makedev(195, MINORS[SECOND]))
    assert host.found() == {("not allocated", box.name, FIRST), ("left-over node", box.name, SECOND)}
    repaired(host)
    assert host.can_open(box) == host.nodes(box) == []


def test_a_rule_for_a_gpu_is_enough_to_be_found(host):
    """It has no node and may make none; a node may come, and then it is in."""
    box, other = host.boxes.make(unprivileged=True), host.boxes.make()
    box.allow(f"c 195:{MINORS[FIRST]} rw")
    assert host.found() == {("not allocated", box.name, FIRST)}
    with pytest.raises(NoneFree, match=f"container {box.name} can open it"):
        host.attach(other, gpus=[FIRST])


def test_without_rules_what_may_make_no_node_is_isolated_and_keeps_no_gpu_from_others(host):
    box, other = host.boxes.make("lxc.cap.drop = mknod", rules=False), host.boxes.make()
    assert host.found() == {("node-only", box.name, address) for address in ADDRESSES}
    assert host.attach(other, gpus=[FIRST])["changed"]
    os.mknod(f"/proc/{box.init_pid}/root{own_node(SECOND)}", 0o20666, os.makedev(195, MINORS[SECOND]))
    with pytest.raises(NoneFree, match=f"container {box.name} can open it"):
        host.attach(other, gpus=[SECOND])


def test_what_a_process_uses_is_not_closed(host):
    box = host.boxes.make()
    box.allow(f"c 195:{MINORS[FIRST]} rw")
    process, pid = working(box)
    host.uses(pid, FIRST)
    done = host.reconcile(repair=True)
    (finding,) = done["findings"]
    assert finding["done"] is None
    assert f"pid {pid} " in finding["error"]
    assert host.can_open(box) == [FIRST]
    # lxc-attach ends with it; the other way round it is left to who adopts orphans, and its container waits for that
    os.kill(pid, signal.SIGKILL)
    process.wait(60)


def test_a_look_does_not_judge_a_container_that_is_just_given_a_gpu(host):
    """Lost: another user's attach, shown as one that was cut short, with a repair for it."""
    box = host.boxes.make()
    box.allow(f"c 195:{MINORS[FIRST]} rw")
    with lock(host.run_folder, box.lock_name, "attach", "jo", Deadline(1)):
        (finding,) = host.reconcile()["findings"]
    assert (finding["kind"], finding["done"]) == ("not looked at", None)
    assert re.fullmatch(r"busy with attach \(jo, pid [0-9]+, since [0-9:]+\): not looked at", finding["found"])
    assert host.found() == {("not allocated", box.name, FIRST)}


def test_what_was_cut_short_is_finished(host):
    box, other = host.boxes.make(), host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.attach(other, gpus=[SECOND])
    with Store(host.state_db) as store:
        mine, its = store.allocations()
        store.grant(replace(mine, state=ATTACHING))
        store.grant(replace(its, state=DETACHING))
    box.deny(f"c 195:{MINORS[FIRST]} rw")
    persistence.remove(box, host.here)
    assert host.found() == {("incomplete", box.name, FIRST), ("being taken back", other.name, SECOND)}
    said = {finding["kind"]: finding["found"] for finding in host.reconcile()["findings"]}
    assert said["incomplete"].startswith("its attaching was cut short; ")
    repaired(host)
    assert host.table() == {FIRST: [box.name]}
    assert (host.can_open(box), host.can_open(other)) == ([FIRST], [])
    box.reboot(30)
    assert host.can_open(box) == [FIRST]


def test_a_container_that_is_no_more_holds_nothing(host):
    box = host.boxes.make()
    host.attach(box, 1)
    address = next(iter(host.table()))
    box.stop()
    box.destroy()
    assert host.found() == {("no holder", None, address)}
    assert repaired(host) == {"no holder": "freed"}
    assert host.table() == {}


def test_a_major_that_is_another_drivers_by_now(host, layout):
    """nvidia-uvm was loaded anew and has another number: the old one would open another driver's device."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.machine.write_majors(nvidia_uvm=241, other=238)
    host.machine.node("nvidia-uvm", 241, 0)
    host.machine.node("nvidia-uvm-tools", 241, 1)
    kinds = {kind for kind, _container, _address in host.found()}
    assert kinds == {"stale major", "incomplete"}
    stale = [finding["found"] for finding in host.reconcile()["findings"] if finding["kind"] == "stale major"]
    said = "/dev/nvidia-uvm was given as 238:0, its driver's is 241:0; 238 is other's now"
    assert sorted(stale)[0] == said
    repaired(host)
    asked = of_container(box.init_pid, box.name)
    assert [asked.may("c", major, minor, "r") for major in (238, 241) for minor in (0, 1)] == [False, False, True, True]
    node = os.stat(f"/proc/{box.init_pid}/root/dev/nvidia-uvm")
    assert os.major(node.st_rdev) == 241


def test_isolation_by_the_absence_of_nodes_is_reported_and_not_called_proven(host):
    box = host.boxes.make(unprivileged=True, rules=False)
    assert host.found() == {("node-only", box.name, address) for address in ADDRESSES}
    assert host.reconcile(repair=True)["changed"] is False


def test_a_process_of_the_host_is_reported(host):
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.uses(os.getpid(), FIRST)
    assert host.found() == {("used by the host", None, FIRST)}


def test_a_gpu_that_is_gone_is_reported(host):
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.pull_out(FIRST)
    assert host.found() == {("lost GPU", None, FIRST)}


@pytest.mark.parametrize("next_one", ["reconcile", "attach", "detach"])
def test_a_container_that_a_killed_look_left_frozen_goes_on(host, layout, next_one):
    """Lost: the tenant's container, which answers nobody, and of which everything else says that it runs."""
    box = host.boxes.make()
    host.attach(box, 1)
    directories = of_container(box.init_pid, box.name).folders
    freezer = stillness._freezer(directories)
    os.setxattr(freezer.folder, stillness.MARK, b"1.0" + stillness.FROZE)
    Path(freezer.folder, freezer.file).write_bytes(freezer.freeze)
    if next_one == "attach":
        host.attach(box, 2)
    elif next_one == "detach":
        host.detach(box)
    else:
        assert host.found() == {("stands still", box.name, None)}
        assert freezer.is_set
        assert repaired(host) == {"stands still": "let go on"}
    assert not freezer.is_set
    assert freezer.mark is None


def test_a_container_that_its_operator_froze_stays_so(host, layout):
    """Lost: what somebody froze it for, such as a copy of its root."""
    box = host.boxes.make()
    host.attach(box, 1)
    folders = mounts.directories(mounts.cgroups(box.init_pid))
    files = [Path(folders[mounts.V2], "cgroup.freeze")]
    files += [Path(folder, "freezer.self_freezing") for folder in [folders.get(mounts.FREEZER)] if folder]
    subprocess.run(["lxc-freeze", "-P", box.lxcpath, "-n", box.name], check=True, timeout=60)
    try:
        before = [file.read_text().strip() for file in files]
        assert "1" in before
        assert host.found() == set()
        with suppress(HeteroError):  # who asks within such a one says that it stands still
            host.detach(box)
        assert [file.read_text().strip() for file in files] == before
        assert box.state == "FROZEN"
    finally:
        subprocess.run(["lxc-unfreeze", "-P", box.lxcpath, "-n", box.name], check=True, timeout=60)
    host.detach(box)
    assert host.table() == {}
