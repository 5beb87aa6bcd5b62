# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing what a tenant left: any depth, any flags, no link followed, and an end in time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.removal import remove_tree


def nest(folder, depth):
    """Folders in each other, made by descriptors: the whole path is longer than any system call takes."""
    os.makedirs(folder)
    here = os.open(folder, os.O_RDONLY)
    for _level in range(depth):
        os.mkdir("d", dir_fd=here)
        with open(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w", encoding="ascii") as file:
            file.write("x")
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.dear
def test_folders_of_any_depth(tmp_path):
    """Lost: a tenant who nests folders keeps its board, and everybody's leases, for ever."""
    nest(tmp_path / "root", 5000)
    remove_tree(str(tmp_path / "root"))
    assert os.listdir(tmp_path) == []


@pytest.mark.dear
def test_wide_folders_and_names_of_ours(tmp_path):
    """Lost: a folder is left because it has a name that the removal uses, or has more files than are read at once."""
    root = tmp_path / "root"
    for number in range(40):
        (root / "a" / f".removed-{number}").mkdir(parents=True)
        (root / f".removed-{number}" / "x").mkdir(parents=True)
    (root / ".removed-50").write_text("a file of that name")
    for number in range(2500):
        (root / "a" / f"file{number}").touch()
    remove_tree(str(root))
    assert os.listdir(tmp_path) == []


def test_links_are_not_followed(tmp_path):
    """Lost: a link in a tenant's root has the node remove its own files."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (tmp_path / "root" / "below").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(other)
    (tmp_path / "root" / "below" / "link").symlink_to(other)
    remove_tree(str(tmp_path / "root"))
    (tmp_path / "itself").symlink_to(other)
    remove_tree(str(tmp_path / "itself"))
    assert os.listdir(tmp_path) == ["other"]
    assert os.listdir(other) == ["kept"]


def test_flags_that_forbid_removal(tmp_path):
    """Lost: chattr +i in a container keeps it on the host for ever."""
    root = tmp_path / "root"
    (root / "folder" / "below").mkdir(parents=True)
    (root / "folder" / "file").touch()
    marked = [root / "folder" / "file", root / "folder" / "below", root / "folder", root]
    for path, flag in zip(marked, ("+i", "+a", "+i", "+a")):
        if subprocess.run(["chattr", flag, path], check=False, capture_output=True).returncode:
            pytest.skip("this file system has no such flags")
    remove_tree(str(root))
    assert os.listdir(tmp_path) == []


def test_time_is_bounded_and_the_next_call_goes_on(tmp_path):
    """Lost: a turn that never ends, or work that begins from nothing each time."""
    nest(tmp_path / "root", 50)
    with pytest.raises(TimedOut, match="not all of it is removed"):
        remove_tree(str(tmp_path / "root"), Deadline(0))
    remove_tree(str(tmp_path / "root"))
    remove_tree(str(tmp_path / "root"))
    assert os.listdir(tmp_path) == []


REMOVE = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.removal import remove_tree
try:
    remove_tree(sys.argv[1])
except HeteroError as error:
    print(error)
"""


@pytest.mark.parametrize("point", ["point", "a/point", "a/b/c/point"])
@pytest.mark.parametrize("mount", ["mount -t tmpfs none", "mount --bind other"])
def test_what_is_mounted_is_left_and_named(tmp_path, point, mount):
    """Lost: the files of whatever is mounted in a tenant's folder; or an error that does not say where to look."""
    root = tmp_path / "root"
    (root / point).mkdir(parents=True)
    (tmp_path / "other").mkdir()
    fill = f'{mount} "$1/{point}" && touch "$1/{point}/kept" && mkdir "$1/{point}/too"'
    script = f'{fill} && "$2" -c "$3" "$1"; find "$1" -printf "%f\\n"'
    words = ["sh", "-c", script, "sh", str(root), sys.executable, REMOVE]
    argv = ["unshare", "--mount", "--propagation", "private", *words]
    said = subprocess.run(argv, cwd=tmp_path, check=False, capture_output=True, text=True).stdout
    assert f"{root}: cannot be removed" in said
    assert "mount" in said
    assert {"kept", "too"} <= set(said.split())


@pytest.mark.dear
def test_a_full_file_system_has_room_for_its_end(tmp_path):
    """Lost: a tenant that fills a disk to its last block keeps what it has there for ever."""
    script = """
        truncate --size=8M disk && mke2fs -q -F -t ext4 -b 1024 -m 0 -N 6000 -O ^has_journal disk
        mkdir point && mount disk point && mkdir point/root && cd point/root && mkdir $(seq 800)
        for n in $(seq 800); do mkdir $n/below $n/below/more || break; done
        cat /dev/zero > zeros; cd ../.. && "$2" -c "$3" "$1/point/root"; ls point; umount point
    """
    words = ["sh", "-c", script, "sh", str(tmp_path), sys.executable, REMOVE]
    argv = ["unshare", "--mount", "--propagation", "private", *words]
    done = subprocess.run(argv, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.stdout.split() == ["lost+found"], done.stdout + done.stderr[-500:]
