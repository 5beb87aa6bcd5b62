# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container with a GPU that was destroyed by hand, on a host whose /etc/fstab has a file system at or above its
folder that is not mounted: one for a person to mount (noauto), or one of a disk that is no more (nofail). Its GPU is
kept for it, for it may be on that. Lost: the GPU, where nobody says so.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.mark.parametrize("option", ["noauto", "nofail"])
def test_it_is_said_that_the_gpu_stays(host, tmp_path, monkeypatch, option):
    box, other = host.boxes.make(name="box", start=False), host.boxes.make(name="other", start=False)
    host.attach(other, gpus=ADDRESSES[1:2])  # all others are there, with the mark of their folder
    host.attach(box, gpus=ADDRESSES[:1])
    table = tmp_path / "fstab"
    table.write_text(f"UUID=1234 {host.boxes.lxcpath} ext4 {option} 0 2\n")
    monkeypatch.setattr(folders, "FSTAB", str(table))
    shutil.rmtree(box.folder)
    with pytest.raises(Refused, match=f"{host.boxes.lxcpath}, which is not mounted, and box") as refused:
        host.detach(box)
    assert host.table() == {ADDRESSES[0]: ["box"], ADDRESSES[1]: ["other"]}
    assert ("not seen", "box", ADDRESSES[0]) in host.found()
    assert "take its line out" in str(refused.value)
    table.write_text("")
    assert host.detach(box)["changed"]
    assert host.table() == {ADDRESSES[1]: ["other"]}
    assert host.found() == set()
