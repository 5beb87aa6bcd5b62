# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A privileged container without device rules, which may make and open a node of any device, keeps the GPUs from being
given to one container alone (open_rights: "allows every device, and it may make nodes"). If this fails, that ends as
soon as its operator writes another root into its configuration for its next start, or moves its folder aside while it
runs: a GPU goes to another container for itself alone, and the first opens it, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

GPU = ADDRESSES[0]


@pytest.fixture
def wild(host):
    box = host.boxes.make(name="wild", rules=False)
    with pytest.raises(NoneFree, match="container wild can open it"):
        host.attach(host.boxes.make(name="other", start=False), gpus=[GPU])
    yield box
    subprocess.run(["lxc-stop", "-k", "-P", box.lxcpath, "-n", "wild"], check=False)


def edited(host, box):
    new = f"{host.boxes.top}/bigger"
    skip = shutil.ignore_patterns("dev", "proc", "sys")
    shutil.copytree(box.root, new, symlinks=True, ignore=skip)
    config = Path(box.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/rootfs", f"dir:{new}"))


def moved_aside(host, box):
    os.rename(box.folder, f"{box.folder}.old")


@pytest.mark.parametrize("change", [edited, moved_aside])
def test_no_gpu_is_given_to_another_alone(host, wild, change):
    change(host, wild)
    with pytest.raises(NoneFree, match="container wild can open it"):
        host.attach(host.boxes.make(name="third", start=False), gpus=[GPU])
