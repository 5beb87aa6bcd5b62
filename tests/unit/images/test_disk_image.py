# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of disks. If these failed, an operator could not import what clouds and installers make; a qcow2 could bring
any file of the proxy into a root that a tenant reads; or half a file system would be booted.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import disk_image
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
TILE = Machine("tilepro64")
MIB = 1 << 20


@pytest.fixture
def store(tmp_path):
    store = ImageStore(str(tmp_path / "images"))
    yield store
    for hash in store.hashes():
        unmount(f"{store.path_of(hash)}/mounted")
    assert not [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(tmp_path) in line]


@pytest.fixture
def tree(tmp_path):
    """A system's files, with a kernel of its own and things that no image may hold."""
    folder = tmp_path / "tree"
    for name in ("etc", "usr/bin", "boot", "dev", "run"):
        (folder / name).mkdir(parents=True)
    (folder / "etc" / "os-release").write_text("ID=debian\n")
    (folder / "usr" / "bin" / "su").write_text("su")
    os.chmod(folder / "usr" / "bin" / "su", 0o4755)
    os.chown(folder / "etc" / "os-release", 1000, 100)
    os.link(folder / "usr" / "bin" / "su", folder / "usr" / "bin" / "su2")
    (folder / "bin").symlink_to("usr/bin")
    os.mknod(folder / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mkfifo(folder / "run" / "initctl")
    (folder / "boot" / "vmlinuz-6.1").write_text("KERNEL")
    (folder / "boot" / "initrd.img-6.1").write_text("INITRD")
    return folder


def ext4(path, tree, size=16 * MIB):
    path.touch()
    os.truncate(path, size)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(tree), str(path)], check=True)
    return path


def partitioned(path, label, *parts):
    """A disk with these files as its partitions, each at a MiB of its own."""
    at, lines = MIB, [f"label: {label}"]
    with open(path, "wb") as disk:
        for part in parts:
            size = part.stat().st_size
            disk.seek(at)
            disk.write(part.read_bytes())
            lines.append(f"start={at // 512}, size={size // 512}")
            at += size
        disk.truncate(at + MIB)
    subprocess.run(["sfdisk", "--quiet", str(path)], input="\n".join(lines), text=True, check=True)
    return path


def qcow2(path, raw, *options):
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", *options, str(raw), str(path)], check=True)
    return path


def empty_ext4(tmp_path, name):
    (tmp_path / "empty").mkdir(exist_ok=True)
    return ext4(tmp_path / name, tmp_path / "empty", 4 * MIB)


def swap(tmp_path):
    path = tmp_path / "swap"
    path.touch()
    os.truncate(path, 4 * MIB)
    subprocess.run(["mkswap", "-q", str(path)], check=True)
    return path


def xz(path, raw):
    with open(path, "wb") as file:
        subprocess.run(["xz", "--stdout", "-0", str(raw)], stdout=file, check=True)
    return path


def in_a_folder(path, disk):
    """As the blueprint has it: image.json and kernel, and the root's disk beside them."""
    path.mkdir()
    (path / "image.json").write_text('{"arch": "tilepro64", "cmdline": "quiet"}')
    (path / "kernel").write_text("KERNEL")
    (path / "initrd").write_text("INITRD")
    disk.rename(path / "disk")
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path, tree: ext4(path / "disk.raw", tree),
        lambda path, tree: partitioned(path / "disk.raw", "gpt", swap(path), ext4(path / "root", tree)),
        lambda path, tree: partitioned(path / "d.raw", "dos", empty_ext4(path, "data"), ext4(path / "root", tree)),
        lambda path, tree: qcow2(path / "disk.qcow2", ext4(path / "root", tree)),
        lambda path, tree: qcow2(path / "d.qcow2", partitioned(path / "d", "gpt", ext4(path / "root", tree)), "-c"),
        lambda path, tree: xz(path / "disk.raw.xz", partitioned(path / "d", "gpt", ext4(path / "root", tree))),
        lambda path, tree: in_a_folder(path / "image", qcow2(path / "q", ext4(path / "root", tree))),
    ],
    ids=["plain", "gpt", "mbr", "qcow2", "qcow2 with a table", "xz", "a folder with disk"],
)
def test_the_root_of_a_disk(store, tmp_path, tree, make):
    image = store.import_image(str(make(tmp_path, tree)), "debian", machine=TILE)
    assert (image.arch, Path(image.kernel).read_text(), Path(image.initrd).read_text()) == (
        "tilepro64",
        "KERNEL",
        "INITRD",
    )
    root = Path(root_of(image))
    assert stat.S_IMODE(os.stat(root / "usr" / "bin" / "su").st_mode) == 0o4755
    assert os.path.samefile(root / "usr" / "bin" / "su", root / "usr" / "bin" / "su2")
    assert os.stat(root / "etc" / "os-release").st_uid == 1000
    assert os.readlink(root / "bin") == "usr/bin"
    assert (os.listdir(root / "dev"), os.listdir(root / "run")) == ([], [])
    assert sorted(os.listdir(image.folder)) == ["image.json", "initrd", "kernel", "mounted", "root.ext4", "sizes.json"]


FSTAB = """\
# as clouds have it
UUID=0a1b2c3d-0000-4000-8000-000000000001 / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1
PARTUUID=0a1b2c3d-01 /boot/efi vfat defaults 0 0
 LABEL=data /data ext4 defaults 0 2
/dev/vda3 none swap sw 0 0
10.0.2.254:/srv/all /all nfs defaults 0 0
tmpfs /tmp tmpfs defaults 0 0

/dev/sr0 /media/cdrom0 udf,iso9660 user,noauto 0 0
LABEL=mine /mine ext4 defaults,nofail 0 2
"""


def test_a_root_waits_for_no_part_of_its_former_disk(store, tmp_path, tree):
    """Lost: the boot of each instance of that image, which ends in emergency mode; no more of its table goes."""
    (tree / "etc" / "fstab").write_text(FSTAB)
    image = store.import_image(str(ext4(tmp_path / "disk.raw", tree)), "debian", machine=TILE)
    lines = (Path(root_of(image)) / "etc" / "fstab").read_text().splitlines()
    kept = ["# as clouds have it", *FSTAB.splitlines()[5:]]
    assert [line for line in lines if not line.startswith("# of the disk that this image was made of: ")] == kept
    assert [line.partition(" of: ")[2] or line for line in lines] == FSTAB.splitlines()


@pytest.mark.parametrize("place", ["nowhere", "folder", "other"])
def test_a_table_that_is_no_file_stays(store, tmp_path, tree, place):
    """Lost: a file that a link names, or the import."""
    fstab = tree / "etc" / "fstab"
    if place == "folder":
        fstab.mkdir()
    else:
        fstab.symlink_to(place)
        (tree / "etc" / "other").write_text(FSTAB)
    image = store.import_image(str(ext4(tmp_path / "disk.raw", tree)), "debian", machine=TILE)
    root = Path(root_of(image))
    assert (root / "etc" / "fstab").is_symlink() != (place == "folder")
    assert place == "folder" or (root / "etc" / "other").read_text() == FSTAB


def test_other_file_systems(store, tmp_path, tree):
    """What the kernel reads, and what this machine can make."""
    if not shutil.which("mksquashfs"):
        pytest.skip("mksquashfs is not installed here: install package squashfs-tools")
    subprocess.run(["mksquashfs", str(tree), str(tmp_path / "a.squashfs"), "-quiet"], check=True)
    assert store.import_image(str(tmp_path / "a.squashfs"), "x", machine=TILE).arch == "tilepro64"


def refused(store, source, machine=TILE):
    with pytest.raises(HeteroError) as error:
        store.import_image(str(source), "x", machine=machine)
    assert str(error.value).count(str(source)) == 1
    assert store.names() == {}
    assert [entry for entry in os.listdir(store.folder) if ".tmp." in entry] == []
    return str(error.value)


def test_a_disk_does_not_say_its_architecture(store, tmp_path, tree):
    assert "does not say for which architecture it is: give arch" in refused(
        store, ext4(tmp_path / "disk.raw", tree), Machine()
    )


def test_what_has_no_one_root(store, tmp_path, tree):
    data, root = empty_ext4(tmp_path, "data"), ext4(tmp_path / "root", tree)
    text = refused(store, partitioned(tmp_path / "none", "gpt", data, swap(tmp_path)))
    assert "no root file system (with etc, and usr or bin) in it (partition 1: ext4)" in text
    text = refused(store, partitioned(tmp_path / "two", "gpt", root, root))
    assert "more than one root file system in it (partition 1: ext4, partition 2: ext4)" in text
    text = refused(store, partitioned(tmp_path / "swap only", "gpt", tmp_path / "swap"))
    assert "no file system in it that is read here (found: partition 1: swap)" in text


def test_a_disk_that_was_not_unmounted(store, tmp_path, tree):
    """The journal has what the files lack; which of both is right, is not guessed."""
    disk = ext4(tmp_path / "disk.raw", tree)
    subprocess.run(["debugfs", "-w", "-R", "feature needs_recovery", str(disk)], check=True, capture_output=True)
    assert "the disk (ext4) was not unmounted when it was copied" in refused(store, disk)


def test_a_qcow2_names_no_other_file(store, tmp_path, tree):
    """Lost: any file that root can read on the node, such as the PDUs' passwords, is in a tenant's root."""
    raw = ext4(tmp_path / "base.raw", tree)
    base = qcow2(tmp_path / "base.qcow2", raw)
    over = tmp_path / "over.qcow2"
    made = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "/etc/shadow", str(over), "16M"]
    subprocess.run(made, check=True)
    assert "is a qcow2 over another file, which is not taken" in refused(store, over)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(over)], check=True)
    assert "is a qcow2 over another file" in refused(store, over)
    split = f"data_file={tmp_path}/data.raw,data_file_raw=on"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", split, str(over), "16M"], check=True)
    assert "is a qcow2 over another file" in refused(store, over)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (32, 1, "is an encrypted qcow2"),
        (24, 1 << 24, "is a disk of 67108864 GiB"),
        (76, 2, "is a qcow2 that is marked as damaged"),
        (4, 99, "qemu-img cannot read it"),
    ],
)
def test_a_qcow2_that_is_not_read(store, tmp_path, tree, at, value, reason):
    disk = qcow2(tmp_path / "disk.qcow2", ext4(tmp_path / "root", tree))
    with open(disk, "r+b") as file:
        file.seek(at)
        file.write(struct.pack(">I", value))
    assert reason in refused(store, disk)


def test_a_disk_that_is_cut_short(store, tmp_path, tree):
    raw = ext4(tmp_path / "disk.raw", tree)
    os.truncate(raw, MIB)
    assert "the disk (ext4) cannot be mounted" in refused(store, raw)
    disk = qcow2(tmp_path / "d.qcow2", ext4(tmp_path / "root", tree))
    os.truncate(disk, 50)
    assert "cut short" in refused(store, disk)
    (tmp_path / "zeros.raw").write_bytes(bytes(2 * MIB))
    assert "no such file in it (found: nothing)" in refused(store, tmp_path / "zeros.raw")


def test_a_disk_is_bounded_by_the_room(store, tmp_path, tree, monkeypatch):
    """Holes take no room; what is written does, of the disk, of what a qcow2 unpacks to, and of its files."""
    (tree / "big").write_bytes(os.urandom(6 * MIB))
    raw = ext4(tmp_path / "disk.raw", tree, 64 * MIB)
    monkeypatch.setattr(ImageStore, "_room", lambda _store: 4 * MIB)
    assert "is larger than the 4 MiB there is room for" in refused(store, raw)
    packed = tmp_path / "zeros.raw.gz"
    (tree / "big").write_bytes(b"x" * (6 * MIB))
    with gzip.open(packed, "wb") as file:
        file.write(ext4(tmp_path / "x.raw", tree).read_bytes())
    assert "is larger than the 4 MiB there is room for" in refused(store, packed)
    assert "there is room for" in refused(store, qcow2(tmp_path / "x.qcow2", tmp_path / "x.raw", "-c"))


def test_what_a_node_lacks_is_named(store, tmp_path, tree, monkeypatch):
    disk = qcow2(tmp_path / "disk.qcow2", ext4(tmp_path / "root", tree))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("blkid", "sfdisk", "sync", "mke2fs"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    assert "program qemu-img is not installed: install it, or run the set-up playbook" in refused(store, disk)
    monkeypatch.setitem(disk_image.KINDS, "ext4", ("nosuchfs", ""))
    assert "does not know: load its module there (modprobe nosuchfs)" in refused(store, tmp_path / "root")


def test_the_kernel_of_another_image(store, tmp_path, tree):
    giver = in_a_folder(tmp_path / "giver", ext4(tmp_path / "root", tree))
    (giver / "image.json").write_text(json.dumps({"arch": "x86_64", "cmdline": "other"}))
    (giver / "kernel").write_text("OTHER")
    store.import_image(str(giver), "giver")
    image = store.import_image(str(ext4(tmp_path / "d", tree)), "x", machine=Machine(kernel_of="giver"))
    assert (image.arch, image.cmdline, Path(image.kernel).read_text()) == ("x86_64", "other", "OTHER")
    with pytest.raises(BadInput, match="image giver is for x86_64, not for tilepro64"):
        store.import_image(str(tmp_path / "d"), "y", machine=Machine("tilepro64", "giver"))
