# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For more room a disk is mounted on the folder of containers, with all of its folders on it: their numbers are others.
Lost: the GPU of a container that is off, to the next one that asks; or the container's way back to it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import DETACHING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    HeteroError,
    NoneFree,
    Refused,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_attachment import working
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_uuid_in_own_file import restore

OWN = ADDRESSES[1]


@pytest.fixture
def box(host):
    """A container with a GPU, on the bigger disk."""
    box, old = host.boxes.make(name="a", start=False), host.boxes.lxcpath
    host.attach(box, gpus=[OWN])
    copy(old)
    return Container(box.name, old)


def copy(old):
    """Mount a bigger disk on the folder of containers."""
    os.rename(old, old + ".old")
    subprocess.run(["cp", "-a", old + ".old", old], check=True)
    shutil.rmtree(old + ".old")


def follow(said):
    """Have the copy be the container, as it is printed."""
    way = r"write (\d+) in place of (\d+) into the line '# hetero.compute: id' of (\S+);"
    new, old, config = re.search(way, said).groups()
    subprocess.run(["sed", "-i", f"/^# hetero.compute: id/s/{old}/{new}/", config], check=True)


def test_its_gpu_is_given_to_nobody_else(host, box):
    assert host.reconcile(repair=True)["findings"] == []
    with pytest.raises(NoneFree, match=f"{OWN} allocated to a"):
        host.attach(host.boxes.make(name="b", start=False), gpus=[OWN])
    assert host.table() == {OWN: ["a"]}


@pytest.mark.parametrize("by", ["boot", "start"])
def test_the_way_back_works_as_printed(host, box, by):
    if by == "boot":
        said = restore(host)["a"]
    else:
        with pytest.raises(HeteroError) as refused:
            box.start(20)
        said = str(refused.value)
    follow(said)
    assert restore(host) == {"a": None}
    box = Container(box.name, box.lxcpath)
    box.start(20)
    assert (host.can_open(box), host.table()) == ([OWN], {OWN: ["a"]})


def test_its_gpu_is_given_to_nobody_else_where_the_table_was_lost(host, box):
    """Its own file, which names its GPU, lies in a copy of its folder, and the way to have it back is printed."""
    lose(host)
    other = host.boxes.make(name="b", start=False)
    with pytest.raises(NoneFree, match=f"{OWN} may be container a's, by the file that was copied with it") as refused:
        host.attach(other, gpus=[OWN])
    follow(str(refused.value))
    host.reconcile(repair=True)
    assert host.table() == {OWN: ["a"]}


@pytest.mark.parametrize("way", ["attach", "line"])
def test_its_gpu_is_free_where_it_is_another_container(host, box, way):
    """Leaked: a GPU, by a copy that was made another one, as it is printed."""
    lose(host)
    if way == "attach":
        assert host.attach(box, gpus=[OWN], check=True)["changed"]
        host.attach(box, gpus=ADDRESSES[:1])
    else:
        subprocess.run(["sed", "-i", "/^lxc.include = .*hetero.d/d", box.config_file], check=True)
    host.attach(host.boxes.make(name="b", start=False), gpus=[OWN])
    assert host.table()[OWN] == ["b"]


def test_the_other_ways_end_what_it_had(host, box):
    """Leaked: a GPU, whose row nobody ends."""
    assert host.detach(box, check=True)["changed"]
    host.detach(box)
    assert host.table() == {}
    host.attach(box, gpus=ADDRESSES[:1])
    assert host.table() == {ADDRESSES[0]: ["a"]}


def test_taken_back_by_name_it_has_it_no_more(host, box):
    """Lost: the word that nothing was changed, while its file went, and the GPU stayed its own for ever."""
    file = identity.file_of(box)
    assert host.detach(box, OWN, check=True)["changed"]
    assert os.path.exists(file)
    assert host.detach(box, OWN)["changed"]
    assert (host.table(), os.path.exists(file)) == ({}, False)
    assert host.detach(box, OWN)["changed"] is False


def test_a_part_of_what_it_has_is_not_taken_back_by_name(host):
    """Lost: the other GPU, at the start of the container that the copy is made, or its own file."""
    box, old = host.boxes.make(name="a", start=False), host.boxes.lxcpath
    host.attach(box, gpus=[OWN, ADDRESSES[0]])
    copy(old)
    with pytest.raises(Refused, match=f"is a copy of its folder, and has {ADDRESSES[0]} as well") as refused:
        host.detach(box, OWN)
    assert os.path.exists(identity.file_of(box))
    follow(str(refused.value))
    host.detach(box, OWN)
    assert host.table() == {ADDRESSES[0]: ["a"]}


def test_a_part_that_is_being_taken_back_ends_and_the_rest_stays(host):
    """Lost: a GPU, being taken back for ever; or the other one, by a file that is written for what may be a copy."""
    box, old = host.boxes.make(name="a", start=False), host.boxes.lxcpath
    host.attach(box, gpus=[OWN, ADDRESSES[0]])
    with Store(host.state_db, create=False) as store, store.transaction():
        for row in [row for row in store.allocations() if row.address == OWN]:
            store.grant(replace(row, state=DETACHING))
    copy(old)
    before = Path(identity.file_of(box)).read_text()
    host.reconcile(repair=True)
    assert host.table() == {ADDRESSES[0]: ["a"]}
    assert Path(identity.file_of(box)).read_text() == before


def test_given_anew_it_has_what_is_asked(host, box):
    host.attach(box, gpus=[OWN])
    assert host.table() == {OWN: ["a"]}
    box.start(20)
    assert host.can_open(box) == [OWN]


@pytest.mark.parametrize("by", [None, "attaching", "backup"])
def test_what_its_processes_have_open_is_given_to_nobody(host, by):
    """Leaked: a GPU that it was not given and still has open, to the next tenant, as it was given another id; or one
    that stays being taken back for ever.
    """
    box, other, old = host.boxes.make(name="a", start=False), host.boxes.make(name="b", start=False), host.boxes.lxcpath
    folder = Path(box.folder)
    before = (folder / "config").read_text()
    host.attach(box, gpus=[OWN])
    host.detach(box)
    copy(old)
    box.start(20)
    box.allow(f"c 195:{MINORS[OWN]} rw")
    process, pid = working(box)
    host.uses(pid, OWN)
    with pytest.raises(TimedOut, match="still has it open"):
        host.detach(box, on_holders="wait", seconds=0.5)
    assert ("being taken back", "a", OWN) in host.found()
    if by == "backup":
        (folder / "config").write_text(before)
        with pytest.raises(NoneFree, match=f"{OWN} allocated to a"):
            host.attach(other, gpus=[OWN])
        assert ("being taken back", "a", OWN) in host.found()
    if by:
        host.attach(box, gpus=ADDRESSES[:1])
    with pytest.raises(NoneFree, match=f"{OWN} allocated to a"):
        host.attach(other, gpus=[OWN])
    assert ("being taken back", "a", OWN) in host.found()
    process.kill()
    process.wait(60)
    shutil.rmtree(host.machine.root / "proc" / str(pid))
    host.reconcile(repair=True)
    assert host.table() == ({ADDRESSES[0]: ["a"]} if by else {})
    assert host.can_open(box) == (ADDRESSES[:1] if by else [])
    host.attach(other, gpus=[OWN])
