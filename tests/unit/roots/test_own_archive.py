# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""own.tar, which is unpacked over an image's archive on a board's disk. Lost if it fails: a sound board, which is put
out of use for names that were not counted; a tenant's data for cloud-init; folders of an image, opened or closed.

Tests images/root_archive.py, roots/disk_root.py, roots/made_json.py.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.root_archive import archive_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import cloud_init, disk_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.disk_files import DiskFiles, Made
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.made_json import token_of
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, member, tar

DATA = "#cloud-config\nwrite_files: [{path: /root/token, content: hunter2}]\n"
#: Folders of images, each with what is above it.
DEBIANS = ["usr", "usr/bin", "var", "var/lib", "etc/cloud", "etc/cloud/cloud.cfg.d"]
SEEDS = ["var/lib/cloud", "var/lib/cloud/seed", "var/lib/cloud/seed/nocloud", "root/.ssh"]
IMAGES = {"none of the folders": [], "as Debian's package": DEBIANS, "all of them": [*DEBIANS, *SEEDS]}


@pytest.fixture
def packed(site, proxy, tmp_path):
    """An image with these folders, of mode 0751 and another owner, and what a board unpacks of it; (claim, paths)."""
    claim = site.claim(proxy)

    def pack(folders, data=DATA, links=()):
        odd = [member(f"root/{name}", mode=0o751, uid=7, gid=7) for name in folders]
        odd += [member(f"root/{name}", kind=tarfile.SYMTYPE, linkname=target) for name, target in links]
        members = [*(member(name, content) for name, content in MEMBERS.items()), *odd]
        image = image_store(proxy).import_image(tar(site.folder / "cloud.tar", members), "cloud")
        archive = archive_of(str(tmp_path / "archives"), image, Deadline(60))
        own, _key = disk_root._own_archive(image, claim, [], data)
        (tmp_path / "own.tar").write_bytes(own)
        return archive, str(tmp_path / "own.tar")

    return pack


def unpack(archive, own, disk, program):
    """Unpack both as a board does, and check the disk as it does; the names that own.tar may have brought."""
    disk.mkdir()
    for path, words in ((archive.path, "-xzpf"), (own, "-xpf")):
        # what a RAM system's tar makes by itself has the mode that its umask leaves
        subprocess.run([*program, "-C", str(disk), words, path], check=True, umask=0o077)
    names = {f"./{name[2:]}".rstrip("/") if name.startswith("./") else name for name in archive.names}
    script = disk_boot.CHECK.replace('umount "$mount"', ":")
    words = [str(disk), str(len(names | set(disk_root.own_names(own)))), "marker"]
    sums = "".join(f"{digest}  {name}\n" for name, digest in archive.sample.items())
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words], input=sums, capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")


def mode_and_owner(disk, path):
    seen = os.lstat(disk / path.lstrip("/"))
    return stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid


@pytest.mark.parametrize("program", [["tar"], ["busybox", "tar"]], ids=" ".join)
@pytest.mark.parametrize("data", [None, DATA], ids=["without", "with"])
@pytest.mark.parametrize("folders", IMAGES.values(), ids=IMAGES)
def test_a_board_finds_what_was_counted(packed, tmp_path, folders, data, program):
    """Lost: two sound boards of each such request, "113 names on the disk, not 111"."""
    disk = tmp_path / "disk"
    unpack(*packed(folders, data), disk, program)
    for name in folders:
        if f"/{name}" not in (cloud_init.SEED, "/root/.ssh"):
            assert mode_and_owner(disk, name) == (0o751, 7, 7), f"{name} is the image's"
    assert mode_and_owner(disk, "root/.ssh") == (0o700, 0, 0)
    if data:
        assert (disk / cloud_init.USER_DATA.lstrip("/")).read_text() == DATA
        assert mode_and_owner(disk, cloud_init.USER_DATA) == (0o600, 0, 0)
        assert mode_and_owner(disk, cloud_init.SEED) == (0o700, 0, 0)
        for name in ("var", "var/lib", "var/lib/cloud", "var/lib/cloud/seed", "etc/cloud", "etc/cloud/cloud.cfg.d"):
            if name not in folders:
                assert mode_and_owner(disk, name) == (0o755, 0, 0), f"{name} is made for it"
    else:
        assert not (disk / cloud_init.USER_DATA.lstrip("/")).exists()


def test_an_archive_of_before_is_counted_right_too(packed, tmp_path):
    """Lost: a board whose own.tar was made before it had the folders above the seed."""
    archive, own = packed([])
    with tarfile.open(own) as old:
        kept = [(one, old.extractfile(one).read().decode() if one.isfile() else None) for one in old.getmembers()]
    closed = ("root/.ssh", cloud_init.SEED.lstrip("/"))
    kept = [(one, text) for one, text in kept if one.isfile() or one.name in closed]
    tar(own, [(one, (text or "").encode()) for one, text in kept])
    unpack(archive, own, tmp_path / "disk", ["tar"])


def test_a_link_of_the_image_leads_nowhere_else_on_the_board(packed, tmp_path):
    """Lost: a board, for a link that leads out of its disk while its root is unpacked; or what its tenant asked for."""
    folders = ["var", "var/lib", *accumulated(str(tmp_path / "out"))]
    archive, own = packed(folders, links=[("var/lib/cloud", str(tmp_path / "out"))])
    unpack(archive, own, tmp_path / "disk", ["tar"])
    assert not (tmp_path / "out").exists()
    there = tmp_path / "disk" / str(tmp_path / "out").lstrip("/") / "seed" / "nocloud" / "user-data"
    assert there.read_text() == DATA


def test_a_host_key_behind_a_link_is_found_again(site, proxy, tmp_path):
    """Lost: what is known of a root on a disk, which reconcile tells anew from own.tar."""
    claim = site.claim(proxy)
    links = [member("root/etc/ssh", kind=tarfile.SYMTYPE, linkname="/srv/ssh")]
    members = {name: content for name, content in MEMBERS.items() if not name.startswith("root/etc/ssh")}
    members.update({"root/srv": None, "root/srv/ssh": None})
    source = tar(site.folder / "linked.tar", [*(member(*one) for one in members.items()), *links])
    image = image_store(proxy).import_image(source, "linked")
    own, key = disk_root._own_archive(image, claim, [], None)
    disk = DiskFiles(str(tmp_path / "disks"), 0)
    disk.create(own, Made(token_of(claim), image.hash, "", key))
    proxy.store.put(claim.instance, image_hash=image.hash, host_key=key)
    assert disk.remade(token_of(claim), proxy.store.record(0).claim).host_key == key


@pytest.mark.parametrize(
    ("folders", "links", "what"),
    [
        (DEBIANS, [("var/lib/cloud", "/nowhere")], "/var/lib/cloud, which is a symbolic link to /nowhere"),
        ([*DEBIANS, *SEEDS, cloud_init.USER_DATA.lstrip("/")], [], f"{cloud_init.USER_DATA}, which is a folder"),
    ],
)
def test_an_image_with_something_else_there_is_named(packed, folders, links, what):
    """Lost: a board, for what its image has where a file of its instance goes."""
    with pytest.raises(HeteroError, match=f"image cloud: has {what}"):
        packed(folders, links=links)


def accumulated(path):
    """A folder's name and those above it, as members of an archive."""
    parts = path.strip("/").split("/")
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
