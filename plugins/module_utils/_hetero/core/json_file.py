# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that hold one JSON object, by the standard: no NaN, no infinite numbers, no nesting too deep for Python, and no
key twice in an object, of which readers take different ones.

typed_keys.py checks what an object may hold.
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

#: Most bytes that a file of a node may have; the settings of a hundred thousand boards take half of that.
LARGEST = 64 << 20


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{brief(text, 60)} is too large")
    return number


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for key in made if keys.count(key) > 1)
        raise ValueError(f"the key {brief(twice, 60)} is there twice in one object")
    return made


def loads(text: str) -> Any:
    """Return the value of a JSON text.

    :raises ValueError: the text is no JSON (json.JSONDecodeError where the place of the mistake is known).
    """
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_once)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def any_number(text: str) -> Any:
    """Return the value of a JSON text with NaN and infinite numbers as floats, for a caller that names their places."""
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def read_text(path: str, most: int = LARGEST) -> str:
    """Return the text of a regular file; raise OSError for anything else in its place, and for a longer file.

    So a pipe is not waited for, and neither an endless device nor a huge file is read into memory.

    :param most: most bytes that the file may have.
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


def read_object(path: str, remedy: str, numbers: Callable[[str], Any] = loads, where: str = "") -> dict[str, Any]:
    """Return the JSON object in a file; raise BadInput, with `remedy`, where the file is missing or holds none.

    :param numbers: reads the text; with `any_number` the caller must look for NaN and infinite numbers itself.
    :param where: the machine, in words, for a file of which people may not know whose it is.
    """
    try:
        data = numbers(read_text(path))
    except OSError as error:
        raise BadInput(f"cannot be read{where and f' on {where}'} ({error.strerror})", path, remedy) from error
    except ValueError as error:
        raise BadInput(f"is not JSON ({error})", path, remedy) from error
    if not isinstance(data, dict):
        raise BadInput("is not a JSON object", path, remedy)
    return data
