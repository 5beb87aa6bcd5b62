# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of an outlet that may feed somebody's board. Whole nodes are in verbs/test_recabling.py."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils.boards.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils.boards.feeding import Doubt


def test_each_record_to_be_removed_is_named():
    """Lost: the way out of records that nobody can read, of boards that nobody has."""
    feeds = SimpleNamespace(proxy=SimpleNamespace(boards=range(3)))
    doubt = Doubt(feeds, feeds.proxy.boards[0], None, Fed("pdu-a", "1"), None, {}, {1: None, 2: None})
    both = "board1 and board2"
    assert doubt.remedy.endswith(f"; remove the record of {both} once it is known that nobody has {both}")
