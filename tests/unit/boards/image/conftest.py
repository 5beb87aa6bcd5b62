# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy's files, and an image."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.images.conftest import (
    image,
    imported,
    own_mounts,
    proxy,
    report,
    site,
)

__all__ = ["image", "imported", "own_mounts", "proxy", "report", "site"]
