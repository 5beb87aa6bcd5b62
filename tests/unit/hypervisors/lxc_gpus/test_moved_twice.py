# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container with a GPU was moved once while it was down, given its GPU there, started, and is moved again while it
runs. If this fails, it counts as stopped: it is given further GPUs in place of its own, or its own are said to be taken
back, and it can open them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def moved(host, box, name):
    """The container in another folder of containers, which the host then names."""
    there = Container("box", f"{host.boxes.top}/{name}")
    os.mkdir(there.lxcpath)
    os.rename(box.folder, there.folder)
    config = Path(there.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/", f"dir:{there.folder}/"))
    host.boxes.lxcpath = there.lxcpath
    return there


@pytest.mark.parametrize("work", ["attach", "detach"])
def test_it_is_known_to_run(host, work):
    first = host.boxes.make(name="box", start=False)
    host.attach(first, gpus=ADDRESSES[:1])
    second = moved(host, first, "second")
    host.attach(second, gpus=ADDRESSES[:1])
    second.start(30)
    host.attach(second, gpus=ADDRESSES[:1])
    assert host.can_open(second) == ADDRESSES[:1]
    third = moved(host, second, "third")
    try:
        with pytest.raises(Refused, match="runs, and was started in"):
            host.attach(third, count=1) if work == "attach" else host.detach(third)
    finally:
        subprocess.run(["lxc-stop", "-k", "-P", second.lxcpath, "-n", "box"], check=False)
