# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's TFTP folder. If these failed, a board could fetch half a kernel or another image's, or boot after
it was terminated.
"""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.tftp.board_folder import (
    BoardFiles,
    read_entry,
    remove_entry,
    write_entry,
)


@pytest.fixture
def files(tmp_path):
    return BoardFiles(str(tmp_path / "tftpboot"), "10.0.2.1")


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "kernel"
    path.write_bytes(b"KERNEL" * 100000)
    path.chmod(0o444)
    return str(path)


def test_a_file_is_placed_as_a_link_to_the_stores(files, kernel):
    assert not files.same("vmlinux_0", kernel)
    files.place("vmlinux_0", kernel)
    assert files.same("vmlinux_0", kernel)
    assert files.names() == ["vmlinux_0"]
    assert os.stat(files.path("vmlinux_0")).st_ino == os.stat(kernel).st_ino
    files.place("vmlinux_0", kernel)
    assert files.names() == ["vmlinux_0"]


def test_on_another_file_system_it_is_a_copy_that_all_may_read(files, kernel, tmp_path):
    (tmp_path / "tftpboot").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "small", str(tmp_path / "tftpboot")], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        files.place("vmlinux_0", kernel)
        assert files.same("vmlinux_0", kernel)
        status = os.stat(files.path("vmlinux_0"))
        assert (status.st_nlink, stat.S_IMODE(status.st_mode)) == (1, 0o444)
        assert files.names() == ["vmlinux_0"]
    finally:
        subprocess.run(["umount", str(tmp_path / "tftpboot")], check=True)


@pytest.mark.parametrize("content", [b"KERNEL" * 99999, b"KERNEX" * 100000, b"", b"KERNEL" * 99999 + b"KERNEx"])
def test_other_content_is_seen_and_replaced(files, kernel, content):
    os.makedirs(files.folder)
    with open(files.path("vmlinux_0"), "wb") as file:
        file.write(content)
    assert not files.same("vmlinux_0", kernel)
    files.place("vmlinux_0", kernel)
    assert files.same("vmlinux_0", kernel)


def test_a_link_in_its_place_is_replaced_and_not_followed(files, kernel, tmp_path):
    """A link to the right content now may lead elsewhere later."""
    os.makedirs(files.folder)
    os.symlink(kernel, files.path("vmlinux_0"))
    assert not files.same("vmlinux_0", kernel)
    files.place("vmlinux_0", kernel)
    assert not os.path.islink(files.path("vmlinux_0"))


def test_a_killed_placing_is_not_in_the_way(files, kernel):
    os.makedirs(files.folder)
    with open(files.path(".vmlinux_0.new"), "w") as file:
        file.write("half")
    files.place("vmlinux_0", kernel)
    assert files.names() == ["vmlinux_0"]


def test_all_of_a_board_goes_and_nothing_of_another(files, kernel, tmp_path):
    other = BoardFiles(str(tmp_path / "tftpboot"), "10.0.2.2")
    for one in (files, other):
        one.place("vmlinux_0", kernel)
        write_entry(one.path("01-00-1a-ca-00-57-90.ipxe"), "#!ipxe\n")
    files.remove()
    files.remove()
    assert not files.exists()
    assert files.names() == []
    assert other.names() == ["01-00-1a-ca-00-57-90.ipxe", "vmlinux_0"]
    assert os.path.getsize(kernel) == 600000


def test_a_folder_that_is_a_link_is_removed_without_what_it_leads_to(files, kernel, tmp_path):
    (tmp_path / "tftpboot").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    os.symlink(tmp_path / "precious", files.folder)
    files.remove()
    assert not files.exists()
    assert (tmp_path / "precious" / "file").read_text() == "x"


def test_an_entry_is_written_whole_for_all_to_read(files):
    path = files.path("01-00-1a-ca-00-57-90.ipxe")
    assert read_entry(path) is None
    old = os.umask(0o077)
    try:
        write_entry(path, "#!ipxe\nboot\n")
    finally:
        os.umask(old)
    assert read_entry(path) == "#!ipxe\nboot\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert stat.S_IMODE(os.stat(files.folder).st_mode) == 0o755
    before = os.stat(path).st_ino
    write_entry(path, "#!ipxe\n")
    assert os.stat(path).st_ino != before
    remove_entry(path)
    remove_entry(path)
    assert read_entry(path) is None


def test_an_entry_in_a_folder_below_is_for_the_server_to_read_and_goes_with_the_rest(files):
    """U-Boot's entry lies in pxelinux.cfg: the server's own user must get there, and nobody must find it later."""
    old = os.umask(0o077)
    try:
        write_entry(files.path("pxelinux.cfg/01-00-1a-ca-00-57-90"), "default hetero\n")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(files.folder).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(files.path("pxelinux.cfg")).st_mode) == 0o755
    os.symlink("/etc", files.path("link"))
    assert files.names() == ["link", "pxelinux.cfg/01-00-1a-ca-00-57-90"]
    files.remove()
    assert files.names() == []
    assert not files.exists()


def test_what_cannot_be_written_is_named(tmp_path, kernel):
    (tmp_path / "tftpboot").write_text("a file is in its place")
    with pytest.raises(HeteroError, match=r"tftpboot/10.0.2.1: cannot be read or written \(.*\): check space"):
        BoardFiles(str(tmp_path / "tftpboot"), "10.0.2.1").place("vmlinux_0", kernel)
