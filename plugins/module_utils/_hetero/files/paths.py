# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of folders that need not exist yet."""

from __future__ import annotations

import os


def existing(path: str) -> str:
    """Return the path, or the nearest folder above it that exists. A relative path is taken from the current folder."""
    path = os.path.abspath(path)  # "" is above the relative path "state", and does not exist
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path
