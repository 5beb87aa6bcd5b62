# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine with GPUs of tests/unit/devices/gpus."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import bare, four

__all__ = ["bare", "four"]
