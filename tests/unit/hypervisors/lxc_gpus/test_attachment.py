# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a container gets a GPU that is not its own, keeps one that was taken back, or is told that it has one
that it cannot open."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import members
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    identity,
    open_trial,
    persistence,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment, site
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import attach as run_inside
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS, SHARED

FIRST, SECOND = ADDRESSES[:2]
#: The blueprint's original gave this to every container.
BLUEPRINT = "lxc.cgroup.devices.allow = c 195:* rwm\nlxc.cgroup2.devices.allow = c 195:* rwm"


def own_node(address):
    return f"/dev/nvidia{MINORS[address]}"


def working(container):
    """A process inside, and its pid as the host has it."""
    line = ["lxc-attach", "-P", container.lxcpath, "-n", container.name, "--clear-env", "--", "/bin/sh", "-c"]
    process = subprocess.Popen([*line, "echo here; exec sleep 7777"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"here\n"
    process.stdout.close()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        cgroup = of_container(container.init_pid, container.name)
        for pid in members.pids_below([side.path for side in (cgroup.v1, cgroup.v2) if side]):
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") == [b"sleep", b"7777", b""]:
                return process, pid
    raise AssertionError("it did not start")


def test_two_gpus_are_given_and_taken_back(host):
    box = host.boxes.make()
    given = host.attach(box, 2)
    assert given["changed"]
    assert [gpu["address"] for gpu in given["gpus"]] == ADDRESSES[:2] == host.can_open(box)
    assert host.table() == {address: [box.name] for address in ADDRESSES[:2]}
    assert [node["path"] for node in given["nodes"]] == [own_node(one) for one in ADDRESSES[:2]] + SHARED
    for node in given["nodes"]:
        assert node["before"] == {"allowed": False, "node": False}
        assert node["after"] == {"allowed": True, "node": True}
        assert node["opens"] == "ENXIO"
    assert given["isolation"] == "cgroup"
    assert "stop and start it once" in given["notes"][0]
    assert [(other["address"], other["state"]) for other in given["others"]] == [(a, "closed") for a in ADDRESSES[2:]]
    assert host.attach(box, 2)["changed"] is False
    taken = host.detach(box, ADDRESSES[0])
    assert taken["changed"]
    assert host.can_open(box) == [ADDRESSES[1]]
    assert f"nvidia{MINORS[ADDRESSES[0]]}" not in host.nodes(box)
    assert "nvidiactl" in host.nodes(box)
    assert host.table() == {ADDRESSES[1]: [box.name]}
    host.detach(box)
    assert host.can_open(box) == host.nodes(box) == []
    assert host.table() == {}
    assert host.detach(box)["changed"] is False


def test_pure_v2(host, pure_v2):
    test_two_gpus_are_given_and_taken_back(host)


@pytest.fixture(params=["hybrid", "pure v2"])
def layout(request):
    """Device cgroups of both versions, and of version 2 alone."""
    if request.param == "pure v2":
        request.getfixturevalue("pure_v2")
    return request.param


@pytest.mark.parametrize("rules", [True, False])
def test_an_unprivileged_container(host, layout, rules):
    """Without device rules of its own it must keep /dev/null: one rule more, and LXC denies what it does not name."""
    box = host.boxes.make(unprivileged=True, rules=rules)
    given = host.attach(box, gpus=[FIRST])
    assert given["isolation"] == ("cgroup" if rules else "node-only")
    assert [node["opens"] for node in given["nodes"]] == ["ENXIO"] * 5
    assert open_trial.opens(box, "/dev/null") == 0
    assert host.attach(box, gpus=[FIRST])["changed"] is False
    host.detach(box)
    assert host.nodes(box) == []
    assert FIRST not in host.can_open(box)
    assert open_trial.opens(box, "/dev/null") == 0
    assert host.attach(box, gpus=[FIRST])["changed"]
    assert open_trial.opens(box, own_node(FIRST)) == 6  # ENXIO


def test_a_rule_that_a_deny_does_not_match_is_closed_all_the_same(host, layout):
    """On v2 LXC takes "deny c 195:0 rw" of a container that has "c 195:0 rwm", says yes and does nothing."""
    box = host.boxes.make()
    minor = MINORS[FIRST]
    box.allow(f"c 195:{minor} rwm")
    assert host.attach(box, gpus=[FIRST])["changed"]
    host.detach(box)
    assert host.can_open(box) == []
    host.attach(box, gpus=[FIRST])
    assert host.can_open(box) == [FIRST]


def test_the_blueprints_rule_is_found_and_nothing_is_given(host, layout):
    """With every GPU open to every container nobody has one for himself: so none is given, and it is said why."""
    wild = host.boxes.make(BLUEPRINT)
    with pytest.raises(Refused, match="can open GPUs that it was not given") as refused:
        host.attach(wild, gpus=[FIRST])
    assert "gpu_reconcile" in str(refused.value)
    other = host.boxes.make()
    with pytest.raises(NoneFree) as none:
        host.attach(other, 1)
    assert set(none.value.facts["rejected"]) == set(ADDRESSES)
    assert all(f"container {wild.name} can open it" in why for why in none.value.facts["rejected"].values())
    assert host.table() == {}
    assert host.nodes(other) == host.nodes(wild) == []
    assert host.attach(other, 1, share=True)["changed"]


def test_a_privileged_container_without_any_rule_can_open_everything(host, layout):
    wild = host.boxes.make(rules=False)
    other = host.boxes.make()
    with pytest.raises(NoneFree, match="it may make nodes"):
        host.attach(other, 1)
    assert open_trial.opens(wild, "/dev/null") == 0


def test_what_a_process_has_open_is_not_taken_back_in_silence(host):
    """A revoked right closes no file: a GPU that is given to the next would be used by two."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    process, pid = working(box)
    host.uses(pid, FIRST)
    host.uses(os.getpid(), FIRST)  # of no container: it is no holder
    with pytest.raises(Refused, match=rf"has GPU nodes open: pid {pid} \w+: end them, or say .* wait or kill"):
        host.detach(box)
    assert host.can_open(box) == [FIRST]
    began = time.monotonic()
    with pytest.raises(TimedOut, match=rf"still has it open after 0\.5 s: pid {pid} "):
        host.detach(box, on_holders="wait", seconds=0.5)
    assert 0.5 <= time.monotonic() - began < 60
    assert host.can_open(box) == []
    assert host.table() == {FIRST: [box.name]}
    with pytest.raises(NoneFree):
        host.attach(host.boxes.make(), gpus=[FIRST])
    done = host.detach(box, on_holders="kill")
    assert [holder["pid"] for holder in done["holders"]] == [pid]
    assert process.wait(60) != 0
    assert host.table() == {}


@pytest.mark.parametrize("names", [[FIRST], []])
def test_what_nobody_gave_is_given_to_nobody_while_a_process_has_it(host, names):
    """Lost: a GPU of the next tenant, to one who had it by a rule of his own, and has it open since."""
    box, other = host.boxes.make(), host.boxes.make()
    box.allow(f"c 195:{MINORS[FIRST]} rw")
    process, pid = working(box)
    host.uses(pid, FIRST)
    with pytest.raises(TimedOut, match=rf"still has it open after 0\.5 s: pid {pid} "):
        host.detach(box, *names, on_holders="wait", seconds=0.5)
    assert host.can_open(box) == []
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[FIRST])
    assert [holder["pid"] for holder in host.detach(box, *names, on_holders="kill")["holders"]] == [pid]
    process.wait(60)
    assert host.table() == {}
    assert host.attach(other, gpus=[FIRST])["changed"]


def test_a_gpu_that_may_be_hidden_is_not_free(host):
    """Lost: a GPU that goes to the next tenant while the last one has it, sent to a socket of his own and not received;
    or a program that was ended on that guess."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    process, pid = working(box)
    host.hides(pid, 1)
    hides = rf"pid {pid} \w+ \(1 file sent to its socket 5\): the kernel does not say which files these are: end those"
    with pytest.raises(Refused, match=f"may have GPU nodes open: {hides} processes, or stop the container") as refused:
        host.detach(box)
    assert [holder["pid"] for holder in refused.value.facts["holders"]] == [pid]
    assert host.can_open(box) == [FIRST]
    for how in ("wait", "kill"):
        with pytest.raises(TimedOut, match=rf"may still have it open after 0\.5 s: {hides}"):
            host.detach(box, on_holders=how, seconds=0.5)
        assert host.can_open(box) == []
        assert host.table() == {FIRST: [box.name]}
    assert process.poll() is None
    host.hides(pid, 0)
    assert host.detach(box, on_holders="wait")["holders"] == []
    assert host.table() == {}
    # lxc-attach ends with it; the other way round it is left to who adopts orphans, and its container waits for that
    os.kill(pid, signal.SIGKILL)
    process.wait()


def test_losers_are_told_why_and_have_no_node(host):
    first, second = host.boxes.make(), host.boxes.make()
    host.attach(first, 3)
    with pytest.raises(NoneFree, match="wants 2 GPUs, 1 free") as none:
        host.attach(second, 2)
    assert all(why.startswith(f"allocated to {first.name} since ") for why in none.value.facts["rejected"].values())
    assert host.nodes(second) == host.can_open(second) == []
    assert identity.key_of(second)
    assert len(host.table()) == 3


def test_shared_gpus(host):
    boxes = [host.boxes.make() for _number in range(2)]
    for box in boxes:
        host.attach(box, gpus=[FIRST], share=True)
    assert host.table() == {FIRST: [box.name for box in boxes]}
    with pytest.raises(NoneFree, match="shared by"):
        host.attach(host.boxes.make(), gpus=[FIRST])
    host.detach(boxes[0])
    assert host.can_open(boxes[1]) == [FIRST]
    assert host.table() == {FIRST: [boxes[1].name]}


def test_check_mode_tells_and_changes_nothing(host):
    box = host.boxes.make()
    told = host.attach(box, gpus=[FIRST], check=True)
    assert told["changed"]
    assert host.nodes(box) == host.can_open(box) == []
    assert not os.path.exists(host.state_db)
    assert identity.key_of(box) is None
    diff = {entry["before_header"]: (entry["before"], entry["after"]) for entry in told["diff"]}
    assert diff[box.thing] == ({"id": None, "gpus": []}, {"id": "a new one", "gpus": [FIRST]})
    assert diff[f"{box.thing} {own_node(FIRST)}"][1] == {"allowed": True, "node": True}
    host.attach(box, gpus=[FIRST])
    assert host.attach(box, gpus=[FIRST], check=True)["changed"] is False
    told = host.detach(box, check=True)
    assert told["changed"]
    assert host.can_open(box) == [FIRST]
    assert host.table() == {FIRST: [box.name]}


def test_two_verbs_on_a_container_take_turns_and_a_dry_run_waits_for_none(host):
    """Lost: a GPU that one play takes back while another gives it; or a dry run, for as long as another works."""
    box = host.boxes.make()
    with lock(host.run_folder, box.lock_name, "detach", "jo", Deadline(20)):
        assert host.attach(box, gpus=[FIRST], check=True)["changed"]
        with pytest.raises(TimedOut, match=r"still held by detach \(jo"):
            host.attach(box, gpus=[FIRST], seconds=0.5)
    assert host.can_open(box) == []


def test_who_is_given_a_gpu_while_it_runs_is_told_to_start_anew_once(host):
    """Lost: GPUs, by a reboot typed inside, of which nobody had said that it costs them."""
    box, stopped = host.boxes.make(), host.boxes.make(start=False)
    (note,) = host.attach(box, gpus=[FIRST])["notes"]
    assert "stop and start it once" in note
    assert host.attach(stopped, gpus=[SECOND])["notes"] == []


def test_who_waits_for_a_container_is_told_for_what(host, monkeypatch):
    """Lost: whether to wait, or to look for a play that hangs."""
    held, taken = [], site.lock
    monkeypatch.setattr(site, "lock", lambda *words: held.append(words[2:4]) or taken(*words))
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.detach(box)
    assert held == [("attach", "test"), ("detach", "test")]


def test_what_was_taken_away_by_hand_is_put_back(host, layout):
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    box.deny(f"c 195:{MINORS[FIRST]} rw")
    os.unlink(f"/proc/{box.init_pid}/root/dev/nvidiactl")
    assert host.can_open(box) == []
    again = host.attach(box, gpus=[FIRST])
    wrong = [node["path"] for node in again["nodes"] if node["before"] != node["after"]]
    assert wrong == [own_node(FIRST), "/dev/nvidiactl"]
    assert host.can_open(box) == [FIRST]
    assert host.attach(box, gpus=[FIRST])["changed"] is False


def test_a_container_that_does_not_run_has_them_at_its_start_and_after_a_restart(host, layout):
    box = host.boxes.make(start=False)
    given = host.attach(box, gpus=[FIRST])
    assert (given["running"], given["nodes"], given["isolation"]) == (False, [], None)
    assert host.attach(box, gpus=[FIRST])["changed"] is False
    box.start(30)
    assert host.can_open(box) == [FIRST]
    running = host.attach(box, gpus=[FIRST])
    assert running["changed"] is False, running["diff"]
    assert [node["opens"] for node in running["nodes"]] == ["ENXIO"] * 5
    box.reboot(30)
    assert host.can_open(box) == [FIRST]
    again = host.attach(box, gpus=[FIRST])
    assert (again["changed"], again["notes"]) == (False, [])
    host.detach(box)
    assert host.can_open(box) == host.nodes(box) == []
    box.reboot(30)
    assert host.can_open(box) == host.nodes(box) == []


def test_for_one_run_only(host):
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST], persistent=False)
    assert persistence.read(box) is None
    box.reboot(30)
    assert host.can_open(box) == []
    assert host.table() == {FIRST: [box.name]}
    host.attach(box, gpus=[FIRST])
    assert host.can_open(box) == [FIRST]


def test_a_new_container_of_the_same_name_inherits_nothing(host):
    box = host.boxes.make()
    host.attach(box, 2)
    box.stop()
    box.destroy()
    again = host.boxes.make(name=box.name)
    assert host.can_open(again) == []
    other = host.boxes.make()
    host.attach(other, 4)
    assert host.can_open(other) == ADDRESSES
    assert host.table() == {address: [other.name] for address in ADDRESSES}


def test_a_destroyed_containers_gpus_are_freed_by_detaching_it(host):
    box = host.boxes.make()
    host.attach(box, 2)
    box.stop()
    box.destroy()
    done = host.detach(Container(box.name, box.lxcpath))
    assert done["changed"]
    assert host.table() == {}
    assert host.detach(Container(box.name, box.lxcpath))["changed"] is False


def test_what_fails_on_the_way_is_taken_back(host):
    """mknod inside needs a capability that this container dropped: the GPU must not stay with it."""
    box = host.boxes.make("lxc.cap.drop = mknod")
    with pytest.raises(HeteroError, match="mknod"):
        host.attach(box, 1, method="lxc-attach")
    assert host.table() == {}
    assert host.can_open(box) == host.nodes(box) == []
    assert host.attach(box, 1)["changed"]
    other = host.boxes.make()
    assert host.attach(other, gpus=[SECOND], method="lxc-attach")["changed"]
    assert run_inside(other, "/bin/sh", "-c", f"test -c {own_node(SECOND)}") == 0


def test_a_node_that_does_not_open_is_no_success(host):
    """The device cgroup allows it and the node is there, but its owner and mode keep this container's root out."""
    path = host.machine.root / "dev" / own_node(FIRST)[5:]
    os.chown(path, 1234, 1234)
    path.chmod(0o600)
    box = host.boxes.make("lxc.cap.drop = dac_override dac_read_search")
    with pytest.raises(HeteroError, match=f"{own_node(FIRST)} was opened for it, and is closed .*EACCES"):
        host.attach(box, gpus=[FIRST])
    assert host.table() == {}
    assert host.can_open(box) == host.nodes(box) == []


def test_a_container_that_is_restarted_meanwhile_has_its_gpu_all_the_same(host, monkeypatch):
    box, real, starts = host.boxes.make(), attachment.persist, []

    def restarted(*args):
        if not starts:
            starts.append(box.init_pid)
            box.reboot(30)
        return real(*args)

    monkeypatch.setattr(attachment, "persist", restarted)
    host.attach(box, gpus=[FIRST], persistent=False)
    assert starts != [box.init_pid]
    assert host.can_open(box) == [FIRST]
    starts.clear()
    host.detach(box)
    assert starts != [box.init_pid]
    assert host.can_open(box) == []


def test_libraries_of_another_driver_are_refused_before_anything_is_given(host):
    box = host.boxes.make()
    folder = f"{box.root}/usr/lib/x86_64-linux-gnu"
    os.makedirs(folder)
    open(f"{folder}/libcuda.so.550.54.15", "w", encoding="ascii").close()
    os.symlink("libcuda.so.550.54.15", f"{folder}/libcuda.so.1")
    with pytest.raises(Refused, match=r"do not fit the host's driver 390.157: .*libcuda.so.550.54.15 is 550.54.15"):
        host.attach(box, 1)
    assert host.table() == {}
    assert host.nodes(box) == []


def test_a_node_that_is_wrong_on_the_host_is_told_before_anything_is_opened(host):
    box = host.boxes.make()
    host.machine.node("nvidia-uvm", 10, 229)
    with pytest.raises(Refused, match=r"/dev/nvidia-uvm: is 10:229, but its driver's is 238:0 now"):
        host.attach(box, 1)
    assert host.table() == {}
    assert host.can_open(box) == []


def test_a_gpu_that_fell_ill_is_not_given(host):
    host.machine.log("NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.")
    box = host.boxes.make()
    assert [gpu["address"] for gpu in host.attach(box, 3)["gpus"]] == ADDRESSES[1:]
    with pytest.raises(NoneFree, match="Xid 79"):
        host.attach(host.boxes.make(), gpus=[FIRST])


def test_a_gpu_in_another_slot_is_still_its_own(host):
    """Identity is the UUID: cards that were swapped while the machine was off."""
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.machine.serve(FIRST, MINORS[SECOND])
    host.machine.serve(SECOND, MINORS[FIRST])
    assert [gpu["address"] for gpu in host.attach(box, 1)["gpus"]] == [SECOND]
    assert host.table() == {SECOND: [box.name]}


def test_a_gpu_that_is_gone_is_told_and_can_be_detached(host):
    box = host.boxes.make()
    host.attach(box, gpus=[FIRST])
    host.pull_out(FIRST)
    with pytest.raises(Refused, match=f"has GPU {FIRST}"):
        host.attach(box, 1)
    host.detach(box, FIRST)
    assert own_node(FIRST)[5:] not in host.nodes(box)
    asked = of_container(box.init_pid, box.name)
    assert not asked.may("c", 195, MINORS[FIRST], "r")
    assert host.attach(box, 1)["changed"]


def test_what_is_no_container_is_told(host):
    with pytest.raises(BadInput, match="there is no such container"):
        host.attach(Container("nobody", host.boxes.lxcpath), 1)
    with pytest.raises(BadInput, match="is no GPU of this host"):
        host.detach(host.boxes.make(), "0000:99:00.0")


def test_on_a_host_that_nobody_set_up_gpus_are_given_for_one_run_only(host):
    """What a container has after its restart is checked by a command of the host: without it, it would not start."""
    os.unlink(host.here.command)
    box = host.boxes.make()
    with pytest.raises(Refused, match="persistent: false"):
        host.attach(box, 1)
    assert host.attach(box, 1, persistent=False)["changed"]
    box.reboot(30)


def test_nvswitch_is_refused_with_the_reason(host):
    host.machine.pci("0000:c0:00.0", 0x10DE, 0x1AF1, 0x068000, driver="nvidia-nvswitch")
    with pytest.raises(Refused, match=r"NVSwitch at 0000:c0:00\.0"):
        host.attach(host.boxes.make(), 1)
