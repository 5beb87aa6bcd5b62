# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each root a file system of its own, of a bounded size. If these failed, a tenant's file handles would name another's
files, one tenant could fill the disk of all, or devices would stay taken until none is left.

Tests files/loop.py.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import file_system, loop, mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import (
    make_empty,
    mount_file,
    pack,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.loop import attached
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.room import SPARE, Room
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.tests.unit.images.devices import devices_of

GIB = 1 << 30


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    for point in reversed(mounts_below(str(tmp_path))):
        unmount(point)


def fresh(folder, image, number=0, size=GIB):
    root = Root(str(folder), number)
    root.create(image, f"jackie {number}", Room(str(folder)), size)
    return root


# ---- its size


def fill(path):
    """Write until nothing fits; how many bytes did."""
    done = subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=1M"], capture_output=True, text=True, check=False)
    assert "No space left on device" in done.stderr
    return os.path.getsize(path)


def test_a_full_root_is_its_tenants_alone(folder, image):
    """Lost: the others' work, when one tenant writes until nothing fits."""
    full, other = fresh(folder, image, 0, 128 << 20), fresh(folder, image, 1, 128 << 20)
    assert 64 << 20 < fill(os.path.join(full.path, "fill")) < 128 << 20
    Path(other.path, "work").write_bytes(os.urandom(16 << 20))
    Path(folder, "a record").write_text("of the proxy\n")
    taken = os.stat(full.file).st_blocks * 512
    os.unlink(os.path.join(full.path, "fill"))
    deadline = Deadline(60)
    while os.stat(full.file).st_blocks * 512 >= taken - (32 << 20):
        assert not deadline.passed, "what a tenant removes goes back to the disk"
        os.sync()


def test_files_are_counted_too(folder, image):
    """Lost: the disk, to millions of empty files."""
    root = fresh(folder, image, 0, 64 << 20)
    files = os.statvfs(root.path).f_files
    assert 1000 < files < 10000

    def make_all():
        for number in range(files + 1):
            os.close(os.open(os.path.join(root.path, f"file {number}"), os.O_CREAT | os.O_WRONLY))

    with pytest.raises(OSError, match="No space left"):
        make_all()


def test_a_large_root_takes_nothing_before_it_is_used(folder, image):
    """Lost: minutes for each instance of a flavor with a large disk, or the disk at once."""
    root = Root(str(folder), 0)
    root.create(image, "jackie 1", Room(str(folder), 10**6), 500 * GIB)
    assert os.statvfs(root.path).f_blocks * os.statvfs(root.path).f_frsize > 480 * GIB
    assert os.stat(root.file).st_blocks * 512 < 8 << 20
    # Zeroed tables: the kernel has none to write later.
    said = subprocess.run(["dumpe2fs", root.file], capture_output=True, text=True, check=True).stdout
    groups = re.findall(r"^Group \d+: .*$", said, re.MULTILINE)
    assert len(groups) > 3000
    assert all("ITABLE_ZEROED" in group for group in groups)


def test_more_than_there_is_is_promised_only_where_that_was_chosen(folder, image):
    """Lost: everybody's root at once, when the disk that all were promised is full."""
    there = Room(str(folder)).fields["there"]
    assert there > 4 * GIB, "these tests need some space"
    kept = fresh(folder, image, 0, GIB)
    for number, ratio, size in ((1, 1, there), (2, 2, 2 * there)):
        with pytest.raises(Refused, match=rf"no room for a root of .* {ratio}\)"):
            Root(str(folder), number).create(image, "bob 1", Room(str(folder), ratio), size)
    Root(str(folder), 3).create(image, "bob 1", Room(str(folder), 2), there)
    fields = Room(str(folder), 2).fields
    assert fields["promised"] == there + GIB
    assert 0 < fields["taken"] < GIB
    # In its own stead it fits.
    Room(str(folder), 1).check(GIB // 2, instead=Root(str(folder), 3).file)
    assert fields["overcommit"] == 2
    assert os.path.exists(kept.file)
    assert SPARE == GIB


@pytest.mark.parametrize(
    ("held", "ratio", "size", "why", "remedy"),
    [
        # larger than all there is
        (0, 1, 8192, "all roots together have", "ending instances does not help: take a flavor with local_gb of "),
        # more is promised than may be, as where over-commit was taken back
        (8192, 1, 1, "for roots is promised already", "a smaller flavor does not help: terminate instances of "),
        (1, 1, 0, "1.0 GiB of the ", "at most, or terminate instances; or add space"),
    ],
)
def test_what_is_said_of_no_room_helps(folder, held, ratio, size, why, remedy):
    """Lost: a user takes a smaller flavor, or ends instances, and is refused as before."""
    room = Room(str(folder), ratio)
    if held:
        (folder / "board-roots" / "fs_0").mkdir(parents=True)
        with (folder / "board-roots" / "fs_0" / "root.ext4").open("wb") as file:
            file.truncate(held * GIB)
    with pytest.raises(Refused) as refused:
        # half a gibibyte less than all there is: others write to this file system meanwhile
        room.check(size * GIB or room.fields["there"] - GIB // 2)
    assert refused.value.failure["thing"] == f"{folder}/board-roots of {os.uname().nodename}"
    assert why in refused.value.what
    assert remedy in refused.value.remedy
    assert "raise tftp_proxy_roots_overcommit, then run ansible-playbook hetero.compute.proxy" in refused.value.remedy


def test_a_size_that_no_file_can_have_is_said(folder, image):
    with pytest.raises(BadInput, match="no file of"):
        Root(str(folder), 0).create(image, "bob 1", Room(str(folder), 10**9), 1 << 60)


# ---- what lies in it


def test_two_roots_have_no_file_system_in_common(folder, image):
    """Lost: another's files: a server finds any file of a file system by its number."""
    roots = [fresh(folder, image, number) for number in (0, 1)]
    below = [os.statvfs(root.path).f_fsid for root in roots]
    assert len({*below, os.statvfs(folder).f_fsid, os.statvfs(image.root).f_fsid}) == 4
    for root in roots:
        root.unmount(Deadline(60))
        mount_file(root.file, root.layers)
        assert sorted(os.listdir(root.layers)) == ["lost+found", "upper", "work"]
        assert os.listdir(os.path.join(root.layers, "lost+found")) == []
        assert {"rw", "nosuid", "nodev", "noexec"} <= set(options_of(root.layers))
        assert os.stat(root.file).st_mode & 0o777 == 0o600
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(options_of(image.root))


def options_of(point, of_file_system=False):
    """How it is mounted; or what the file system itself was told."""
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    return next(line.split()[-1 if of_file_system else 5].split(",") for line in table if line.split()[4] == str(point))


@pytest.mark.parametrize("older", [False, True])
def test_the_tables_of_a_root_take_no_memory_before_they_are_used(folder, monkeypatch, older):
    """Lost: 30 MB of a proxy's memory for each board of 917 GB; on a kernel that cannot spare them, all roots."""

    def mount_ext4(device, point, options, read_only=False):
        unknown = older and "prefetch" in options
        return errno.EINVAL if unknown else mounts.mount_ext4(device, point, options, read_only)

    monkeypatch.setattr(file_system, "mount_ext4", mount_ext4)
    file, point = folder / "root.ext4", folder / "point"
    with file.open("wb") as new:
        new.truncate(917 * GIB)
    make_empty(str(file))
    point.mkdir()
    mount_file(str(file), str(point))
    told = options_of(point, of_file_system=True)
    assert ("no_prefetch_block_bitmaps" in told, "discard" in told) == (not older, True)


def test_an_images_file_system_holds_just_its_files(folder):
    """Lost: a set-uid program that is none any more, a capability, a link, the owner of a file."""
    source = folder / "files"
    (source / "a" / "b").mkdir(parents=True)
    (source / "a" / "one").write_text("1\n")
    os.link(source / "a" / "one", source / "a" / "b" / "same")
    (source / "link").symlink_to("/a/one")
    (source / "long").symlink_to("x" * 200)
    with open(source / "holes", "wb") as file:
        file.truncate(1 << 30)
    (source / "suid").write_text("#!/bin/sh\n")
    os.chown(source / "suid", 100000, 65534)
    os.chmod(source / "suid", 0o4750)
    os.setxattr(source / "suid", "user.note", b"kept")
    os.setxattr(source / "a" / "one", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    os.utime(source / "a" / "one", (1, 1000000000))
    os.chown(source, 1, 2)
    os.chmod(source, 0o711)
    pack(str(source), str(folder / "packed"))
    os.mkdir(folder / "point")
    mount_file(str(folder / "packed"), str(folder / "point"), read_only=True)
    assert about(folder / "point") == about(source)
    assert os.stat(folder / "packed").st_blocks * 512 < 16 << 20
    assert sorted(os.listdir(folder)) == ["files", "packed", "point"]


def beginning(path):
    with open(path, "rb") as file:
        return file.read(100)


def about(top):
    first, found = {}, {}
    for path in sorted([top, *top.rglob("*")]):
        status, name = os.lstat(path), str(path.relative_to(top))
        keys = os.listxattr(path, follow_symlinks=False)
        attributes = {key: os.getxattr(path, key, follow_symlinks=False) for key in keys}
        content = os.readlink(path) if path.is_symlink() else beginning(path) if path.is_file() else None
        size = status.st_size if path.is_file() else None
        same = first.setdefault(status.st_ino, name)
        owner = (status.st_mode, status.st_uid, status.st_gid)
        found[name] = (*owner, int(status.st_mtime), size, same, attributes, content)
    return found


# ---- its device


def test_a_device_is_given_back_with_the_last_mount(folder, image):
    """Lost: the next instance, when all devices are taken by roots that are gone."""
    root = fresh(folder, image)
    assert root.file in devices_of(folder)
    root.unmount(Deadline(60))
    root.remove()
    assert root.file not in "".join(devices_of(folder))
    assert not root.exists()


def test_a_file_is_written_by_one_mount_only(folder, image, monkeypatch):
    """Lost: all that is in a root that a container, or a service with mounts of its own, still has mounted."""
    monkeypatch.setattr(loop, "LET_GO", 0.2)
    root = fresh(folder, image)
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "600"])
    try:
        end = time.monotonic() + 60
        while os.readlink(f"/proc/{holder.pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt"):
            assert time.monotonic() < end
            time.sleep(0.01)
        root.unmount(Deadline(60))
        with pytest.raises(HeteroError, match="is still mounted elsewhere"):
            root.mount(image)
    finally:
        holder.kill()
        holder.wait()
    root.mount(image)
    assert root.ready(image)


LETS_GO = """
import os, subprocess, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import mounts

folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "root", folder], check=True)
(here, done), (seen, told) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    mounts.own_mounts()
    subprocess.run(["mount", "-t", "tmpfs", "own", os.path.dirname(folder)], check=True)
    subprocess.run(["umount", os.path.dirname(folder)], check=True)
    os.write(told, b"x")
    os.read(here, 1)
    print("still there" if mounts.mounts_below(folder) else "let go", flush=True)
    os._exit(0)
os.read(seen, 1)
subprocess.run(["umount", folder], check=True)
os.write(done, b"x")
os.waitpid(child, 0)
"""


def test_who_completes_one_file_system_holds_no_other(tmp_path):
    """Lost: a root that "is still mounted elsewhere" for as long as another image is imported."""
    folder = tmp_path / "root"
    folder.mkdir()
    argv = ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c", LETS_GO, str(folder)]
    assert subprocess.run(argv, check=True, timeout=600, stdout=subprocess.PIPE, text=True).stdout == "let go\n"


KILLED = """
import os, sys
sys.path.insert(0, {path!r})
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.loop import attached
with attached({file!r}):
    print("attached", flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_no_device(folder):
    file = folder / "file"
    file.touch()
    os.truncate(file, 64 << 20)
    make_empty(str(file))
    build = str(Path(loop.__file__).parents[6])
    path = next(entry for entry in [*sys.path, build] if Path(entry, "ansible_collections/hetero/compute").exists())
    code = KILLED.format(path=path, file=str(file))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "attached\n"), done.stderr
    assert devices_of(folder) == []
    with attached(str(file)):
        assert devices_of(folder) == [str(file)]
    assert devices_of(folder) == []


TAKES_IT_FIRST = """
import fcntl, os, struct, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import loop
taken, make = [], loop._free_device
def free():
    name = make()
    for _time in range(1000):
        if taken:
            break
        # another process was quicker; who is quicker than this one takes a device that is not its own either
        other, backing = os.open(name, os.O_RDONLY), os.open({file!r}, os.O_RDONLY)
        try:
            fcntl.ioctl(other, loop.LOOP_CONFIGURE, loop.CONFIG.pack(backing, 0, 0, 0, loop.LO_FLAGS_AUTOCLEAR | 1))
            taken.append(name)
        except OSError:
            os.close(other)
            name = make()
    return name
loop._free_device = free
with loop.own_nodes(), loop.attached({file!r}, read_only=True) as device:
    assert device != taken[0]
    there = os.listdir("/dev")
    assert os.path.basename(device) in there, there
print("\\n".join(os.listdir("/dev")))
"""


def test_who_only_tries_leaves_no_node_of_a_device_that_another_took_first(folder):
    """A dry run changes nothing, not even a /dev of a container's own."""
    file = folder / "file"
    file.touch()
    os.truncate(file, 1 << 20)
    build = str(Path(loop.__file__).parents[6])
    path = next(entry for entry in [*sys.path, build] if Path(entry, "ansible_collections/hetero/compute").exists())
    own = 'mount -t tmpfs dev /dev && mknod /dev/loop-control c 10 237 && mknod /dev/null c 1 3 && exec "$@"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", own, "sh", sys.executable, "-c"]
    code = TAKES_IT_FIRST.format(file=str(file))
    done = subprocess.run([*argv, code], capture_output=True, text=True, check=False, env={"PYTHONPATH": path})
    assert (done.returncode, set(done.stdout.split())) == (0, {"null", "loop-control"}), done.stderr
