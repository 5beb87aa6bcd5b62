# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels of boards and boot sources, through whole verbs, and what is refused because no kernel would get it.

Lost where these fail: a board whose firmware passes no arguments boots another board's kernel, or another system than
its image says; or an instance that ran before its proxy learned to refuse it.

Tests drivers/boot/fake.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, image_tar
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

REQUEST = dict(owner="jackie", flavor=FLAVOR, ssh_public_key=KEY)
NO_ROOT = {name: None for name in MEMBERS if name.split("/")[0] == "root"}
HAS_CMDLINE = "has arguments for the kernel (cmdline), and boot driver {} passes none"
WAY = "build them into the kernel (kernels in image.json, or kernel.d/N) and take cmdline out of image.json"
OWN_WAY = "build them into a kernel of its own (kernel.d/N in the image) and take cmdline out of tftp_proxy_boards"


def verb(site, state="running", **given):
    return site.module("instance", kind="board", instance="jackie", state=state, timeout=10, **given)


def image(site, name, ram=False, **files):
    """An image without arguments that has these kernels; vmlinux_nfs and vmlinux_disk are named by its image.json."""
    named = {source: f"vmlinux_{source}" for source in ("nfs", "disk") if f"vmlinux_{source}" in files}
    about = dict(arch="tilepro64", kernels=named, **({"ram": True} if ram else {}))
    members = {"kernel": None, **(NO_ROOT if ram else {}), "image.json": json.dumps(about), **files}
    store = ImageStore(str(site.state / "images"))
    return store.import_image(image_tar(site.folder / f"{name}.tar", **members), name)


def served(site, board):
    return (site.tftp / f"10.0.2.{board + 1}" / f"vmlinux_{board}").read_text()


@pytest.fixture
def tile(site):
    """Two boards, and an image with a kernel for all of them, and one of board 0."""
    own = {"kernel.d/0": "BOARD 0", "kernel.d/1.disk": "BOARD 1 DISK"}
    image(site, "tile", vmlinux_nfs="NFS", vmlinux_disk="DISK", **own)
    return site


@pytest.fixture
def passes_none(monkeypatch):
    """Boards of the played kind whose firmware passes no arguments from now on."""
    return lambda: monkeypatch.setattr(Fake, "passes_arguments", False)


def refused(result):
    assert result["failed"]
    return result["msg"]


# ---- kernels


def test_each_board_gets_its_own_kernel_or_that_of_its_boot_source(tile, passes_none):
    passes_none()
    result = verb(tile, image="tile", count=2, **REQUEST)
    assert [one["state"] for one in result["instances"]] == ["running", "running"]
    assert [served(tile, board) for board in (0, 1)] == ["BOARD 0", "NFS"]
    assert verb(tile, image="tile", count=2, **REQUEST)["changed"] is False


def test_a_kernel_that_was_replaced_by_hand_is_put_back(tile):
    """The blueprint's proxy copied kernels over each other: whichever came last was booted."""
    verb(tile, image="tile", **REQUEST)
    file = tile.tftp / "10.0.2.1" / "vmlinux_0"
    file.unlink()
    file.write_text("NFS")
    assert verb(tile)["changed"]
    assert served(tile, 0) == "BOARD 0"


def test_another_image_brings_its_kernels(tile, passes_none):
    passes_none()
    verb(tile, image="tile", count=2, **REQUEST)
    image(tile, "newer", vmlinux_nfs="NEWER NFS", **{"kernel.d/1": "NEWER BOARD 1"})
    result = verb(tile, "rebuilt", image="newer")
    assert [one["state"] for one in result["instances"]] == ["running", "running"], result
    assert [served(tile, board) for board in (0, 1)] == ["NEWER NFS", "NEWER BOARD 1"]


def test_a_board_with_its_root_on_its_disk_gets_the_kernel_that_looks_for_it_there(tile, passes_none):
    """The blueprint's vmlinux_N_2: with that of NFS the board would wait for a root that is exported to nobody."""
    image(tile, "ram", ram=True, **{"kernel.d/0": "RAM 0", "kernel.d/1": "RAM 1"})
    path = tile.folder / "proxy.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), ram_images={"tilepro64": "ram"})))
    for board in (0, 1):
        tile.wire(board, disk="/dev/sda")
    passes_none()
    for board in (1, 0):
        name = f"vm{board}"
        asked = dict(REQUEST, instance=name, board=board, image="tile", boot_source="disk")
        assert not tile.module("board_claim", **asked).get("failed")
        assert not tile.module("board_image", boards=[board], instance=name).get("failed")
    assert [served(tile, board) for board in (0, 1)] == ["BOARD 0", "BOARD 1 DISK"]


# ---- what is refused


def test_an_image_with_arguments_is_refused_before_anything_is_claimed(site, passes_none):
    """Lost: what its words were for, without a word: the board boots as if the image had none."""
    there = site.what_is_there()
    passes_none()
    for check in (True, False):
        said = refused(verb(site, image="debian", check=check, **REQUEST))
        assert f"board0, board1: image debian {HAS_CMDLINE.format('fake')}: {WAY}" in said
    assert (site.what_is_there(), site.events(None, "choice")) == (there, [])
    image(site, "plain", kernel="PLAIN")
    assert not verb(site, image="plain", **REQUEST).get("failed")
    assert served(site, 0) == "PLAIN"


def test_a_board_of_another_kind_is_taken_instead(site):
    """Lost: a request that one of two kinds of boards could serve."""
    site.wire(0, driver="tilera")
    result = verb(site, image="debian", **REQUEST)
    assert [one["name"] for one in result["instances"]] == ["board1"]
    said = refused(site.module("board_claim", instance="bob", board=0, image="debian", **REQUEST))
    assert f"board0: image debian {HAS_CMDLINE.format('tilera')}: {WAY}" in said


def test_a_wiring_with_arguments_is_refused_too(tile):
    """Lost: the console of a board, whose wiring names it to a kernel that never hears of it."""
    for board in (0, 1):
        tile.wire(board, driver="tilera", cmdline="console=ttyS0")
    there = tile.what_is_there()
    said = refused(verb(tile, image="tile", **REQUEST))
    assert f"board0, board1: its wiring {HAS_CMDLINE.format('tilera')}: {OWN_WAY}" in said
    assert tile.what_is_there() == there


def test_an_image_without_a_kernel_for_the_boot_source_is_refused(site):
    """Lost: a claim on a board that asks for a file that is not there, and is called dead."""
    image(site, "disks", vmlinux_disk="DISK", **{"kernel.d/1": "BOARD 1"})
    there = site.what_is_there()
    said = refused(verb(site, image="disks", board=0, **REQUEST))
    lacks = "image disks has no kernel for it with its root on nfs (it has: disk, 1)"
    assert f"board0: {lacks}: give it one: kernel.d/N for board N" in said
    assert site.what_is_there() == there
    assert [one["name"] for one in verb(site, image="disks", **REQUEST)["instances"]] == ["board1"]


def test_a_claim_whose_root_is_yet_to_be_made_is_refused_when_it_is_made(site, passes_none):
    """Between claim and root the image's name, or the wiring, may have changed."""
    assert not site.module("board_claim", instance="jackie", image="debian", **REQUEST).get("failed")
    passes_none()
    said = refused(site.module("board_image", boards=[0], instance="jackie"))
    assert said.startswith(f"board0: image debian {HAS_CMDLINE.format('fake')}: {WAY}")
    assert (site.exports(), site.mounts(), list(site.tftp.glob("*/*"))) == ({}, [], [])


def test_a_rebuild_is_refused_before_the_old_root_goes(tile, passes_none):
    """Lost: an instance, stopped for an image that its board cannot boot."""
    verb(tile, image="tile", **REQUEST)
    passes_none()
    image(tile, "disks", vmlinux_disk="DISK")
    there, record = tile.what_is_there(), tile.record(0)
    for given, lacks in (
        ("debian", f"image debian {HAS_CMDLINE.format('fake')}: {WAY}"),
        ("disks", "image disks has no kernel for it with its root on nfs (it has: disk): give it one"),
    ):
        for check in (True, False):
            assert f"board0: {lacks}" in refused(verb(tile, "rebuilt", image=given, check=check))
        assert refused(tile.module("board_rebuild", instance="jackie", image=given)).startswith(f"board0: {lacks}")
    assert (tile.what_is_there(), tile.record(0)) == (there, record)
    assert served(tile, 0) == "BOARD 0"


def test_what_runs_goes_on(site, passes_none):
    """Lost: an instance from before the upgrade, at its next reboot."""
    site.wire(0, cmdline="quiet")
    assert not verb(site, image="debian", **REQUEST).get("failed")
    passes_none()
    root = site.state / "board-roots" / "fs_0" / "root" / "root" / "data"
    root.write_text("kept")
    assert verb(site, image="debian", **REQUEST)["changed"] is False
    assert not verb(site, "rebooted").get("failed")
    assert not verb(site, "stopped").get("failed")
    assert not verb(site).get("failed")
    assert not verb(site, image="debian", **REQUEST).get("failed")
    assert not verb(site, "rebuilt", image="debian").get("failed"), "there is nothing to rebuild"
    assert not site.module("board_reconcile", timeout=10).get("failed")
    assert (site.record(0).state, root.read_text()) == ("running", "kept")
    assert "cmdline" in refused(verb(site, "rebuilt", fresh=True))
    assert (site.record(0).state, root.read_text()) == ("running", "kept")
    assert not verb(site, "absent").get("failed")
