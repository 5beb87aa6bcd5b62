# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A class that a site wrote itself, in a file on the node, loaded by the file's name. What it does is run as root."""

from __future__ import annotations

import os
import re
import stat
import sys
from types import ModuleType
from typing import Type, TypeVar

from .errors import BadInput, HeteroError, naming

T = TypeVar("T")
#: Names of files, without `.py`: those of Python, which are no path.
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
#: Mode bits by which others than its owner write a file.
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def names_in(folder: str) -> list[str]:
    """Return the names of the files of a folder that may be loaded, in order; none of a missing one."""
    try:
        found = [os.path.splitext(file) for file in os.listdir(folder)]
    except FileNotFoundError:
        return []
    return sorted(name for name, end in found if end == ".py" and NAME.fullmatch(name))


def own_class(folder: str, name: str, base: Type[T], package: str) -> Type[T]:
    """Return the one class below `base` that a file of a folder defines.

    :param package: its relative imports are from there, as if it lay beside the collection's own files.
    :raises BadInput: the file cannot be loaded, or does not define just one such class that is whole.
    :raises HeteroError: others than root may write it.
    """
    path = os.path.join(folder, f"{name}.py")
    with naming(path):
        for place in (folder, path):
            _must_be_roots(place)
        with open(path, "rb") as file:
            text = file.read()
    module = ModuleType(f"{package}.own_{name}")
    module.__package__, module.__file__ = package, path
    sys.modules[module.__name__] = module  # dataclasses look there
    try:
        exec(compile(text, path, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        raise BadInput(f"cannot be loaded: {type(error).__name__}: {error}", path, "correct the file") from error
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one.__module__ == module.__name__
    ]
    if len(found) != 1:
        what = f"defines {len(found)} classes below {base.__name__}"
        raise BadInput(what, path, f"define one: class NAME({base.__name__})")
    missing = sorted(getattr(found[0], "__abstractmethods__", ()))
    if missing:
        raise BadInput(f"its class has no {', '.join(missing)}", path, "define what the guide lists")
    return found[0]


def _must_be_roots(path: str) -> None:
    seen = os.stat(path)
    if seen.st_uid not in (0, os.geteuid()) or seen.st_mode & OTHERS_WRITE:
        remedy = f"chown root {path} and chmod go-w {path}, once you know who wrote it"
        raise HeteroError("others than root may write it, and it would run as root", path, remedy)
