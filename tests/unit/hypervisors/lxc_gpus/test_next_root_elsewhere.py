# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container runs, and its operator has written another root into its configuration for its next start (copied to a
bigger disk). It is the same container, in its own folder, with its own id. If these fail, its GPUs cannot be taken
back, it gets no further one, gpu_reconcile does not look at it, and all say that another container's folder lay here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.fixture
def box(host):
    box = host.boxes.make(name="box")
    host.attach(box, gpus=ADDRESSES[:1])
    new = f"{host.boxes.top}/bigger"
    shutil.copytree(box.root, new, symlinks=True, ignore=shutil.ignore_patterns("dev", "proc", "sys"))
    config = Path(box.config_file)
    text = config.read_text()
    assert f"dir:{box.folder}/rootfs" in text, text
    config.write_text(text.replace(f"dir:{box.folder}/rootfs", f"dir:{new}"))
    box.reload()
    yield box
    config.write_text(text)
    box.reload()


def test_reconcile(host, box):
    assert host.found() == set()


def test_take_back(host, box):
    host.detach(box)
    assert host.table() == {}


def test_further(host, box):
    host.attach(box, gpus=ADDRESSES[1:2])
