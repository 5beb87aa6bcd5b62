# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of attaching/conftest.py, for tests that kill what works on it."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import bare, boxes, four, host, pure_v2

__all__ = ["bare", "boxes", "four", "host", "pure_v2"]
