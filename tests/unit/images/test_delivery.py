# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a board would not get of an image. Whole verbs are in verbs/test_undelivered.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.delivery import (
    BUILD_IN,
    BUILD_IN_OWN,
    GIVE,
    GIVE_INITRD,
    undelivered,
)

TILE = dict(driver="tilera", arguments=False, flash=False, cmdline=False, ram_image="ram", ram_keys=False)
PXE = dict(TILE, driver="pxe", arguments=True, ram_keys=True)
IMAGES = {
    "quiet": dict(arch="x", ram=False, arguments=True, kernels=["default"]),
    "plain": dict(arch="x", ram=False, arguments=False, kernels=["default"]),
    "disk": dict(arch="x", ram=False, arguments=False, kernels=["disk", "0", "1.nfs"]),
    "ram": dict(arch="x", ram=True, arguments=False, kernels=["default"]),
    "of an older release": dict(arch="x", ram=False),
}
LOUD_RAM = {**IMAGES, "ram": dict(IMAGES["ram"], arguments=True)}
RAM_OF_0 = {**IMAGES, "ram": dict(IMAGES["ram"], kernels=["0"])}
HAS_CMDLINE = "has arguments for the kernel (cmdline), and boot driver tilera passes none"


@pytest.mark.parametrize("source", ["nfs", "disk"])
@pytest.mark.parametrize(("image", "means"), [("quiet", PXE), ("plain", PXE), ("plain", TILE), ("disk", None)])
def test_what_is_delivered_is_not_refused(image, means, source):
    """Lost: all boards of the kind."""
    assert undelivered(image, IMAGES, 5, means, source) is None
    assert undelivered("plain", IMAGES, 5, dict(PXE, cmdline=True), source) is None
    assert undelivered("of an older release", IMAGES, 5, TILE, source) is None
    assert undelivered("not there", IMAGES, 5, TILE, source) is None


@pytest.mark.parametrize("flash", [False, True])
def test_arguments_that_no_kernel_would_get(flash):
    """Lost: hours at a board that boots another system than its image says, and nothing tells why."""
    means = dict(TILE, flash=flash)
    assert undelivered("quiet", IMAGES, 5, means, "nfs") == (f"image quiet {HAS_CMDLINE}", BUILD_IN)
    wired = undelivered("plain", IMAGES, 5, dict(means, cmdline=True), "nfs")
    assert wired == (f"its wiring {HAS_CMDLINE}", BUILD_IN_OWN)


@pytest.mark.parametrize(
    ("board", "source", "lacks"), [(0, "nfs", False), (1, "nfs", False), (2, "nfs", True), (2, "disk", False)]
)
@pytest.mark.parametrize("means", [TILE, PXE])
def test_a_kernel_that_is_not_there(board, source, lacks, means):
    """Lost: a board that asks for a kernel which no file is, and is called dead."""
    found = undelivered("disk", IMAGES, board, means, source)
    what = "image disk has no kernel for it with its root on nfs (it has: disk, 0, 1.nfs)"
    assert found == ((what, GIVE) if lacks else None)
    assert undelivered("disk", IMAGES, board, dict(means, flash=True), source) is None, "it has one of its own"


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (LOUD_RAM, (f"RAM image ram {HAS_CMDLINE}", BUILD_IN)),
        (RAM_OF_0, ("RAM image ram has no kernel for it with its root on ram (it has: 0)", GIVE)),
    ],
)
def test_the_ram_image_counts_where_it_lays_the_root(images, said):
    """Lost: a claim whose board can never be made ready; or all boards without disks."""
    assert undelivered("plain", images, 5, TILE, "disk") == said
    assert undelivered("plain", images, 5, TILE, "nfs") is None
    assert undelivered("plain", images, 5, dict(TILE, ram_image=None), "disk") is None


def test_a_ram_image_without_an_initrd_is_for_boards_that_prove_no_key():
    """Lost: the blueprint's vmlinux_N_1, which has all built in; or a claim whose board can never let the proxy in."""
    without = {**IMAGES, "ram": dict(IMAGES["ram"], initrds=[])}
    what = "RAM image ram has no initrd, by which boot driver pxe gives the proxy's keys"
    assert undelivered("plain", without, 5, PXE, "disk") == (what, GIVE_INITRD)
    assert undelivered("plain", without, 5, PXE, "nfs") is None
    assert undelivered("plain", without, 5, TILE, "disk") is None
    assert undelivered("plain", {**IMAGES, "ram": dict(IMAGES["ram"], initrds=["ram"])}, 5, PXE, "disk") is None
    assert undelivered("plain", IMAGES, 5, PXE, "disk") is None, "an older release does not say which there are"
