# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same proxy and GPU host as the unit tests of the playbooks have."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.plays.conftest import both_kinds

__all__ = ["both_kinds"]
