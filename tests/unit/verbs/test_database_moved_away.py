# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A database that is moved away, to be put back from a copy, while somebody reads a copy of it in memory.

If these fail, all boards are said to be nobody's meanwhile.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import Node
from ansible_collections.hetero.compute.tests.unit.verbs.test_disk_full import full

__all__ = ["full"]


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_nobody_is_not_said_to_have_nothing(full, left):
    """Lost: whose the boards are, to a look that goes on while the database is put back, which a full disk prevents."""
    database = full.site.state / "state.db"
    full.fill("state")
    with Proxy(full.site.params, create=False) as proxy:
        assert [claim.instance for claim in proxy.store.claims()] == ["jackie"]
        assert proxy.store._db.is_copy
        database.rename(database.with_name("aside.db"))
        if left != "nothing":
            database.touch()
        try:
            said = [claim.instance for claim in proxy.store.claims()]
        except HeteroError:
            return
        assert said == ["jackie"]


def test_an_image_is_not_removed_for_a_database_that_is_gone(full):
    """Lost: the image of a running board, to a removal that waited for an import while the database was put back."""
    database = full.site.state / "state.db"
    full.fill("state")
    node = Node("proxy", full.site.params["config"], [])
    database.rename(database.with_name("aside.db"))
    try:
        said = node.remove("debian", Change(False), Deadline(20))
    except HeteroError as error:
        said = str(error)
    assert full.site.image.hash in node.images.hashes(), said
