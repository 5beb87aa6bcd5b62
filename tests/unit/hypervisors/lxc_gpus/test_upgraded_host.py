# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was upgraded: its folder of containers has the mark, and nothing beside the database says so yet. If this
fails, GPUs of containers whose file system is not mounted are given to the next who asks.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES, MINORS


def test_after_a_repair_no_gpu_of_what_is_not_mounted_is_given(host):
    """Lost: the GPU of a container whose file system is not mounted."""
    host.attach(host.boxes.make(name="a", start=False), gpus=ADDRESSES[:1])
    (host.folder / "host.folders").unlink()
    host.reconcile(repair=True, check=True)
    assert not (host.folder / "host.folders").exists()
    host.reconcile(repair=True)
    mounted = f"{host.boxes.lxcpath}-aside"
    os.rename(host.boxes.lxcpath, mounted)
    other = host.boxes.make(name="old", start=False)
    with pytest.raises(Refused, match="a was made in it: its file system may not be mounted"):
        host.attach(other, count=1)
    assert host.table() == {ADDRESSES[0]: ["a"]}
    os.rename(host.boxes.lxcpath, f"{host.boxes.lxcpath}-bare")
    os.rename(mounted, host.boxes.lxcpath)


@pytest.mark.parametrize("by", ["repair", "detach"])
def test_what_is_closed_on_a_bare_point_leaves_no_mark_there(host, by):
    """Lost: the GPU of a container whose file system is not mounted, as another one had opened a GPU by itself."""
    host.attach(host.boxes.make(name="a", start=False), gpus=ADDRESSES[:1])
    with Store(host.state_db) as store:
        store.note_marked(host.boxes.lxcpath)  # as it was noted while one of its containers was not seen
    mounted = f"{host.boxes.lxcpath}-aside"
    os.rename(host.boxes.lxcpath, mounted)
    other = host.boxes.make(name="old")
    other.allow(f"c 195:{MINORS[ADDRESSES[1]]} rw")
    if by == "repair":
        said = [finding["error"] or "" for finding in host.reconcile(repair=True)["findings"]]
    else:
        with pytest.raises(Refused) as refused:
            host.detach(other)
        said = [str(refused.value)]
    host.reconcile(repair=True)
    assert host.table() == {ADDRESSES[0]: ["a"]}
    assert any("a was made in it: its file system may not be mounted" in error for error in said)
    other.stop()
    os.rename(host.boxes.lxcpath, f"{host.boxes.lxcpath}-bare")
    os.rename(mounted, host.boxes.lxcpath)
