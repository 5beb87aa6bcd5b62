# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which of a few ways a request for an instance ended, for programs that go on by that, such as a CI.

The words are few on purpose: each asks for something else of whoever reads it.
"""

from __future__ import annotations

from typing import Any, Mapping

#: It was given; it can never be given as it was asked for; no node was free in time; a node could not bring it up; a
#: node could not be asked, or was lost on the way; the controller failed.
GIVEN, REQUEST, NONE, BOOT, OWNER, OTHER = "given", "request", "none", "boot", "owner", "other"


def of_node(result: Mapping[str, Any]) -> str:
    """Return how a request ended at a node, from the result of module `instance` that failed."""
    if result.get("unreachable"):
        return OWNER
    failure = result.get("failure") or {}
    if failure.get("rejected") and "step" not in result:
        return NONE
    return REQUEST if failure.get("refused") and "step" not in result else BOOT


def of_all(results: list[Mapping[str, Any]]) -> str:
    """Return how a request ended that several nodes failed to give: it is what is wrong where all of them say so."""
    return REQUEST if {of_node(one) for one in results} == {REQUEST} else BOOT
