# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves of an instance, without a host. If these fail, a root is copied for an hour to where it has no room or
cannot run, or a file of the other host's choice is written here.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import moved_roots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import sparse_copy


@pytest.fixture
def space(monkeypatch):
    """The folders whose file systems were asked for their room, which is 100 MiB."""
    asked = []
    monkeypatch.setattr(sparse_copy, "spare", lambda folder: (asked.append(folder), 100 << 20)[1])
    return asked


@pytest.mark.parametrize("below", ["", "ml-8", "ml-8/rootfs/of"])
def test_a_folder_that_is_yet_to_be_made_has_the_room_of_what_is_there(space, tmp_path, below):
    """Lost: the move of the first instance to a fresh host; or an hour, for a copy that ends in "no space left"."""
    folder = os.path.join(tmp_path, below)
    moved_roots.must_have_room(folder, 100 << 20)
    assert set(space) == {folder if not below else str(tmp_path)}
    with pytest.raises(HeteroError) as caught:
        moved_roots.must_have_room(folder, (100 << 20) + 1)
    assert "100" in caught.value.what
    assert "101" in caught.value.what, "no less is said to be needed than is"


def test_a_file_in_the_way_of_a_folder_is_not_asked_for_room(space, tmp_path):
    """Lost: the same, to a traceback."""
    (tmp_path / "ml-8").write_text("a file")
    moved_roots.must_have_room(str(tmp_path / "ml-8" / "rootfs"), 1)
    assert set(space) == {str(tmp_path)}


def containers_root(unprivileged):
    """The root of ml-8 on the host to which it moves."""
    done = []
    work = SimpleNamespace(
        container=None,
        host=SimpleNamespace(config=SimpleNamespace(lxc=SimpleNamespace(unprivileged=unprivileged))),
        claim=SimpleNamespace(instance="ml-8"),
        must_not_be_lost=lambda: done.append("lost"),
        refuse_unmounted=lambda: done.append("mounted"),
    )
    return moved_roots.ContainersRoot(work), done


@pytest.mark.parametrize("unprivileged", [True, False])
@pytest.mark.parametrize("of_root", [{"first_id": 100000}, {"first_id": 0}, {"first_id": None}, {}])
def test_a_root_moves_only_to_a_host_whose_containers_have_such_ids(unprivileged, of_root):
    """Lost: all files of a tenant, to an owner that his container has not; or the host's root, to a container's."""
    root, done = containers_root(unprivileged)
    if (of_root.get("first_id") is not None) == unprivileged:
        root.must_be_takeable(of_root)
        assert done == ["lost", "mounted"]
        return
    with pytest.raises(Refused) as caught:
        root.must_be_takeable(of_root)
    own, hosts = "ids of its own", "the host's own ids"
    theirs, here = (hosts, own) if unprivileged else (own, hosts)
    assert f"belongs to {theirs}, and containers of this host to {here} " in caught.value.what
    assert done == []


def test_what_comes_from_another_host_has_a_plain_name():
    """Lost: any file of this host, to root of another one: a path is made of these names."""
    assert set(moved_roots.NAMES) == set(moved_roots.KINDS)
    for names in moved_roots.NAMES.values():
        assert names
        assert all(name == os.path.basename(name) and name not in ("", ".", "..") for name in names)


def test_the_files_of_a_guest_that_are_there_move(tmp_path):
    """Lost: the guests whose image has no initrd; or its kernel, without which the copy does not boot."""
    root = moved_roots.GuestsRoot(SimpleNamespace(folder=str(tmp_path)))
    assert root.files == {}
    disk = next(name for name in moved_roots.NAMES["kvm"] if name not in ("kernel", "initrd"))
    for name in (disk, "kernel", "seed.iso"):
        (tmp_path / name).write_bytes(b"x" * 5000)
    assert root.files == {name: str(tmp_path / name) for name in (disk, "kernel")}
    assert root.sizes == {disk: 5000, "kernel": 5000}
    assert set(root.files) <= set(moved_roots.NAMES["kvm"])


def test_a_sparse_disk_takes_what_it_holds(tmp_path):
    """Lost: the move of a disk of 500 GB with 5 GB in it, to a host with 100 GB."""
    disk = next(name for name in moved_roots.NAMES["kvm"] if name not in ("kernel", "initrd"))
    with open(tmp_path / disk, "wb") as file:
        file.truncate(1 << 30)
    root = moved_roots.GuestsRoot(SimpleNamespace(folder=str(tmp_path)))
    assert root.sizes == {disk: 1 << 30}
    assert root.bytes < 1 << 20
