# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations by date as a node's configuration has them: who gets which nodes, or how many of a flavor, and when.

The roles write the table as people wrote it, with the flavors that it names. scheduling/reservations.py has the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Iterator, Mapping

from ..core.errors import BadInput, HeteroError
from ..core.plays import play
from ..core.spelling import meant_by
from ..core.typed_keys import NUMBERED, Kind, ListOf, shown, text, whole

#: A date with its time and its zone, as ISO 8601 writes it, or with blanks.
DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)? ?(Z|UTC|[+-]\d\d:?\d\d)", re.ASCII)
WRITE = "give a date with time and zone in quotes, such as '2026-12-07 08:00+01:00' or '2026-12-07 07:00Z'"
#: The same without a zone.
NO_ZONE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?", re.ASCII)
#: Most nodes of one reservation: the boards of the largest boards file (board_fit.MOST).
MOST = 10000
OWNER, FROM, UNTIL, COUNT, FLAVOR, WHICH, WHY = KEYS = ("owner", "from", "until", "count", "flavor", "which", "why")
#: The kinds of the values of an entry, but for dates.
_KINDS: dict[str, Kind] = {
    OWNER: NUMBERED,
    COUNT: whole(1, MOST),
    FLAVOR: NUMBERED,
    WHICH: ListOf(NUMBERED),
    WHY: text(most=200),
}


@dataclass(frozen=True)
class Reservation:
    """One entry of the table.

    :param start, end: from when until when (unix seconds).
    :param count: how many instances of `flavor`.
    :param which: the boards by number or name, or the devices by PCI address, in place of a flavor.
    """

    owner: str
    start: float
    end: float
    why: str = ""
    count: int = 0
    flavor: Mapping[str, Any] = field(default_factory=dict)
    which: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """Return what is reserved in words."""
        named = [f"board{one}" if one.isdigit() else one for one in self.which]
        return ", ".join(named) or f"{self.count} {self.flavor.get('name')}"


def date(value: object) -> float | None:
    """Return the unix seconds of a text with date, time and zone; None where it is none."""
    found = DATE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    *numbers, zone = found.groups()
    try:
        when = datetime(*(int(one or 0) for one in numbers), tzinfo=_zone(zone))  # type: ignore[misc, arg-type]
        return when.timestamp()
    except (ValueError, OverflowError):
        return None


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC"):
        return timezone.utc
    hours, minutes = int(text[1:3]), int(text[-2:])
    if minutes > 59:
        raise ValueError(text)
    return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))


class _Table(Kind):
    """What a role writes: {"table": the entries, "flavors": {name: flavor} of those that they name}."""

    def __init__(self) -> None:
        super().__init__("a list of reservations", _parts)

    def read(self, value: Any, place: str, mistakes: list[HeteroError]) -> tuple[Reservation, ...]:
        taken = super().read(value, place, mistakes)
        entries, flavors = taken or ((), {})
        read = [_entry(one, f"{place}[{number}]", flavors, mistakes) for number, one in enumerate(entries)]
        return tuple(one for one in read if one is not None)


def _parts(value: Any) -> tuple[list[Any], dict[str, Any]] | None:
    if isinstance(value, dict):
        entries, flavors = value.get("table", []), value.get("flavors", {})
        return (entries, flavors) if isinstance(entries, list) and isinstance(flavors, dict) else None
    return ([], {}) if value == [] else None


def _entry(said: Any, place: str, flavors: Mapping[str, Any], mistakes: list[HeteroError]) -> Reservation | None:
    """Return an entry, or None with all that is wrong with it in `mistakes`."""
    if not isinstance(said, dict):
        mistakes.append(BadInput(f"is {shown(said)}", place, f"give a mapping of {', '.join(KEYS)}"))
        return None
    before = len(mistakes)
    mistakes += [_no_key(str(key), place) for key in said if key not in KEYS]
    given = {key: one for key, one in said.items() if key in KEYS and one not in (None, "", [])}
    read = {key: kind.read(given[key], f"{place}.{key}", mistakes) for key, kind in _KINDS.items() if key in given}
    dates = {key: _date(given.get(key), f"{place}.{key}", mistakes) for key in (FROM, UNTIL)}
    mistakes += _contradictions(given, read, dates, place, flavors)
    if len(mistakes) > before:
        return None
    flavor = {} if WHICH in read else dict(flavors[read[FLAVOR]], name=read[FLAVOR])
    count = 0 if WHICH in read else read.get(COUNT, 1)
    start, end = float(dates[FROM] or 0), float(dates[UNTIL] or 0)
    return Reservation(read[OWNER], start, end, read.get(WHY, ""), count, flavor, tuple(read.get(WHICH, ())))


def _no_key(key: str, place: str) -> BadInput:
    meant = meant_by(key, KEYS)
    return BadInput("is no key", f"{place}.{key}", f"did you mean {meant}?" if meant else f"give {', '.join(KEYS)}")


def _date(value: Any, place: str, mistakes: list[HeteroError]) -> float | None:
    if value is None:
        mistakes.append(BadInput("is missing", place, WRITE))
        return None
    found = date(value)
    if found is None:
        lacks = isinstance(value, str) and NO_ZONE.fullmatch(value)
        what = f"is {shown(value)}" + (", which has no zone" if lacks else "")
        mistakes.append(BadInput(what, place, WRITE))
    return found


def _contradictions(
    given: Mapping[str, Any],
    read: Mapping[str, Any],
    dates: Mapping[str, float | None],
    place: str,
    flavors: Mapping[str, Any],
) -> Iterator[BadInput]:
    """Yield what is wrong with the keys of an entry together."""
    start, end = dates[FROM], dates[UNTIL]
    if OWNER not in given:
        yield BadInput("is missing", f"{place}.{OWNER}", "name who gets it")
    if start is not None and end is not None and end <= start:
        yield BadInput("is not after from", f"{place}.{UNTIL}", "give a later date, or swap the two")
    if (WHICH in given) == (FLAVOR in given):
        what = f"has both {WHICH} and {FLAVOR}" if WHICH in given else f"has neither {WHICH} nor {FLAVOR}"
        yield BadInput(what, place, f"name certain nodes ({WHICH}), or a flavor and how many ({COUNT})")
    if WHICH in given and COUNT in given:
        yield BadInput(f"stands beside key {WHICH}", f"{place}.{COUNT}", "take it out")
    names = read.get(WHICH) or []
    twice = sorted({str(one) for one in names if names.count(one) > 1})
    if twice:
        yield BadInput(f"names {', '.join(twice)} twice", f"{place}.{WHICH}", "name each once")
    flavor = read.get(FLAVOR)
    if flavor is not None and not isinstance(flavors.get(flavor), dict):
        remedy = f"name one that {play('flavors')} shows"
        yield BadInput(f"is {shown(flavor)}, which is no flavor", f"{place}.{FLAVOR}", remedy)


def entries(value: Any) -> list[tuple[int, Reservation]]:
    """Return the entries of a table in which nothing is wrong, each with its number."""
    said, flavors = _parts(value) or ([], {})
    read = [(number, _entry(one, "", flavors, [])) for number, one in enumerate(said)]
    return [(number, one) for number, one in read if one is not None]


#: The kind of key `reservations`.
RESERVATIONS = _Table()
