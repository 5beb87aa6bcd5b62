# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is one JSON object, and JSON as its standard has it: no NaN, no numbers beyond all bounds, no depth that
Python's reader cannot follow. What an object may hold is its reader's business (typed_keys.py).
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from typing import Any, Callable, NoReturn

from .errors import BadInput
from .printable import brief

#: Bytes that the largest file of a node may have: the settings of a hundred thousand boards have half of it.
LARGEST = 64 << 20


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{brief(text, 60)} is too large")
    return number


def loads(text: str) -> Any:
    """What a JSON text says; ValueError where it is none (json.JSONDecodeError where the place of that is known)."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def any_number(text: str) -> Any:
    """The same with NaN, Infinity and what is beyond all bounds as floats, for who names each with its place."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def read_text(path: str, most: int = LARGEST) -> str:
    """The text of a regular file of at most so many bytes; OSError for whatever else is in its place.

    A pipe is not waited for, and neither a device without an end nor a file that a hand made huge is read into memory.
    """
    with open(path, encoding="utf-8", opener=_never_waits) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        text = file.read(most + 1) if found.st_size <= most else None
    if text is None or len(text) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", path)
    return text


def _never_waits(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def read_object(path: str, remedy: str, numbers: Callable[[str], Any] = loads) -> dict[str, Any]:
    """The object in the file; BadInput where it is missing or none.

    :param numbers: how its text is read; with `any_number` the caller looks for NaN and the like himself.
    """
    try:
        data = numbers(read_text(path))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path, remedy) from error
    except ValueError as error:
        raise BadInput(f"is not JSON ({error})", path, remedy) from error
    if not isinstance(data, dict):
        raise BadInput("is not a JSON object", path, remedy)
    return data
