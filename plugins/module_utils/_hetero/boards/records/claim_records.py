# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of each claim in a file of its own, so that the newest claims are never only in the database.

The files are <state>/claims/boardN.json, for boards with all boot sources. They are in the same state folder as the
roots and disk archives: where that is lost, there is nothing to adopt. evidence/adoption.py decides what a file proves,
and when a claim is adopted from it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...claims import record_files
from ...claims.record_files import LARGEST, NONE, NUMBER, TEXT, must_be_named, of_other_types
from ...core.errors import HeteroError
from ...core.json_file import read_text
from ...site import board_states
from .board_record_files import BoardRecordFiles

if TYPE_CHECKING:
    from ...roots.proxy_node import NamedClaim

FOLDER = "claims"
#: Most texts of records whose meaning is remembered, and characters of each: a few states of each board of a large
#: request, a KiB or two each. With more keys than usual they are longer, and are read each time.
LATELY, USUAL = 8192, 1 << 13
LOOK = "nothing of its board is touched: correct it, or remove it once it is known that nobody has the board"
#: What is said of another board's record, whose board may be somebody's, whatever is known of the one in whose place it
#: lies.
MISFILED = "nothing of either board is touched, for it may be the only one: bring it to the place of board{of}"


@dataclass(frozen=True)
class Claim:
    """A board given to an instance of an owner."""

    board: int
    instance: str
    request: str
    owner: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    created: float
    expires: float | None = None
    host_key: str | None = None
    image_hash: str | None = None
    boot_source: str | None = None

    def is_same(self, other: NamedClaim | None) -> bool:
        """Return whether both are one claim, whatever fields were changed since; a name may be claimed again later."""
        return other is not None and (self.instance, self.created) == (other.instance, other.created)


#: {field of a claim: the types that it may have}.
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("instance", "request", "owner", "image", "ssh_public_key"), TEXT),
    **dict.fromkeys(("host_key", "image_hash", "boot_source"), TEXT + NONE),
    "board": (int,),
    "flavor": (dict,),
    "created": NUMBER,
    "expires": NUMBER + NONE,
}
#: {field of a Fed: the types that it may have}.
FED_TYPES: dict[str, tuple[type, ...]] = {
    "pdu": TEXT,
    "outlet": TEXT,
    "address": TEXT + NONE,
    "taken": TEXT + NONE,
    "belied": (bool,),
}


@dataclass(frozen=True)
class Fed:
    """The outlet that fed a claim's board last (power/last_outlet.py).

    :param address: what identifies the PDU (pdu_names.address), for its name may change; None where its settings have
        nothing for that.
    :param taken: the board that this outlet was later proven to feed.
    :param belied: the board lived on while this outlet was off, so that another one feeds it.
    """

    pdu: str
    outlet: str
    address: str | None = None
    taken: str | None = None
    belied: bool = False

    @property
    def name(self) -> str:
        """The outlet with its PDU, for people."""
        return f"{self.pdu} outlet {self.outlet}"


@dataclass(frozen=True)
class Kept:
    """A claim as its file has it, the state that its board was in, and whether its instance ever ran there.

    Only this file has `fed`, so a database must not overwrite it. `anew`: the file was written after the earlier one
    was lost, and it was not yet found out what feeds the board.
    """

    claim: Claim
    state: str
    note: str = ""
    ran: bool = False
    fed: Fed | None = None
    anew: bool = False

    @property
    def is_somebodys(self) -> bool:
        """Return whether anything was ever made for the claim; if not, the claim was cut off."""
        return bool(self.claim.image_hash) or self.ran


class ClaimRecords(BoardRecordFiles):
    """The files of all claims of a node, which only root may read."""

    def read(self, board: int) -> Kept | None:
        """Return what a board's file says, or None where there is none.

        :raises HeteroError: the file is no record, is damaged, or is another board's (`facts["of"]`).
        """
        path = self.path(board)
        kept = _read(path)
        of = kept.claim.board if kept else board
        if of != board:
            what = f"that is a record of board{of}, not of board{board}"
            raise HeteroError(what, path, MISFILED.format(of=of), of=of)
        return kept

    def named_in(self, board: int) -> int | None:
        """Return the other board that the file in a board's place names; None where there is none, or its own."""
        try:
            self.read(board)
        except HeteroError as error:
            return error.facts.get("of")
        return None

    def has_own(self, board: int) -> bool:
        """Return whether the file in a board's place is its own, and can be read."""
        try:
            return self.read(board) is not None
        except HeteroError:
            return False

    def is_copy(self, error: HeteroError) -> bool:
        """Return whether the unreadable record in a board's place is a copy of another board's good record."""
        return "of" in error.facts and self.has_own(error.facts["of"])

    def readable(self) -> list[tuple[str, Kept]]:
        """Return [(path, Kept)] of all files that say anything of a claim, whatever they are named."""
        found = []
        for path in [*map(self.path, self.boards()), *self.strays()]:
            with suppress(HeteroError):
                found.append((path, _read(path)))
        return [(path, kept) for path, kept in found if kept]

    def unreadable(self) -> list[str]:
        """Return the paths of the files named as records that say nothing of a claim."""
        found = []
        for path in map(self.path, self.boards()):
            try:
                _read(path)
            except HeteroError:
                found.append(path)
        return found

    def write(self, board: int, kept: Kept) -> None:
        """Write a board's file, whole or not at all; keep another board's that lies there.

        What an earlier release does not know is written only where it says something, so that it can read the others.
        """
        self.put_aside(board)
        fields = dict(vars(kept), claim=dict(vars(kept.claim)), fed=dict(vars(kept.fed)) if kept.fed else None)
        if kept.fed and not kept.fed.belied:
            del fields["fed"]["belied"]
        record_files.write(self.path(board), fields)

    def remove(self, board: int) -> None:
        """Remove a board's file, for good, and what writers of it that were killed have left.

        Another board's that lies there is kept, under another name.
        """
        if not self.put_aside(board):
            record_files.remove(self.path(board))


def _read(path: str) -> Kept | None:
    """Return what a file says of a claim, or None where it is not there.

    :raises HeteroError: it says nothing of a claim.
    """
    try:
        text = read_text(path, LARGEST)
        return _kept(text) if len(text) <= USUAL else _meant(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError, HeteroError) as error:
        raise HeteroError("what it says of a claim cannot be read", path, LOOK) from error


@lru_cache(maxsize=LATELY)
def _kept(text: str) -> Kept:
    """Return what a text says of a claim; a verb reads the same one a dozen times."""
    return _meant(text)


def _meant(text: str) -> Kept:
    found = json.loads(text)
    claim = Claim(**found["claim"])
    # An earlier release did not write down what ran.
    ran, fed = found.get("ran", claim.image_hash is not None), found.get("fed")
    fed = Fed(**fed) if fed is not None else None
    kept = Kept(claim, found["state"], found["note"], ran, fed, found.get("anew", False))
    _must_be_whole(kept)
    return kept


def _must_be_whole(kept: Kept) -> None:
    """Raise ValueError for what no claim of ours can be."""
    fields = vars(kept.claim)
    wrong = of_other_types(fields, TYPES)
    booleans = isinstance(kept.ran, bool) and isinstance(kept.anew, bool)
    wrong += [] if booleans else ["ran or anew"]
    wrong += of_other_types(vars(kept), {"note": TEXT})
    wrong += of_other_types(vars(kept.fed), FED_TYPES) if kept.fed else []
    if wrong or kept.state not in board_states.TRANSITIONS:
        raise ValueError(", ".join(wrong) or "state")
    must_be_named(kept.claim.instance, kept.claim.request, kept.claim.owner, kept.claim.image)
