# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes of an inventory are asked. Lost if it fails: a node that is asked although it is left out, or never."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.site_nodes import site_nodes

SITE = dict(
    all=["p2", "p1", "gpu1", "kvm1", "both", "web"],
    proxies=["p2", "p1"],
    hypervisor_lxc=["gpu1", "both"],
    hypervisor_kvm=["kvm1", "both"],
)


def test_each_node_is_there_once_in_the_inventorys_order():
    """The scheduler breaks ties by it: the same request would land on another host each time."""
    found = site_nodes(SITE)
    assert found["nodes"] == ["p2", "p1", "gpu1", "both", "kvm1"]
    assert found["hosts"] == ["gpu1", "both", "kvm1"]
    assert found["of"] == dict(board=["p2", "p1"], container=["gpu1", "both"], guest=["kvm1", "both"])
    assert found["alone"] == found["without"] == found["unknown"] == []


def test_who_is_left_out_is_in_no_list_and_who_is_nobody_is_named():
    found = site_nodes(SITE, " p2, both,,p3 ")
    assert found["nodes"] == ["p1", "gpu1", "kvm1"]
    assert found["without"] == ["p2", "both", "p3"]
    assert found["unknown"] == ["p3"]


@pytest.mark.parametrize(
    ("groups", "without", "alone"),
    [
        (dict(all=["p1"], proxies=["p1"]), "", [dict(item="p1", kind="board", numbers=[])]),
        (dict(all=["g1"], hypervisor_lxc=["g1"]), "", [dict(item="g1", kind="container", numbers=[])]),
        (dict(all=["k1"], hypervisor_kvm=["k1"]), "", [dict(item="k1", kind="guest", numbers=[])]),
        # a host of two kinds says of neither why the other has nothing
        (dict(all=["h1"], hypervisor_lxc=["h1"], hypervisor_kvm=["h1"]), "", []),
        # one that is down may have the instance
        (dict(all=["p1", "p2"], proxies=["p1", "p2"]), "p2", []),
        (dict(all=[]), "", []),
    ],
)
def test_the_only_place_is_asked_without_a_look_before(groups, without, alone):
    assert site_nodes(groups, without)["alone"] == alone


def test_what_is_no_inventory_is_said():
    with pytest.raises(AnsibleFilterError, match="needs the inventory's groups"):
        site_nodes(["p1"])
