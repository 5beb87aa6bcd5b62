# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ssh keys an instance has, in words that show no key: fingerprints as `ssh-keygen -l` has them, and comments.
Whose an instance is among several of one owner who have the same name for it is known by its key.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import Iterable, Protocol, TypeVar

from ..core.errors import Refused
from ..core.printable import brief
from .instance import KEY_TYPES, key_body

#: Keys of an instance that are named one by one. Of more only the number is told beside these.
TOLD = 3


class Keyed(Protocol):
    """A claim with its keys."""

    @property
    def instance(self) -> str: ...

    @property
    def ssh_public_key(self) -> str: ...


OfKeys = TypeVar("OfKeys", bound=Keyed)


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


def must_have_keys(claim: Keyed, keys: str | None) -> None:
    """Raise Refused unless a claim has these keys, and perhaps others; None for any."""
    if not has_keys(claim, keys):
        what = f"has another ssh key than only_key ({keys_told(claim.ssh_public_key)}), so another request made it"
        raise Refused(what, claim.instance, "nothing of it is touched: leave it to who has that key")


def with_keys(claims: Iterable[OfKeys], keys: str | None) -> list[OfKeys]:
    """Return the claims that have these keys; all of them for None.

    :raises Refused: there are claims, and none has.
    """
    claims = list(claims)
    found = [claim for claim in claims if has_keys(claim, keys)]
    if claims and not found:
        must_have_keys(claims[0], keys)
    return found


def has_keys(claim: Keyed, keys: str | None) -> bool:
    """Return whether a claim has these keys, and perhaps others; None for any."""
    if keys is None:
        return True
    has, wanted = key_body(claim.ssh_public_key), key_body(keys)
    return bool(wanted) and all(key in has for key in wanted)


def _told(line: str) -> str:
    words = line.split()
    with suppress(ValueError):
        for word, following, *comment in (words[at:] for at in range(len(words) - 1)):
            data = blob(following) if word.startswith(KEY_TYPES) else None
            if data:
                return brief(" ".join([fingerprint(data), *comment]))
    return "a damaged key"
