# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stores with something damaged, foreign or half done in them. If these failed, half an image would be booted, one bad
file would stop all requests of a proxy, or what is an operator's would be removed.

Tests images/capacity.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import images_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import image_removal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import store as store_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.capacity import no_image
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar

#: A removal that is killed before one of its writes.
CHILD = """
import os, signal, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
store, left = ImageStore(sys.argv[1]), int(sys.argv[3])
def counted(call):
    def step(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return step
for name in ("rename", "unlink", "rmdir", "remove"):
    setattr(os, name, counted(getattr(os, name)))
store.forget("third", sys.argv[2], Deadline(60))
"""


@pytest.fixture
def store(tmp_path):
    yield ImageStore(str(tmp_path / "images"))
    for point in reversed(mounts_below(str(tmp_path))):
        unmount(point)


@pytest.fixture
def third(tmp_path):
    return image_tar(tmp_path / "third.tar", kernel="THIRD")


def remove(store, name, claims=()):
    return image_removal.remove(store, name, lambda: claims, {}, Change(), Deadline(60))


def listed(store):
    return {row["name"]: row for row in image_removal.listed(store, [], {})}


def part(image, name):
    """A file of an image, which may be written."""
    return Path(image.folder) / name


def test_a_killed_removal_leaves_a_whole_image_or_none(store, third):
    """Lost: an initrd or kernel, which nothing says until a board does not boot."""
    code, step = -9, 0
    while code == -9:
        image = store.import_image(third, "third")
        folder = sorted(os.listdir(image.folder))
        argv = [sys.executable, "-c", CHILD, store.folder, image.hash, str(step)]
        code, step = subprocess.run(argv, check=False, timeout=600).returncode, step + 1
        assert store.hashes() in ([], [image.hash])
        assert not store.hashes() or sorted(os.listdir(image.folder)) == folder
        # while it leaves, nobody gets it by its name
        assert [row["arch"] for row in image_removal.listed(store, [], {})] in ([], ["tilepro64"])
        if step % 2:
            remove(store, "third")
            assert (store.hashes(), store.names()) == ([], {})
        again = store.import_image(third, "third")
        assert sorted(os.listdir(again.folder)) == folder
        assert sorted(os.listdir(store.folder)) == sorted([".lock", "names", image.hash])
    assert (code, step > 5) == (0, True)


def test_a_removal_that_ran_out_of_time_is_gone_on_with(store, third):
    hash = store.import_image(third, "third").hash
    with pytest.raises(HeteroError, match="run this again, which goes on with it"):
        store.forget("third", hash, Deadline(0))
    assert remove(store, "third") is None
    assert (store.hashes(), os.listdir(store.folder + "/names")) == ([], [])
    assert sorted(os.listdir(store.folder)) == [".lock", "names"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arch": 5}', '{"arch": "arm", "cmdline": 1}', None])
def test_a_damaged_image_fails_its_own_requests_only(proxy, site, third, text):
    """One bad image.json ended status, claims and removals of all others."""
    store = ImageStore(str(site.state / "images"))
    image = store.import_image(third, "third")
    about = part(image, "image.json")
    about.unlink() if text is None else about.write_text(text)
    images = images_of(proxy)
    assert no_image("debian", images, "tilepro64") is None
    assert re.match("image third is for no board .it is damaged: .*json", no_image("third", images, "tilepro64"))
    with pytest.raises(BadInput, match=r"image third: is damaged \(.*\): have an operator import it again"):
        store.get("third")
    rows = listed(store)
    assert rows["debian"]["arch"] == "tilepro64"
    assert rows["third"]["arch"].startswith("damaged: ")
    assert remove(store, "third")["hash"] == image.hash
    assert list(listed(store)) == ["debian"]


@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.symlink(path, path), os.mkfifo])
def test_what_is_no_name_ends_nothing_and_is_said(proxy, site, third, make):
    store = ImageStore(str(site.state / "images"))
    path = f"{store.folder}/names/third"
    make(path)
    assert list(images_of(proxy)) == ["debian"]
    assert list(image_removal.foreign(store)) == [path]
    for check in (True, False):
        with pytest.raises(Refused, match="third: its name is taken"):
            store.import_image(third, "third", change=Change(check))
    assert store.import_image(third, "other").name == "other"
    assert remove(store, "other")
    assert os.path.lexists(path)


def test_what_is_no_image_ends_nothing_and_is_said(proxy, site, third):
    store = ImageStore(str(site.state / "images"))
    file, folder = Path(store.folder, "a" * 64), Path(store.folder, "b" * 64)
    file.write_text("x")
    folder.mkdir()
    assert list(images_of(proxy)) == ["debian"]
    assert list(image_removal.foreign(store)) == [str(file)]
    assert listed(store)[None]["arch"] == "damaged: image.json: no such file in it (found: nothing)"
    store.import_image(third, "third")
    assert remove(store, "third")
    assert remove(store, "b" * 64)["hash"] == "b" * 64
    assert (remove(store, "a" * 64), file.read_text()) == (None, "x")


def test_a_file_in_an_images_place_stays(store, third, tmp_path):
    hash = store.import_image(third, "third").hash
    remove(store, "third")
    file = Path(store.folder, hash)
    file.write_text("somebody's")
    with pytest.raises(Refused, match="third: its place is taken"):
        store.import_image(third, "third")
    assert file.read_text() == "somebody's"


@pytest.mark.parametrize("name", ["root.ext4", "kernel", "initrd", "image.json"])
@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 10), lambda path: os.truncate(path, 0)])
def test_a_damaged_image_is_imported_again(store, third, name, harm):
    """The error said "import it again", and this did nothing."""
    image = store.import_image(third, "third")
    good = {name: part(image, name).stat().st_size for name in os.listdir(image.folder)}
    # a hard link keeps its number from being given to another file
    kept = Path(store.folder).parent / "kept"
    os.link(part(image, "root.ext4"), kept)
    inode = kept.stat().st_ino
    harm(part(image, name))
    if name == "root.ext4":
        with pytest.raises(HeteroError, match="image third: has lost its files: import it again"):
            root_of(image)
    dry, done, again = Change(check=True), Change(), Change()
    assert (store.import_image(third, "third", change=dry), dry.changed) == (None, True)
    assert store.import_image(third, "third", change=done) == image
    assert store.import_image(third, "third", change=again) == image
    assert (done.changed, again.changed) == (True, False)
    assert {name: part(image, name).stat().st_size for name in os.listdir(image.folder)} == good
    # what roots lie over stays where it is whole: with another of the same files they cannot be mounted
    assert (part(image, "root.ext4").stat().st_ino == inode) == (name != "root.ext4")
    assert Path(root_of(image), "etc", "hostname").read_text() == "template\n"
    assert sorted(os.listdir(store.folder)) == sorted([".lock", "names", image.hash])


def test_a_damaged_image_of_which_something_is_mounted_stays(store, third, tmp_path):
    image = store.import_image(third, "third")
    point = tmp_path / "there"
    point.mkdir()
    (tmp_path / "empty").mkdir()
    subprocess.run(["mount", "--bind", image.folder, point], check=True)
    part(image, "kernel").unlink()
    store.import_image(third, "third")
    assert Path(image.kernel).read_text() == "THIRD"
    assert unmount(str(point)) == 0
    os.truncate(part(image, "root.ext4"), 10)
    options = f"lowerdir={image.folder}:{tmp_path}/empty"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, point], check=True)
    for check in (True, False):
        with pytest.raises(Refused, match=f"third: is damaged .*, and what is mounted at {point} is made of it"):
            store.import_image(third, "third", change=Change(check))
    assert os.path.exists(image.kernel)


def test_nested_folders_of_a_killed_import_are_removed(store, third):
    """shutil.rmtree calls itself once a level: each import and removal ended by that until a person removed it."""
    store.import_image(third, "third")
    left = Path(store.folder, f"{'c' * 64}.tmp.7")
    left.mkdir()
    where = os.open(left, os.O_RDONLY)
    for _level in range(1500):
        os.mkdir("d", dir_fd=where)
        below = os.open("d", os.O_RDONLY, dir_fd=where)
        os.close(where)
        where = below
    os.close(where)
    assert store.import_image(third, "other").name == "other"
    assert not left.exists()


def test_only_what_imports_and_removals_leave_is_swept(store, third):
    store.import_image(third, "third")
    ours = [f"{'c' * 64}.tmp.7", f"{'d' * 64}.tmp.8.archive"]
    theirs = ["debian.tmp.old", "notes.tmp.txt", f"{'c' * 64}.tmp.7.mine", f"{'c' * 63}.tmp.7"]
    for name in ours + theirs:
        Path(store.folder, name).mkdir()
    store.import_image(third, "other")
    assert not set(ours) & set(os.listdir(store.folder))
    assert set(theirs) <= set(os.listdir(store.folder))
    assert set(image_removal.foreign(store)) == {os.path.join(store.folder, name) for name in theirs}


def test_who_claims_while_a_removal_waits_is_seen(store, third, monkeypatch):
    """It waits for an import, half an hour maybe; who claims the image meanwhile must find it."""
    store.import_image(third, "third")
    waits, go, said, claims = threading.Event(), threading.Event(), [], []
    claim = type("Claim", (), {"instance": "eve", "image": "third", "image_hash": None})

    def wait(*_args):
        waits.set()
        assert go.wait(300)

    monkeypatch.setattr(store_file, "_take", wait)

    def removal():
        with pytest.raises(Refused) as error:
            image_removal.remove(store, "third", lambda: list(claims), {}, Change(), Deadline(60))
        said.append(str(error.value))

    thread = threading.Thread(target=removal)
    thread.start()
    assert waits.wait(300)
    claims.append(claim)
    go.set()
    thread.join(300)
    assert said == ["third: is used by eve: terminate or rebuild what runs it, or name another default"]
    assert store.get("third").name == "third"
