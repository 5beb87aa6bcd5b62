# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What instances of all kinds have in common: their names, keys, ages and the time that is left to them."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

from ..core.errors import BadInput
from ..core.printable import brief

#: An instance's name becomes a host name: one DNS label (RFC 1123) in lower case.
INSTANCE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: Names that Ansible uses itself: the controller, and the groups that each inventory has.
WORDS_OF_ANSIBLE = ("localhost", "all", "ungrouped")
#: First word of an OpenSSH public key (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
KEY_TYPES = ("ssh-", "ecdsa-", "sk-")
#: What is said of a start that has nothing to do.
RUNS_ALREADY = "already running, ssh answers with its own host key"
#: Message of a rebuild that has nothing to do.
NOTHING_TO_REBUILD = (
    "nothing to rebuild: {name} has image {image} {hash:.12} and this key: give another image= or key=, or fresh=true, "
    "each of which costs what is in its root"
)
#: Longest time in seconds to wait for an instance that was told to reboot or to end. Its lock is held and its console
#: is read meanwhile; a board at 300 MHz takes a minute to end its services.
MOST_SOFT_TIMEOUT = 600


def valid_instance(name: Any) -> str:
    """Return `name`; raise BadInput if it is no instance name."""
    if not isinstance(name, str) or not INSTANCE.fullmatch(name):
        raise BadInput(
            "is no instance name",
            brief(repr(name)),
            "use 1 to 63 of a-z, 0-9 and -, with a letter or digit first and last",
        )
    return name


def lock_of(instance: str) -> str:
    """Return the name of the lock of an instance that is claimed on a compute host."""
    return f"instance-{instance}"


def must_be_free_word(name: str) -> None:
    """Raise BadInput for a name that Ansible uses itself, because plays would confuse the two.

    The play refuses names of hosts and groups of the inventory, which nodes do not know.
    """
    if name in WORDS_OF_ANSIBLE:
        raise BadInput("is a word of Ansible's, and no name for an instance", name, "name it otherwise")


def must_be_soft_timeout(seconds: float) -> None:
    """Raise BadInput for a number of seconds below 1, or longer than a reboot may keep others waiting."""
    if not 1 <= seconds <= MOST_SOFT_TIMEOUT:
        raise BadInput(f"is {seconds:g}", "soft_timeout", f"give 1 to {MOST_SOFT_TIMEOUT} seconds")


def age(seconds: float) -> str:
    """Return a time span as people say it: 41 s, 2 min, 1 h, 3 d."""
    seconds = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def left(seconds: float) -> str:
    """Return what is left of a lease: "3 h left", "1 h 58 min left", or "over since 2 min".

    :param seconds: until its end; negative after it.
    """
    if seconds <= 0:
        return f"over since {age(-seconds)}"
    # Right after three hours were given, 2.99 hours are left, which is to be said as 3 and not as 2.
    seconds = int(seconds if seconds < 60 else seconds + 59)
    size, smaller = (86400, 3600) if seconds >= 86400 else (3600, 60)
    rest = f" {age(seconds % size)}" if seconds >= size and seconds % size >= smaller else ""
    return f"{age(seconds)}{rest} left"


def key_body(text: str) -> list[tuple[str, str]] | list[str]:
    """Return the keys in a text as (type, base64) pairs. Comments and options do not make another key."""
    keys = []
    for line in text.splitlines():
        words = line.split()
        for word, following in zip(words, words[1:]):
            if word.startswith(KEY_TYPES):
                keys.append((word, following))
                break
    return keys or text.split()


def size_text(size: float) -> str:
    """Return a number of bytes for people; what is there at all is no nothing."""
    if size < 1 << 30:
        return f"{ceil(size / (1 << 20))} MiB"
    gigabytes = size / (1 << 30)
    return f"{gigabytes:.1f} GiB" if gigabytes < 10 else f"{gigabytes:.0f} GiB"
