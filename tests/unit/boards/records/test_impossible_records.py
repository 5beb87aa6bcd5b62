# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of claims with values that none of ours has, and what their node answers to plays."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import info
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable_data
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.mark.parametrize(
    "wrong", [dict(expires=10**30), dict(expires=1e17), dict(owner="x" * 200_000), dict(request="?")]
)
@pytest.mark.parametrize("known", [True, False])
def test_a_record_that_none_can_be_leaves_the_nodes_answer_one(node, wrong, known):
    """Lost: all boards of a node, to everybody, by one record of one claim.

    :param known: whether the database has the claim, too; else it was lost.
    """
    node.image()
    with node.proxy() as proxy:
        claimed(proxy, lease_hours=5)
        (eve,) = claimed(proxy, "eve", (1,), lease_hours=5)
        node.root(1, eve)
        kept = json.loads(node.record(1).read_text())
        if not known:
            proxy.store.forget(proxy.store.claim_of("eve"), "a test")
        node.record(1).write_text(json.dumps(dict(kept, claim=kept["claim"] | wrong)))
        said = json.loads(json.dumps(printable_data(info.information(proxy))))
    assert checked(said, "board_info") is said
    assert [one["instance"] for one in said["claims"]] == (["jackie", "eve"] if known else ["jackie"])
