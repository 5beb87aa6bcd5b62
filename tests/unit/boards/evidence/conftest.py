# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node whose boards are played."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import loopback, site

__all__ = ["loopback", "site"]
