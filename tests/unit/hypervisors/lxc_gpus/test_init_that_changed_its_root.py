# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant is root in a container, and has its init go on in another folder of its root (exec chroot; systemctl
soft-reboot with /run/nextroot does it, too). If this fails, the GPU that it was given cannot be taken back while it
runs: by its root it is taken for another container, and gpu_reconcile does not look at it any more.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import INIT
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

CHANGES = """\
trap "exit 0" PWR INT
while [ ! -e /go ]; do sleep 0.1; done
exec /bin/busybox chroot /inner /bin/sh /init.sh
"""


@pytest.fixture
def box(host):
    box = host.boxes.make(name="box", start=False)
    root = Path(box.root)
    shutil.copytree(root / "bin", root / "inner/bin", symlinks=True)
    (root / "inner/init.sh").write_text(INIT)
    (root / "init.sh").write_text(CHANGES)
    box.start(30)
    host.attach(box, gpus=ADDRESSES[:1])
    (root / "go").touch()
    for _look in range(600):
        if Path(f"/proc/{box.init_pid}/root/init.sh").read_text() == INIT:
            break
        time.sleep(0.1)
    yield box
    box.stop()


def test_its_gpu_is_taken_back(host, box):
    host.detach(box)
    assert host.table() == {}


def test_reconcile_looks_at_it(host, box):
    """It tells of the node, which is not in the folder that is its root now."""
    assert host.found() == {("incomplete", "box", ADDRESSES[0])}
