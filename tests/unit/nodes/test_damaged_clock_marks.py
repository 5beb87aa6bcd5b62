# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A damaged mark of the clock. If this fails, no copy of a database is made any more on such a node.

Tests site/node_clock.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups, retention
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import node_clock
from ansible_collections.hetero.compute.tests.unit.nodes.test_old_events import KINDS, Node


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("what", ["", "garbage", "{}"])
def test_a_copy_is_made_whatever_the_mark_of_the_clock_says(tmp_path, monkeypatch, kind, what):
    """Lost: all claims since the day on which the mark was damaged, with the database: no copy was made since."""
    monkeypatch.setattr(retention, "REST", 0.0)
    node = Node(tmp_path, kind)
    node.write((200, 1, 0))
    with open(node_clock.path_of(node.database), "w") as file:
        file.write(what)
    said = None
    try:
        node.backup()
    except HeteroError as error:
        said = str(error)
    assert backups.copies(node.database), said
