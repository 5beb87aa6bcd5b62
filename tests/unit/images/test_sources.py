# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where images are imported from. If these fail, a tenant has an operator import what the tenant wrote, or what the
tenant may not read, or an import never ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import walk
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.removal import remove_tree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import sources
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.image_names import valid_image
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar

root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
BELOW = "lies in .*, where tenants' files are kept, or what their machines said"


@pytest.fixture
def theirs(tmp_path):
    """A folder that tenants write, with an image in it."""
    (tmp_path / "roots" / "fs_0").mkdir(parents=True)
    image_tar(tmp_path / "roots" / "fs_0" / "hers.tar")
    (tmp_path / "srv").mkdir()
    return tmp_path / "roots"


@pytest.fixture
def store(tmp_path, theirs):
    return ImageStore(str(tmp_path / "images"), closed=[str(theirs), str(tmp_path / "console.log"), "/nowhere"])


@pytest.fixture
def mounted(tmp_path):
    """A function that mounts something on a folder of /srv; its path."""
    points = []

    def mount(*words):
        point = tmp_path / "srv" / f"mounted-{len(points)}"
        point.mkdir()
        subprocess.run(["mount", *map(str, words), str(point)], check=True)
        points.append(point)
        return point

    yield mount
    for point in reversed(points):
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def test_the_ways_there_by_links(store, theirs, tmp_path):
    (tmp_path / "srv" / "file").symlink_to(theirs / "fs_0" / "hers.tar")
    (tmp_path / "srv" / "folder").symlink_to(theirs)
    (tmp_path / "console.log").write_bytes((theirs / "fs_0" / "hers.tar").read_bytes())
    ways = ["roots/fs_0/hers.tar", "srv/../roots/fs_0/hers.tar", "srv/file", "srv/folder/fs_0/hers.tar", "console.log"]
    for way in ways:
        for url in (f"{tmp_path}/{way}", f"file://{tmp_path}/{way}"):
            with pytest.raises(HeteroError, match=rf"{BELOW}|needs a checksum"):
                store.import_image(url, "x")
            with pytest.raises(Refused, match=BELOW):
                store.import_image(url, "x", checksum="sha256:" + "0" * 64)
    with pytest.raises(Refused, match=r"holds .*roots, where tenants' files are kept, or what their machines said"):
        store.import_image(str(tmp_path), "x")
    assert store.names() == {}


@root
def test_the_ways_there_by_mounts(store, theirs, tmp_path, mounted):
    """Bind mounts of all of it or a part, and of a file system that is mounted below it."""
    assert_refused(store, mounted("--bind", theirs) / "fs_0" / "hers.tar")
    assert_refused(store, mounted("--bind", theirs / "fs_0") / "hers.tar")
    (theirs / "fs_1").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", theirs / "fs_1"], check=True)
    try:
        image_tar(theirs / "fs_1" / "hers.tar")
        assert_refused(store, mounted("--bind", theirs / "fs_1") / "hers.tar")
    finally:
        subprocess.run(["umount", "--lazy", theirs / "fs_1"], check=True)
    subprocess.run(["mount", "--bind", "/proc", theirs], check=True)
    try:
        with pytest.raises(Refused, match=r"holds .*roots, where tenants' files are kept, or what their machines said"):
            store.import_image(str(tmp_path), "x")
    finally:
        subprocess.run(["umount", "--lazy", theirs], check=True)
    # a mount of what is nobody's is as good as the folder
    image_tar(tmp_path / "srv" / "ours.tar")
    assert store.import_image(str(mounted("--bind", tmp_path / "srv") / "ours.tar"), "ours").name == "ours"


def assert_refused(store, path):
    with pytest.raises(Refused, match=BELOW):
        store.import_image(str(path), "x")


@root
def test_a_folder_with_a_mount_in_it(store, tmp_path):
    """What is mounted in it may be anybody's, and all of a disk."""
    source = folder(tmp_path / "srv" / "image")
    (source / "root" / "mnt").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", source / "root" / "mnt"], check=True)
    try:
        with pytest.raises(BadInput, match="root/mnt: is another file system, mounted there"):
            store.import_image(str(source), "x")
    finally:
        subprocess.run(["umount", "--lazy", source / "root" / "mnt"], check=True)


@root
@pytest.mark.parametrize("part", ["fs_0", "", ".."])
def test_a_folder_in_which_tenants_files_are_mounted(store, theirs, tmp_path, part):
    """Of the file system that the folder is on, so that no other device shows it."""
    (theirs / "fs_0" / "secret").write_text("hers")
    source = folder(tmp_path.parent / f"{tmp_path.name}-srv" / "image")
    (source / "root" / "mnt").mkdir()
    subprocess.run(["mount", "--bind", theirs / part, source / "root" / "mnt"], check=True)
    try:
        with pytest.raises(Refused, match=r"holds .*roots, where tenants' files are kept, or what their machines said"):
            store.import_image(str(source), "x")
    finally:
        subprocess.run(["umount", "--lazy", source / "root" / "mnt"], check=True)
    assert store.import_image(str(source), "x").name == "x"


def folder(path):
    (path / "root" / "etc").mkdir(parents=True)
    (path / "image.json").write_text('{"arch": "tilepro64"}')
    (path / "kernel").write_text("kernel")
    (path / "root" / "etc" / "motd").write_text("hello")
    return path


def nested(path, levels, name="d"):
    """Folders in each other, deeper than any path is long; without recursion and by descriptors."""
    here = os.open(path, os.O_RDONLY)
    for _level in range(levels):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize(("levels", "name"), [(500, "d"), (100, "d" * 30)])
def test_deep_folders(store, tmp_path, request, levels, name):
    """As deep as a path can name: imported, by few descriptors. Deeper: refused in words."""
    request.addfinalizer(partial(remove_tree, str(tmp_path / "srv")))
    source = folder(tmp_path / "srv" / "image")
    nested(source / "root", levels, name)
    limit = walk.LONGEST // (len(name) + 1)
    image = store.import_image(str(source), "deep")
    request.addfinalizer(partial(unmount, image.root))
    entries = [parts for parts, _status, _where in walk.walk(root_of(image))]
    assert max(map(len, entries)) == levels
    nested(source / "root" / "etc", limit + 10, name)
    with pytest.raises(BadInput, match="has a name longer than a path can be"):
        store.import_image(str(source), "deeper")
    assert sorted(store.names()) == ["deep"]


def test_a_walk_takes_few_descriptors(tmp_path):
    """A tenant's folders must not use up what the process may open."""
    nested(tmp_path, 300)
    before = len(os.listdir("/proc/self/fd"))
    most = max(len(os.listdir("/proc/self/fd")) for _entry in walk.walk(str(tmp_path)))
    assert most - before <= 2
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_becomes_a_link_while_it_is_read(tmp_path):
    """The moment between looking and opening: what lies behind the link is never read."""
    source = folder(tmp_path / "image")
    secret = folder(tmp_path / "secret")
    steps = walk.walk(str(source))
    for parts, _status, _where in steps:
        if parts == ["root", "etc"]:
            os.rename(source / "root" / "etc", source / "moved")
            (source / "root" / "etc").symlink_to(secret)
            break
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        list(steps)


def test_a_folder_that_is_moved_while_it_is_read(tmp_path):
    """The way back up leads into another folder: nothing of that is read."""
    source = folder(tmp_path / "image")
    (tmp_path / "elsewhere").mkdir()
    steps = walk.walk(str(source))
    for parts, _status, _where in steps:
        if parts == ["root", "etc", "motd"]:
            os.rename(source / "root" / "etc", tmp_path / "elsewhere" / "etc")
            break
    with pytest.raises(BadInput, match="was moved while it was read"):
        list(steps)


def test_a_named_pipe_is_not_waited_for(store, tmp_path):
    os.mkfifo(tmp_path / "srv" / "pipe")
    worker = threading.Thread(target=pipe_is_refused, args=(store, tmp_path / "srv" / "pipe"), daemon=True)
    worker.start()
    worker.join(60)
    assert not worker.is_alive()


def pipe_is_refused(store, path):
    with pytest.raises(BadInput, match="is neither a file nor a folder"):
        store.import_image(str(path), "x")


@pytest.mark.parametrize(
    "source", ["ftp://example.org/x.tar", "data:text/plain,x", "file://elsewhere/srv/x.tar", "gopher://x/y"]
)
def test_no_other_ways_to_fetch(store, source):
    with pytest.raises(BadInput, match=r"is no address that images are fetched from|no such file"):
        store.import_image(source, "x", checksum="sha256:" + "0" * 64)


@pytest.mark.parametrize(
    "text",
    [
        *("/srv/x.tar", "../x", "x/../y", "file:///srv/x", "http://h/x"),
        *(".hidden", "-x", "", "a b", "a\n", "x" * 129, "0" * 64),
    ],
)
def test_what_a_request_may_not_call_an_image(text):
    """Paths and addresses, what would be an option of a command, and hashes, which no operator gave a name."""
    with pytest.raises(BadInput, match=r"is no name for an image.*playbook hetero.compute.image"):
        valid_image(text)


def test_another_import_meanwhile_does_not_take_the_name(store, tmp_path, monkeypatch):
    """Two operators at once: the second is told, and the first one's image stays."""
    ours = image_tar(tmp_path / "srv" / "ours.tar")
    other = image_tar(tmp_path / "srv" / "other.tar", kernel="OTHER")
    there = ImageStore(store.folder)
    locked = store._locked

    def late(deadline):
        there.import_image(other, "debian")
        return locked(deadline)

    monkeypatch.setattr(store, "_locked", late)
    with pytest.raises(Refused, match="debian: stands for image"):
        store.import_image(ours, "debian", change=Change(), deadline=Deadline(30))
    assert store.get("debian").hash == there.get("debian").hash


def test_what_fetches_is_loaded_where_something_is_fetched():
    """Lost: a seventh of the start of each module that knows images, on every node at every call."""
    code = (
        f"import sys, {sources.__name__}; print(sorted({{'http.client', 'urllib.request', 'ssl'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
