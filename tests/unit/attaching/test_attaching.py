# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a container gets a GPU that is not its own, keeps one that was taken back, or is told that it has one
that it cannot open."""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.attaching.conftest import ADDRESSES, MINORS, SHARED


def own_node(address):
    return f"/dev/nvidia{MINORS[address]}"


def test_two_gpus_are_given_and_taken_back(host):
    box = host.boxes.make()
    given = host.attach(box, 2)
    assert given["changed"]
    assert [gpu["address"] for gpu in given["gpus"]] == ADDRESSES[:2] == host.can_open(box)
    assert host.table() == {address: [box.name] for address in ADDRESSES[:2]}
    assert [node["path"] for node in given["nodes"]] == [own_node(one) for one in ADDRESSES[:2]] + SHARED
    for node in given["nodes"]:
        assert node["before"] == {"allowed": False, "node": False}
        assert node["after"] == {"allowed": True, "node": True}
        assert node["opens"] == "ENXIO"
    assert given["isolation"] == "cgroup"
    assert [(other["address"], other["state"]) for other in given["others"]] == [(a, "closed") for a in ADDRESSES[2:]]
    assert host.attach(box, 2)["changed"] is False
    taken = host.detach(box, ADDRESSES[0])
    assert taken["changed"]
    assert host.can_open(box) == [ADDRESSES[1]]
    assert f"nvidia{MINORS[ADDRESSES[0]]}" not in host.nodes(box)
    assert "nvidiactl" in host.nodes(box)
    assert host.table() == {ADDRESSES[1]: [box.name]}
    host.detach(box)
    assert host.can_open(box) == host.nodes(box) == []
    assert host.table() == {}
    assert host.detach(box)["changed"] is False


def test_pure_v2(host, pure_v2):
    test_two_gpus_are_given_and_taken_back(host)
