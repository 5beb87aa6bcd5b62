# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that is another process each moment: it forks and ends, and what it has open goes on with its child."""

from __future__ import annotations

import struct

#: How often it forks: some minutes.
LINKS = 20_000_000
ADDRESS = 0x400000
#: x86-64: mov ebx, LINKS; again: fork(); unless that is the parent: dec ebx, jnz again; exit(0)
CODE = b"\xbb" + struct.pack("<I", LINKS) + bytes.fromhex("b839000000 0f05 85c0 7f04 ffcb 75f1 b83c000000 31ff 0f05")
HEADERS = 64 + 56


def program():
    """The program, as a file of Linux on x86-64: the ELF header, one segment, the code (elf(5))."""
    size, entry = HEADERS + len(CODE), ADDRESS + HEADERS
    header = b"\x7fELF\2\1\1".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, ADDRESS, ADDRESS, size, size, 0x1000)
    return header + segment + CODE
