# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova's two kinds of configuration file, read by Nova's own rules, with line numbers.

`conf` follows oslo.config (iniparser.py and cfg.py of release 10.7): a section may be opened more than once, and of a
single-valued option that is given several times the last one counts. `flagfile` is what Nova had before (gflags): each
line is a flag `--name=value`, and the last one counts too. block.py changes files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Tuple

from ..core.errors import BadInput

DEFAULT = "DEFAULT"
CONF, FLAGFILE = "conf", "flagfile"
FORMATS = (CONF, FLAGFILE)
#: (section, name) of an option.
Name = Tuple[str, str]
#: Takes the index of a line among `lines`; returns its number for people.
Numbering = Callable[[int], int]
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FLAG = re.compile(r"--?([A-Za-z_][A-Za-z0-9_-]*)(?:=(.*))?")


@dataclass(frozen=True)
class Option:
    """An option as a file gives it. Lines count from 0; `last` is its last continuation line."""

    section: str
    name: str
    value: str
    line: int
    last: int


@dataclass
class Parsed:
    """What a file says: its options in order, and for each section the line after which a further option comes last."""

    options: list[Option] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)

    def of(self, section: str, name: str) -> list[Option]:
        """Return all lines that give an option, in order."""
        return [option for option in self.options if (option.section, option.name) == (section, name)]

    def value(self, section: str, name: str) -> str | None:
        """Return the value that counts for an option, or None if the file does not give it."""
        found = self.of(section, name)
        return found[-1].value if found else None


def text_of(path: str, name: str | None = None) -> str | None:
    """Return a file's text unchanged, or None if there is no file; raise BadInput, under `name`, if it is no text."""
    name = name or path
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 (byte {error.start})", name, "write it in UTF-8") from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", name, "name a file of Nova's") from error


def split(text: str) -> list[str]:
    """Return the lines of a file, each with its own end of line."""
    return _LINE.findall(text)


def group(section: str) -> str:
    """Return a section's name as oslo.config compares it."""
    return section if section == DEFAULT else section.lower()


def parse(lines: list[str], form: str, source: str, number: Numbering = lambda line: line + 1) -> Parsed:
    """Return what lines say.

    :param form: CONF or FLAGFILE.
    :param source: the file's name in errors.
    :param number: turns an index into a line number for people, if `lines` are not the whole file.
    :raises BadInput: Nova would not start with this file.
    """
    return (_parse_conf if form == CONF else _parse_flagfile)(lines, source, number)


def _parse_conf(lines: list[str], source: str, number: Numbering) -> Parsed:
    parsed, section, open_option = Parsed(), None, None

    def close() -> None:
        if open_option:
            name, values, first, last = open_option
            parsed.options.append(Option(section, name, "\n".join(values), first, last))
            parsed.ends[section] = last

    for at, line in enumerate(lines):
        line = line.rstrip()
        if line.startswith((" ", "\t")):
            if open_option is None:
                raise _wrong(source, number(at), "continues no option", "begin it in the first column")
            open_option[1].append(line.lstrip())
            open_option[3] = at
            continue
        close()
        open_option = None
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            if not line.endswith("]") or len(line) < 3:
                raise _wrong(source, number(at), "is no section", "write it as [name]")
            section = group(line[1:-1])
            parsed.ends[section] = at
            continue
        open_option = _assignment(line, source, number(at), at)
        if section is None:
            raise _wrong(source, number(at), "is in no section", "put [DEFAULT] before it")
    close()
    return parsed


def _assignment(line: str, source: str, number: int, at: int) -> list[Any]:
    """Return [name, [value], first line, last line]."""
    found = re.match(r"([^:=]*)[:=](.*)", line)
    if not found:
        raise _wrong(source, number, "is no option", "write it as name = value")
    name, value = found[1].strip(), found[2].strip()
    if not name:
        raise _wrong(source, number, "has no name before its value", "write it as name = value")
    if value and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return [name, [value], at, at]


def _parse_flagfile(lines: list[str], source: str, number: Numbering) -> Parsed:
    parsed = Parsed(ends={DEFAULT: len(lines) - 1})
    for at, line in enumerate(lines):
        line = line.strip()
        if not line or line.startswith(("#", "//")):
            continue
        found = _FLAG.fullmatch(line)
        if not found:
            raise _wrong(source, number(at), "is no flag", "write it as --name=value")
        # A flag without a value is a switch; --noNAME turns one off, and no flag that is written here is one.
        value = "true" if found[2] is None else found[2]
        parsed.options.append(Option(DEFAULT, found[1].replace("-", "_"), value, at, at))
    return parsed


def _wrong(source: str, number: int, what: str, remedy: str) -> BadInput:
    return BadInput(what, f"{source} line {number}", remedy)
