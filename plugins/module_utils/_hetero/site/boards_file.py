# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file (`tilera_boards`), which says what each board is: reads both spellings, names all defects, writes it.

boards/records/store.py knows what a board does at present (state, claim, power).
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping, Tuple

from ..core.errors import BadInput, HeteroError
from ..core.json_file import loads
from ..files.encoding import foreign_encoding
from ..files.whole_file import as_before, write_whole

WHOLE_NUMBERS = ("id", "vcpus", "memory_mb", "local_gb", "memory_mb_used", "local_gb_used")
#: The columns of a board in the file's order. cpu_info is JSON and takes the rest of the board's text.
COLUMNS = ("id", "ip", "mac", *WHOLE_NUMBERS[1:], "hypervisor_type", "hypervisor_version", "cpu_info")
#: Columns whose values must differ between boards.
UNIQUE = ("id", "ip", "mac")

HEADER = "# " + " ".join(COLUMNS) + "\n"
#: Characters after which the writer breaks cpu_info: with " \" a line has 80, as in the files that sites have.
WIDTH = 78
#: Defects that an error's text lists; `defects` has all (a binary file has one in each line).
SHOWN = 100
#: (source, line, column, reason).
Defect = Tuple[str, int, int, str]

_TOKEN = re.compile(r"\S+")
_MAC = re.compile(r"[0-9A-F]{2}(?:(?::[0-9A-F]{2}){5}|(?:-[0-9A-F]{2}){5}|(?:[0-9A-F]{2}){5})", re.IGNORECASE)
_GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})Grid", re.IGNORECASE)
_CORES = re.compile(r"[1-9][0-9]{0,8}")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
#: First bytes of addresses that no host has (RFC 6890), except multicast, and their use.
_NO_HOSTS = {
    "0": "this network",
    "127": "loopback",
    "169.254": "link-local",
    **{str(first): "reserved, or broadcast" for first in range(240, 256)},
}
_NO_CARDS = {"0" * 12: "none", "f" * 12: "broadcast"}
#: A piece of JSON up to and with a comma outside its strings, after which a line may be broken.
_PIECE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+,?')


def geometry(cpu_info: Mapping[str, Any]) -> str | None:
    """Return the grid of cores as `8x8` (rows x columns).

    It is cpu_info's own key `geometry`, else its feature `AxBGrid`, else the root of a square number of cores.

    :returns: None if none of the three says so, whatever types cpu_info has.
    """
    if isinstance(cpu_info.get("geometry"), str):
        return cpu_info["geometry"]
    features = cpu_info.get("features")
    for feature in features if isinstance(features, list) else ():
        grid = _GRID.fullmatch(feature) if isinstance(feature, str) else None
        if grid:
            return f"{grid.group(1)}x{grid.group(2)}"
    topology = cpu_info.get("topology")
    cores = topology.get("cores") if isinstance(topology, dict) else None
    if isinstance(cores, (str, int)) and _CORES.fullmatch(str(cores)):
        side = math.isqrt(int(cores))
        if side * side == int(cores):
            return f"{side}x{side}"
    return None


@dataclass(frozen=True)
class Board:
    """One board as its file describes it. `mac` is in lower case with colons, `line` is its first line in the file."""

    id: int
    ip: str
    mac: str
    vcpus: int
    memory_mb: int
    local_gb: int
    memory_mb_used: int
    local_gb_used: int
    hypervisor_type: str
    hypervisor_version: str
    cpu_info: dict[str, Any] = field(hash=False)
    line: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return f"board{self.id}"

    @property
    def arch(self) -> str | None:
        """The architecture as the file spells it, or None."""
        arch = self.cpu_info.get("arch")
        return arch if isinstance(arch, str) else None

    @property
    def geometry(self) -> str | None:
        """The grid of cores ("8x8"), or None if cpu_info does not say it."""
        return geometry(self.cpu_info)

    @property
    def columns(self) -> dict[str, Any]:
        """The file's columns as a dict."""
        return {name: getattr(self, name) for name in COLUMNS}


class BoardsFileError(BadInput):
    """All that is wrong with a boards file. `defects` is a list of (source, line, column, reason).

    Lines and columns count from 1. Both are 0 if the file could not be read.
    """

    def __init__(self, defects: list[Defect]) -> None:
        self.defects = defects
        super().__init__(
            f"{len(defects)} {'defect' if len(defects) == 1 else 'defects'}",
            defects[0][0],
            "correct the boards file",
            defects=[dict(zip(("file", "line", "column", "reason"), defect)) for defect in defects],
        )

    def __str__(self) -> str:
        lines = [
            f"{source}:{line}:{column}: {reason}" if line else f"{source}: {reason}"
            for source, line, column, reason in self.defects[:SHOWN]
        ]
        if len(self.defects) > SHOWN:
            lines.append(f"{self.thing}: and {len(self.defects) - SHOWN} more")
        return "\n".join(lines)


class _Entry:
    """A board's text: its lines in the file without their backslashes, and the way from an offset back to the file."""

    def __init__(self, lines: list[tuple[int, str]], dangling: bool) -> None:
        #: Whether the file ends with a backslash, which announces one more line.
        self.dangling = dangling
        self._numbers = [number for number, _text in lines]
        self._starts = []
        start = 0
        for _number, text in lines:
            self._starts.append(start)
            start += len(text) + 1
        # A line break is white space both to JSON and between columns, so an offset in the joined text is easy to map.
        self.text = "\n".join(text for _number, text in lines)

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line, column) in the file of an offset in the text."""
        index = bisect_right(self._starts, offset) - 1
        return self._numbers[index], offset - self._starts[index] + 1


def _entries(text: str) -> Iterator[_Entry]:
    """Cut a file's text into boards. Blank lines are dropped, and comments, which a backslash does not continue."""
    lines = []
    last = text.count("\n") + 1
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.rstrip()
        if stripped.lstrip().startswith("#"):
            continue
        if stripped.endswith("\\"):
            lines.append((number, stripped[:-1]))
            continue
        # The text after the last line break is no line, so a backslash before it announces nothing.
        if number != last or stripped:
            lines.append((number, stripped))
            if any(part.strip() for _number, part in lines):
                yield _Entry(lines, dangling=False)
            lines = []
    if lines:
        yield _Entry(lines, dangling=True)


def _shown(text: str) -> str:
    """Return a token for an error: short, and without bytes that a terminal would obey or refuse."""
    return ascii(text if len(text) <= 60 else text[:60] + "...")


def _load_cpu_info(text: str) -> tuple[Any, str | None, int]:
    """Return (cpu_info, None, 0), or (None, reason, offset of the mistake)."""
    try:
        cpu_info = loads(text)
    except json.JSONDecodeError as error:
        return None, f"cpu_info is not JSON: {error.msg}", error.pos
    except ValueError as error:
        return None, f"cpu_info is not JSON: {error}", 0
    if not isinstance(cpu_info, dict):
        return None, 'cpu_info is not a JSON object {"vendor": ...}', 0
    return cpu_info, None, 0


def _whole_number(text: str) -> tuple[int, None] | tuple[None, str]:
    """Return (number, None) or (None, reason). Every JSON reader keeps 15 digits exactly."""
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text), None
    if re.fullmatch(r"-[0-9.]+", text):
        return None, f"is negative: {_shown(text)}"
    return None, f"is not a whole number: {_shown(text)}"


def _address(text: str) -> tuple[str, None] | tuple[None, str]:
    try:
        address = str(ipaddress.IPv4Address(text))
    except ValueError:
        address = None
    # Python before 3.9.5 takes 10.0.02.1, which other programs read as octal.
    if address != text:
        return None, f"is not an IPv4 address: {_shown(text)}"
    first, second, _rest = text.split(".", 2)
    why = "multicast" if 224 <= int(first) < 240 else _NO_HOSTS.get(first) or _NO_HOSTS.get(f"{first}.{second}")
    return (None, f"is no board's address: {text} ({why})") if why else (address, None)


def _mac(text: str) -> tuple[str, None] | tuple[None, str]:
    if not _MAC.fullmatch(text):
        return None, f"is not a MAC address: {_shown(text)}"
    digits = re.sub("[:-]", "", text).lower()
    # The lowest bit of the first byte marks group addresses (IEEE 802).
    why = _NO_CARDS.get(digits) or ("multicast" if int(digits[1], 16) & 1 else None)
    return (None, f"is no board's MAC: {text} ({why})") if why else (_with_colons(digits), None)


def _with_colons(digits: str) -> str:
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


#: Column → its check, which returns (value, None) or (None, reason). Other columns may be any text.
_CHECKS: dict[str, Callable[[str], tuple[Any, str | None]]] = {
    **dict.fromkeys(WHOLE_NUMBERS, _whole_number),
    "ip": _address,
    "mac": _mac,
}


def _split(entry: _Entry) -> tuple[list[re.Match[str]], int, str | None]:
    """Return the tokens of the first ten columns and where cpu_info starts, or the offset and reason of a wrong count.
    """
    tokens = []
    start = None
    for token in _TOKEN.finditer(entry.text):
        if token.group()[0] in '{["':
            start = token.start()
            break
        tokens.append(token)
    wanted = len(COLUMNS) - 1
    if start is None and len(tokens) == len(COLUMNS):
        start = tokens.pop().start()
    if start is not None and len(tokens) == wanted:
        return tokens, start, None
    if not tokens:
        return tokens, start or 0, "a cpu_info without its board: does the line above lack its backslash?"
    count = len(tokens) + (start is not None)
    if start is None:
        start = tokens[-1].end()
    offset = tokens[wanted].start() if len(tokens) > wanted else start
    return tokens, offset, f"{count} columns where {len(COLUMNS)} are needed: {' '.join(COLUMNS)}"


class _Reader:
    """Collects the boards and the defects of one file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.boards: list[Board] = []
        self.defects: list[Defect] = []
        self._seen: dict[str, dict[Any, int]] = {name: {} for name in UNIQUE}

    def defect(self, place: tuple[int, int], reason: str) -> None:
        self.defects.append((self.source, place[0], place[1], reason))

    def encoding(self, text: str) -> None:
        """Report the first byte of each line that is 0 or no UTF-8. `read` hands such bytes on as lone surrogates."""
        if not _NO_TEXT.search(text):
            return
        for number, line in enumerate(text.split("\n"), 1):
            found = _NO_TEXT.search(line)
            if found:
                code = ord(found.group())
                byte = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
                self.defect((number, found.start() + 1), f"{byte} is not UTF-8" if code else "byte 0x00 is no text")

    def entry(self, entry: _Entry) -> None:
        tokens, start, reason = _split(entry)
        if entry.dangling:
            place = entry.place(len(entry.text))
            self.defect(place, "a backslash at the end of the file: the line that it announces is missing")
        elif reason:
            self.defect(entry.place(start), reason)
        if reason and not (entry.dangling and len(tokens) == len(COLUMNS) - 1):
            return
        values = self.columns(entry, tokens)
        if entry.dangling:
            return
        cpu_info, reason, offset = _load_cpu_info(entry.text[start:])
        if reason:
            self.defect(entry.place(start + offset), reason)
        elif None not in values.values():
            self.boards.append(Board(cpu_info=cpu_info, line=entry.place(tokens[0].start())[0], **values))

    def columns(self, entry: _Entry, tokens: list[re.Match[str]]) -> dict[str, Any]:
        values = {}
        for name, token in zip(COLUMNS, tokens):
            text = token.group()
            place = entry.place(token.start())
            values[name], reason = _CHECKS[name](text) if name in _CHECKS else (text, None)
            if reason:
                self.defect(place, f"{name} {reason}")
            elif name in UNIQUE:
                first = self._seen[name].setdefault(values[name], place[0])
                if first != place[0]:
                    self.defect(place, f"duplicate {name} {text}: line {first} has it already")
        return values


def parse(text: str, source: str = "boards file") -> list[Board]:
    """Return the boards of a file's text, in its order.

    :param source: the name of the file in defects.
    :raises BoardsFileError: with all defects of the text.
    """
    text = text[1:] if text.startswith("\ufeff") else text
    # All three kinds of line ends count. Otherwise a file with bare CRs would be one line, and perhaps one comment.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    reader = _Reader(source)
    reader.encoding(text)
    for entry in _entries(text):
        reader.entry(entry)
    if reader.defects:
        raise BoardsFileError(sorted(reader.defects, key=lambda defect: defect[1:3]))
    return reader.boards


def read(path: str | os.PathLike[str]) -> list[Board]:
    """Return the boards of the file at `path`.

    :raises BoardsFileError: it cannot be read; or with all its defects.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise BoardsFileError([(str(path), 0, 0, f"cannot be read: {error.strerror}")]) from error
    encoding = foreign_encoding(data)
    if encoding:
        raise BoardsFileError([(str(path), 0, 0, f"is in {encoding}: save it as UTF-8")])
    return parse(data.decode("utf-8", errors="surrogateescape"), str(path))


def _broken(text: str) -> list[str]:
    """Return JSON text in lines of at most WIDTH characters where its commas allow it."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and len(lines[-1]) + len(piece) > WIDTH:
            lines.append("")
        lines[-1] += piece
    return lines


def render(boards: Iterable[Board], one_line: bool = False) -> str:
    """Return the text of a boards file, which `parse` reads as the same boards.

    :param one_line: write each board in one line, as Nova's reader needs it, instead of several with backslashes.
    """
    text = [HEADER]
    for board in boards:
        columns = board.columns
        columns["mac"] = board.mac.upper()
        cpu_info = json.dumps(columns.pop("cpu_info"), separators=(",", ":"))
        start = " ".join(str(value) for value in columns.values())
        lines = [f"{start} {cpu_info}"] if one_line else [start, *_broken(cpu_info)]
        text.append(" \\\n".join(lines) + "\n")
    return "".join(text)


def write(path: str, boards: Iterable[Board], one_line: bool = False) -> None:
    """Replace the file at `path` in one step and keep its mode and owner. A reader sees the old file or the new one.

    :raises BoardsFileError: the boards would make a file with defects. Nothing was written.
    """
    text = render(boards, one_line)
    parse(text, str(path))
    path = os.path.realpath(path)
    try:
        write_whole(path, text, **as_before(path, 0o644))
    except OSError as error:
        raise HeteroError(
            f"cannot be written: {error.strerror}", path, "check its folder's rights and space"
        ) from error
