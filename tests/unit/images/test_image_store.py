# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image store. If these failed, a board could boot half an image or another one than was checked, an import would
be done twice, or one that was killed would be in the way for ever.

Tests images/content.py, images/image_root.py, images/store.py, images/stored_image.py, site/image_names.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import http.server
import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    Refused,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import make_empty, mount_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import store as store_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.sources import Local
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.image_names import default_name
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, image_tar, member, tar

BELOW_ROOT = [name for name in MEMBERS if name.startswith("root/")]


@pytest.fixture
def store(tmp_path):
    return ImageStore(str(tmp_path / "images"))


@pytest.fixture
def archive(tmp_path):
    return image_tar(tmp_path / "debian.tar.gz", "w:gz")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def content(folder):
    """All of the store but its lock, as (name, inode)."""
    return sorted((str(path), path.lstat().st_ino) for path in folder.rglob("*"))


@contextlib.contextmanager
def mounted(image):
    """The folder with an image's files, for the block."""
    try:
        yield root_of(image)
    finally:
        unmount(image.root)


@pytest.fixture
def small(tmp_path):
    """A folder on a disk of 64 MiB, of which an import may take all."""
    file, disk = tmp_path / "disk.ext4", tmp_path / "disk"
    file.touch()
    os.truncate(file, 64 << 20)
    make_empty(str(file))
    disk.mkdir()
    mount_file(str(file), str(disk))
    yield disk
    assert unmount(str(disk)) == 0


def fill(disk):
    with contextlib.suppress(OSError), open(disk / "others", "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@pytest.mark.parametrize(
    ("moment", "kernels"),
    [("before", True), ("before", False), ("unpacking", True), ("unpacking", False), ("packing", True)],
)
def test_an_import_for_which_there_is_no_room_leaves_nothing(small, tmp_path, monkeypatch, moment, kernels):
    """Lost: the disk that all roots and the database lie on, to half an image; or the reason."""
    monkeypatch.setattr(store_file, "KEEP_FREE", 0)
    store = ImageStore(str(small / "images"), kernels)
    os.mkdir(store.folder)
    room = store._room() >> 20
    source = image_tar(tmp_path / "debian.tar", **{"root/big": "x" * (((room + 4) if moment == "before" else 8) << 20)})
    put, pack, free = Local.put, store_file.pack, os.statvfs(small).f_bfree

    def others_are_quick(found, *rest):
        fill(small)
        put(found, *rest)

    def others_are_quick_later(*given):
        fill(small)
        pack(*given)

    if moment == "unpacking":
        monkeypatch.setattr(Local, "put", others_are_quick)
    if moment == "packing":
        monkeypatch.setattr(store_file, "pack", others_are_quick_later)
    with pytest.raises(HeteroError) as error:
        store.import_image(source, "debian", deadline=Deadline(60))
    said = str(error.value)
    assert said.startswith(f"{source}: ")
    assert store.folder in said
    assert f"{room} MiB" in said
    (small / "others").unlink(missing_ok=True)
    assert (sorted(os.listdir(store.folder)), os.listdir(f"{store.folder}/names")) == ([".lock", "names"], [])
    assert os.statvfs(small).f_bfree > free - 16
    monkeypatch.setattr(Local, "put", put)
    monkeypatch.setattr(store_file, "pack", pack)
    if moment != "before":
        assert store.import_image(source, "debian").name == "debian"


def test_an_image_is_taken_in_and_found_by_name_and_hash(store, archive, tmp_path):
    image = store.import_image(archive, "debian")
    assert image.hash == sha256(archive)
    assert (image.name, image.arch, image.cmdline) == ("debian", "tilepro64", "quiet")
    folder = tmp_path / "images" / image.hash
    assert [image.kernel, image.initrd, image.root] == [str(folder / name) for name in ("kernel", "initrd", "mounted")]
    assert sorted(os.listdir(folder)) == ["image.json", "initrd", "kernel", "root.ext4", "sizes.json"]
    with mounted(image) as root:
        assert (Path(root) / "etc" / "hostname").read_text() == "template\n"
    assert (tmp_path / "images" / "names" / "debian").read_text() == f"{image.hash}\n"
    assert store.names() == {"debian": image.hash}
    assert store.get("debian") == image
    assert store.get(image.hash).root == image.root


def test_what_is_stored_is_read_only_and_no_users_business(store, archive, tmp_path):
    image = store.import_image(archive, "debian")
    folder = tmp_path / "images"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / image.hash).stat().st_mode) == 0o555
    # in.tftpd serves only what everybody may read
    assert stat.S_IMODE(os.stat(image.kernel).st_mode) == 0o444


def test_an_unknown_name_lists_the_known_ones(store, archive):
    with pytest.raises(BadInput, match=r"nope: no such image in the store \(known: none\)"):
        store.get("nope")
    store.import_image(archive, "debian")
    store.import_image(archive, "bookworm")
    for name in ("nope", "../state.db", "0" * 64):
        with pytest.raises(BadInput, match=r"known: bookworm, debian\)"):
            store.get(name)


def test_a_second_import_changes_nothing_and_a_second_name_unpacks_nothing(store, archive, tmp_path):
    first = Change()
    store.import_image(archive, "debian", change=first)
    before = content(tmp_path / "images")
    second, named = Change(), Change()
    store.import_image(archive, "debian", change=second)
    assert (first.changed, second.changed) == (True, False)
    assert content(tmp_path / "images") == before
    store.import_image(archive, "other", change=named)
    assert named.changed
    assert set(before) <= set(content(tmp_path / "images"))


def test_a_name_moves_to_a_new_image_and_the_old_one_stays(store, archive, tmp_path):
    old = store.import_image(archive, "debian")
    source = image_tar(tmp_path / "new.tar", kernel="NEW")
    for check in (True, False):
        with pytest.raises(Refused, match=f"debian: stands for image {old.hash[:12]} in the store, and this is"):
            store.import_image(source, "debian", change=Change(check))
    assert store.get("debian") == old
    new = store.import_image(source, "debian", replace=True)
    assert store.get("debian").hash == new.hash != old.hash
    assert store.get(old.hash).kernel == old.kernel
    assert os.path.exists(old.kernel)


def test_check_mode_writes_nothing(store, archive, tmp_path):
    change = Change(check=True)
    assert store.import_image(archive, "debian", change=change) is None
    assert change.changed
    assert change.diff[0]["after"] == {"hash": sha256(archive), "stored": True}
    assert not (tmp_path / "images").exists()


def test_a_folder_is_an_image_too(store, tmp_path):
    source = tmp_path / "folder"
    for name, text in MEMBERS.items():
        if text is None:
            (source / name).mkdir(parents=True, exist_ok=True)
        else:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
    os.chown(source / "root" / "etc" / "hostname", 1000, 100)
    os.chmod(source / "root" / "etc" / "hostname", 0o4711)
    os.symlink("/etc/hostname", source / "root" / "link")
    os.link(source / "root" / "etc" / "hostname", source / "root" / "second")
    image = store.import_image(str(source), "folder")
    with mounted(image) as root:
        copy = os.stat(os.path.join(root, "etc", "hostname"))
        assert (copy.st_uid, copy.st_gid, stat.S_IMODE(copy.st_mode), copy.st_nlink) == (1000, 100, 0o4711, 2)
        assert os.readlink(os.path.join(root, "link")) == "/etc/hostname"
    again = Change()
    store.import_image(str(source), "folder", change=again)
    assert not again.changed
    os.chmod(source / "root" / "etc" / "hostname", 0o711)
    assert store.import_image(str(source), "folder", replace=True).hash != image.hash


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))])
def test_a_folder_with_special_files_is_refused(store, tmp_path, make):
    (tmp_path / "folder" / "root").mkdir(parents=True)
    make(str(tmp_path / "folder" / "root" / "odd"))
    with pytest.raises(BadInput, match=r"root/odd: is a (named pipe|device node)"):
        store.import_image(str(tmp_path / "folder"), "folder")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"image.json": None}, r"image\.json: no such file in it \(found: initrd, kernel, root\)"),
        ({"image.json": "{"}, r"image\.json is not JSON"),
        ({"image.json": "[]"}, r"image\.json is no JSON object"),
        ({"image.json": "{}"}, r"arch must be a word"),
        ({"image.json": '{"arch": "a\\nb"}'}, r"arch must be a word"),
        ({"image.json": '{"arch": "arm", "cmdline": "quiet\\nshell"}'}, r"cmdline must be one line"),
        ({"kernel": None}, r"kernel: no such file in it"),
        ({"root": "file", **dict.fromkeys(BELOW_ROOT)}, r"root: no such folder in it"),
    ],
)
def test_what_is_no_image_is_refused_and_leaves_nothing(store, tmp_path, changes, reason):
    source = image_tar(tmp_path / "bad.tar", **changes)
    with pytest.raises(BadInput, match=reason) as caught:
        store.import_image(source, "bad")
    assert source in str(caught.value)
    assert os.listdir(tmp_path / "images" / "names") == []
    assert sorted(os.listdir(tmp_path / "images")) == [".lock", "names"]


def test_an_initrd_is_optional(store, tmp_path):
    assert store.import_image(image_tar(tmp_path / "a.tar", initrd=None), "a").initrd is None


def test_a_hostile_archive_leaves_nothing(store, tmp_path):
    source = tar(tmp_path / "bad.tar", [member("root"), member("../../escaped", "x")])
    with pytest.raises(BadInput, match=r"bad\.tar: member \.\./\.\./escaped leads out"):
        store.import_image(source, "bad")
    assert sorted(os.listdir(tmp_path / "images")) == [".lock", "names"]
    assert not (tmp_path / "escaped").exists()


def test_arch_overrides_and_makes_an_image_of_its_own(store, archive):
    plain = store.import_image(archive, "plain")
    other = store.import_image(archive, "other", machine=Machine("aarch64"))
    assert (store.get("plain").arch, store.get("other").arch) == ("tilepro64", "aarch64")
    assert plain.hash != other.hash
    again = Change()
    store.import_image(archive, "other", machine=Machine("aarch64"), change=again)
    assert not again.changed


def test_the_checksum_decides(store, archive):
    with pytest.raises(BadInput, match=f"has sha256 {sha256(archive)}, not {'0' * 64}"):
        store.import_image(archive, "debian", checksum="sha256:" + "0" * 64)
    with pytest.raises(BadInput, match="is no checksum"):
        store.import_image(archive, "debian", checksum="md5:" + "0" * 32)
    assert store.import_image(archive, "debian", checksum=f"sha256:{sha256(archive).upper()}").name == "debian"


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "a b", "a\n", "0" * 64, "é"])
def test_names_are_checked(store, archive, name):
    with pytest.raises(BadInput, match="is no name for an image"):
        store.import_image(archive, name)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/srv/debian12.tar.xz", "debian12"),
        ("https://x.example/a/tile-4.2.tgz?x=/y", "tile-4.2"),
        ("/srv/folder/", "folder"),
        ("./x.tar", "x"),
    ],
)
def test_a_name_is_taken_from_the_file(source, name):
    assert default_name(source) == name


# ---- from the web


@pytest.fixture
def web(tmp_path):
    """A real web server over the folder; its URL, and the requests it got."""
    seen = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            seen.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_fetched_once_and_checked(store, archive, web):
    url, seen = web
    checksum = f"sha256:{sha256(archive)}"
    with pytest.raises(BadInput, match="needs a checksum"):
        store.import_image(f"{url}/debian.tar.gz", "debian")
    assert store.import_image(f"{url}/debian.tar.gz", "debian", checksum).arch == "tilepro64"
    again = Change()
    store.import_image(f"{url}/debian.tar.gz", "debian", checksum, change=again)
    assert not again.changed
    assert seen == ["/debian.tar.gz"]
    assert store.import_image(f"file://{archive}", "file", checksum).hash == sha256(archive)


def test_a_wrong_or_missing_download_leaves_nothing(store, archive, web, tmp_path):
    url = web[0]
    with pytest.raises(BadInput, match=rf"came with sha256 {sha256(archive)} .*not {'1' * 64}"):
        store.import_image(f"{url}/debian.tar.gz", "debian", "sha256:" + "1" * 64)
    with pytest.raises(HeteroError, match=r"missing\.tar: cannot be fetched \(HTTP Error 404"):
        store.import_image(f"{url}/missing.tar", "missing", "sha256:" + "1" * 64)
    with pytest.raises(HeteroError, match="cannot be fetched"):
        store.import_image("http://127.0.0.1:9/x.tar", "x", "sha256:" + "1" * 64)
    assert sorted(os.listdir(tmp_path / "images")) == [".lock", "names"]


# ---- two at once, and killed ones


def test_an_import_waits_for_another_until_its_time_is_over(store, archive, tmp_path):
    """Lost: a play that hangs behind an import that hangs."""
    (tmp_path / "images").mkdir()
    with open(tmp_path / "images" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TimedOut, match=rf"another import \(pid {os.getpid()}\) still runs after 0\.3 s"):
            store.import_image(archive, "debian", deadline=Deadline(0.3))


def test_imports_at_once_unpack_once(store, archive, tmp_path):
    script = (
        "import sys;"
        "from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore;"
        "print(ImageStore(sys.argv[1]).import_image(sys.argv[2], sys.argv[3]).hash)"
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "images"), archive]
    running = [subprocess.Popen([*arguments, f"name{n}"], stdout=subprocess.PIPE, text=True) for n in range(4)]
    answers = {process.communicate(timeout=1200)[0].strip() for process in running}
    assert answers == {sha256(archive)}
    assert sorted(store.names()) == ["name0", "name1", "name2", "name3"]
    assert [name for name in os.listdir(tmp_path / "images") if ".tmp." in name] == []


def test_what_a_killed_import_left_is_removed(store, tmp_path):
    source = image_tar(tmp_path / "big.tar", **{"root/etc/hostname": "x" * (48 << 20)})
    start = time.monotonic()
    ImageStore(str(tmp_path / "beside")).import_image(source, "big")
    alone = time.monotonic() - start
    script = (
        "import sys;"
        "from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import sources, store;"
        "unpack = sources.unpack;"
        "sources.unpack = lambda *given: (unpack(*given), print('unpacked', flush=True), sys.stdin.read());"
        "store.ImageStore(sys.argv[1]).import_image(sys.argv[2], 'big')"
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "images"), source]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=600)
    left = [name for name in os.listdir(tmp_path / "images") if ".tmp." in name]
    assert len(left) == 1
    start = time.monotonic()
    assert store.import_image(source, "big").name == "big"
    assert time.monotonic() - start < 60 + 10 * alone  # it waits for nobody
    assert [name for name in os.listdir(tmp_path / "images") if ".tmp." in name] == []


def test_a_store_that_cannot_be_written_is_said(archive, tmp_path):
    (tmp_path / "images").write_text("a file is in its place")
    with pytest.raises(HeteroError, match=r"images: cannot be written"):
        ImageStore(str(tmp_path / "images")).import_image(archive, "debian")


def test_json_of_an_image_is_kept(store, tmp_path):
    about = json.dumps({"arch": "x86_64", "cmdline": "", "made_by": "someone"})
    image = store.import_image(image_tar(tmp_path / "a.tar", **{"image.json": about}), "a")
    with open(os.path.join(os.path.dirname(image.root), "image.json")) as file:
        assert json.load(file)["made_by"] == "someone"
