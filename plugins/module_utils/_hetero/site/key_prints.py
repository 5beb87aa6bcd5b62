# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ssh keys an instance has, in words that show no key: fingerprints as `ssh-keygen -l` has them, and comments."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress

from ..core.printable import brief
from .instance import KEY_TYPES

#: Keys of an instance that are named one by one. Of more only the number is told beside these.
TOLD = 3


def blob(text: str) -> bytes | None:
    """Return the bytes of a key; None where the text has a length that base64 cannot have.

    :raises ValueError: it is not base64.
    """
    text = text.rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4)) if len(text) % 4 != 1 else None


def fingerprint(data: bytes) -> str:
    """Return the fingerprint of a public key's bytes, SHA256:…, as ssh-keygen -l prints it."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')}"


def keys_told(text: str) -> str:
    """Return the fingerprint and the comment of each public key in a text, one a line; "a damaged key" for another."""
    found = [_told(line) for line in text.splitlines() if line.strip()]
    more = [f"{len(found) - TOLD} more"] if len(found) > TOLD else []
    return " and ".join([*found[:TOLD], *more]) or "none"


def _told(line: str) -> str:
    words = line.split()
    with suppress(ValueError):
        for word, following, *comment in (words[at:] for at in range(len(words) - 1)):
            data = blob(following) if word.startswith(KEY_TYPES) else None
            if data:
                return brief(" ".join([fingerprint(data), *comment]))
    return "a damaged key"
