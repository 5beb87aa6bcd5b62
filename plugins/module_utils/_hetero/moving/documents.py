# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a source is asked with, and the files that sources are read from: text, JSON, YAML."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Callable, Sequence

from ..core.errors import BadInput, HeteroError
from ..core.json_file import loads, read_text

#: Most bytes of one file, and of one answer of a server.
MOST = 16 << 20
#: Most values of a YAML file: a line of MOST bytes has some ten bytes for each.
MOST_PARTS = 2_000_000
#: What PyYAML raises beside its own errors, of a tag whose value is none (`!!int ''`, `!!bool x`, `!!timestamp x`).
ODD = (ValueError, RecursionError, IndexError, KeyError, AttributeError, TypeError)


@dataclass(frozen=True)
class Asked:
    """What a source is asked with.

    :param paths: files, of which each is named once.
    :param url: address of a server.
    :param get: takes (address, headers), returns the answer's text; raises HeteroError.
    """

    paths: Sequence[str] = ()
    url: str = ""
    token: str = field(default="", repr=False)
    get: Callable[[str, dict[str, str]], str] = field(default=lambda _url, _headers: "", repr=False)

    def files(self, *ends: str) -> list[str]:
        """Return the files, and of a folder all those in it whose names end so, in order."""
        found: list[str] = []
        for path in self.paths:
            if os.path.isdir(path):
                names = sorted(os.listdir(path))
                found += [os.path.join(path, name) for name in names if name.endswith(ends) and name[0] != "."]
            else:
                found.append(path)
        if not found:
            raise BadInput(f"holds no file {' or '.join(f'*{end}' for end in ends)}", self.paths[0], "name the files")
        return found


def named(path: str) -> str:
    """Return what a file is called in questions and in what is written: its name, for its folder is anybody's."""
    return os.path.basename(path)


def text_of(path: str) -> str:
    """Return a file's text; raise BadInput where it is none."""
    remedy = "give a file that is there, in UTF-8"
    try:
        text = read_text(path, MOST)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", path, remedy) from error
    except ValueError as error:
        raise BadInput("is not in UTF-8", path, remedy) from error
    return text[1:] if text.startswith("\ufeff") else text


def json_of(text: str, source: str) -> Any:
    """Return a JSON text's value; raise BadInput where it is cut off or none."""
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        what = f"is not JSON, or cut off: line {error.lineno}, column {error.colno}: {error.msg}"
        raise BadInput(what, source, "export it again, as a whole") from error
    except ValueError as error:
        raise BadInput(f"is not JSON: {error}", source, "export it again, as a whole") from error


def library(module: str, called: str, source: str) -> Any:
    """Return a module that Ansible brings; raise HeteroError where this Python has none.

    :param called: what people call it.
    :param source: what cannot be read without it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        what = f"Python has no library {called} here"
        raise HeteroError(what, source, "run it with the Python that Ansible runs with") from error


def yaml_of(text: str, source: str) -> Any:
    """Return a YAML text's value, of plain types only. `52:54:00:12:34:56` and `07` stay the texts that they are."""
    yaml = library("yaml", "PyYAML", source)
    try:
        value = yaml.load(text, _loader(yaml))
    except (yaml.YAMLError, *ODD) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = f"is not YAML: {place}{getattr(error, 'problem', None) or type(error).__name__}"
        raise BadInput(what, source, "correct it") from error
    if _size(value, {}) > MOST_PARTS:
        what = f"has more than {MOST_PARTS} values, or one that holds itself, by its aliases (*NAME)"
        raise BadInput(what, source, "write them out")
    return value


def _size(value: Any, known: dict[int, float]) -> float:
    """Return how many values there are with each alias written out; infinity where one holds itself.

    :param known: the sizes of lists and mappings, by their ids; infinity of those that are looked at just now.
    """
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]


def _loader(yaml: Any) -> Any:
    """Return a loader that takes digits with colons, and with zeros before them, for no numbers (YAML 1.1 does), and
    what is no template to Ansible for the text that it is.
    """

    class Loader(yaml.SafeLoader):
        pass

    def number(loader: Any, node: Any) -> Any:
        if ":" in node.value or re.match(r"[-+]?0[0-9_]", node.value):
            return node.value
        usual = "construct_yaml_int" if node.tag.endswith(":int") else "construct_yaml_float"
        return getattr(loader, usual)(node)

    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", number)
    Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))
    return Loader
