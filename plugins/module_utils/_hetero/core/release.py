# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release of the collection this is, also on nodes, where no galaxy.yml lies."""

from __future__ import annotations

#: As in galaxy.yml.
RELEASE = "0.1.0"


def as_number(release: str) -> int:
    """A release as the number that a database's header has room for: 1.2.3 is 1002003."""
    major, minor, patch = (int(part) for part in release.partition("-")[0].split("."))
    return (major * 1000 + minor) * 1000 + patch


def as_text(number: int) -> str | None:
    """The release of such a number; None for 0, which no release writes."""
    return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}" if number > 0 else None
