# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a machine from becoming a node, collected in one look: a defect stops the set-up, a note does not.

Each kind of node looks for its own defects; only root, Debian and systemd are checked here.
"""

from __future__ import annotations

import os
import re
from typing import Any, Mapping

from .errors import HeteroError
from .machine import text_of


class Findings:
    """Defects and notes of one look, and the facts that the set-up goes on with."""

    def __init__(self) -> None:
        self.defects: list[HeteroError] = []
        self.notes: list[HeteroError] = []
        self.facts: dict[str, Any] = {}

    def defect(self, thing: str | None, what: str, remedy: str | None) -> None:
        self.defects.append(HeteroError(what, thing, remedy))

    def note(self, thing: str | None, what: str, remedy: str | None) -> None:
        self.notes.append(HeteroError(what, thing, remedy))


def outcome(found: Findings, kind: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a module's result with what was found; it has `failed` where there is a defect.

    :param kind: what the machine was to become, in words.
    """
    result = dict(result, notes=[str(note) for note in found.notes], **found.facts)
    if found.defects:
        result.update(failed=True, defects=[defect.failure for defect in found.defects], msg=summary(found, kind))
    return result


def summary(found: Findings, kind: str) -> str:
    """Return all defects as one message, a line each."""
    count = len(found.defects)
    things = "thing is" if count == 1 else "things are"
    head = f"this machine cannot be set up as {kind}: {count} {things} in the way"
    return "\n".join([head, *(f"- {defect}" for defect in found.defects)])


def system(found: Findings) -> bool:
    """Check for root, Debian's family and systemd; return False where the other checks would be meaningless."""
    if os.geteuid() != 0:
        found.defect("login", "is not root", "set ansible_user: root, or become: true")
        return False
    release = text_of("/etc/os-release")
    ids = re.findall(r'^(?:ID|ID_LIKE)="?([^"\n]*)', release, re.MULTILINE)
    if "debian" not in " ".join(ids).split():
        name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
        found.defect("system", f"is {name.group(1) if name else 'unknown'}", "use Debian 12 or Ubuntu 22.04 or newer")
        return False
    if not os.path.isdir("/run/systemd/system"):
        found.defect(
            "system", "was not started by systemd", "use a machine or system container with systemd as process 1"
        )
    return True
