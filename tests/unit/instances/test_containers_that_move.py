# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that move to another host, which is another folder of containers with a database of its own here. If these
fail, a tenant's root is lost on the way, has wrong owners, or runs twice.

Tests compute_host/moved_roots.py, compute_host/arrivals.py, compute_host/departures.py, hypervisors/lxc/id_maps.py.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.moved_roots import ContainersRoot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    id_maps,
    new_container,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.tests.unit.instances.conftest import Site
from ansible_collections.hetero.compute.tests.unit.instances.moves import Mover
from ansible_collections.hetero.compute.tests.unit.killed_at import killed_at

COUNT = id_maps.COUNT


@pytest.fixture
def ml(site, tmp_path, image):
    """ml-8 runs on gpu1 with two GPUs, and has something of its own; gpu2 is another host."""
    folder = tmp_path / "second"
    folder.mkdir()
    other = Site(folder, site.machine, image)
    other.settings.update(name="gpu2", addresses=["10.0.81.12", "10.0.81.13"])
    other.config.write_text(json.dumps(other.settings))
    with other.host():  # before there are containers, which would be signs of a database that was lost
        pass
    site.claim(lease_hours=5)
    assert not site.up().get("failed")
    (root(site) / "work").write_text("a week of work")
    os.chown(root(site) / "work", 1000, 1000)
    yield Mover(lambda one: one.host(), site, other, "ml-8")
    other.end()


def root(site, name="ml-8"):
    return Path(site.container(name).folder) / "rootfs/root"


def test_a_container_runs_on_the_other_host_with_its_gpus(ml):
    """Lost: a tenant's files, its GPUs, its key, or its lease."""
    old, new = ml.old, ml.new
    before, has = ml.claim(old), len(old.can_open())
    assert has == 2
    ml.copied()
    assert (ml.state(old), ml.state(new)) == ("leaving", "arriving")
    assert not old.container().running
    assert "lxc.start.auto = 0" in Path(old.container().config_file).read_text()
    assert os.stat(Path(new.container().folder) / "root.ext4").st_mode & 0o777 == 0o600
    assert not os.path.ismount(Path(old.container().folder) / "rootfs")
    done = ml.started()
    assert done["instances"][0]["state"] == "running"
    assert len(new.can_open()) == 2
    ml.step(old, "gone")
    work = root(new) / "work"
    assert (work.read_text(), work.stat().st_uid) == ("a week of work", 1000)
    after = ml.claim(new)
    for name in ("created", "expires", "owner", "flavor", "image_hash", "host_key", "ssh_public_key"):
        assert getattr(after, name) == getattr(before, name), name
    assert (before.address, after.address) == ("10.0.81.10", "10.0.81.12")
    assert old.nothing_is_left()
    assert "lxc.start.auto = 1" in Path(new.container().config_file).read_text()
    assert not new.up()["changed"]
    assert not new.do(lifecycle.absent).get("failed")
    assert new.nothing_is_left()


@pytest.mark.parametrize(
    ("owner", "name"),
    [(new_container, "begin_copy"), (new_container, "take_copy"), (new_container, "_finish"), (Container, "start")],
)
@pytest.mark.dear
def test_killed_on_its_way_it_goes_on(ml, owner, name):
    """Lost: an instance whose new host's power fails in the middle."""
    killed_at(owner, name, ml.all)
    assert not (ml.old.container().running and ml.new.container().running)
    ml.all()
    assert (ml.claim(ml.old), ml.state(ml.new)) == (None, "running")
    assert (root(ml.new) / "work").read_text() == "a week of work"
    assert ml.old.nothing_is_left()


def test_nobody_starts_it_by_hand_where_it_leaves(ml):
    """Lost: what is written there after the copy was made: the copy runs, and the newer root is removed."""
    ml.copied()
    with ml.old.host() as host:
        assert disks.restore(str(ml.old.lxcpath), host.machine.disks) == {}  # its host boots, and mounts its root
    with pytest.raises(HeteroError, match=r"it moves to another host, or did: .* goes on, and with -e back=true"):
        ml.old.container().start()
    assert not ml.old.container().running
    ml.step(ml.new, "given_up")
    ml.step(ml.old, "back")
    dry, done = (ml.old.do(lifecycle.stopped, check=check) for check in (True, False))
    assert [[entry["after"] for entry in result["diff"]] for result in (dry, done)] == [[{"leaves": False}]] * 2
    ml.old.container().start()
    assert not ml.old.up().get("failed")


def test_a_copy_is_not_given_up_for_an_older_root_that_was_put_back_where_it_left(ml):
    """Lost: what only the copy has, once the former root's disk was lost, and comes from a backup."""
    disk = Path(ml.old.container().folder) / "root.ext4"
    subprocess.run(["cp", "--sparse=always", disk, ml.old.folder / "backup"], check=True)
    (root(ml.old) / "work").write_text("a week of work, and a day's")
    ml.copied()
    subprocess.run(["cp", "--sparse=always", ml.old.folder / "backup", disk], check=True)
    left = ml.step(ml.old, "leaving")["came"]
    with pytest.raises(Refused, match="no copy of the one that leaves: which is newer only people can say"):
        ml.step(ml.new, "given_up", departure=left["departure"])
    assert os.path.exists(Path(ml.new.container().folder) / "root.ext4")


def test_a_root_is_as_it_was_let_go_where_no_less_was_written_to_it(tmp_path):
    """Lost: a move that its former host's boot would end, or one that an earlier release began."""
    file, block = tmp_path / "root.ext4", bytearray(2048)
    moved = ContainersRoot(SimpleNamespace(container=SimpleNamespace(folder=str(tmp_path))))
    assert (moved.stamp, moved.is_as("0" * 16)) == ("", True)  # it is gone, and nothing is in its place

    def written(kib):
        block[1024 + 0x38 : 1024 + 0x3A] = b"\x53\xef"
        struct.pack_into("<Q", block, 1024 + 0x178, kib)
        file.write_bytes(block)
        return moved.stamp

    before, let_go, booted = map(written, (9, 16, 1 << 33))
    assert [moved.is_as(stamp) for stamp in ("", before, let_go, booted)] == [True] * 4
    written(16)
    assert [moved.is_as(stamp) for stamp in ("", before, let_go, booted)] == [True, True, True, False]
    file.write_bytes(b"")
    assert moved.stamp == ""


def test_given_up_it_runs_where_it_ran(ml):
    """Lost: the instance, and room on the other host, whose copy stays."""
    ml.copied()
    ml.step(ml.new, "given_up")
    assert ml.new.nothing_is_left()
    assert ml.step(ml.old, "back") == {"ran": True}
    assert not ml.old.up().get("failed")
    assert (root(ml.old) / "work").read_text() == "a week of work"
    assert len(ml.old.can_open()) == 2


@pytest.mark.parametrize("half", ["old", "new"])
def test_the_end_of_a_half_waits_until_its_folder_is_mounted(ml, half):
    """Lost: a root that nobody sees, and whose claim and address are said to be free."""
    ml.copied()
    site = getattr(ml, half)
    away = site.folder / "unmounted"
    site.lxcpath.rename(away)
    site.lxcpath.mkdir(mode=0o711)
    assert "its root is not to be seen here, and ml-8 has run" in site.do(lifecycle.absent)["msg"]
    assert ml.state(site) == ("leaving" if half == "old" else "arriving")
    site.lxcpath.rmdir()
    away.rename(site.lxcpath)
    assert not site.do(lifecycle.absent).get("failed")
    assert site.nothing_is_left()


def test_a_host_that_mounted_the_root_again_at_its_boot_sends_what_changed(ml):
    """Lost: a copy that never becomes the same, as the old host was restarted meanwhile."""
    came = ml.step(ml.old, "described")["came"]
    ml.step(ml.new, "arriving", came=came)
    came = ml.step(ml.old, "leaving")["came"]
    begun = ml.step(ml.new, "begun", came=came)
    todo = ml.step(ml.old, "planned", has=begun["has"])["todo"]
    for file, number in todo:
        ml.step(ml.new, "written", piece=ml.step(ml.old, "read", piece=dict(file=file, number=number))["piece"])
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks

    disks.restore(str(ml.old.lxcpath), str(ml.old.folder / "disks"))
    with pytest.raises(Refused, match="is not off, or does not leave this host any more"):
        ml.step(ml.old, "digested")
    ml.all()
    assert (root(ml.new) / "work").read_text() == "a week of work"


def test_one_whose_gpus_are_not_those_of_its_flavor_stays(ml):
    """Lost: a GPU that was given by hand, which the instance misses on the other host."""
    with ml.old.host() as host:
        host.store.free(host.store.allocations()[0])
    with pytest.raises(Refused, match="has 1 GPUs, and its flavor names 2: those that were given by hand do not move"):
        ml.step(ml.old, "leaving")
    assert ml.state(ml.old) == "running"


@pytest.mark.parametrize("to", ["/data/ssh", "nowhere"])
def test_one_whose_key_has_no_place_is_refused_before_it_is_off(ml, to):
    """Lost: an instance that is off, and hours of a copy, which no host starts: its /root/.ssh leads nowhere."""
    folder = root(ml.old) / ".ssh"
    shutil.rmtree(folder)
    folder.symlink_to(to)
    told = f"/root/.ssh in its root is a symbolic link to {to}, which is no folder: the key of its claim cannot be put"
    for step in ("described", "leaving"):
        with pytest.raises(Refused, match=told):
            ml.step(ml.old, step)
    assert (ml.state(ml.old), ml.old.container().running) == ("running", True)
    folder.unlink()
    folder.mkdir()
    ml.step(ml.old, "described")


def test_what_lies_in_its_place_on_the_other_host_is_refused(ml):
    """Lost: somebody's container of that name on the other host."""
    there = Path(ml.new.container().folder)
    there.mkdir(parents=True)
    (there / "mine").write_text("somebody's")
    came = ml.step(ml.old, "described")["came"]
    with pytest.raises(HeteroError, match="is not empty, and nothing was made there for this claim"):
        ml.step(ml.new, "arriving", came=came)
    assert (there / "mine").read_text() == "somebody's"
    assert ml.claim(ml.new) is None


# ---- ids of its files


def tree(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("")
    (folder / "deep" / "su").write_text("")
    os.symlink("/etc/passwd", folder / "link")
    for path in (folder, folder / "deep", folder / "deep/file", folder / "link"):
        os.chown(path, 100000, 100000 + 7, follow_symlinks=False)
    os.chown(folder / "deep/su", 100000 + 1000, 5)
    os.chmod(folder / "deep/su", 0o4755)
    return folder / "deep"


def owners(deep):
    paths = (deep, deep / "file", deep / "su", deep.parent / "link")
    return [(os.lstat(path).st_uid, os.lstat(path).st_gid) for path in paths]


def test_files_get_the_ids_of_the_new_range_and_keep_what_hangs_on_them(tmp_path):
    """Lost: files that belong to nobody in the container; a program that may no more what it could (ping, sudo)."""
    deep = tree(tmp_path)
    capability = struct.pack("<IIIIII", 0x03000001, 1 << 13, 0, 0, 0, 100000)
    os.setxattr(deep / "file", "security.capability", capability)
    entries = [(0x01, 6, 0xFFFFFFFF), (0x02, 4, 100000 + 33), (0x04, 4, 0xFFFFFFFF), (0x08, 4, 100000 + 44)]
    entries += [(0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
    os.setxattr(deep / "file", "system.posix_acl_access", access)
    for _again in range(2):  # a run that was killed begins anew
        id_maps.move(str(tmp_path), 100000, id_maps.of(300000))
        assert owners(deep) == [(300000, 300007), (300000, 300007), (301000, 5), (300000, 300007)]
    assert os.stat(deep / "su").st_mode & 0o7777 == 0o4755
    moved = os.getxattr(deep / "file", "security.capability")
    assert moved == capability[:-4] + struct.pack("<I", 300000)
    told = os.getxattr(deep / "file", "system.posix_acl_access")
    ids = {tag: number for tag, _may, number in struct.iter_unpack("<HHI", told[4:])}
    assert (ids[0x02], ids[0x08]) == (300033, 300044)


def test_folders_at_any_depth_and_with_any_names(tmp_path):
    """Lost: a move of an instance whose tenant made folders that no path reaches."""
    here, top = os.open(tmp_path, os.O_RDONLY), tmp_path
    for _level in range(300):
        os.mkdir("n" * 200, dir_fd=here)
        os.chown("n" * 200, 100000, 100000, dir_fd=here)
        here, above = os.open("n" * 200, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    id_maps.move(str(top), 100000, id_maps.of(300000))
    assert os.fstat(here).st_uid == 300000
    os.close(here)
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.removal import remove_tree

    remove_tree(str(top / ("n" * 200)))


def test_a_range_that_overlaps_is_refused_and_an_equal_one_costs_nothing(tmp_path):
    """Lost: files of two users that become one's, in a run after one that was killed."""
    deep = tree(tmp_path)
    before = owners(deep)
    with pytest.raises(Refused, match="overlap"):
        id_maps.move(str(tmp_path), 100000, id_maps.of(100000 + COUNT - 1))
    id_maps.move(str(tmp_path), 100000, id_maps.of(100000))
    assert owners(deep) == before


def test_the_range_of_the_other_host_is_taken_where_it_is_free(tmp_path, monkeypatch):
    """Lost: the time to change each file's owner; or a range that overlaps the former one."""
    for name in ("subuid", "subgid"):
        (tmp_path / name).write_text(f"root:100000:{10 * COUNT}\n")
    monkeypatch.setattr(id_maps, "FILES", [str(tmp_path / name) for name in ("subuid", "subgid")])
    wish = 100000 + 3 * COUNT
    assert id_maps.free_range([], wish) == wish
    assert id_maps.free_range([(wish + 5, 1)], wish) == 100000
    assert id_maps.free_range([], 100000 + 10) == 100010
    assert id_maps.free_range([(100010, COUNT)], 100010) == 100000 + 2 * COUNT
    assert id_maps.free_range([], 5) == 100000
    assert id_maps.free_range([], 100000 + 9 * COUNT + 1) == 100000
