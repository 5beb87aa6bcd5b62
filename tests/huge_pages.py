# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This process's memory in huge pages: a fork copies a table of them, which takes half the time."""

from __future__ import annotations

import ctypes
from pathlib import Path

SIZE = 2 << 20  # of an x86_64's or aarch64's
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25  # asm-generic/mman-common.h; the second since Linux 6.1


def use_huge_pages():
    """What a kernel does not do is left as it is."""
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text(encoding="ascii", errors="replace").splitlines():
        addresses, rights, *_words, file = [*line.split(), ""][:6]
        if rights == "rw-p" and file in ("", "[heap]"):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin, end = -(-begin // SIZE) * SIZE, end // SIZE * SIZE
            if begin < end:
                for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):
                    libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)
