# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module board_claim returns. The module itself is in store/test_board_claim.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils.boards import claiming
from ansible_collections.hetero.compute.plugins.module_utils.change import Change
from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline


def test_who_gives_back_what_nobody_has_gets_each_value_all_the_same():
    """Lost: a play that ends twice what it made, at a value that the module's page says is always there."""
    nobodys = SimpleNamespace(store=SimpleNamespace(claims=list))
    result = claiming.absent(nobodys, "jackie", None, None, Deadline(1), Change())
    assert result == dict(boards=[], lines=[], errors={}, rejected={}, rejected_lines=[])
