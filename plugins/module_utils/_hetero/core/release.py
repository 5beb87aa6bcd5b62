# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release of this collection, also for nodes, which have no galaxy.yml."""

from __future__ import annotations

#: The same as in galaxy.yml.
RELEASE = "0.1.0"


def as_number(release: str) -> int:
    """Return a release as a number that fits into a database's header: 1002003 for 1.2.3."""
    major, minor, patch = (int(part) for part in release.partition("-")[0].split("."))
    return (major * 1000 + minor) * 1000 + patch


def as_text(number: int) -> str | None:
    """Return the release of a number made by as_number; None for 0, which no release writes."""
    return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}" if number > 0 else None
