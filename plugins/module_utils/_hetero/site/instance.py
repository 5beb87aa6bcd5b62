# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of an instance whatever it runs on: its name, its key, how long it has been and how long it may stay."""

from __future__ import annotations

import re
from typing import Any

from ..core.errors import BadInput
from ..core.printable import brief

#: An instance becomes a host name: the letters of one DNS label (RFC 1123), lower case.
INSTANCE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: The controller, and the groups that each inventory has.
WORDS_OF_ANSIBLE = ("localhost", "all", "ungrouped")
#: First word of an OpenSSH public key (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
KEY_TYPES = ("ssh-", "ecdsa-", "sk-")
#: What a rebuild says that has nothing to do.
NOTHING_TO_REBUILD = (
    "nothing to rebuild: {name} has image {image} {hash:.12} and this key: give another image= or key=, or fresh=true, "
    "each of which costs what is in its root"
)
#: Longest wait for an instance that was told to reboot or to end (seconds). Its lock is held, and what it says is
#: listened to, for as long; a board at 300 MHz takes a minute to end its services.
MOST_SOFT_TIMEOUT = 600


def valid_instance(name: Any) -> str:
    """`name`, or BadInput where it is no instance name."""
    if not isinstance(name, str) or not INSTANCE.fullmatch(name):
        raise BadInput(
            "is no instance name",
            brief(repr(name)),
            "use 1 to 63 of a-z, 0-9 and -, with a letter or digit first and last",
        )
    return name


def must_be_free_word(name: str) -> None:
    """BadInput for what Ansible calls by that name, in place of which an instance would be taken, or taken for it.

    Names of hosts and groups of the inventory are for the play to refuse: nodes do not know it.
    """
    if name in WORDS_OF_ANSIBLE:
        raise BadInput("is a word of Ansible's, and no name for an instance", name, "name it otherwise")


def must_be_soft_timeout(seconds: float) -> None:
    """BadInput for a time that is none, or longer than a reboot may keep others waiting."""
    if not 1 <= seconds <= MOST_SOFT_TIMEOUT:
        raise BadInput(f"is {seconds:g}", "soft_timeout", f"give 1 to {MOST_SOFT_TIMEOUT} seconds")


def age(seconds: float) -> str:
    """A time span as people say it: 41 s, 2 min, 1 h, 3 d."""
    seconds = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def left(seconds: float) -> str:
    """What is left of a lease: "3 h left", or "over since 2 min"."""
    if seconds <= 0:
        return f"over since {age(-seconds)}"
    # Three hours are three hours, not 2.99 and so two, right after they were given.
    return f"{age(seconds if seconds < 60 else seconds + 59)} left"


def key_body(text: str) -> list[tuple[str, str]] | list[str]:
    """The keys in a text as (type, base64) pairs; comments and options do not make another key."""
    keys = []
    for line in text.splitlines():
        words = line.split()
        for word, following in zip(words, words[1:]):
            if word.startswith(KEY_TYPES):
                keys.append((word, following))
                break
    return keys or text.split()


def gibibytes(size: float) -> str:
    """Bytes for people."""
    gigabytes = size / (1 << 30)
    return f"{gigabytes:.1f} GiB" if gigabytes < 10 else f"{gigabytes:.0f} GiB"
