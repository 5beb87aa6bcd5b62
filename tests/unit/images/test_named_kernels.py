# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What image.json may name, and what boards are served of it, in a folder alone. If these fail, a board fetches a file
of its proxy node, or a file of the root of all boards is opened to everybody.

Tests images/kernels.py.
"""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import kernels


@pytest.fixture
def image(tmp_path):
    """The folder of an image with a kernel for all boards, and a folder of further ones."""
    folder = tmp_path / "image"
    (folder / "boot").mkdir(parents=True)
    for name in ("kernel", "boot/vmlinux", "boot/initrd"):
        (folder / name).write_text(name)
        (folder / name).chmod(0o600)
    return folder


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "../etc/shadow",
        "boot/../../etc/shadow",
        "boot/./vmlinux",
        "boot//vmlinux",
        "boot/",
        "",
        ".",
        "root/etc/shadow",
        "root",
        "image.json",
        "sizes.json",
        "boot/vm\nlinux",
        "boot/vm\u202elinux",
        "x" * 1001,
        None,
        7,
        ["boot/vmlinux"],
    ],
)
@pytest.mark.parametrize("key", ["kernels", "initrds"])
def test_image_json_names_no_file_that_boards_may_not_fetch(key, path):
    """Lost: the password of a proxy node, or the host keys of a root, to each machine on the boards' network."""
    with pytest.raises(BadInput, match=f"image.json: {key}: nfs must be the path of a file of its own in the image"):
        kernels.check_named({key: {"nfs": path}}, "debian")


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"kernels": ["boot/vmlinux"]}, "kernels must be an object by boot source"),
        ({"kernels": None}, "kernels must be an object by boot source"),
        ({"initrds": {"usb": "boot/initrd"}}, "initrds: no such boot source: usb"),
        ({"kernels": {"ram": "boot/vmlinux"}}, "would be used by no board: only a RAM image boots in RAM"),
        ({"ram": True, "kernels": {"nfs": "boot/vmlinux"}}, "used by no board: an image without root/ boots in RAM"),
    ],
)
def test_what_no_board_would_boot_is_refused(about, why):
    """Lost: the import's word, before a board boots another kernel than the operator named."""
    with pytest.raises(BadInput) as caught:
        kernels.check_named(about, "debian")
    assert why in caught.value.what
    assert caught.value.thing == "debian"


@pytest.mark.parametrize(
    "about", [{}, {"kernels": {}}, {"ram": True, "kernels": {"ram": "boot/vmlinux"}}, {"initrds": {"disk": "a b/c"}}]
)
def test_what_boards_boot_is_taken(about):
    """Lost: an image that was imported for years."""
    kernels.check_named(about, "debian")


def test_named_files_are_served_and_no_others(image):
    """Lost: a boot that its TFTP server refuses, for it serves only what everybody may read."""
    kernels.check_files(str(image), {"kernels": {"nfs": "boot/vmlinux"}}, "debian")
    assert mode(image / "boot/vmlinux") == 0o444
    assert mode(image / "boot/initrd") == 0o600


@pytest.mark.parametrize("kind", ["none", "folder", "link", "fifo"])
def test_a_named_file_must_be_one(image, tmp_path, kind):
    """Lost: the mode of a file of the proxy node, which a link of the image leads to; or a TFTP server that waits."""
    secret, path = tmp_path / "shadow", image / "boot/vmlinux"
    secret.write_text("root:x")
    secret.chmod(0o600)
    path.unlink()
    links = dict(link=lambda: path.symlink_to(secret), fifo=lambda: os.mkfifo(path))
    dict(links, none=lambda: None, folder=path.mkdir)[kind]()
    with pytest.raises(BadInput, match="boot/vmlinux: no such file in it"):
        kernels.check_files(str(image), {"kernels": {"nfs": "boot/vmlinux"}}, "debian")
    assert mode(secret) == 0o600


@pytest.mark.parametrize("name", ["00", "-1", "x", "1.usb", "1.nfs~", "12345678901", ".1", "\u0663"])
def test_a_kernel_of_no_board_is_refused(image, name):
    """Lost: the kernel that board 3 was to boot, whose name was misspelt: it boots that of all others."""
    (image / "kernel.d").mkdir()
    (image / "kernel.d" / name).write_text("KERNEL")
    with pytest.raises(BadInput) as caught:
        kernels.check_files(str(image), {}, "debian")
    assert caught.value.what == f"kernel.d/{name} is no board's kernel"


def test_what_boards_may_read_does_not_change_a_file_of_the_root(image):
    """Lost: the mode of a file in each board's root, of which the kernel is another name."""
    (image / "root").mkdir()
    os.link(image / "kernel", image / "root" / "vmlinuz")
    kernels.serve(str(image / "kernel"))
    assert (mode(image / "kernel"), mode(image / "root/vmlinuz")) == (0o444, 0o600)
    assert (image / "kernel").read_text() == "kernel"
    assert sorted(os.listdir(image)) == ["boot", "kernel", "root"]


def test_kernels_are_known_by_what_they_are_for(image):
    """Lost: which kernel a board boots."""
    (image / "kernel.d").mkdir()
    for name in ("0", "0.disk", "notes.txt"):
        (image / "kernel.d" / name).write_text(name)
    about = {"kernels": {"nfs": "boot/vmlinux"}, "initrds": {"disk": "boot/initrd"}}
    found = kernels.kernels_in(str(image), about)
    names = {"default": "kernel", "nfs": "boot/vmlinux", "0": "kernel.d/0", "0.disk": "kernel.d/0.disk"}
    assert found == {name: str(image / path) for name, path in names.items()}
    assert kernels.initrds_in(str(image), about) == {"disk": str(image / "boot/initrd")}
    assert kernels.own_files(str(image), about) == [
        "boot/initrd",
        "boot/vmlinux",
        "kernel.d/0",
        "kernel.d/0.disk",
        "kernel.d/notes.txt",
    ]
