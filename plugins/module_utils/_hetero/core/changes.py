# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One record from which a module's `changed`, its diff and its seconds per step all come."""

from __future__ import annotations

import time
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Iterator, Mapping


class Change:
    """A record of what was found, what it is to become, and how many seconds each step took.

    Check mode runs the same code: every write stands behind `if not change.check`.
    """

    def __init__(self, check: bool = False) -> None:
        self.check = check
        self.seconds: dict[str, float] = {}
        self._before: dict[str, dict[str, Any]] = {}
        self._after: dict[str, dict[str, Any]] = {}

    def note(self, thing: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Record fields of `thing` (a name people know) as found and as wanted; both are dicts.

        :returns: True where they differ, so that a write reads `if change.note(...) and not change.check:`.
        """
        self._before.setdefault(thing, {}).update(before)
        self._after.setdefault(thing, {}).update(after)
        return before != after

    def take(self, other: Change) -> None:
        """Add all that another record holds to this one; the seconds of steps of the same name add up."""
        for thing, before in other._before.items():
            self.note(thing, before, other._after[thing])
        for name, seconds in other.seconds.items():
            self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Forget what the block noted where it fails: nothing of it was done."""
        before, after = deepcopy((self._before, self._after))
        try:
            yield
        except BaseException:
            self._before, self._after = before, after
            raise

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; seconds of a name seen twice add up."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - start, 3)

    @property
    def changed(self) -> bool:
        return self._before != self._after

    @property
    def diff(self) -> list[dict[str, Any]]:
        """Ansible's diff: one entry a changed thing, with its real fields."""
        return [
            dict(before_header=thing, after_header=thing, before=self._before[thing], after=self._after[thing])
            for thing in self._before
            if self._before[thing] != self._after[thing]
        ]

    @property
    def result(self) -> dict[str, Any]:
        """A module's result. What has lines, such as a file, is text in its diff; of mappings Ansible shows JSON."""
        shown = [
            dict(entry, before=_text(entry["before"]), after=_text(entry["after"]))
            if "lines" in entry["before"] or "lines" in entry["after"]
            else entry
            for entry in self.diff
        ]
        return dict(changed=self.changed, diff=shown, seconds=self.seconds)


def _text(fields: Mapping[str, Any]) -> str:
    """Return fields as text, one a line, and the lines of `lines` below them."""
    own = [f"{name}: {value}" for name, value in fields.items() if name != "lines"]
    text = "\n".join([*own, *map(str, fields.get("lines", ()))])
    return text if not text or text.endswith("\n") else f"{text}\n"
