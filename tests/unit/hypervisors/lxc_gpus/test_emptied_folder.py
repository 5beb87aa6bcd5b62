# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of containers in which none is: it was emptied, or their file system is not mounted. Nobody can tell which.
Lost: a GPU for ever, or the word why it is not free.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.fixture
def box(host):
    box = host.boxes.make(name="a", start=False)
    host.attach(box, gpus=ADDRESSES[:1])
    return box


def test_it_is_said_and_the_way_out_frees_the_gpu(host, box):
    for entry in os.scandir(host.boxes.lxcpath):
        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
    with pytest.raises(Refused) as refused:
        host.detach(box)
    assert host.table() == {ADDRESSES[0]: ["a"]}
    way = re.search(r"\((mkdir -p .*)\)", str(refused.value))[1]
    subprocess.run(way, shell=True, check=True)
    host.detach(box)
    assert host.table() == {}
