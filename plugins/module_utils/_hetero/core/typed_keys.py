# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declarations of what a configuration file may hold: for each key the kind of its value, its bounds and its default.

One reading finds all mistakes, each with its place. The declarations are in site/proxy_config.py and
claims/host/config.py: dataclasses whose fields are the keys. Keys that are not declared stay as they are, for a driver
of a site may read them; but a slip of a declared key is a mistake.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
from copy import deepcopy
from dataclasses import field, fields
from typing import Any, Callable, Iterator, NamedTuple

from .errors import BadInput, HeteroError
from .json_file import any_number, read_object
from .printable import MOST, brief, printable
from .spelling import meant_by
from .this_node import THIS_NODE

#: Longest piece of a value that a mistake shows, and how many mistakes an error's text lists; `mistakes` has all.
SHOWN, LISTED = 60, 100
#: Longest path (bytes): Linux takes 4095 (PATH_MAX), and we make files below it. Longest name in it: NAME_MAX.
PATH_BYTES, NAME_BYTES = 1000, 255
#: The largest whole number: every JSON reader keeps 15 digits exactly.
LARGEST = 10**15 - 1


class WrongFile(BadInput):
    """Everything that is wrong with a configuration file: `mistakes` is a list of BadInput, whose thing is the key."""

    def __init__(self, path: str, mistakes: list[HeteroError], remedy: str) -> None:
        self.mistakes = mistakes
        what = f"{len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'}"
        super().__init__(what, path, remedy, mistakes=[mistake.failure for mistake in mistakes])

    def __str__(self) -> str:
        lines = [*map(str, self.mistakes[:LISTED]), f"correct what it is made from, then {self.remedy}"]
        if len(self.mistakes) > LISTED:
            lines.insert(-1, f"and {len(self.mistakes) - LISTED} more")
        return "\n".join(f"{printable(brief(str(self.thing)))}: {line}" for line in lines)


def is_text(value: Any) -> bool:
    """Return whether a value is a text that can be a path, a program's argument and a text in a database."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()  # JSON's \ud800 is half a character
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """Return a value for people, as JSON, cut off where it is long."""
    try:
        return brief(json.dumps(value, ensure_ascii=False, default=str), SHOWN)
    except RecursionError:  # Python writes less deep than it reads
        return "nested too deep to be shown"


def _named(place: str, key: str) -> str:
    key = brief(key, SHOWN)
    return f"{place}.{key}" if place else key


class Kind:
    """A kind of value.

    :param wanted: the kind in words ("an absolute path").
    :param take: takes a value from the file, returns it as it is used, or None where it is not of this kind.
    :param secret: errors do not show the value.
    """

    def __init__(self, wanted: str, take: Callable[[Any], Any], secret: bool = False) -> None:
        self.wanted, self._take, self._secret = wanted, take, secret

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> Any:
        """Return the value as it is used; append what is wrong with it, with its place, to `mistakes`."""
        taken = self._take(value)
        if taken is None:
            what = "is none" if self._secret else f"is {shown(value)}"
            mistakes.append(BadInput(what, place, f"give {self.wanted}"))
        return taken


class ListOf(Kind):
    """A list of values of one kind."""

    def __init__(self, kind: Kind) -> None:
        super().__init__("a list", lambda value: value if isinstance(value, list) else None)
        self._kind = kind

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> list[Any]:
        given = super().read(value, place, mistakes) or ()
        return [self._kind.read(one, f"{place}[{number}]", mistakes) for number, one in enumerate(given)]


class TableOf(Kind):
    """A mapping whose keys are names that people gave, with values of one kind."""

    def __init__(self, kind: Kind, secret: bool = False) -> None:
        super().__init__("a mapping", lambda value: value if isinstance(value, dict) else None, secret)
        self._kind = kind

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> dict[str, Any]:
        given = super().read(value, place, mistakes) or {}
        for name in given:
            TEXT.read(name, f"{place}, name" if place else "name", mistakes)
        return {name: self._kind.read(one, _named(place, name), mistakes) for name, one in given.items()}


class Key(NamedTuple):
    """A key of a Record: the kind of its value, and the default for a file that lacks it or has null or "" there."""

    kind: Kind
    default: Any = None


class Record(Kind):
    """A mapping with declared keys; other keys stay as they are, but a slip of a declared key is a mistake.

    :param others: the kind of other keys' values; None for any.
    """

    def __init__(self, keys: dict[str, Key], secret: bool = False, others: Kind | None = None) -> None:
        super().__init__("a mapping", lambda value: value if isinstance(value, dict) else None, secret)
        self.keys, self._others = keys, others

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> Any:
        given = super().read(value, place, mistakes) or {}
        said = {}
        for key, one in given.items():
            if key not in self.keys:
                meant = meant_by(key, self.keys)
                if meant:
                    remedy = f"did you mean {meant}? A key of your own needs another name"
                    mistakes.append(BadInput("is no key", _named(place, key), remedy))
                said[key] = self._others.read(one, _named(place, key), mistakes) if self._others else one
            elif one is not None and (one != "" or self.keys[key].default not in (None, "")):
                said[key] = self.keys[key].kind.read(one, _named(place, key), mistakes)
        return said


class RecordOf(Record):
    """A mapping that is read into a dataclass, whose declared fields are the keys.

    :param made: the dataclass; its field `others` gets the keys that are not declared.
    """

    def __init__(self, made: type) -> None:
        super().__init__(keys_of(made))
        self._made = made

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> Any:
        said = super().read(value, place, mistakes)
        others = {key: said.pop(key) for key in [*said] if key not in self.keys}
        return self._made(**said, others=others)


def declared(kind: Kind, default: Any = None) -> Any:
    """Return a field of a dataclass, whose name is a key of a file; as of Key."""
    given: dict[str, Any] = {"default": default}
    if isinstance(default, dict):
        given = {"default_factory": lambda: deepcopy(default)}
    # pylint allows it in the body of a dataclass only, from where this is called
    return field(metadata={"key": Key(kind, default)}, **given)  # pylint: disable=invalid-field-call


def keys_of(made: type) -> dict[str, Key]:
    """Return the declared keys of a dataclass."""
    return {one.name: one.metadata["key"] for one in fields(made) if "key" in one.metadata}


def as_said(made: Any) -> dict[str, Any]:
    """Return what the file says of a record whose keys have no defaults, as it was read: the declared keys first."""
    said = {key: getattr(made, key) for key in keys_of(type(made))}
    said = {key: getattr(value, "as_said", value) for key, value in said.items() if value is not None}
    return {**said, **made.others}


def read_all(kind: Kind, value: Any, place: str, mistakes: list[HeteroError]) -> Any:
    """Return kind.read(value), and append NaN and infinity to `mistakes` wherever they are, also in undeclared keys."""
    taken = kind.read(value, place, mistakes)
    said = {str(mistake.thing) for mistake in mistakes}
    for where, one in _endless(value, place):
        # a number inside a value that is wrong as a whole was shown with that
        if not any(where == thing or where.startswith((f"{thing}.", f"{thing}[")) for thing in said):
            mistakes.append(BadInput(f"is {shown(one)}", where, "give a finite number"))
    return taken


def _endless(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """Yield (place, number) of each NaN and infinity in a value, in order, at any depth."""
    left = [(place, value)]
    while left:
        where, one = left.pop()
        if isinstance(one, float) and not math.isfinite(one):
            yield where, one
        elif isinstance(one, dict):
            left += [(_named(where, str(key)), inner) for key, inner in reversed(list(one.items()))]
        elif isinstance(one, list):
            left += [(f"{where}[{number}]", inner) for number, inner in reversed(list(enumerate(one)))]


def read_file(path: str, kind: Kind, remedy: str) -> Any:
    """Return what a configuration file says, by its declaration.

    :raises WrongFile: the file has mistakes; the error has all of them.
    :raises BadInput: the file is missing, or holds no JSON object.
    """
    mistakes: list[HeteroError] = []
    said = read_all(kind, read_object(path, remedy, any_number, THIS_NODE), "", mistakes)
    if mistakes:
        raise WrongFile(path, mistakes, remedy)
    return said


# --- kinds that more than one file has -----------------------------------------------------------------------------


def text(
    wanted: str = "text", most: int = MOST, fits: Callable[[str], bool] = lambda _text: True, numbers: bool = False
) -> Kind:
    """Text of 1 to `most` characters.

    :param fits: tells whether a text is allowed.
    :param numbers: take a whole number as the text of its digits, for YAML reads unquoted digits as a number.
    """

    def take(value: Any) -> str | None:
        if numbers and isinstance(value, int) and not isinstance(value, bool):
            value = str(value) if abs(value) <= LARGEST else None
        return value if is_text(value) and 1 <= len(value) <= most and fits(value) else None

    return Kind(f"{wanted} of at most {most} characters", take)


def whole(least: int = 0, most: int = LARGEST) -> Kind:
    """A whole number; a text of digits counts as one, for templates make texts of numbers."""

    def take(value: Any) -> int | None:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 15:
            value = int(value)
        is_one = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return value if is_one else None

    bounds = f"of {least} or more" if most == LARGEST else f"from {least} to {most}"
    return Kind(f"a whole number {bounds}", take)


def number(least: float, most: float) -> Kind:
    """A number between two finite ones."""

    def take(value: Any) -> float | None:
        is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_one and least <= value <= most else None

    return Kind(f"a number from {least:g} to {most:g}", take)


def one_of(*words: str) -> Kind:
    """One of some words."""
    return Kind(
        f"one of {', '.join(words)}", lambda value: value if isinstance(value, str) and value in words else None
    )


def _path(value: Any) -> str | None:
    if not is_text(value) or not os.path.isabs(value) or len(value.encode()) > PATH_BYTES:
        return None
    return value if all(len(name.encode()) <= NAME_BYTES for name in value.split("/")) else None


def address_of(value: Any) -> ipaddress.IPv4Address | None:
    """Return the ipaddress.IPv4Address of a text; None where the text is no IPv4 address."""
    try:
        return ipaddress.IPv4Address(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _network(value: Any) -> str | None:
    try:
        # IPv4Network would take a number as an address.
        return value if isinstance(value, str) and ipaddress.IPv4Network(value) else None
    except ValueError:
        return None


def _secret(value: Any) -> str | None:
    value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return value if is_text(value) else None


TEXT, NUMBERED = text(), text(numbers=True)
#: Text that programs read, such as a kernel's command line.
LONG_TEXT = text(most=20000)
FLAG = Kind("true or false", lambda value: value if isinstance(value, bool) else None)
PATH = Kind("an absolute path", _path)
ADDRESS = Kind("an IPv4 address", lambda value: value if address_of(value) else None)
NETWORK = Kind("an IPv4 network (10.0.2.0/24)", _network)
SECRET = Kind("text", _secret, secret=True)
MAPPING = Kind("a mapping", lambda value: value if isinstance(value, dict) else None)
