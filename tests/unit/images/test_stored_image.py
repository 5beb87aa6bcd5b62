# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image in the store, as others use it. If these fail, a board boots the kernel of another board or boot source."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.stored_image import Image

FILES = dict(hash="h", name="debian", arch="x86_64", cmdline="", kernel="/s/kernel", initrd=None)


def test_an_image_without_a_root_is_a_ram_system():
    """Lost: an instance that has no disk, and no room for its user's files."""
    assert Image(**FILES, root=None).ram
    assert not Image(**FILES, root="/s/root").ram


def test_a_kernel_of_its_own_for_a_board_or_a_source_goes_before():
    """Lost: the kernel that an image has for that board."""
    kernels = {name: f"/s/{name}" for name in ("default", "disk", "3", "3.disk")}
    image = Image(**FILES, root="/s/root", kernels=kernels, initrds={"default": "/s/initrd", "disk": "/s/initrd.disk"})
    assert [image.kernel_for(source, 3) for source in ("nfs", "disk")] == ["/s/3", "/s/3.disk"]
    assert [image.kernel_for(source, 4) for source in ("nfs", "disk")] == ["/s/default", "/s/disk"]
    assert [image.initrd_for(source) for source in ("nfs", "disk")] == ["/s/initrd", "/s/initrd.disk"]
    none = Image(**FILES, root="/s/root")
    assert (none.kernel_for("nfs", 3), none.initrd_for("nfs")) == (None, None)
