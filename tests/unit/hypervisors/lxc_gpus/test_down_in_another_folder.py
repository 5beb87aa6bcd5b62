# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that is down, and whose GPU an older table, or one made anew, does not have, while one is asked for in
another folder of containers (option lxcpath; or an instance in the host's, and the other is one by hand). Lost: its GPU
for itself: both have it. host.folders, beside the table, names its folder.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import restoration
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

FIRST, SECOND = ADDRESSES[:2]


@pytest.fixture(params=["older", "made anew"])
def two(request, host):
    """A container that is down, whose GPU the table does not have, and another one in another folder."""
    box, beside = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(beside, gpus=[SECOND])
    shutil.copy(host.state_db, f"{host.folder}/older.db")
    host.attach(box, gpus=[FIRST])
    lose(host)
    host.boxes.lxcpath = f"{host.boxes.top}/ours"
    if request.param == "older":
        shutil.copy(f"{host.folder}/older.db", host.state_db)
    else:
        with Store(host.state_db) as store:
            restoration.begin_anew(host.site(store))
    return box, host.boxes.make(start=False)


def test_what_it_has_by_its_own_file_is_given_to_nobody(host, two):
    box, other = two
    with pytest.raises(NoneFree, match=f"may be container {box.name}'s of {box.lxcpath}, by its own file"):
        host.attach(other, gpus=[FIRST])
    assert host.attach(other, gpus=ADDRESSES[2:3])["changed"]


@pytest.mark.parametrize("way", ["written down", "taken back"])
def test_the_ways_out_work_as_printed(host, two, way):
    box, other = two
    ours, host.boxes.lxcpath = host.boxes.lxcpath, box.lxcpath
    if way == "written down":
        host.reconcile(repair=True)
        assert host.table()[FIRST] == [box.name]
    else:
        host.detach(box, FIRST)
    host.boxes.lxcpath = ours
    if way == "written down":
        with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
            host.attach(other, gpus=[FIRST])
    else:
        assert host.attach(other, gpus=[FIRST])["changed"]


def test_who_has_it_by_the_table_keeps_it(host):
    """Lost: the next start of a container, for what is left in a folder from which all were copied."""
    box, marked = host.boxes.make(start=False), host.folder / "host.folders"
    host.attach(box, gpus=[FIRST])
    lose(host)
    known = marked.read_text()
    marked.unlink()
    host.boxes.lxcpath = f"{host.boxes.top}/ours"
    own = host.boxes.make(start=False)
    assert host.attach(own, gpus=[FIRST])["changed"]
    marked.write_text(known)
    assert not host.attach(own, gpus=[FIRST])["changed"]
    assert host.table() == {FIRST: [own.name]}
