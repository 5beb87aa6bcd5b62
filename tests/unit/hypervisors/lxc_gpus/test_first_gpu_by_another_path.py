# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that never had a GPU runs by one path of its folder (/var/lib/lxc, a link to /srv/lxc), and is given its
first one by the other. It counts as stopped: the GPU is said to be attached for its next start, and its configuration
gets an id and hooks by the second path. If this fails, the container that runs does not have it, and the hook
refuses each later start by the path by which its host starts it, as of a copy.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


def test_it_is_given_by_the_path_by_which_it_runs(host):
    box = host.boxes.make(name="box")
    other = f"{host.boxes.top}/srv"
    os.symlink(host.boxes.lxcpath, other)
    with pytest.raises(Refused, match=f"is the same as {box.folder}, which runs.*give lxcpath {box.lxcpath}"):
        host.attach(Container("box", other), gpus=ADDRESSES[:1])
    box.stop()
    box.reload()
    box.start(30)
    host.attach(box, gpus=ADDRESSES[:1])
    assert host.can_open(box) == ADDRESSES[:1]
