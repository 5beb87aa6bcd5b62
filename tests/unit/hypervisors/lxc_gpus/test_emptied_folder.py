# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of containers in which none of ours is: it was emptied, or their file system is not mounted. Nobody can tell
which. Lost: a GPU for ever, or the word why it is not free; or the GPU, to another, because of what else lies there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
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


@pytest.fixture
def only_strays(host, box):
    """A stray folder is seen in the folder of containers, and the mark is not."""
    aside = f"{host.boxes.lxcpath}-aside"
    os.rename(host.boxes.lxcpath, aside)
    os.makedirs(f"{host.boxes.lxcpath}/lost+found")
    yield
    shutil.rmtree(host.boxes.lxcpath)
    os.rename(aside, host.boxes.lxcpath)


@pytest.mark.usefixtures("only_strays")
def test_a_stray_folder_is_no_sign_that_it_is_mounted(host):
    for _again in range(2):
        (finding,) = host.reconcile(repair=True)["findings"]
        assert (finding["kind"], finding["address"], finding["done"]) == ("not seen", ADDRESSES[0], None)
    assert f"{host.boxes.lxcpath}: has its file hetero.containers no more, and a was made in it" in finding["found"]
    other = host.boxes.make(name="old", start=False)
    with pytest.raises(Refused, match=r"has its file hetero\.containers no more, and a was made in it"):
        host.attach(other, count=4)
    assert host.table() == {ADDRESSES[0]: ["a"]}
    subprocess.run(re.search(r"\((mkdir -p .*?)\)", finding["found"])[1], shell=True, check=True)
    host.attach(other, count=4)
    assert host.table() == {address: ["old"] for address in ADDRESSES}


def test_of_an_emptied_folder_reconcile_says_it(host, box):
    for entry in os.scandir(host.boxes.lxcpath):
        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
    (finding,) = host.reconcile(repair=True)["findings"]
    assert f"{host.boxes.lxcpath}: has no containers, and a was made in it" in finding["found"]
    subprocess.run(re.search(r"\((mkdir -p .*?)\)", finding["found"])[1], shell=True, check=True)
    host.reconcile(repair=True)
    assert host.table() == {}


def test_a_start_of_the_host_knows_its_folder(host, box):
    """Lost: the GPU of a container that was given it by an earlier release, which wrote down no folder."""
    (host.folder / "host.folders").unlink()
    with Store(host.state_db) as store:
        restoration.restore(host.site(store))
        assert list(store.marked()) == [host.boxes.lxcpath]
