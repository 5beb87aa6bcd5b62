# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images for containers: kept by hash as those of boards (images/store.py), but without a kernel."""

from __future__ import annotations

from typing import Iterable

from ...images.store import ImageStore


def image_store(folder: str, closed: Iterable[str] = ()) -> ImageStore:
    """Return the image store of a compute host."""
    return ImageStore(folder, kernels=False, closed=closed)
