# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels by boot source and by board. If these fail, a board whose firmware passes no arguments boots the kernel of
another board, or one that looks for its root elsewhere.

Tests images/kernel_names.py, images/kernels.py.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.kernel_names import chosen, shown
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import as_lines
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, image_tar

BELOW_ROOT = {name: None for name in MEMBERS if name == "root" or name.startswith("root/")}
NAMED = {"nfs": "kernels/vmlinux", "disk": "kernels/vmlinux_2"}
#: An image as the blueprint has its files: vmlinux_N and vmlinux_N_2 of boards 0 and 1, and some for the rest.
OWN = {
    "image.json": json.dumps({"arch": "tilepro64", "kernels": NAMED, "initrds": {"disk": "kernels/initrd_2"}}),
    "kernel": None,
    "kernels/vmlinux": "NFS",
    "kernels/vmlinux_2": "DISK",
    "kernels/initrd_2": "DISK INITRD",
    "kernel.d/0": "BOARD 0",
    "kernel.d/0.disk": "BOARD 0 DISK",
    "kernel.d/1.nfs": "BOARD 1 NFS",
}
RAM = {"image.json": json.dumps({"arch": "tilepro64", "ram": True}), **BELOW_ROOT}


@pytest.fixture
def store(tmp_path):
    return ImageStore(str(tmp_path / "images"))


@pytest.fixture
def own(store, tmp_path):
    return store.import_image(image_tar(tmp_path / "own.tar", **OWN), "own")


def text(path):
    return path and Path(path).read_text()


@pytest.mark.parametrize(
    ("board", "root", "kernel", "initrd"),
    [
        (0, "nfs", "BOARD 0", "INITRD" * 1000),
        (0, "disk", "BOARD 0 DISK", "DISK INITRD"),
        (1, "nfs", "BOARD 1 NFS", "INITRD" * 1000),
        (1, "disk", "DISK", "DISK INITRD"),
        (2, "nfs", "NFS", "INITRD" * 1000),
        (2, "disk", "DISK", "DISK INITRD"),
        (10, "nfs", "NFS", "INITRD" * 1000),
        (0, "ram", "BOARD 0", "INITRD" * 1000),
        (2, "ram", None, "INITRD" * 1000),
    ],
)
def test_a_board_has_its_own_kernel_before_that_of_its_boot_source(own, board, root, kernel, initrd):
    assert (text(own.kernel_for(root, board)), text(own.initrd_for(root))) == (kernel, initrd)


def test_one_kernel_serves_all_where_there_are_no_others(store, tmp_path):
    """Lost: every image that was ever packed."""
    image = store.import_image(image_tar(tmp_path / "a.tar"), "a")
    found = {text(image.kernel_for(root, board)) for root in ("nfs", "disk", "ram") for board in (0, 7)}
    assert found == {"KERNEL" * 1000}
    assert (list(image.kernels), list(image.initrds)) == (["default"], ["default"])


def test_boards_may_read_each_kernel_and_no_file_of_the_root_changes_its_mode(store, tmp_path):
    """in.tftpd serves only what everybody may read; a kernel may be packed as a link to one in root/boot."""
    folder = tmp_path / "folder"
    for name in ("kernel.d", "kernels", "root/boot"):
        (folder / name).mkdir(parents=True)
    (folder / "root" / "boot" / "vmlinux").write_text("KERNEL")
    (folder / "root" / "boot" / "vmlinux").chmod(0o600)
    for name in ("kernel.d/0", "kernels/a"):
        os.link(folder / "root" / "boot" / "vmlinux", folder / name)
    (folder / "image.json").write_text('{"arch": "tilepro64", "kernels": {"nfs": "kernels/a"}}')
    image = store.import_image(str(folder), "linked")
    for root, board in (("nfs", 0), ("nfs", 1)):
        status = os.stat(image.kernel_for(root, board))
        assert (stat.S_IMODE(status.st_mode), status.st_nlink) == (0o444, 1)


def about(**more):
    return {"image.json": json.dumps({"arch": "tilepro64", **more})}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (about(kernels=["a"]), "image.json: kernels must be an object by boot source"),
        (about(initrds="a"), "image.json: initrds must be an object by boot source"),
        (about(kernels={"flash": "kernel"}), "kernels: no such boot source: flash .known: nfs, disk, ram."),
        (about(kernels={"nfs": "missing"}), "missing: no such file in it, and its image.json names it"),
        (about(kernels={"nfs": "root"}), "nfs must be the path of a file of its own in the image, not in root/"),
        (about(kernels={"nfs": "root/etc/hostname"}), "nfs must be the path of a file of its own in the image"),
        (about(kernels={"nfs": "../../etc/shadow"}), "nfs must be the path of a file of its own in the image"),
        (about(kernels={"nfs": "/etc/shadow"}), "nfs must be the path of a file of its own in the image"),
        (about(kernels={"nfs": "./kernel"}), "nfs must be the path of a file of its own in the image"),
        (about(kernels={"nfs": ""}), "nfs must be the path of a file of its own in the image"),
        (about(kernels={"nfs": 5}), "nfs must be the path of a file of its own in the image"),
        (about(initrds={"disk": "image.json"}), "initrds: disk must be the path of a file of its own in the image"),
        ({"kernel.d/03": "x"}, "kernel.d/03 is no board's kernel: name it N for board N"),
        ({"kernel.d/3.flash": "x"}, "kernel.d/3.flash is no board's kernel"),
        ({"kernel.d/vmlinux_3": "x"}, "kernel.d/vmlinux_3 is no board's kernel"),
        ({"kernel.d/3/vmlinux": "x"}, "kernel.d/3 is no board's kernel"),
        ({"kernel.d": "x"}, "kernel.d is no folder"),
        (about(kernels={"ram": "kernel"}), "kernels: ram would be used by no board: only a RAM image boots in RAM"),
        ({"kernel.d/3.ram": "x"}, "kernel.d/3.ram would be used by no board: only a RAM image boots in RAM"),
        (
            {**BELOW_ROOT, **about(ram=True, kernels={"nfs": "kernel"})},
            "kernels: nfs would be used by no board: an image without root/ boots in RAM only",
        ),
        ({**RAM, "kernel.d/3.disk": "x"}, "kernel.d/3.disk would be used by no board"),
    ],
)
def test_what_no_board_could_boot_is_refused_with_its_name(store, tmp_path, changes, reason):
    source = image_tar(tmp_path / "bad.tar", **changes)
    with pytest.raises(BadInput, match=reason) as caught:
        store.import_image(source, "bad")
    assert source in str(caught.value)
    assert caught.value.remedy
    assert store.names() == {}
    assert sorted(os.listdir(store.folder)) == [".lock", "names"]


@pytest.mark.parametrize("more", [{"kernel.d/3": "OWN"}, {**about(ram=True, kernels={"ram": "r"}), "r": "OWN"}])
def test_a_ram_image_may_have_kernels_of_boards_too(store, tmp_path, more):
    """The blueprint's vmlinux_N_1, by which a board gets a root to its disk, and is wiped."""
    for initrd in ({}, {"initrd": None}):  # without one, for boards that prove no key
        packed = image_tar(tmp_path / "ram.tar", **{**RAM, "kernel": None, **more, **initrd})
        image = store.import_image(packed, "ram", replace=True)
        assert (text(image.kernel_for("ram", 3)), image.initrd_for("ram") is None) == ("OWN", bool(initrd))
        assert image.ram
        assert store.damage(image.hash) is None


@pytest.mark.parametrize("lost", ["kernel.d/0.disk", "kernels/vmlinux", "kernels/initrd_2"])
@pytest.mark.parametrize("how", ["gone", "shorter"])
def test_a_kernel_that_is_lost_is_noticed_and_comes_back(store, tmp_path, own, lost, how):
    """Lost: a board that gets half a kernel, or another one, and an import that says "there already"."""
    path = Path(store.path_of(own.hash)) / lost
    whole = path.read_text()
    path.unlink()
    if how == "shorter":
        path.write_text("x")
    assert store.damage(own.hash) == f"{lost} is not there as it was imported"
    again = store.import_image(image_tar(tmp_path / "own.tar", **OWN), "own")
    assert (store.damage(own.hash), path.read_text()) == (None, whole)
    assert text(again.kernel_for("disk", 0)) == "BOARD 0 DISK"


def test_another_kernel_makes_another_image(store, tmp_path, own):
    other = image_tar(tmp_path / "other.tar", **{**OWN, "kernel.d/1.nfs": "NEWER"})
    image = store.import_image(other, "own", replace=True)
    assert image.hash != own.hash
    assert [text(one.kernel_for("nfs", 1)) for one in (own, image)] == ["BOARD 1 NFS", "NEWER"]


def test_a_root_with_the_kernels_of_another_image_has_all_of_them_and_none_of_its_own(store, tmp_path, own):
    """Lost: a board that boots another image's root with a kernel that was made for none."""
    mine = {**about(kernels={"nfs": "mine"}, cmdline="quiet"), "mine": "MINE", "kernel.d/5": "MINE"}
    image = store.import_image(image_tar(tmp_path / "mine.tar", **mine), "mine", machine=Machine(kernel_of="own"))
    assert set(image.kernels) == set(own.kernels) == {"nfs", "disk", "0", "0.disk", "1.nfs"}
    assert [text(image.kernel_for("disk", board)) for board in (0, 5)] == ["BOARD 0 DISK", "DISK"]
    assert (image.kernel, text(image.initrd_for("disk")), image.cmdline) == (None, "DISK INITRD", "")
    assert store.damage(image.hash) is None


def test_nor_has_it_kernels_of_boards_where_the_other_image_has_one_for_all(store, tmp_path):
    plain = image_tar(tmp_path / "plain.tar", initrd=None, **{"image.json": '{"arch": "tilepro64"}'})
    store.import_image(plain, "plain")
    mine = {**about(kernels={"disk": "mine"}, initrds={"nfs": "mine"}), "mine": "MINE", "kernel.d/5": "MINE"}
    image = store.import_image(image_tar(tmp_path / "mine.tar", **mine), "mine", machine=Machine(kernel_of="plain"))
    assert (list(image.kernels), dict(image.initrds)) == (["default"], {})
    assert {text(image.kernel_for(root, 5)) for root in ("nfs", "disk")} == {"KERNEL" * 1000}


def test_people_see_which_kernels_an_image_has():
    row = dict(name="tile", arch="tilepro64", bytes=5_000_000, hash="ab", used_by=[], older={})
    many = ["disk", "nfs", "10", "2", "2.disk", "default"]
    usual, own = as_lines([dict(row, kernels=["default"]), dict(row, kernels=many)])
    assert usual.endswith("sha256:ab  used by nobody")
    assert own.endswith("used by nobody; kernels: default, nfs, disk, 2, 10, 2.disk")
    assert shown([str(board) for board in range(20)]).endswith("10, 11, 8 more")
    assert shown([]) == "none"


@pytest.mark.parametrize(
    ("names", "board", "name"),
    [
        ({"default", "disk", "3", "3.disk"}, 3, "3.disk"),
        ({"default", "disk", "3"}, 3, "3"),
        ({"default", "disk"}, 3, "disk"),
        ({"default", "nfs", "33", "3.nfs"}, 3, "default"),
        ({"nfs", "33", "3.nfs"}, 3, None),
        ({"default", "3"}, None, "default"),
    ],
)
def test_the_name_that_says_most_is_chosen(names, board, name):
    assert chosen(names, "disk", board) == name
