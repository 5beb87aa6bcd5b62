# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the events of a node tell of instances that the node ended because their lease was over.

The reapers of both kinds of node write such an event (`told`), and `read` takes it apart. A store finds the events.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

#: Phase of the events of reapers, and of the event with which any claim ends.
REAP_PHASE, RELEASE_PHASE = "reap", "release"
TEXT = "{instance} of {owner}: its lease is over since {age}; {done}"
TOLD = re.compile(TEXT.format(instance="[a-z0-9-]+", owner="(?P<owner>.*)", age="[^;]*", done=".*"), re.DOTALL)


def told(instance: str, owner: str, age: str, done: str) -> str:
    """Return the text of the event that an instance was ended.

    :param age: for how long the lease is over, in words.
    :param done: what became of its node.
    """
    return TEXT.format(instance=instance, owner=owner, age=age, done=done)


def read(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a dict of instance, owner and time (unix seconds) for each instance whose last end was that of its lease.

    :param events: of REAP_PHASE and RELEASE_PHASE, with instance, phase, text and time, the newest first.
    """
    newest: dict[str, Mapping[str, Any]] = {}
    for event in events:
        newest.setdefault(event["instance"], event)
    found = []
    for instance, event in newest.items():
        match = TOLD.fullmatch(event["text"]) if event["phase"] == REAP_PHASE else None
        if match:
            found.append(dict(instance=instance, owner=match["owner"], time=event["time"]))
    return found
