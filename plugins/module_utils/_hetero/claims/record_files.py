# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a node that hold one record each, as JSON that only root may read. Each kind of record knows what its
file says.

What is in such a file is answered to plays and written into a database. So what no play takes from a node, or no
database, is no record: it would take all verbs of the node with it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Mapping

from ..core.errors import naming
from ..core.printable import LONGEST
from ..core.typed_keys import is_text
from ..files.whole_file import remove_left, sync_folder, write_whole
from ..site.image_names import is_source, valid_image
from ..site.instance import valid_instance

if TYPE_CHECKING:
    import sqlite3

#: Bytes of a record: keys have 64 KiB at most (must_be_keys), six times that as JSON, and the rest is a few lines.
LARGEST = 1 << 20
#: Above all times (seconds since 1970), for no clock of a node shows the year 5138; and above all amounts.
LATEST = 1e11
#: Most characters of a text, where it is not LONGEST (roots/machine_identity.py, MOST_KEYS).
LENGTHS = {"ssh_public_key": 1 << 16}
#: Most characters of a flavor as JSON (boards/work/board_claims.py), and its keys that nodes compute with.
MOST_OF_FLAVOR = 1 << 16
AMOUNTS = ("memory_mb", "vcpus", "local_gb")
#: Types that many fields have.
TEXT, NUMBER, NONE = (str,), (int, float), (type(None),)
#: {field of a record: the types that it may have}.
Types = Mapping[str, "tuple[type, ...]"]


def write(path: str, record: Mapping[str, Any]) -> None:
    """Write a record's file, whole or not at all, and its folder where that is missing."""
    with naming(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, _text(record), 0o600)


def _text(value: object, depth: int = 1) -> str:
    """Return JSON with a line for each key of a mapping, for people, in a fifth of the time that json's own takes."""
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, sort_keys=True)
    indent = "\n" + " " * depth
    lines = [f"{indent}{json.dumps(key)}: {_text(value[key], depth + 1)}" for key in sorted(value)]
    return f"{{{','.join(lines)}{indent[:-1]}}}"


def remove(path: str) -> None:
    """Remove a record's file, for good, and what writers of it that were killed have left."""
    with naming(path):
        remove_left(path)
        os.unlink(path)
        sync_folder(os.path.dirname(path))


def of_other_types(fields: Mapping[str, Any], types: Types) -> list[str]:
    """Return the names of the fields that have none of their types, or a value that no record of ours has."""
    return [name for name, allowed in types.items() if not _is_of(name, fields[name], allowed)]


def of_other_columns(row: Mapping[str, Any] | sqlite3.Row, types: Types) -> list[str]:
    """Return the names of the columns of a row that have none of their types, or a number that is none of ours.

    Rows of thousands of claims are read by each verb, so what a claim was refused for is not looked for once more.
    """
    return [name for name, allowed in types.items() if not _is_column(row[name], allowed)]


def _is_column(value: object, types: tuple[type, ...]) -> bool:
    kind = type(value)
    return kind in types and (kind is str or value is None or kind is dict or _is_amount(value))


def sound(value: object) -> float | None:
    """Return a number of a row, or None where it is no amount, nor a time since 1970: SQLite keeps what it is given."""
    return float(value) if isinstance(value, (int, float)) and _is_amount(value) else None


def must_be_named(instance: str, request: str, owner: str, image: str) -> None:
    """Raise BadInput or ValueError where a claim has a name that nobody could have asked for.

    An owner of an earlier release may have characters that nobody sees, and its image may be a file's path.
    """
    valid_instance(instance)
    valid_instance(request)
    if not owner.strip():
        raise ValueError("owner")
    if not is_source(image):
        valid_image(image)


def _is_of(name: str, value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # which Python takes for a number
        return bool in types
    if not isinstance(value, types):
        return False
    if isinstance(value, str):
        return is_text(value) and len(value) <= LENGTHS.get(name, LONGEST)
    if isinstance(value, dict):
        return _is_flavor(value)
    return not isinstance(value, (int, float)) or _is_amount(value)


def _is_amount(value: object) -> bool:
    """Return whether this is a number of anything, or a time since 1970; NaN is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LATEST


def _is_flavor(flavor: dict[str, Any]) -> bool:
    mappings = [flavor.get(key) or {} for key in ("cpu_info", "extra_specs")]
    amounts = [flavor.get(key) or 0 for key in AMOUNTS]
    return (
        is_text(flavor.get("name", ""))
        and all(isinstance(one, dict) for one in mappings)
        and all(map(_is_amount, amounts))
        and len(json.dumps(flavor)) <= MOST_OF_FLAVOR
    )
