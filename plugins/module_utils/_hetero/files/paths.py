# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of folders that may be yet to be made."""

from __future__ import annotations

import os


def existing(path: str) -> str:
    """The path, or the folder above it that is there already; of a relative one as it is seen from here."""
    path = os.path.abspath(path)  # a relative one has no folder above it that is there: "" is above "state"
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path
