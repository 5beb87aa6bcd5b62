# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that is down, whose GPU an older table (put back as printed), or one made anew, does not have, and whose
folder's file system is not mounted when reconcile writes down what containers have (its disk is not there yet).
host.folders, beside the table, names the folder and the id of its mark, which is not to be seen. Lost: its GPU for
itself: reconcile said that all was written down, and both had it once the disk was mounted. Nor was a lost database
said to be lost.

Tests compute_host/lost_database.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lost_database
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

FIRST, SECOND = ADDRESSES[:2]
SAID = "has no containers, and a container was made in it: its file system may not be mounted"


def configured(host, lxcpath=None):
    """The path of the host's configuration."""
    path = host.folder / "host.json"
    section = dict(name="gpu1", state_folder=str(host.folder), lxcpath=lxcpath or host.boxes.lxcpath)
    path.write_text(json.dumps({"lxc": section}))
    return str(path)


@pytest.fixture
def away(host):
    """The folder of a container with a GPU, which the database does not know; the disk with it is not mounted."""
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
    if os.path.exists(f"{point}-disk"):
        shutil.rmtree(point, ignore_errors=True)
        os.rename(f"{point}-disk", point)


def reconciled(host):
    """Have reconcile write down what containers have; return what is left."""
    with Store(host.state_db) as store:
        left = restoration.begin_anew(host.site(store)).left
    lost_database.end(read_config(configured(host)), left)
    return left


@pytest.mark.parametrize("table", ["older", "made anew"])
@pytest.mark.parametrize("way", ["mounted", "gone"])
def test_the_database_is_lost_until_it_is_mounted_or_a_person_says_that_it_is_gone(host, away, table, way):
    config = configured(host)
    lost_database.begin(read_config(config))
    if table == "older":
        shutil.copy(f"{host.folder}/older.db", host.state_db)
    for _again in range(2):
        (left,) = reconciled(host)
        assert SAID in left
        with pytest.raises(HeteroError, match=SAID):
            lost_database.must_not_be_lost_here(config)
    if way == "gone":
        subprocess.run(re.search(r"\((mkdir -p .*?)\)", left)[1], shell=True, check=True)
    else:
        os.rmdir(away)
        os.rename(f"{away}-disk", away)
    assert reconciled(host) == []
    lost_database.must_not_be_lost_here(config)
    assert host.table() == ({FIRST: ["box"]} if way == "mounted" else {})


@pytest.mark.parametrize("point", ["is there", "is below a mount"])
def test_a_lost_database_is_said_to_be_lost(host, away, point, monkeypatch, tmp_path):
    """host.folders lies beside it."""
    if point == "is below a mount":
        os.rmdir(away)
        (tmp_path / "fstab").write_text(f"/dev/sdb1 {os.path.dirname(away)} ext4 nofail 0 2\n")
        monkeypatch.setattr(folders, "FSTAB", str(tmp_path / "fstab"))
    with pytest.raises(HeteroError, match=f"{away}, whose file system may not be mounted"):
        lost_database.must_not_be_lost_here(configured(host))


def test_a_container_of_another_folder_is_a_sign_of_a_lost_database(host):
    """It is down, and only host.folders names its folder. Lost: its GPU, as that of a host that is new."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=[FIRST])
    lose(host)
    with pytest.raises(HeteroError, match=f"container {box.folder}"):
        lost_database.must_not_be_lost_here(configured(host, "/nowhere"))


@pytest.mark.parametrize("what", ["removed", "moved away"])
def test_a_folder_without_containers_is_no_sign(host, what):
    """If this fails, a folder of containers that nobody needs any more is not to be removed, or its contents moved."""
    box = host.boxes.make(name="box", start=False)
    host.attach(box, gpus=[FIRST])
    host.detach(box)
    lose(host)
    shutil.rmtree(box.folder)
    former, host.boxes.lxcpath = host.boxes.lxcpath, f"{host.boxes.top}/ours"
    os.rename(former, host.boxes.lxcpath if what == "moved away" else f"{former}-elsewhere")
    if what == "moved away":
        os.mkdir(former)
    lost_database.must_not_be_lost_here(configured(host))
