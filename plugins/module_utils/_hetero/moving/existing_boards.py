# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file that is there: its boards by their MACs, and in remarks the numbers of those that went.

The proxy node keeps a board's claim, root and proof of a wipe by its number, which is therefore given to no other one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Iterator, Sequence

from ..site import boards_file
from .documents import text_of
from .source_site import Site

#: A remark of the boards file, as `remarks` writes it.
GONE = re.compile(r"^# board(\d{1,9}) was ((?:[0-9a-f]{2}:){5}[0-9a-f]{2}): ", re.M)


@dataclass
class ExistingBoards:
    """What a boards file has.

    :param gone: {number: MAC} of boards that are in it no more.
    """

    boards: Sequence[boards_file.Board] = ()
    gone: dict[int, str] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[int, str]:
        """{number: MAC} of all that had one."""
        return {**self.gone, **{one.id: one.mac for one in self.boards}}

    def keep(self, site: Site) -> None:
        """Give boards what is there for their MACs: the number, and what no source says."""
        there = {one.mac: one for one in self.boards}
        # what the file has now counts more than a remark: a person may have given a board the number of one that went
        numbers = {**{mac: number for number, mac in self.gone.items()}, **{one.mac: one.id for one in self.boards}}
        for board in site.boards:
            mac = board.said.get("mac", "")
            board.before, number = there.get(mac), numbers.get(mac)
            if number is None:
                continue
            if not {"id"} & {*board.said, *board.asked}:
                board.said["id"] = number
            elif board.said.get("id", number) != number:
                what = f"{board.name} was board{number}, and is board{board.said['id']} by its id"
                why = "the proxy node keeps claims, roots and proofs of a wipe by the number"
                site.notes.append(f"{what}: {why}; change it only where no instance ever ran on either")

    def left_out(self, site: Site, lines: Sequence[boards_file.Board]) -> Iterator[str]:
        """Yield a note for boards that are not written down any more."""
        known, now = {board.said.get("mac") for board in site.boards}, {line.mac for line in lines}
        lacking = {one.name: one.mac in known for one in self.boards if one.mac not in now}
        for there, why in ((True, "of which the source has not all that is needed"), (False, "which no source has")):
            names = [name for name, has in lacking.items() if has == there]
            if names:
                left = "left out, and no other board gets that number"
                yield f"the boards file has {', '.join(names)}, {why}: {left}"

    def passed_on(self, lines: Sequence[boards_file.Board]) -> list[str]:
        """Return the names of boards whose number another one had."""
        return [line.name for line in lines if self.numbers.get(line.id, line.mac) != line.mac]

    def remarks(self, lines: Sequence[boards_file.Board]) -> str:
        """Return the remarks for the boards file of these boards: numbers that others had."""
        used = {line.id for line in lines}
        gone = {number: mac for number, mac in self.numbers.items() if number not in used}
        return "".join(f"# board{number} was {mac}: no other board gets its number\n" for number, mac in gone.items())


def read(path: str) -> ExistingBoards:
    """Return what a boards file has, nothing where there is none."""
    if not os.path.exists(path):
        return ExistingBoards()
    boards = boards_file.read(path)
    return ExistingBoards(boards, {int(number): mac for number, mac in GONE.findall(text_of(path))})
