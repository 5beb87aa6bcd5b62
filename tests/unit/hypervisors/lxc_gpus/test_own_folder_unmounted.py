# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of somebody's own, whose folder alone is on another disk: a mount of /etc/fstab at the folder, or a link
to a folder on one. After a boot without that disk (nofail) another container asks for a GPU. If this fails, the GPU
of the first is said to be no more, and is given away.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.mark.parametrize("how", ["mount", "link"])
def test_its_gpu_stays_its_own(host, tmp_path, monkeypatch, how):
    box, other = host.boxes.make(name="box", start=False), host.boxes.make(name="other", start=False)
    host.attach(other, gpus=ADDRESSES[1:2])
    host.attach(box, gpus=ADDRESSES[:1])
    disk, point = f"{host.boxes.top}/disk", box.folder if how == "mount" else f"{host.boxes.top}/point"
    os.rename(box.folder, disk)  # what is seen while the disk is not mounted is the bare point alone
    os.mkdir(point)
    if how == "link":
        os.symlink(f"{point}/box", box.folder)
    (tmp_path / "fstab").write_text(f"UUID=1234 {point} ext4 nofail 0 2\n")
    monkeypatch.setattr(folders, "FSTAB", str(tmp_path / "fstab"))
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(other, gpus=ADDRESSES[:1])
    with pytest.raises(Refused, match="is not mounted, and box, made below it, may be on it"):
        host.detach(box)
    assert host.table() == {ADDRESSES[0]: ["box"], ADDRESSES[1]: ["other"]}
