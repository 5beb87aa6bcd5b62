# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs after a restart of their host: the same ones with today's numbers, others on another host, or a clear refusal."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.accelerator_host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils.gpus import restoring
from ansible_collections.hetero.compute.plugins.module_utils.lxc import identity, persistence
from ansible_collections.hetero.compute.plugins.module_utils.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.attaching.conftest import ADDRESSES


def restore(host, **fields):
    """As at the boot of a host whose machine id and boot are as given."""
    with Store(host.state_db, "test") as store:
        site = host.site(store)
        site.host = replace(host.here, **fields)
        return restoring.restore(site)


def other_majors(host):
    """The driver nvidia-uvm is loaded again: 240 now, and 238 is somebody else's."""
    devices = host.machine.root / "proc/devices"
    text = devices.read_text()
    (number,) = {line.split()[0] for line in text.splitlines() if line.endswith(" nvidia-uvm")}
    devices.write_text(text.replace(f"{number} nvidia-uvm", f"{number} other\n240 nvidia-uvm"))
    for minor, name in enumerate(("nvidia-uvm", "nvidia-uvm-tools")):
        path = host.machine.root / "dev" / name
        path.unlink()
        os.mknod(path, 0o20666, os.makedev(240, minor))
    return int(number)


def test_the_numbers_of_today(host):
    """A container that starts with a number of before opens another driver's device."""
    box = host.boxes.make(start=False)
    host.attach(box, 2)
    before = persistence.read(box)
    old = other_majors(host)
    assert restore(host) == {box.name: None}
    now = persistence.read(box)
    assert now.gpus == before.gpus
    assert [rule for rule in now.rules if rule not in before.rules] == ["c 240:0 rw", "c 240:1 rw"]
    assert not any(rule.startswith(f"c {old}:") for rule in now.rules)
    assert restore(host) == {box.name: None}
    assert persistence.read(box) == now


def test_a_gpu_in_another_slot_is_followed(host):
    """The same GPU, by its UUID, is still this container's; and the one in its old place is not."""
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    host.machine.move(ADDRESSES[0], "0000:0c:00.0")
    assert restore(host) == {box.name: None}
    assert persistence.read(box).gpus[0]["address"] == "0000:0c:00.0"
    assert host.table() == {"0000:0c:00.0": [box.name]}


def test_a_lost_gpu_is_said(host):
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    host.pull_out(ADDRESSES[0])
    why = restore(host)[box.name]
    assert f"GPU {ADDRESSES[0]}: is no more on this host" in why
    with pytest.raises(HeteroError, match="is no more on this host"):
        box.start(30)


def test_a_table_that_lost_it(host):
    """From an old backup, say: what nobody else has is the container's again, what somebody has stays theirs."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, gpus=[ADDRESSES[0]])
    os.unlink(host.state_db)
    assert restore(host) == {box.name: None}
    assert host.table() == {ADDRESSES[0]: [box.name]}
    os.unlink(host.state_db)
    host.attach(other, gpus=[ADDRESSES[0]])
    assert "allocated to" in restore(host)[box.name]
    assert host.table() == {ADDRESSES[0]: [other.name]}


def test_another_host_gives_others(host, tmp_path):
    """There the GPUs of before are nobody's: the request counts, and what is taken there stays taken."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, 2)
    old = persistence.read(box)
    os.unlink(host.state_db)
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
