# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module lxc_gpu_attach with lxcpath /srv/lxc for a container of /var/lib/lxc, where that is a link to /srv/lxc (its
folder was moved to a bigger disk). The container counts as two: the module gives "it" a second GPU, and writes the file
with which it starts over. Lost: its next start, refused as a copy of itself; the GPU that it was given first, at each
restart; and the second one, which stays allocated to nobody that runs, and which no reconcile tells of.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES


@pytest.mark.parametrize("first", ["by its path", "by the link"])
def test_it_is_said_by_which_path_it_is_known(host, first):
    box, link = host.boxes.make(name="box", start=False), f"{host.boxes.top}/link"
    os.symlink(host.boxes.lxcpath, link)
    known, other = (box, Container("box", link))[:: 1 if first == "by its path" else -1]
    host.attach(known, gpus=ADDRESSES[:1])
    for work in (lambda: host.attach(other, count=1), lambda: host.detach(other)):
        with pytest.raises(Refused, match=f"is the same as {known.folder}.*give lxcpath {known.lxcpath}"):
            work()
    assert host.table() == {ADDRESSES[0]: ["box"]}
    assert host.detach(known)["changed"]
    assert host.table() == {}


def test_its_next_start_has_what_it_was_given(host):
    box, first, link = host.boxes.make(name="box"), host.boxes.lxcpath, f"{host.boxes.top}/link"
    host.attach(box, gpus=ADDRESSES[:1])
    os.symlink(first, link)
    with pytest.raises(Refused, match="give lxcpath"):
        host.attach(Container("box", link), count=1)
    box.stop()
    box.start(30)
    assert host.can_open(box) == ADDRESSES[:1]
