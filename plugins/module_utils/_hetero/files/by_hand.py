# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that lie where one of ours is to lie, and that somebody else made: they stay, under another name."""

from __future__ import annotations

import os

SUFFIX = ".by-hand"


def kept_name(path: str) -> str:
    """Return the name under which the file at `path` would stay: PATH.by-hand, or the first such that is free.

    That is the one that it has already, where who kept it was cut off before the first name was given to another.
    """
    name, number = path + SUFFIX, 1
    while os.path.lexists(name) and not _is_same(path, name):
        number += 1
        name = f"{path}{SUFFIX}-{number}"
    return name


def keep(path: str) -> str:
    """Give the file at `path` one more name, which stays when the first is replaced; return that name."""
    name = kept_name(path)
    if not os.path.lexists(name):
        os.link(path, name, follow_symlinks=False)
    return name


def _is_same(path: str, name: str) -> bool:
    return os.path.samestat(os.lstat(path), os.lstat(name))
