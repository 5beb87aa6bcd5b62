# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers, with its mark and all containers in it, is moved while these are down (mv /var/lib/lxc
/srv/lxc). If this fails, one that asks there for the GPU that it has is refused it, as allocated to itself by the path
that is no more, or gets another beside it; and nobody has the first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

OWN = ADDRESSES[:1]


@pytest.fixture
def there(host):
    """A container with a GPU, in the folder to which all of them were moved."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=OWN)
    former, host.boxes.lxcpath = host.boxes.lxcpath, f"{host.boxes.top}/srv"
    os.rename(former, host.boxes.lxcpath)
    there = Container("box", host.boxes.lxcpath)
    config = Path(there.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/", f"dir:{there.folder}/"))
    return there


@pytest.mark.parametrize("wanted", [dict(count=1), dict(gpus=OWN)], ids=str)
def test_it_has_its_own_gpu_there(host, there, wanted):
    assert [gpu["address"] for gpu in host.attach(there, **wanted)["gpus"]] == OWN
    assert host.table() == {OWN[0]: ["box"]}
    there.start(30)
    try:
        assert host.can_open(there) == OWN
    finally:
        there.stop()


def test_it_is_taken_back_there(host, there):
    assert host.detach(there)["changed"]
    assert host.table() == {}


def test_reconcile_follows_it(host, there):
    """Lost: the GPU, where a person does as is printed of a folder of containers that is no more."""
    assert host.found() == {("moved", "box", OWN[0])}
    host.reconcile(repair=True)
    assert host.found() == set()
    there.start(30)
    try:
        assert host.can_open(there) == OWN
    finally:
        there.stop()


def test_a_copy_has_nothing_of_one_whose_file_system_is_not_mounted(host, there, monkeypatch, tmp_path):
    """Such as a snapshot of a volume, with the same id and numbers of files."""
    (tmp_path / "fstab").write_text(f"UUID=1234 {host.boxes.top}/lxc ext4 nofail 0 2\n")
    monkeypatch.setattr(folders, "FSTAB", str(tmp_path / "fstab"))
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(there, gpus=OWN)
