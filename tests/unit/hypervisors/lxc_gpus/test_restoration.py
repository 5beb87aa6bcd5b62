# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs after a restart of their host: the same ones with today's numbers, others on another host, or a refusal.

Tests nodes/compute_host/gpu_restore.py.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity, persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import gpu_restore
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def restore(host, **fields):
    """As at the boot of a host whose machine id and boot are as given."""
    with Store(host.state_db, "test") as store:
        site = host.site(store)
        site.host = replace(host.here, **fields)
        return restoration.restore(site)


def other_majors(host):
    """The driver nvidia-uvm is loaded again: 240 now, and what it had is somebody else's."""
    host.machine.write_majors(nvidia_uvm=240, snd=238)
    host.machine.node("nvidia-uvm", 240, 0)
    host.machine.node("nvidia-uvm-tools", 240, 1)


def move(host, address, other):
    """The GPU is put into another slot."""
    devices, gpus = host.machine.root / "sys/bus/pci/devices", host.machine.nvidia / "gpus"
    os.rename(devices / address, devices / other)
    os.rename(gpus / address, gpus / other)


@contextmanager
def out_of_sight(box):
    """A container's folder is not there for a while, so that nothing says what it has."""
    os.rename(box.folder, f"{box.lxcpath}-away")
    yield
    os.rename(f"{box.lxcpath}-away", box.folder)


def test_the_numbers_of_today(host):
    """A container that starts with a number of before opens another driver's device."""
    box = host.boxes.make(start=False)
    host.attach(box, 2)
    before = persistence.read(box)
    other_majors(host)
    assert restore(host) == {box.name: None}
    now = persistence.read(box)
    assert now.gpus == before.gpus
    assert [rule for rule in now.rules if rule not in before.rules] == ["c 240:0 rw", "c 240:1 rw"]
    assert not any(rule.startswith("c 238:") for rule in now.rules)
    assert restore(host) == {box.name: None}
    assert persistence.read(box) == now


def test_a_gpu_in_another_slot_is_followed(host):
    """The same GPU, by its UUID, is still this container's; and the one in its old place is not."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    move(host, ADDRESSES[0], "0000:0c:00.0")
    assert restore(host) == {box.name: None}
    assert persistence.read(box).gpus[0]["address"] == "0000:0c:00.0"
    assert host.table() == {"0000:0c:00.0": [box.name]}


def test_a_lost_gpu_is_said(host):
    """Its container does not start without it (hypervisors/lxc/test_persistence.py), and its user is told why."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    host.pull_out(ADDRESSES[0])
    why = restore(host)[box.name]
    assert f"GPU {ADDRESSES[0]}: is no more on this host" in why
    assert persistence.read_file(identity.file_of(box)).refused == why


def test_a_table_that_lost_it(host):
    """From an old backup, say: what nobody else has is the container's again, what somebody has stays theirs."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    os.unlink(host.state_db)
    assert restore(host) == {box.name: None}
    assert host.table() == {ADDRESSES[0]: [box.name]}
    os.unlink(host.state_db)
    with out_of_sight(box):
        host.attach(other, gpus=[ADDRESSES[0]])
    assert "allocated to" in restore(host)[box.name]
    assert host.table() == {ADDRESSES[0]: [other.name]}


def test_what_a_file_says_is_given_to_nobody_before_it_is_written_down_again(host):
    """Lost: a GPU of a container that is down, to the next who asks on a host whose table is older."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    os.unlink(host.state_db)
    with pytest.raises(NoneFree, match=f"container {box.name} can open it, nobody allocated it .by its own file"):
        host.attach(other, gpus=[ADDRESSES[0]])
    assert restore(host) == {box.name: None}
    assert host.table() == {ADDRESSES[0]: [box.name]}


def test_another_host_gives_others(host, tmp_path):
    """There the GPUs of before are nobody's: the request counts, and what is taken there stays taken."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, 2)
    old = persistence.read(box)
    os.unlink(host.state_db)
    with out_of_sight(box):
        host.attach(other, gpus=[ADDRESSES[0]])
    os.rename(box.folder, f"{box.folder}-old")
    shutil.copytree(f"{box.folder}-old", box.folder, symlinks=True)
    shutil.rmtree(f"{box.folder}-old")
    Path(tmp_path / "machine-id").write_text("another\n")
    done = restore(host, machine=str(tmp_path / "machine-id"))
    moved = Container(box.name, box.lxcpath)
    assert done[box.name] is None
    assert identity.key_of(moved) is not None
    now = persistence.read(moved)
    assert len(now.gpus) == 2
    assert ADDRESSES[0] not in [gpu["address"] for gpu in now.gpus]
    assert now.request == old.request


def test_a_container_that_is_odd_is_named_and_the_others_are_said_ready(boxes, tmp_path, capfd):
    """Lost: the word that something is wrong, at the only moment at which anybody looks: the host's restart."""
    broken = boxes.make(start=False, rules=False)
    with open(f"{broken.folder}/root.ext4", "wb") as file:
        file.truncate(1 << 20)
    odd = boxes.make(start=False, rules=False)
    settings = dict(state_folder=str(tmp_path / "state"), run_folder=str(tmp_path / "run"), lxcpath=boxes.lxcpath)
    config = tmp_path / "host.json"
    config.write_text(json.dumps(dict(settings, name="gpu1")))
    identity.give_id(odd, "/bin/true")
    Path(identity.file_of(odd)).write_bytes(b"\xff\xfe")
    assert gpu_restore.main(["--config", str(config)]) == 1
    said = capfd.readouterr().err
    assert f"{broken.name}: " in said
    assert f"{odd.name}: container {odd.name} of {boxes.lxcpath}: cannot be looked at (UnicodeDecodeError" in said
