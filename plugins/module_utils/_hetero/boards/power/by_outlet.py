# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on boards, looked up by PDU or outlet, so that what is told of one outlet is not compared with all boards."""

from __future__ import annotations

from collections import deque
from typing import Callable, Dict, Generic, Iterable, Sequence, Tuple, TypeVar

One = TypeVar("One")


class ByOutlet(Generic[One]):
    """Items by the outlets of their boards, as they were when this was made.

    :param place: returns (PDU name, outlet) of an item.
    """

    def __init__(self, items: Iterable[One], place: Callable[[One], tuple[str, str]]) -> None:
        self._at: Dict[Tuple[str, str], list[One]] = {}
        #: All of a PDU in their order, and the same as they are looked through.
        self._of: Dict[str, list[One]] = {}
        for one in items:
            self._at.setdefault(place(one), []).append(one)
            self._of.setdefault(place(one)[0], []).append(one)
        self._next = {pdu: deque(ones) for pdu, ones in self._of.items()}

    def of(self, pdu: str, outlet: str | None = None) -> Sequence[One]:
        """Return the items of an outlet, or of all outlets of a PDU."""
        return self._of.get(pdu, []) if outlet is None else self._at.get((pdu, outlet), [])

    def any(self, pdu: str, is_meant: Callable[[One], bool]) -> bool:
        """Return whether any item of a PDU is meant; the next look begins with the one that was found."""
        items = self._next.get(pdu, deque())
        for _each in range(len(items)):
            if is_meant(items[0]):
                return True
            items.rotate(-1)
        return False
