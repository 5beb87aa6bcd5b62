# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the image of a disk is told from an archive: by its first bytes."""

from __future__ import annotations

#: Name of a disk's image at the top of an image's folder, until its root file system is read.
DISK = "disk"
#: Bytes of the largest disk whose image is read. Zeros take no space in the store, but time.
LARGEST = 256 << 30
#: Bytes that are looked at: the signature of btrfs comes last.
START = (64 << 10) + 72
QCOW2 = b"QFI\xfb"
#: (offset, bytes) of what begins a disk: qcow2, a partition table, ext2 to ext4, XFS, squashfs, EROFS, btrfs.
SIGNS = (
    (0, QCOW2),
    (510, b"\x55\xaa"),
    (1024 + 0x38, b"\x53\xef"),
    (0, b"XFSB"),
    (0, b"hsqs"),
    (1024, b"\xe2\xe1\xf5\xe0"),
    ((64 << 10) + 64, b"_BHRfS_M"),
)
#: (offset, bytes) of a tar, whose first file may hold any bytes.
TAR = (257, b"ustar")


def is_disk(start: bytes) -> bool:
    """Return whether a file that begins so is the image of a disk."""
    return not _has(start, TAR) and any(_has(start, sign) for sign in SIGNS)


def _has(start: bytes, sign: tuple[int, bytes]) -> bool:
    offset, expected = sign
    return start[offset : offset + len(expected)] == expected
