# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the known word that a misspelt one is meant to be: of playbooks' options, configuration files and flavors.

`meant_by` is for places where unknown words are allowed, but not slips of one letter; `like` is for all others.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Collection, Iterable

from .printable import MOST, brief

#: Least letters of a word for a wrong letter to count as a slip: in a shorter one it makes another word (code, node).
LONG = 5
#: Least letters of a word for one letter more or less to count as a slip (keys, key; nod, node).
SHORT = 4
#: Words that are no slips, although they are one letter away from a known one (state, count, board, force, hours), or
#: from one that people use for a known one (lease).
OTHERS = ("beard", "court", "farce", "forge", "fours", "hoard", "mount", "please", "stage", "stale", "tours", "yours")


def meant_by(name: str, known: Iterable[str]) -> str | None:
    """Return the known word of which a name is a slip of one letter, rather one with the same first letter; None where
    there is none.
    """
    if name in OTHERS:
        return None
    near = (word for word in known if len(word) >= SHORT and is_slip(name, word))
    return min(near, key=lambda word: word[:1] != name[:1], default=None)


def like(name: object, known: Iterable[str], prefix: str = "") -> str | None:
    """Return the known word that a wrong one is most similar to, in any case; None where it is similar to none.

    :param prefix: the beginning of all known words, which is not compared.
    """
    by_letters = {word[len(prefix) :].lower(): word for word in known}
    letters = brief(str(name)[len(prefix) :], MOST).lower()
    if letters in by_letters:
        return by_letters[letters]
    near = meant_by(letters, by_letters) or next(iter(get_close_matches(letters, by_letters, 1)), None)
    return None if near is None else by_letters.get(near)


def instead(word: object, known: Collection[str]) -> str:
    """Return an error's remedy: `write apc` where that known word is similar, else `use apc, command, snmp`."""
    meant = like(word, known)
    return f"write {meant}" if meant else f"use {', '.join(known)}"


def in_spans(numbers: Iterable[int]) -> str:
    """Return whole numbers in few words: `0 to 9, 12`; `none` for none."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    told = [f"{span[0]} to {span[-1]}" if span[2:] else ", ".join(map(str, span)) for span in spans]
    return ", ".join(told) or "none"


def is_slip(name: str, word: str) -> bool:
    start = next((at for at, (one, other) in enumerate(zip(name, word)) if one != other), min(len(name), len(word)))
    rest, wanted = name[start:], word[start:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:] and len(wanted) > 1
    return rest[1:] == wanted or rest == wanted[1:] or swapped or (len(word) >= LONG and rest[1:] == wanted[1:])
