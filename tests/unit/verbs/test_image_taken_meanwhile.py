# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image that an instance gets while its removal adds up the sizes of its files (du, up to 60 s).

If these fail, the files of a running board's system are removed from under its root.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import image_removal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import Node
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR

BOB = dict(instance="bob", image="debian-13", ssh_public_key=KEY)


@pytest.mark.parametrize("far", ["claimed", "made", "running"])
def test_an_image_that_an_instance_got_meanwhile_stays(site, monkeypatch, far):
    """Lost: the files of a running board's system, over which its root is laid; or the image of a new instance."""
    real, done = image_removal._row, []

    def row(*given):
        found = real(*given)
        if not done:  # somebody asks for an instance while du counts
            done.append(site._module("board_claim", owner="bob", flavor=FLAVOR, **BOB))
            boards = [claim["board"] for claim in done[0].get("boards", [])]
            if boards and far != "claimed":
                done.append(site._module("board_image", boards=boards, **BOB))
            if boards and far == "running":
                done.append(site._module("tilera_boot", boards=boards, timeout=10, instance="bob"))
        return found

    monkeypatch.setattr(image_removal, "_row", row)
    node = Node("proxy", site.params["config"], [])
    try:
        said = node.remove("debian-13", Change(False), Deadline(60))
    except HeteroError as error:
        said = str(error)
    if any(result.get("failed") for result in done):
        return  # that the image is being removed was said to who asked
    assert site.newer.hash in node.images.hashes(), said
    if far == "running":
        assert site.root_is_whole(), said
