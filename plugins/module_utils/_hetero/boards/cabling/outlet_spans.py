# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets as people name them: `pdu-a:1-8` is eight of them, `pdu-b:3` one. Other texts are names of single outlets."""

from __future__ import annotations

import re
from typing import Iterator, Mapping, Sequence

from ...core.errors import BadInput
from ...core.typed_keys import shown
from ...drivers.power.outlets import MOST_OUTLETS
from ..power.pdu_names import Pdus, devices, plug

#: What is wrong is said of this option.
LEARN = "learn"
#: Outlets of a rack of chained PDUs may have the PDU's number before theirs (drivers/power/snmp.py), and ports of a USB
#: hub the hub's place (drivers/power/uhubctl.py).
UNIT = r"[0-9]+(?:-[0-9.]+)?:"
SPAN = re.compile(rf"(?P<unit>(?:{UNIT})?)(?P<first>[0-9]{{1,5}})-(?P<last>[0-9]{{1,5}})")
#: What is meant to be a span, and is none; the port of a hub is none.
HALF = re.compile(rf"(?!{UNIT}[0-9]+$)[0-9:-]*-[0-9:-]*")
FORM = "write spans and names of outlets behind their PDU, such as pdu-a:1-8,pdu-b:3"


def outlets(pdus: Pdus, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return (PDU, outlet) of each outlet that is named, in that order.

    :raises BadInput: a word cannot be read, there is no such PDU, or an outlet is named twice.
    """
    found: list[tuple[str, str]] = []
    device, seen = devices(dict(pdus)), set()
    for word in words:
        pdu = _pdu(pdus, word)
        for outlet in _outlets(word, word[len(pdu) + 1 :]):
            place = device.get(pdu, pdu), plug(outlet)  # a PDU that has two names is one
            if place in seen:
                raise BadInput(f"names outlet {outlet} of {pdu} twice", LEARN, "name each once")
            seen.add(place)
            found.append((pdu, outlet))
    return found


def _pdu(pdus: Mapping[str, object], word: str) -> str:
    names = [name for name in pdus if word == name or word.startswith(f"{name}:")]
    if names:
        return max(names, key=len)
    known = ", ".join(sorted(pdus)) or "none"
    if ":" not in word:
        raise BadInput(f"has {shown(word)}, which names no PDU (known: {known})", LEARN, FORM)
    name = word.partition(":")[0]
    raise BadInput(f"there is no PDU {shown(name)} (known: {known})", LEARN, "name one of tftp_proxy_pdus")


def _outlets(word: str, rest: str) -> Iterator[str]:
    span = SPAN.fullmatch(rest)
    if not rest.strip() or (span is None and HALF.fullmatch(rest)):
        raise BadInput(f"has {shown(word)}, which names no outlet", LEARN, FORM)
    if span is None:
        yield rest
        return
    first, last = int(span["first"]), int(span["last"])
    if first > last or last - first >= MOST_OUTLETS:
        what = f"has {shown(word)}, a span from {first} to {last}"
        raise BadInput(what, LEARN, f"write the lower number first, and at most {MOST_OUTLETS} outlets")
    for number in range(first, last + 1):
        yield f"{span['unit']}{number}"
