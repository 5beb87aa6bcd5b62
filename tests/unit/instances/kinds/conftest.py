# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node with boards."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.boards.conftest import node

__all__ = ["node"]


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened
