# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wraps a script for U-Boot's `source` in its legacy image format (include/image.h), without mkimage.

The caller knows what the script says.
"""

from __future__ import annotations

import struct
import zlib

MAGIC = 0x27051956
#: IH_OS_LINUX, IH_ARCH_INVALID, IH_TYPE_SCRIPT, IH_COMP_NONE; `source` looks only at the type.
KIND = (5, 0, 6, 0)
#: What U-Boot calls the image when it shows it.
NAME = b"hetero.compute"
#: Magic, checksum of the header, time, size, load address, entry point, checksum of the data, KIND, name.
HEADER = struct.Struct(">7I4B32s")


def script_image(text: str) -> bytes:
    """Return the bytes of a script image. Its time is 0, so that the same text makes the same bytes."""
    script = text.encode()
    data = struct.pack(">II", len(script), 0) + script  # a list of one part, ended by 0
    fields = [MAGIC, 0, 0, len(data), 0, 0, zlib.crc32(data), *KIND, NAME]
    fields[1] = zlib.crc32(HEADER.pack(*fields))
    return HEADER.pack(*fields) + data
