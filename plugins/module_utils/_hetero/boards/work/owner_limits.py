# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many boards of a proxy node an owner may have at once. claims/owner_limits.py has the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...claims.owner_limits import OwnerLimits
from ...core.this_node import THIS_NODE

if TYPE_CHECKING:
    from ..records.proxy import Proxy


def limits_of(proxy: Proxy) -> OwnerLimits:
    """Return the limits that a proxy node's configuration says."""
    return OwnerLimits(proxy.config.owner_limits, proxy.store, THIS_NODE, "board")
