# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of somebody's own that has had a GPU is moved to another folder while it is down (mv, its configuration's
rootfs follows), and is given a GPU there. If this fails, its configuration includes the folder and hooks of its
former path, and no start gives it the GPU, which nothing refuses or tells.
"""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def test_it_starts_with_the_gpu_that_it_was_given(host):
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    new = f"{host.boxes.top}/srv"
    os.mkdir(new)
    os.rename(box.folder, f"{new}/box")
    host.boxes.lxcpath = new
    there = Container("box", new)
    config = Path(there.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/", f"dir:{there.folder}/"))
    done = host.attach(there, gpus=ADDRESSES[:1])
    assert [gpu["address"] for gpu in done["gpus"]] == ADDRESSES[:1]
    assert host.found() == set()
    there.start(30)
    try:
        assert host.can_open(there) == ADDRESSES[:1]
    finally:
        there.stop()
