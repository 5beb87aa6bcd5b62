# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which known word a misspelt one is meant to be: options of playbooks, keys of configuration files, of flavors.

A slip of one letter is refused even where other words are allowed; `like` is for where they are not.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Collection, Iterable

from .printable import MOST, brief

#: In shorter words a wrong letter makes another word, which an operator may call something of his own (code, node).
LONG = 5
#: Of these, one letter more or less does (keys, key; nod, node).
SHORT = 4
#: Words that are what they are, although a letter of them makes one that is known (state, count, board, force, hours).
OTHERS = ("beard", "court", "farce", "forge", "fours", "hoard", "mount", "stage", "stale", "tours", "yours")


def meant_by(name: str, known: Iterable[str]) -> str | None:
    """The known word of which a name is a slip of one letter; None for another name."""
    if name in OTHERS:
        return None
    return next((word for word in known if len(word) >= SHORT and is_slip(name, word)), None)


def like(name: object, known: Iterable[str], prefix: str = "") -> str | None:
    """The known word that a wrong one is most like, in whatever case; None where it is like none.

    :param prefix: what all of them begin with, which brings none of them nearer.
    """
    by_letters = {word[len(prefix) :].lower(): word for word in known}
    letters = brief(str(name)[len(prefix) :], MOST).lower()
    near = meant_by(letters, by_letters) or next(iter(get_close_matches(letters, by_letters, 1)), None)
    return None if near is None else by_letters.get(near)


def instead(word: object, known: Collection[str], prefix: str = "") -> str:
    """In words for an error's remedy: `write apc` where one is near, else `use apc, command, snmp`."""
    meant = like(word, known, prefix)
    return f"write {meant}" if meant else f"use {', '.join(known)}"


def is_slip(name: str, word: str) -> bool:
    start = next((at for at, (one, other) in enumerate(zip(name, word)) if one != other), min(len(name), len(word)))
    rest, wanted = name[start:], word[start:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:] and len(wanted) > 1
    return rest[1:] == wanted or rest == wanted[1:] or swapped or (len(word) >= LONG and rest[1:] == wanted[1:])
