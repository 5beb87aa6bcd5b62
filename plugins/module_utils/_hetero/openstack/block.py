# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's options in a file of Nova's that belongs to somebody else: a marked block in each section, and the
rest untouched.

Each block lies after the last option of its section, so that of an option that is given twice the block's counts.
config_files.py reads the files.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Union

from ..core.errors import BadInput, HeteroError, Refused
from ..files.whole_file import as_before, write_whole
from .config_files import DEFAULT, FLAGFILE, Name, Parsed, group, parse, split, text_of

BEGIN = "# BEGIN hetero.compute, written by role nova_compute"
#: The end of each block of the collection, whatever its first line is.
END = "# END hetero.compute"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Mode of a new file: the values are no secrets, and Nova reads it as its own user.
NEW_MODE = 0o644
#: What is to be in a file: each option's value, or a list of values with a line each.
Wanted = Mapping[Name, Union[str, List[str]]]


@dataclass(frozen=True)
class Plan:
    """What is to be in the file, and which of these options stand elsewhere in it.

    `before` and `after` are the blocks: {where each lies: its lines}. `elsewhere` are wanted options outside the
    blocks: `kept` ones have the wanted value and are not written again, `overridden` ones stand before a block that has
    another value.
    """

    text: str
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    elsewhere: list[dict[str, Any]]


def as_wanted(flags: Mapping[str, Any], form: str) -> dict[Name, str]:
    """Return {(section, name): value as text} of {section: {name: value}} without options whose value is None."""
    wanted = {}
    for section, options in flags.items():
        if form == FLAGFILE and section != DEFAULT:
            raise BadInput("a flag file has no sections", f"[{section}]", "leave it out, or set format to conf")
        if not isinstance(options, dict):
            raise BadInput("is no mapping of options", f"[{section}]", "write name: value below it")
        for name, value in options.items():
            if not all(_NAME.fullmatch(str(part)) for part in (section, name)):
                raise BadInput("is no name of an option", f"{name} of [{section}]", "use letters, digits, _, - and .")
            if value is not None:
                value = str(value).lower() if isinstance(value, bool) else str(value)
                if any(ord(letter) < 32 or letter in "\x7f\x85\u2028\u2029" for letter in value):
                    raise BadInput("has a value of more than one line", name, "write it in one line")
                wanted[group(section), str(name)] = value
    return wanted


def plan(text: str, wanted: Wanted, form: str, source: str, override: bool = False, begin: str = BEGIN) -> Plan:
    """Return what a file becomes.

    :param text: the file's text.
    :param wanted: {(section, name): value}; an empty one removes all blocks. A list of values makes that many lines of
        an option that may be given several times; its lines elsewhere stay and are not looked at.
    :param form: CONF or FLAGFILE.
    :param source: the file's name in errors.
    :param override: write an option although the file gives it another value elsewhere.
    :param begin: the first line of these blocks. Blocks with another first line count as the rest of the file.
    :raises Refused: the file gives an option another value outside the blocks, and `override` is not set.
    :raises BadInput: Nova cannot read the file, or would read a value differently.
    """
    lines = split(text)
    kept, before = _without_blocks(lines, source, begin)
    rest = [lines[at] for at in kept]
    parsed = parse(rest, form, source, lambda at: kept[at] + 1)
    ours, elsewhere = _ours(wanted, parsed, kept, source, override)
    end = "\r\n" if rest and rest[0].endswith("\r\n") else "\n"
    blocks = {}
    for (section, name), values in ours.items():
        for value in values if isinstance(values, list) else [values]:
            line = f"--{name}={value}" if form == FLAGFILE else f"{name} = {value}"
            blocks.setdefault(section, []).append(line)
    new, after = _with_blocks(rest, blocks, parsed, end, begin)
    _prove("".join(new), wanted, form, source)
    return Plan("".join(new), before, after, elsewhere)


def _without_blocks(lines: list[str], source: str, begin: str) -> tuple[list[int], dict[str, list[str]]]:
    """Return (numbers of the lines outside the blocks, {where a block lies: its lines})."""
    kept, blocks, opened = [], {}, None
    for at, line in enumerate(lines):
        line = line.rstrip("\r\n")
        if line == begin:
            if opened is not None:
                raise _torn(source, opened)
            opened, inside = at, []
        elif line == END and opened is not None:
            blocks[_place(len(kept))] = inside
            opened = None
        elif opened is not None:
            inside.append(line)
        else:
            kept.append(at)
    if opened is not None:
        raise _torn(source, opened)
    return kept, blocks


def _place(line: int) -> str:
    return f"behind line {line} of the rest"


def _torn(source: str, at: int) -> BadInput:
    return BadInput(f"begins a block that has no line {END!r}", f"{source} line {at + 1}", "put that line behind it")


def _ours(
    wanted: Wanted, parsed: Parsed, kept: list[int], source: str, override: bool
) -> tuple[dict[Name, str | list[str]], list[dict[str, Any]]]:
    """Return (options that the blocks must hold, wanted options that stand elsewhere)."""
    ours, elsewhere, against = dict(wanted), [], []
    for (section, name), value in wanted.items():
        found = parsed.of(section, name)
        if not found or isinstance(value, list):
            continue
        same = found[-1].value == value
        if same:
            del ours[section, name]
        for option in found:
            effect = "kept" if same else "overridden"
            number = kept[option.line] + 1
            elsewhere.append(dict(section=section, name=name, value=option.value, line=number, effect=effect))
        if not same:
            against += [f"line {kept[option.line] + 1}: {name} = {option.value}" for option in found]
    if against and not override:
        what = f"gives other values to options that were asked for ({'; '.join(against)})"
        raise Refused(what, source, "take these lines out, or set override to true, which writes ours behind them")
    return ours, elsewhere


def _with_blocks(
    rest: list[str], blocks: dict[str, list[str]], parsed: Parsed, end: str, begin: str
) -> tuple[list[str], dict[str, list[str]]]:
    """Return (all lines, {where a block lies: its lines})."""
    lines, after = list(rest), {}
    if lines and not lines[-1].endswith(("\r", "\n")):
        lines[-1] += end
    places = {}
    for section in blocks:
        if section not in parsed.ends:
            lines += ([end] if lines else []) + [f"[{section}]{end}"]
            places[section] = len(lines)
        else:
            places[section] = parsed.ends[section] + 1
            if places[section] < len(rest) and rest[places[section]].rstrip("\r\n") == END:
                # after a block that begins with another line, not inside it
                places[section] += 1
    for section in sorted(blocks, key=lambda section: places[section], reverse=True):
        after[_place(places[section])] = blocks[section]
        block = [begin, *blocks[section], END]
        lines[places[section] : places[section]] = [f"{line}{end}" for line in block]
    # A file that gets no block stays the same to the last byte.
    return (lines if blocks else rest), after


def _prove(text: str, wanted: Wanted, form: str, source: str) -> None:
    """Raise BadInput if Nova would read one of these values differently (it drops quotes around a value)."""
    parsed = parse(split(text), form, source)
    for (section, name), value in wanted.items():
        if isinstance(value, list):
            said = parsed.of(section, name)
            read: list[str] | str | None = [option.value for option in said if option.value in value]
        else:
            read = parsed.value(section, name)
        if read != value:
            what = f"{value!r} would be read as {read!r}" if read is not None else f"{value!r} would not be read"
            raise BadInput(what, f"{name} of [{section}]", "write it without quotes, and blanks at its ends")


def read(path: str) -> str | None:
    """Return a file's text unchanged, or None if there is no file; raise BadInput if its folder is missing or it is no
    text.
    """
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise BadInput("its folder does not exist", path, "install nova-compute first, or set the path to another one")
    return text_of(path)


def write(path: str, text: str, wanted: Mapping[Name, str], form: str) -> None:
    """Replace the file, and read it back; raise HeteroError if it does not say what was written."""
    replace(path, text)
    parsed = parse(split(read(path) or ""), form, path)
    for (section, name), value in wanted.items():
        if parsed.value(section, name) != value:
            what = f"says {name} = {parsed.value(section, name)} in [{section}] after {value} was written"
            raise HeteroError(what, path, "see who else writes it, then run this again")


def replace(path: str, text: str) -> None:
    """Replace the file in one step and keep its owner and mode."""
    path = os.path.realpath(path)
    write_whole(path, text, **as_before(path, NEW_MODE))


def effective(text: str, wanted: Iterable[Name], form: str, source: str) -> dict[str, dict[str, str | None]]:
    """Return the values that now count for the wanted options: {section: {name: value or None}}."""
    parsed, found = parse(split(text), form, source), {}
    for section, name in wanted:
        found.setdefault(section, {})[name] = parsed.value(section, name)
    return found
