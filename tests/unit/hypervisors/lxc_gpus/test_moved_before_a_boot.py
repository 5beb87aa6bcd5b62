# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of somebody's own, with a GPU, is renamed while it is down (mv box box2), and its host is restarted.
Lost: its GPU, without which it starts with the host, and no start refuses or tells that; and the boot, which says that
it is a copy of one that is no more.
"""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_restoration import restore


def test_it_starts_with_its_gpu(host):
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    os.rename(box.folder, f"{box.lxcpath}/box2")
    there = Container("box2", box.lxcpath)
    config = Path(there.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/", f"dir:{there.folder}/"))
    assert restore(host) == {"box2": None}
    assert host.table() == {ADDRESSES[0]: ["box2"]}
    there.start(30)
    try:
        assert host.can_open(there) == ADDRESSES[:1]
    finally:
        there.stop()
