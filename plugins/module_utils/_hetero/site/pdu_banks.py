# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which outlets of a PDU hang on which of its own breakers, as people write it: `1-8`, or `1,3,5`."""

from __future__ import annotations

import re
from typing import Any

#: What banks are, for a person who wrote others.
NAMED = "a list of its banks' outlets, such as 1-8 or 1,3,5, each outlet in one of them"
#: Outlets one after another. No PDU has more than 9,999.
FROM_TO = re.compile(r"\s*([0-9]{1,4})\s*-\s*([0-9]{1,4})\s*")


def banks_of(written: Any) -> dict[str, str] | None:
    """Return {outlet: its bank, as it is written}; None where that is no list of banks, or an outlet is in two."""
    if not isinstance(written, list):
        return None
    found: dict[str, str] = {}
    for bank in map(str, written):
        outlets = [outlet for part in bank.split(",") for outlet in _outlets(part)]
        if not outlets or any(not outlet or outlet in found for outlet in outlets) or len(set(outlets)) < len(outlets):
            return None
        found.update(dict.fromkeys(outlets, bank))
    return found


def _outlets(part: str) -> list[str]:
    both = FROM_TO.fullmatch(part)
    if not both:
        return [part.strip()]
    return [str(outlet) for outlet in range(int(both[1]), int(both[2]) + 1)] or [""]
