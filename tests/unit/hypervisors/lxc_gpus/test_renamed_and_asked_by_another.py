# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of somebody's own, with a GPU, is renamed while it is down (mv box box2, in the same folder of
containers), and before anybody asks for it there, another container asks for a GPU. Lost: the GPU of the first, which
is freed as of one that is no more, and goes to the other, although the folder with its id lies beside.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

OWN, FREE = ADDRESSES[:2]


@pytest.fixture
def there(host):
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=[OWN])
    os.rename(box.folder, f"{box.lxcpath}/box2")
    there = Container("box2", box.lxcpath)
    config = Path(there.config_file)
    config.write_text(config.read_text().replace(f"dir:{box.folder}/", f"dir:{there.folder}/"))
    return there


def test_it_does_not_go_to_another(host, there):
    other = host.boxes.make(name="other", start=False)
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(other, gpus=[OWN])
    assert host.table() == {OWN: ["box"]}


def test_a_request_for_another_gpu_leaves_it_its_own(host, there):
    host.attach(host.boxes.make(name="other", start=False), gpus=[FREE])
    host.reconcile(repair=True)
    assert host.table() == {OWN: ["box2"], FREE: ["other"]}
    there.start(30)
    try:
        assert host.can_open(there) == [OWN]
    finally:
        there.stop()


def test_it_is_taken_back_by_the_name_that_it_has_now(host, there):
    with pytest.raises(Refused, match=f"was moved to {there.folder}, .*: container box2, lxcpath {there.lxcpath}"):
        host.detach(Container("box", there.lxcpath))
    assert host.table() == {OWN: ["box"]}
    host.detach(there)
    assert host.table() == {}


def test_one_that_is_no_more_holds_nothing(host, there):
    shutil.rmtree(there.folder)
    host.attach(host.boxes.make(name="other", start=False), gpus=[OWN])
    assert host.table() == {OWN: ["other"]}


def test_in_another_folder_of_containers(host, there):
    """Such as the one that the host names now."""
    host.boxes.lxcpath = f"{host.boxes.top}/srv"
    os.mkdir(host.boxes.lxcpath)
    os.rename(there.folder, f"{host.boxes.lxcpath}/box2")
    with pytest.raises(NoneFree, match="allocated to box"):
        host.attach(host.boxes.make(name="other", start=False), gpus=[OWN])
