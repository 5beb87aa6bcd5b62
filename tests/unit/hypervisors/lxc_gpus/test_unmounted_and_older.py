# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that is down, whose GPU an older table, or one made anew, does not have, and whose folder's file system
is not mounted when another one asks (a host that was put back from a copy of its own disk, and whose disk for its
containers is not there yet). host.folders, beside the table, names the folder, whose mark is not to be seen.
Lost: its GPU for itself: both have it once the disk is mounted. Nor is a lost database said to be lost.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.lost_database import (
    must_not_be_lost_here,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

FIRST, SECOND = ADDRESSES[:2]
SAID = "has no containers, and a container was made in it: its file system may not be mounted"


@pytest.fixture
def away(host):
    """The folder of a container with a GPU; the disk with it is not mounted."""
    box, beside = host.boxes.make(name="box", start=False), host.boxes.make(name="beside", start=False)
    host.attach(beside, gpus=[SECOND])
    host.detach(beside)
    shutil.copy(host.state_db, f"{host.folder}/older.db")
    host.attach(box, gpus=[FIRST])
    lose(host)
    point = host.boxes.lxcpath
    os.rename(point, f"{point}-disk")
    os.mkdir(point)
    yield point
    if os.path.lexists(point):
        os.rename(point, f"{point}-bare")
    os.rename(f"{point}-disk", point)


@pytest.fixture(params=["older", "made anew"])
def table(request, host, away):
    if request.param == "older":
        shutil.copy(f"{host.folder}/older.db", host.state_db)
        return
    with Store(host.state_db) as store:
        begun = restoration.begin_anew(host.site(store))
    assert begun.written == {}
    assert [SAID in text for text in begun.left] == [True]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("asks", ["in the same folder", "in another folder"])
def test_its_gpu_is_given_to_nobody_but_by_a_persons_word(host, away, asks):
    if asks == "in another folder":
        host.boxes.lxcpath = f"{host.boxes.top}/ours"
    other = host.boxes.make(name="other", start=False)
    with pytest.raises(NoneFree, match=r"may be one's that the table, which may be older, does not know: ") as refused:
        host.attach(other, gpus=[FIRST])
    assert host.table() == {}
    subprocess.run(re.search(r"\((mkdir -p .*?)\)", str(refused.value))[1], shell=True, check=True)
    assert host.attach(other, gpus=[FIRST])["changed"]
    host.detach(other)
    if asks == "in the same folder":
        host.boxes.made.remove(other)


@pytest.mark.parametrize("point", ["is there", "is below a mount"])
def test_a_lost_database_is_said_to_be_lost(host, away, point, monkeypatch, tmp_path):
    """host.folders lies beside it."""
    if point == "is below a mount":
        os.rmdir(away)
        (tmp_path / "fstab").write_text(f"/dev/sdb1 {os.path.dirname(away)} ext4 nofail 0 2\n")
        monkeypatch.setattr(folders, "FSTAB", str(tmp_path / "fstab"))
    config = host.folder / "host.json"
    config.write_text(json.dumps({"lxc": dict(name="gpu1", state_folder=str(host.folder), lxcpath=away)}))
    with pytest.raises(HeteroError, match=f"{away}, whose file system may not be mounted"):
        must_not_be_lost_here(str(config))


def test_a_container_of_another_folder_is_a_sign_of_a_lost_database(host):
    """It is down, and only host.folders names its folder. Lost: its GPU, as that of a host that is new."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=[FIRST])
    lose(host)
    config = host.folder / "host.json"
    config.write_text(json.dumps({"lxc": dict(name="gpu1", state_folder=str(host.folder), lxcpath="/nowhere")}))
    with pytest.raises(HeteroError, match=f"container {box.folder}"):
        must_not_be_lost_here(str(config))


@pytest.mark.parametrize("what", ["removed", "moved away"])
def test_a_folder_without_containers_keeps_no_gpu(host, what):
    """If this fails, a folder of containers that nobody needs any more is not to be removed, or its contents moved."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=[FIRST])
    host.detach(box)
    removed = host.boxes.lxcpath
    host.boxes.lxcpath = f"{host.boxes.top}/ours"
    os.rename(removed, host.boxes.lxcpath if what == "moved away" else f"{removed}-elsewhere")
    if what == "moved away":
        os.mkdir(removed)
    assert host.attach(host.boxes.make(name="other", start=False), gpus=[FIRST])["changed"]
