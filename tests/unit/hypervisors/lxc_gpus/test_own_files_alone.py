# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that only a container's own file tells of, while the table is lost: asked for by the next. If these fail, a
container that has a GPU for itself has it no more.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_reconciling import repaired

OWN = ADDRESSES[1]


@pytest.mark.parametrize("runs", [True, False])
def test_who_would_share_is_not_given_what_one_has_for_itself(host, runs):
    """Lost: a GPU that a container has for itself, to one who asks to share it before the table is mended."""
    box, other = host.boxes.make(start=runs), host.boxes.make(start=False)
    host.attach(box, gpus=[OWN])
    lose(host)
    with pytest.raises(NoneFree, match=f"container {box.name} can open it, nobody allocated it"):
        host.attach(other, gpus=[OWN], share=True)
    assert repaired(host) == {"not written down": "written down"}
    assert host.table() == {OWN: [box.name]}
    with pytest.raises(NoneFree, match=f"allocated to {box.name}"):
        host.attach(other, gpus=[OWN], share=True)


def test_who_shares_a_gpu_keeps_it_with_the_others(host):
    """Lost: for all who share a GPU, its place in a table that is made anew."""
    boxes = [host.boxes.make(start=False) for _number in range(2)]
    for box in boxes:
        host.attach(box, gpus=[OWN], share=True)
    lose(host)
    third = host.boxes.make(start=False)
    host.attach(third, gpus=[OWN], share=True)
    assert repaired(host) == {"not written down": "written down"}
    assert sorted(host.table()[OWN]) == sorted(box.name for box in [*boxes, third])


def other_version(text):
    return re.sub(r'"version": \d+', '"version": 99', text)


def emptied(text):
    return ""


@pytest.mark.parametrize("damaged", [other_version, emptied])
def test_gpus_of_one_whose_file_cannot_be_read_are_given_to_nobody(host, damaged):
    """Lost: the GPU of a container whose own file is damaged, to the next who asks before the table is mended."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, gpus=[OWN])
    path = Path(identity.file_of(box))
    whole = path.read_text()
    path.write_text(damaged(whole))
    assert host.attach(other, count=1)["changed"], "with the table, it is known which are its own"
    host.detach(other)
    lose(host)
    with pytest.raises(NoneFree, match=f"may be container {box.name}'s: the table has none of it.*{path}"):
        host.attach(other, gpus=[OWN], share=True)
    assert host.found() == {("not looked at", box.name, None)}
    path.write_text(whole)
    assert repaired(host) == {"not written down": "written down"}
    assert host.table() == {OWN: [box.name]}


def test_a_file_that_cannot_be_read_is_moved_aside_as_printed(host):
    """Lost: all GPUs of the host, to a container that has none of them any more."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    host.attach(box, gpus=[OWN])
    path = Path(identity.file_of(box))
    path.write_text("")
    lose(host)
    with pytest.raises(NoneFree, match="or move it aside and attach those GPUs again"):
        host.attach(other, count=4)
    os.rename(path, host.folder / "aside")
    host.attach(box, gpus=[OWN])
    host.attach(other, count=3)
    assert host.table()[OWN] == [box.name]


def test_a_file_that_no_configuration_includes_keeps_nothing(host):
    """Lost: all GPUs of the host, to a file that lies in a folder of no container with GPUs."""
    box, other = host.boxes.make(start=False), host.boxes.make(start=False)
    path = Path(identity.file_of(box))
    path.parent.mkdir()
    path.write_text("")
    host.attach(other, count=4)
    assert len(host.table()) == 4
