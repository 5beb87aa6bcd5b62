# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a node that hold one record each, as JSON that only root may read. Each kind of record knows what its
file says.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Mapping

from ..core.errors import naming
from ..files.whole_file import remove_left, sync_folder, write_whole

#: Bytes of a record: keys have 64 KiB at most (must_be_keys), six times that as JSON, and the rest is a few lines.
LARGEST = 1 << 20
#: Types that many fields have.
TEXT, NUMBER, NONE = (str,), (int, float), (type(None),)
#: {field of a record: the types that it may have}.
Types = Mapping[str, "tuple[type, ...]"]


def write(path: str, record: Mapping[str, Any]) -> None:
    """Write a record's file, whole or not at all, and its folder where that is missing."""
    with naming(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, json.dumps(record, sort_keys=True, indent=1), 0o600)


def remove(path: str) -> None:
    """Remove a record's file, for good, and what writers of it that were killed have left."""
    with naming(path):
        remove_left(path)
        os.unlink(path)
        sync_folder(os.path.dirname(path))


def of_other_types(fields: Mapping[str, Any], types: Types) -> list[str]:
    """Return the names of the fields that have none of their types, or a number that is none."""
    return [name for name, allowed in types.items() if not _is_of(fields[name], allowed)]


def _is_of(value: object, types: tuple[type, ...]) -> bool:
    if not isinstance(value, types) or isinstance(value, bool):
        return False
    return not isinstance(value, (int, float)) or math.isfinite(value)
