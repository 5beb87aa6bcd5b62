# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container has after a restart: its own devices as they are today, or a clear refusal to start.

Tests hypervisors/lxc/device_rules.py, hypervisors/lxc/identity.py.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    device_nodes,
    identity,
    open_trial,
    persistence,
    private_nodes,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container, containers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.persistence import Persisted
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import (
    CAPS,
    GPU0,
    GPU1,
    UVM,
    Node,
    attach,
    write_command,
)

DRIVERS = (
    "Character devices:\n  1 mem\n195 nvidia-frontend\n238 nvidia-uvm\n239 nvidia-caps\n\nBlock devices:\n  7 loop\n"
)


@pytest.fixture
def host(boxes, tmp_path):
    """A host whose boot, drivers and machine id are files of the test."""
    proc, machine, command = tmp_path / "proc", tmp_path / "machine-id", tmp_path / "hetero"
    (proc / "sys/kernel/random").mkdir(parents=True)
    (proc / "sys/kernel/random/boot_id").write_text("boot-1\n")
    (proc / "devices").write_text(DRIVERS)
    machine.write_text("machine-1\n")
    made = persistence.Host(str(proc), str(machine), boxes.private, str(command))
    write_command(made)
    return made


def rule(node):
    return f"{node.kind} {node.major}:{node.minor} rw"


def wanted(*nodes, **fields):
    gpus = [{"uuid": f"GPU-{node.minor}"} for node in nodes if node.major == 195]
    return Persisted(
        **dict(dict(request=[{"count": 1}], gpus=gpus, nodes=nodes, rules=list(map(rule, nodes))), **fields)
    )


def give(container, host, *nodes):
    """As an attach does it on a running container: opened, made, and written down."""
    if identity.key_of(container) is None:
        identity.give_id(container, host.command)
    if container.init_pid:
        for node in nodes:
            container.allow(rule(node))
        device_nodes.make(container, *nodes, base=host.private)
    persistence.write(container, wanted(*nodes), host)


def can(container, *nodes):
    """Minors of those that open inside (ENXIO: allowed, no driver)."""
    found = open_trial.opens_each(container, [node.path for node in nodes])
    return [node.minor for node in nodes if found[node.path] == errno.ENXIO]


def restore(box, host, resolve=None):
    return persistence.restore(box.lxcpath, resolve or (lambda container, was, here: was), host)


def reboot_inside(container):
    """What a tenant types; LXC starts it again with what it read at the last start."""
    before = container.init_pid
    attach(container, "reboot", "-f")
    deadline = time.monotonic() + 60
    while container.init_pid in (None, before) or container.state != "RUNNING":
        assert time.monotonic() < deadline, f"{container.name} is {container.state}"
        time.sleep(0.02)


@pytest.mark.parametrize("unprivileged", [False, True])
def test_a_restart_keeps(boxes, host, unprivileged):
    """A container that is rebooted comes back without its GPU, or with one that it has no right to."""
    box = boxes.make(unprivileged=unprivileged)
    give(box, host, GPU0, CAPS)
    box.reboot(30)
    assert can(box, GPU0) == [0]
    assert open_trial.reaches(box, [GPU1.number], base=host.private) == {GPU1.number: errno.EPERM}
    assert open_trial.opens(box, "/dev/null") == 0
    assert device_nodes.look(box, CAPS.path) == CAPS.number
    # its own node: a change of its mode is not the host's, nor another container's
    assert attach(box, "chmod", "600", GPU0.path) == 0
    assert stat.S_IMODE(os.stat(private_nodes.path_of(box, GPU0.path, host.private)).st_mode) == 0o600
    assert persistence.read(box).rules == [rule(GPU0), rule(CAPS)]
    device_nodes.remove(box, GPU0.path, CAPS.path)
    assert device_nodes.look(box, GPU0.path) is None


@pytest.mark.parametrize("unprivileged", [False, True])
def test_a_reboot_from_inside_has_what_was_given_and_not_what_was_taken(boxes, host, unprivileged):
    """LXC starts it with the configuration of its last start: GPU 0, taken back since, would be open again."""
    box = boxes.make(unprivileged=unprivileged, start=False)
    give(box, host, GPU0)
    box.start(30)
    assert can(box, GPU0) == [0]
    give(box, host, GPU1)
    box.deny(rule(GPU0))
    device_nodes.remove(box, GPU0.path)
    reboot_inside(box)
    assert can(box, GPU0, GPU1) == [1]
    assert open_trial.reaches(box, [GPU0.number], base=host.private) == {GPU0.number: errno.EPERM}
    assert device_nodes.look(box, GPU0.path) is None
    box.deny(rule(GPU1))
    persistence.remove(box, host)
    assert persistence.read(box) is None
    reboot_inside(box)
    assert open_trial.reaches(box, [GPU0.number, GPU1.number], base=host.private) == dict.fromkeys(
        [GPU0.number, GPU1.number], errno.EPERM
    )
    box.reboot(30)
    box.stop()
    persistence.remove(box, host)
    assert not os.path.exists(identity.file_of(box))
    assert not os.path.exists(private_nodes.folder(box, host.private))


def test_the_same_on_cgroup_v2_alone(boxes, host, pure_v2):
    """There the monitor keeps the rules, and a container that has none must not be closed by the first."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    box.start(30)
    assert can(box, GPU0) == [0]
    assert identity.settles(box)
    give(box, host, GPU1)
    box.deny(rule(GPU0))
    device_nodes.remove(box, GPU0.path)
    for _turn in range(2):
        reboot_inside(box)
        assert open_trial.reaches(box, [GPU0.number], base=host.private) == {GPU0.number: errno.EPERM}
        # only its monitor can allow, and does so when the start is over
        deadline = time.monotonic() + 60
        while not can(box, GPU1):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    give(box, host, GPU0)
    open_to_all = boxes.make(unprivileged=True, rules=False, start=False)
    give(open_to_all, host, GPU0)
    open_to_all.start(30)
    assert open_trial.opens_each(open_to_all, ["/dev/null", GPU0.path]) == {"/dev/null": 0, GPU0.path: errno.ENXIO}


def test_a_host_restart_with_other_majors(boxes, host):
    """After a reboot 238 may be another driver's: the container would silently have that one's device."""
    box = boxes.make(start=False)
    give(box, host, GPU0, UVM)
    Path(host.proc, "sys/kernel/random/boot_id").write_text("boot-2\n")
    with pytest.raises(HeteroError, match="of an earlier boot of this host"):
        box.start(30)
    swapped = DRIVERS.replace("238 nvidia-uvm", "238 other\n240 nvidia-uvm")
    Path(host.proc, "devices").write_text(swapped)
    shutil.rmtree(host.private)
    now = replace(UVM, major=240)
    asked = []

    def resolve(container, was, here):
        asked.append((container.name, was.gpus, here))
        return replace(was, nodes=[GPU0, now], rules=[rule(GPU0), rule(now)])

    assert restore(box, host, resolve) == {box.name: None}
    assert asked == [(box.name, [{"uuid": "GPU-0"}], True)]
    content = Path(identity.file_of(box)).read_bytes()
    assert restore(box, host, resolve) == {box.name: None}
    assert Path(identity.file_of(box)).read_bytes() == content
    box.start(30)
    assert can(box, GPU0, now) == [0, 0]
    found = open_trial.reaches(box, [UVM.number, now.number], base=host.private)
    assert found == {UVM.number: errno.EPERM, now.number: errno.ENXIO}


def test_a_major_that_changes_while_the_host_runs(boxes, host):
    """A driver loaded again gets another number; who starts with the old one opens somebody else's device."""
    box = boxes.make(start=False)
    give(box, host, UVM)
    Path(host.proc, "devices").write_text(DRIVERS.replace("238 nvidia-uvm", "238 snd\n240 nvidia-uvm"))
    with pytest.raises(HeteroError, match=r"major c 238 was nvidia-uvm's and is snd's now.*hetero gpu-restore"):
        box.start(30)
    assert not box.running


def test_a_gpu_that_is_gone_stops_the_start_and_says_so(boxes, host):
    """Without a word the user's program finds no GPU an hour later."""
    box = boxes.make(start=False)
    give(box, host, GPU0)

    def lost(container, was, here):
        raise HeteroError("is not in this host any more", was.gpus[0]["uuid"], "put it back")

    assert restore(box, host, lost) == {box.name: "GPU-0: is not in this host any more: put it back"}
    with pytest.raises(HeteroError, match="cannot have the GPUs that it was given: GPU-0: is not in this host"):
        box.start(30)
    assert persistence.read(box).gpus == [{"uuid": "GPU-0"}]
    assert restore(box, host) == {box.name: None}
    box.start(30)
    assert can(box, GPU0) == [0]


def test_on_another_host_it_is_asked_for_again(boxes, host):
    """There are other GPUs behind the same names: only the request counts there."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    # as a copy from host to host: other folders, same paths
    os.rename(box.folder, f"{box.folder}-old")
    shutil.copytree(f"{box.folder}-old", box.folder, symlinks=True)
    shutil.rmtree(f"{box.folder}-old")
    Path(host.machine).write_text("machine-2\n")
    Path(host.proc, "sys/kernel/random/boot_id").write_text("boot-9\n")
    box = Container(box.name, box.lxcpath)
    with pytest.raises(HeteroError, match="of which it is a copy"):
        box.start(30)
    asked = []

    def resolve(container, was, here):
        asked.append((was.request, here))
        return wanted(GPU1)

    assert restore(box, host, resolve) == {box.name: None}
    assert asked == [([{"count": 1}], False)]
    box.reload()
    box.start(30)
    assert can(box, GPU1) == [1]
    assert open_trial.reaches(box, [GPU0.number], base=host.private) == {GPU0.number: errno.EPERM}


def test_a_copied_container_starts_without_them_or_not_at_all(boxes, host):
    """lxc-copy copies the lines that include the file: two containers would have one GPU."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    name = f"{box.name}-copy"
    # what lxc-copy does: the root, and the configuration with its paths but for what it does not know of
    shutil.copytree(box.root, box.root.replace(box.name, name), symlinks=True)
    lines = Path(box.config_file).read_text().splitlines(True)
    copied = [line.replace(box.name, name) if line.startswith(("lxc.rootfs", "lxc.uts")) else line for line in lines]
    Path(box.config_file.replace(box.name, name)).write_text("".join(copied))
    copy = Container(name, box.lxcpath)
    boxes.made.append(copy)
    assert identity.key_of(copy) is None
    assert persistence.read(copy) is None
    with pytest.raises(HeteroError, match=rf"{name} .*includes the devices of .*{box.name}, of which it is a copy"):
        copy.start(30)
    give(copy, host, GPU1)
    assert identity.key_of(copy) != identity.key_of(box)
    copy.start(30)
    assert can(copy, GPU0, GPU1) == [1]
    # put in the place of the one that it was copied from, by hand
    copy.stop()
    shutil.rmtree(box.folder)
    subprocess.run(["cp", "-a", copy.folder, box.folder], check=True)
    assert identity.key_of(box) is None


def test_a_new_container_of_the_same_name_has_nothing(boxes, host):
    """Whoever gets the name next would get the last one's GPU."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    before = identity.key_of(box)
    assert before.startswith(f"{box.folder}#")
    box.destroy()
    assert not os.path.lexists(box.folder)
    again = boxes.make(name=box.name)
    assert identity.key_of(again) is None
    assert persistence.read(again) is None
    assert open_trial.reaches(again, [GPU0.number], base=host.private) == {GPU0.number: errno.EPERM}
    assert identity.give_id(again) != before


def test_a_lost_folder_is_no_trouble_to_others(boxes, host):
    """An include that is missing breaks lxc-ls, and the start, of a container that never wanted a GPU."""
    box = boxes.make(start=False)
    text = Path(box.config_file).read_text()
    give(box, host, GPU0)
    shutil.rmtree(identity.folder_of(box))
    assert containers(box.lxcpath) == [box.name]
    box.reload()
    assert box.get("lxc.uts.name") == box.name
    box.start(30)
    assert Path(box.config_file).read_text().startswith(text)


def test_a_missing_node_of_the_host_stops_the_start(boxes, host):
    """A bind that is optional would leave the container running without its GPU."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    path = Path(box.config_file)
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "hook" not in line))
    shutil.rmtree(host.private)
    with pytest.raises(HeteroError, match="does not start"):
        Container(box.name, box.lxcpath).start(30)


def test_damage_is_said_and_mended_by_the_next_write(boxes, host):
    """A file that nobody can read keeps the container from starting with who knows what."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    path = Path(identity.file_of(box))
    path.write_text(path.read_text().replace(persistence.DATA, f"{persistence.DATA}["))
    with pytest.raises(HeteroError, match="was not written by this version"):
        persistence.read(box)
    with pytest.raises(HeteroError, match="was not written by this version"):
        box.start(30)
    assert "was not written by this version" in restore(box, host)[box.name]
    persistence.write(box, wanted(GPU0), host)
    box.start(30)
    assert can(box, GPU0) == [0]


@pytest.mark.parametrize("odd", [OSError(5, "Input/output error"), ValueError("no number"), KeyError("uuid")])
def test_one_that_is_odd_keeps_no_other_from_its_devices(boxes, host, odd):
    """Lost: the GPUs of all containers after a restart of the host, to the file of one."""
    made = [boxes.make(start=False, name=name) for name in ("hetero-test-a", "hetero-test-b", "hetero-test-c")]
    for box in made:
        give(box, host, GPU0)
    Path(identity.file_of(made[0])).write_bytes(b"\xff\xfe")  # no text at all

    def resolve(container, was, here):
        if container.name == "hetero-test-b":
            raise odd
        return was

    done = restore(made[2], host, resolve)
    assert done["hetero-test-c"] is None
    said = f"container hetero-test-b of {made[1].lxcpath}: cannot be looked at ({type(odd).__name__}: "
    assert done["hetero-test-b"].startswith(said)
    assert "UnicodeDecodeError" in done["hetero-test-a"]


def test_a_second_write_changes_nothing(boxes, host):
    """A module that runs twice must not rewrite a container's configuration."""
    box = boxes.make(start=False)
    give(box, host, GPU0)
    files = [Path(box.config_file), Path(identity.file_of(box))]
    before = [(file.read_bytes(), file.stat().st_ino) for file in files]
    give(box, host, replace(GPU0, mode=None, uid=None, gid=None))
    assert [(file.read_bytes(), file.stat().st_ino) for file in files] == before
    assert Node(GPU0.path, 195, 0) == GPU0
