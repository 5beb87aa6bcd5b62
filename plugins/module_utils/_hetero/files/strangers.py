# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person may have laid into a folder that is about to be removed: it may be all that somebody has."""

from __future__ import annotations

import os
from typing import Pattern

from ..core.errors import Refused


def must_hold_only(folder: str, made: Pattern[str], what: str, way: str) -> None:
    """Raise Refused if something else lies in a folder than what was made for whom it is; empty folders (lost+found)
    are nobody's.

    :param made: the names that may be in it.
    :param what: the error's words, with {names}.
    """
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [name for name in names if not made.fullmatch(name) and not _is_empty(os.path.join(folder, name))]
    if found:
        raise Refused(what.format(names=" and ".join(found)), folder, way)


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)
