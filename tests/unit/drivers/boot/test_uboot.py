# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a board with U-Boot is served: its boot entry, and the script that leads an older U-Boot to it. That a real
U-Boot boots from them is for molecule's scenario uboot.

Tests drivers/boot/uboot_script.py.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import DISK_ROOT, System
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.uboot import Uboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.uboot_script import script_image


@dataclass
class Image:
    cmdline: str = "quiet"
    initrd: str | None = "/images/x/initrd"

    def initrd_for(self, root):
        return self.initrd


@pytest.fixture
def uboot(site):
    """(the driver, board1), board1 wired as one with U-Boot."""
    site.config["boards"]["1"] = dict(pdu="pdu-a", outlet="6", driver="uboot", cmdline="console=ttyAMA0")
    site.write()
    with site.proxy() as proxy:
        board = proxy.board(1)
        yield BootDrivers(proxy).of(board), board


def test_entry_with_initrd(site, uboot):
    """A wrong name or word here, and no such board boots."""
    driver, board = uboot
    assert isinstance(driver, Uboot)
    path = str(site.folder / "tftpboot" / "10.0.2.2" / "pxelinux.cfg" / "01-00-1a-ca-00-57-91")
    assert driver.entry_paths(board) == [path]
    assert driver.entry(board, System(Image())) == {
        path: "default hetero\n"
        "label hetero\n"
        "  kernel vmlinux_1\n"
        "  initrd initrd_1\n"
        "  append root=/dev/nfs nfsroot=127.0.0.1:/tftpboot/fs_1,vers=3,tcp,nolock,noacl rw ip=dhcp quiet"
        " console=ttyAMA0\n"
    }


def test_entry_without_initrd(uboot):
    """U-Boot gives up a label whose initrd it cannot fetch."""
    driver, board = uboot
    (text,) = driver.entry(board, System(Image(initrd=None))).values()
    assert "initrd" not in text
    assert "  kernel vmlinux_1\n" in text


def test_a_root_that_such_a_board_cannot_have_is_refused(uboot):
    """A board would boot the proxy's root where its disk's was asked for."""
    driver, board = uboot
    with pytest.raises(BadInput, match="board1: no local disk is configured"):
        driver.entry(board, System(Image(), root=DISK_ROOT))


def test_its_files_are_known_by_what_it_asks_for(uboot):
    """A stall would be blamed on the board although it asked for its kernel, which makes it the image's fault."""
    driver, board = uboot
    assert driver.files(board) == {
        "01-00-1a-ca-00-57-91": "boot entry",
        "vmlinux_1": "kernel",
        "initrd_1": "initrd",
    }


def test_self_test_names_its_own_entry_and_script(site, uboot):
    """Boards would be quarantined for a proxy that does not serve what U-Boot asks for."""
    driver, board = uboot
    text = "\n".join(driver.self_test(board, System(None)))
    folder = site.folder / "tftpboot" / "10.0.2.2"
    assert f"{folder}/pxelinux.cfg/01-00-1a-ca-00-57-91: is missing" in text
    assert f"{folder}/vmlinux_1: is missing" in text
    assert "TFTP 127.0.0.1:boot.scr.uimg" in text
    assert "ipxe" not in text


def test_script_image_is_what_source_takes():
    """U-Boot refuses a script with one wrong byte of its header ("Bad header crc", "Bad data crc")."""
    text = "pxe get && pxe boot\n"
    image = script_image(text)
    header, data = image[:64], image[64:]
    magic, checksum, _time, size, _load, _entry, data_checksum = struct.unpack(">7I", header[:28])
    assert (magic, size, data_checksum) == (0x27051956, len(data), zlib.crc32(data))
    assert zlib.crc32(header[:4] + bytes(4) + header[8:]) == checksum
    assert header[30] == 6  # IH_TYPE_SCRIPT
    assert header[31] == 0  # not compressed
    assert header[32:].rstrip(b"\0") == b"hetero.compute"
    assert data == struct.pack(">II", len(text), 0) + text.encode()
    assert script_image(text) == image
