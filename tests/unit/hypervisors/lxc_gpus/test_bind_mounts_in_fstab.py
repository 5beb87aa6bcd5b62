# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of containers is a bind mount of /etc/fstab (/srv/lxc /var/lib/lxc none bind), from the same file system,
and mounted. If this fails, the folder counts as not mounted for good. Lost: the GPU of each container that is destroyed
by hand, which stays allocated.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def bound(host, table, monkeypatch):
    """Have the folder of containers be such a mount, in this test's own mount namespace."""
    real = f"{host.boxes.top}/srv"
    os.mkdir(real)
    os.mkdir(host.boxes.lxcpath)
    subprocess.run(["mount", "--bind", real, host.boxes.lxcpath], check=True)
    table.write_text(f"{real} {host.boxes.lxcpath} none bind 0 0\n")
    monkeypatch.setattr(folders, "FSTAB", str(table))


def test_it_is_mounted(host, pure_v2, tmp_path, monkeypatch):
    bound(host, tmp_path / "fstab", monkeypatch)
    assert folders.not_mounted(host.boxes.lxcpath) is None
    subprocess.run(["umount", host.boxes.lxcpath], check=True)
    assert folders.not_mounted(host.boxes.lxcpath) == host.boxes.lxcpath


def test_the_gpu_of_one_that_is_no_more_is_free(host, pure_v2, tmp_path, monkeypatch):
    bound(host, tmp_path / "fstab", monkeypatch)
    box, other = host.boxes.make(name="box", start=False), host.boxes.make(name="other", start=False)
    host.attach(other, gpus=ADDRESSES[1:2])
    host.attach(box, gpus=ADDRESSES[:1])
    shutil.rmtree(box.folder)
    host.detach(box)
    assert host.table() == {ADDRESSES[1]: ["other"]}
