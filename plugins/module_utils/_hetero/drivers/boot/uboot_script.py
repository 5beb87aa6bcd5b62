# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A script in the wrapping in which U-Boot's `source` takes one: its legacy image format (include/image.h), without
mkimage. What the script says is the caller's business.
"""

from __future__ import annotations

import struct
import zlib

MAGIC = 0x27051956
#: IH_OS_LINUX, IH_ARCH_INVALID, IH_TYPE_SCRIPT, IH_COMP_NONE: `source` looks at the type only.
KIND = (5, 0, 6, 0)
#: Magic, header's checksum, time, size, load address, entry point, data's checksum, KIND, name.
HEADER = struct.Struct(">7I4B32s")


def script_image(text: str, name: str = "hetero.compute") -> bytes:
    """The bytes of a script image; the same text makes the same bytes, so its time is 0."""
    script = text.encode()
    data = struct.pack(">II", len(script), 0) + script  # a list of one part, which 0 ends
    fields = [MAGIC, 0, 0, len(data), 0, 0, zlib.crc32(data), *KIND, name.encode()]
    fields[1] = zlib.crc32(HEADER.pack(*fields))
    return HEADER.pack(*fields) + data
