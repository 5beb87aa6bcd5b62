# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The encoding in which an editor saved a file that should be UTF-8."""

from __future__ import annotations

import codecs

#: What a file begins with. UTF-32's mark begins with UTF-16's, so it comes first.
MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def foreign_encoding(data: bytes) -> str | None:
    """Return the name of an encoding other than UTF-8, or None for data that may be UTF-8."""
    marked = next((name for mark, name in MARKS if data.startswith(mark)), None)
    # without a mark: one byte of each of the first two letters is 0
    return marked or ("UTF-16" if len(data) >= 4 and {data[:4:2], data[1:4:2]} & {b"\0\0"} and any(data[:4]) else None)
