# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of containers. If these failed, a board could boot a root with files that its image had deleted, or another
one than was named; or an image from a registry could write the proxy's own files.

Tests images/forms.py, images/layers.py.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import scratch as scratch_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import store as store_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.container_images import same_arch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.container_files import (
    BASE,
    digest,
    docker_save,
    layer,
    oci,
    oci_files,
    write_tar,
)
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar, member

X86 = Machine(kernel_of="x86")
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
FIRST = layer(*BASE)
SECOND = layer(
    member("opt/old/.wh.a", ""),
    member("opt/new", "new"),
    member("usr/bin/su2", kind=HARD, linkname="usr/bin/su"),
    member("dev/null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3),
)


@pytest.fixture
def store(tmp_path):
    """A store with image x86, whose kernel others may take."""
    (tmp_path / "outside").write_text("the proxy's own\n")
    store = ImageStore(str(tmp_path / "images"))
    about = json.dumps({"arch": "x86_64", "cmdline": "quiet"})
    store.import_image(image_tar(tmp_path / "x86.tar", **{"image.json": about}), "x86")
    yield store
    for hash in store.hashes():
        unmount(f"{store.path_of(hash)}/mounted")
    assert (tmp_path / "outside").read_text() == "the proxy's own\n"


def taken(store, source):
    """Import with the kernel of x86; the folder with the root."""
    return Path(root_of(store.import_image(source, "box", machine=X86, replace=True)))


def refused(store, source, machine=X86):
    with pytest.raises(BadInput) as error:
        store.import_image(source, "box", machine=machine)
    assert str(error.value).startswith(source)
    assert sorted(store.names()) == ["x86"]
    assert [entry for entry in os.listdir(store.folder) if ".tmp." in entry] == []
    return str(error.value)


def as_oci_folder(path, how):
    for name, data in oci_files(([FIRST, SECOND], {}), how=how).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: docker_save(path / "box.tar", [FIRST, SECOND]),
        lambda path: docker_save(path / "box.tgz", [FIRST, SECOND], "w:gz"),
        lambda path: oci(path / "box.tar", ([FIRST, SECOND], {})),
        lambda path: oci(path / "box.tar", ([FIRST, SECOND], {}), how="gzip"),
        lambda path: oci(path / "box.tar", ([FIRST, SECOND], {}), how="zstd"),
        lambda path: oci(path / "box.tar", ([FIRST, SECOND], {}), nested=True),
        lambda path: oci(path / "box.tar", ([FIRST, SECOND], {}), tags=2),
        lambda path: as_oci_folder(path / "layout", "gzip"),
    ],
)
def test_the_layers_become_one_root_with_another_images_kernel(store, tmp_path, make):
    root = taken(store, make(tmp_path))
    assert sorted(os.listdir(root / "opt" / "old")) == ["b"], "what the second layer deletes is gone"
    assert (root / "opt" / "new").read_text() == "new"
    assert stat.S_IMODE(os.stat(root / "usr" / "bin" / "su").st_mode) == 0o4755
    assert os.path.samefile(root / "usr" / "bin" / "su", root / "usr" / "bin" / "su2")
    assert os.readlink(root / "bin") == "usr/bin"
    assert not (root / "dev" / "null").exists(), "a board makes its own"
    image, x86 = store.get("box"), store.get("x86")
    assert (image.arch, image.cmdline) == ("x86_64", "quiet")
    for mine, its in ((image.kernel, x86.kernel), (image.initrd, x86.initrd)):
        assert Path(mine).read_bytes() == Path(its).read_bytes()
    assert sorted(os.listdir(image.folder)) == ["image.json", "initrd", "kernel", "mounted", "root.ext4", "sizes.json"]
    assert "evil" not in Path(image.folder, "image.json").read_text()


def test_a_layer_that_comes_twice_is_a_link_in_older_archives(store, tmp_path):
    again = layer(member("opt/old/a", "again"))
    root = taken(store, docker_save(tmp_path / "box.tar", [FIRST, again, SECOND, again]))
    assert (root / "opt" / "old" / "a").read_text() == "again"


def test_a_folder_is_hidden_from_layers_before_and_not_of_its_own(store, tmp_path):
    """The mark may come last: what its own layer puts there stays."""
    second = layer(member("opt/old"), member("opt/old/c", "c"), member("opt/old/.wh..wh..opq", ""))
    assert sorted(os.listdir(taken(store, docker_save(tmp_path / "box.tar", [FIRST, second])) / "opt" / "old")) == ["c"]
    same = layer(member("opt/old/.wh.a", ""), member("opt/old/a", "new"))
    root = taken(store, docker_save(tmp_path / "same.tar", [FIRST, same]))
    assert (root / "opt" / "old" / "a").read_text() == "new"


def test_what_changes_its_kind_between_layers(store, tmp_path):
    """A folder becomes a file, and a link a folder: as in a container."""
    second = layer(member("opt/old", "a file"), member("bin"), member("bin/sh", "sh"))
    root = taken(store, docker_save(tmp_path / "box.tar", [FIRST, second]))
    assert (root / "opt" / "old").read_text() == "a file"
    assert not (root / "bin").is_symlink()
    assert os.listdir(root / "bin") == ["sh"]
    assert not (root / "usr" / "bin" / "sh").exists()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("/etc/hetero-escaped", "x")], "absolute name"),
        ([member("../../outside", "x")], "leads out of the archive by '..'"),
        ([member("door", kind=LINK, linkname="/"), member("door/outside", "x")], "lies below 'door', which is a link"),
        ([member("a", kind=LINK, linkname="b"), member("b", kind=LINK, linkname="/"), member("a/x", "x")], "below 'a'"),
        ([member("up", kind=LINK, linkname="../../outside")], "leads out of root/"),
        ([member("shadow", kind=HARD, linkname="/etc/shadow")], "hard link out of the archive"),
        ([member("shadow", kind=HARD, linkname="../outside")], "hard link out of the archive"),
        ([member("etc/.wh...", "")], "hides no file"),
        ([member("bin/.wh.su", "")], "below 'bin', which is a link"),
        ([member("../.wh.outside", "")], "leads out of the archive by '..'"),
        ([member("root/odd", kind=b"Z")], "of a kind that no file is"),
    ],
)
def test_a_hostile_layer_touches_nothing_outside(store, tmp_path, members, reason):
    text = refused(store, docker_save(tmp_path / "box.tar", [FIRST, layer(*members)]))
    assert "layer 2 of 2" in text
    assert reason in text


def test_an_earlier_layers_link_is_no_way_out_for_a_later_one(store, tmp_path):
    """A link in one layer, a file "below" it, and a whiteout through it, in the next ones."""
    door = layer(*BASE, member("door", kind=LINK, linkname="/"))
    for later in (member("door/outside", "x"), member("door/.wh.outside", "")):
        assert "'door', which is a link" in refused(store, docker_save(tmp_path / "b.tar", [door, layer(later)]))
    emptied = layer(member("door/.wh..wh..opq", ""))
    assert (taken(store, docker_save(tmp_path / "b.tar", [door, emptied])) / "etc" / "os-release").exists()


def test_a_layer_of_another_content_is_refused(store, tmp_path):
    files = oci_files(([FIRST, SECOND], {}))
    files[f"blobs/sha256/{digest(SECOND)}"] = layer(member("opt/new", "changed"))
    assert "layer 2 of 2: is not the layer that" in refused(store, write_tar(tmp_path / "box.tar", files))
    manifest = json.loads(files["index.json"])["manifests"][0]["digest"][7:]
    files[f"blobs/sha256/{manifest}"] += b" "
    assert "has another sum than its name" in refused(store, write_tar(tmp_path / "box2.tar", files))


def test_layers_are_bounded_by_the_room(store, tmp_path, monkeypatch):
    """Zeros that are 1000 times smaller when packed, in many layers; holes take no room, and each file counts."""
    monkeypatch.setattr(ImageStore, "_room", lambda _store: 4 << 20)
    many = [layer(member(f"{number}", "x" * (1 << 20))) for number in range(6)]
    source = oci(tmp_path / "box.tar", (many, {}), how="gzip")
    assert "makes the image larger than the" in refused(store, source)
    zeros = layer(member("zeros", "\0" * (96 << 20)))
    for how in ("gzip", "zstd"):
        assert "larger than" in refused(store, oci(tmp_path / f"{how}.tar", ([zeros], {}), how=how))


def damaged(path, files, name, content):
    """The layout with another content of a file; None: without it."""
    files = {**files, name: content}
    return write_tar(path / "box.tar", {name: data for name, data in files.items() if data is not None})


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("index.json", None, "index.json is not in it"),
        ("index.json", b"{", "index.json is not JSON"),
        ("index.json", b"[" * 100000, "index.json is not JSON"),
        ("index.json", b"[]", "index.json is not what it is to be"),
        ("index.json", b'{"manifests": [3]}', "is not what it is to be"),
        ("index.json", b'{"manifests": []}', "holds: none"),
        ("index.json", b'{"manifests": [{"digest": "sha256:../../../etc/shadow"}]}', "no sha256"),
        ("index.json", b'{"manifests": [{"digest": "sha256:' + b"0" * 64 + b'"}]}', "is not in it"),
        (f"blobs/sha256/{digest(FIRST)}", None, f"blob sha256:{digest(FIRST)} is not in it"),
    ],
)
def test_a_damaged_layout_is_said(store, tmp_path, name, content, reason):
    assert reason in refused(store, damaged(tmp_path, oci_files(([FIRST], {})), name, content))


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ([], "is to hold one image, and holds 0"),
        ([{"RepoTags": ["a:1"]}, {"RepoTags": ["b:2"]}], "holds 2: ['a:1'], ['b:2']"),
        ([{"Config": "../../outside", "Layers": []}], "which is no layer or configuration"),
        ([{"Config": "/etc/shadow", "Layers": []}], "which is no layer or configuration"),
        ([{"Config": "0" * 64 + ".json", "Layers": ["root/door/shadow"]}], "which is no layer or configuration"),
        ({"Config": "x"}, "is not what it is to be"),
    ],
)
def test_a_manifest_of_docker_names_files_of_the_archive_only(store, tmp_path, manifest, reason):
    source = write_tar(tmp_path / "box.tar", {"manifest.json": json.dumps(manifest).encode()})
    assert reason in refused(store, source)


def test_a_link_of_a_layer_leads_to_a_layer_only(store, tmp_path):
    name = "0" * 64 + "/layer.tar"
    for target in ("/etc/shadow", "../../outside", f"../{'1' * 64}/layer.tar/../../../outside", "x/layer.tar"):
        source = write_tar(tmp_path / "box.tar", {"manifest.json": b"[]"}, links=[(name, target)])
        assert "is a symbolic link outside root/" in refused(store, source)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (dict(architecture=None), "names no architecture"),
        (dict(architecture="a b"), "names no architecture"),
        (dict(os="windows"), "is for windows, not for Linux"),
        (dict(rootfs=None), "rootfs is not what it is to be"),
        (dict(rootfs={"diff_ids": ["sha256:0"]}), "1 sums for 1 layers"),
        (dict(architecture="arm64"), "is for aarch64, not for x86_64"),
    ],
)
def test_a_configuration_that_does_not_fit(store, tmp_path, changes, reason):
    assert reason in refused(store, docker_save(tmp_path / "box.tar", [FIRST], **changes))


def test_of_several_architectures_the_one_that_is_asked_for(store, tmp_path):
    arm = layer(*BASE, member("for", "arm"))
    both = oci(tmp_path / "both.tar", ([FIRST], {}), ([arm], {"architecture": "arm64"}))
    assert not (taken(store, both) / "for").exists()
    store.forget("box", None, None)
    text = refused(store, both, Machine())
    assert "holds: amd64, arm64: give arch" in text
    assert "to hold one image for riscv64, and holds: none" in refused(store, both, Machine("riscv64"))


@pytest.mark.parametrize(("how", "kernels"), [("gzip", False), ("zstd", False), ("gzip", True), ("zstd", True)])
def test_a_layer_that_unpacks_to_more_than_there_is_room_for(tmp_path, monkeypatch, how, kernels):
    """Lost: the disk that roots and the database lie on, to a small file, for as long as it is read."""
    (tmp_path / "small").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "none", tmp_path / "small"], check=True)
    for file in (scratch_file, store_file):
        monkeypatch.setattr(file, "KEEP_FREE", 8 << 20, raising=False)
    store = ImageStore(str(tmp_path / "small" / "images"), kernels)
    source = oci(tmp_path / "bomb.tar", ([layer(member("big", "ab" * (10 << 20)))], {}), how=how)
    lowest = []

    def look(frame, event, _value):
        if event == "c_call":
            there = os.statvfs(tmp_path / "small")
            lowest.append(there.f_bavail * there.f_frsize)

    sys.setprofile(look)
    try:
        with pytest.raises(BadInput, match=r"MiB there is room for in .*images: make room, or the image smaller"):
            store.import_image(source, "bomb")
    finally:
        sys.setprofile(None)
        unmount(str(tmp_path / "small"))
    assert min(lowest) > 7 << 20


def test_removing_many_folders_takes_time_by_their_number(store, tmp_path):
    """Not by its square: a layer hides each of 6,000 folders, as a newer one of node_modules does."""
    many = [member(f"opt/many/{number}") for number in range(6000)]
    hides = layer(member("opt/many/.wh..wh..opq", ""), member("opt/many/.wh.x", ""), member("opt/many/1"))
    start = time.process_time()
    root = taken(store, docker_save(tmp_path / "box.tar", [layer(*BASE, *many), hides]))
    assert os.listdir(root / "opt" / "many") == ["1"]
    assert time.process_time() - start < 10  # it took 22 s


def test_times_of_folders_that_a_later_layer_has_no_more(store, tmp_path):
    below = [member("opt/old/in"), member("opt/old/in/deep")]
    later = layer(member("opt/old", kind=LINK, linkname="/usr"), member("opt/new", "a file"))
    root = taken(store, docker_save(tmp_path / "box.tar", [layer(*BASE, *below, member("opt/new")), later]))
    assert os.readlink(root / "opt" / "old") == "/usr"
    assert (root / "opt" / "new").read_text() == "a file"


def test_names_of_architectures():
    assert same_arch("x86_64", "amd64")
    assert same_arch("AArch64", "arm64")
    assert same_arch("armv7l", "arm")
    assert not same_arch("aarch64", "arm")
    assert not same_arch("x86_64", "386")
    assert not same_arch("armv7l", "armv6l")
    assert same_arch("tilepro64", "TILEPro64")


def test_a_containers_image_without_any_kernel(store, tmp_path):
    """Boards need one; the error says how. A host of containers does not."""
    source = docker_save(tmp_path / "box.tar", [FIRST])
    text = refused(store, source, Machine())
    assert "kernel: no such file in it" in text
    assert "kernel_of" in text
    host = ImageStore(str(tmp_path / "host"), kernels=False)
    image = host.import_image(source, "box")
    assert (image.arch, image.kernel) == ("x86_64", None)
    assert Path(image.root, "etc", "os-release").read_text() == "ID=debian\n"


def test_the_images_own_kernel(store, tmp_path):
    """As distributions install it; of two the one that the link names, and none is guessed."""
    kernels = [member("boot"), member("boot/vmlinuz-6.1", "K1"), member("boot/initrd.img-6.1", "I1")]
    one = layer(*BASE, *kernels)
    image = store.import_image(docker_save(tmp_path / "one.tar", [one]), "one")
    assert (Path(image.kernel).read_text(), Path(image.initrd).read_text()) == ("K1", "I1")
    two = layer(*BASE, *kernels, member("boot/vmlinuz-6.9", "K2"), member("boot/initramfs-6.9.img", "I2"))
    with pytest.raises(BadInput, match=r"more than one kernel in /boot \(vmlinuz-6.1, vmlinuz-6.9\).*kernel_of=NAME"):
        store.import_image(docker_save(tmp_path / "two.tar", [two]), "two")
    link = layer(member("vmlinuz", kind=LINK, linkname="boot/vmlinuz-6.9"))
    image = store.import_image(docker_save(tmp_path / "linked.tar", [two, link]), "two")
    assert (Path(image.kernel).read_text(), Path(image.initrd).read_text()) == ("K2", "I2")
    away = layer(member("boot/vmlinuz-6.1", kind=LINK, linkname="/etc/shadow"))
    image = store.import_image(docker_save(tmp_path / "away.tar", [two, away]), "away")
    assert Path(image.kernel).read_text() == "K2"


def test_another_kernel_makes_another_image(store, tmp_path):
    """What kernel_of names is part of what the image is: a newer one is no silent change."""
    source = docker_save(tmp_path / "box.tar", [FIRST])
    taken(store, source)
    before = store.get("box")
    store.import_image(
        image_tar(tmp_path / "new.tar", kernel="NEW", **{"image.json": '{"arch": "x86_64"}'}), "x86", replace=True
    )
    taken(store, source)
    after = store.get("box")
    assert before.hash != after.hash
    assert Path(after.kernel).read_text() == "NEW"
    assert Path(before.kernel).read_text() != "NEW"
    with pytest.raises(BadInput, match=r"nope: no such image in the store"):
        store.import_image(source, "y", machine=Machine(kernel_of="nope"))
    with pytest.raises(BadInput, match=r"image x86 is for x86_64, not for aarch64"):
        store.import_image(source, "y", machine=Machine("aarch64", "x86"))


def test_the_image_that_gives_its_kernel_is_removed_meanwhile(store, tmp_path, monkeypatch):
    """Before it is an import's turn; the error told of the disk."""
    locked = ImageStore._locked

    def removed_before(self, deadline):
        monkeypatch.setattr(ImageStore, "_locked", locked)
        with store.kept_still(False, deadline):
            store.forget("x86", store.names()["x86"], deadline)
        return locked(self, deadline)

    monkeypatch.setattr(ImageStore, "_locked", removed_before)
    with pytest.raises(BadInput, match=r"^image x86: was removed meanwhile: give another one"):
        store.import_image(docker_save(tmp_path / "box.tar", [FIRST]), "box", machine=X86)
    assert (store.names(), store.hashes()) == ({}, [])


def test_names_of_kernels_are_shown_without_what_steers_a_terminal(store, tmp_path):
    kernels = layer(*BASE, member("boot"), *(member(f"boot/vmlinuz-{name}", "K") for name in ("6", "\x1b[2J\udcff")))
    text = refused(store, docker_save(tmp_path / "box.tar", [kernels]), Machine())
    assert "(vmlinuz-\\x1b[2J\\\\udcff, vmlinuz-6)" in text
