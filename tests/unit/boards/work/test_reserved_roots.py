# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The room for the roots of boards that are reserved. If these fail, the boards of a course are free when it begins,
but no root can be made for them.

Tests boards/work/board_queue.py, boards/work/board_claims.py.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import room
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.capacity import GIB, Promises
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR, HASH
from ansible_collections.hetero.compute.tests.unit.boards.work.test_board_queue import boards, present, wait
from ansible_collections.hetero.compute.tests.unit.boards.work.test_reserved_boards import extended, offer, reserve, why

#: local_gb of the boards (nodes.py).
GB = 917


@pytest.fixture
def disk(node, monkeypatch):
    """disk(N): the proxy node has room for N roots of a board's own size."""
    node.image()

    def there(many):
        own = property(lambda self: Promises(self._roots()[0], many * GB * GIB, 1))
        monkeypatch.setattr(room.Room, "promises", own)
        return node

    return there


def make_root(proxy, name, size=GB):
    """What the verb that boots a board does next."""
    claim = proxy.store.claim_of(name)
    folder = os.path.join(proxy.config.state_folder, room.ROOTS, f"fs_{claim.board}")
    os.makedirs(folder)
    with open(os.path.join(folder, room.ROOT_FILE), "wb") as file:
        file.truncate(size * GIB)
    proxy.store.put(name, image_hash=HASH)


@pytest.mark.parametrize("made", [True, False])
def test_others_do_not_fill_the_disk_before_its_owner_comes(disk, made):
    """Lost: the boards of a course, which are free, for there is no room for their roots; those of others that are just
    being made count.
    """
    node = disk(2)
    reserve(node, -1, 10, flavor=FLAVOR["name"], count=1)
    with node.proxy() as proxy:
        assert boards(present(proxy, "jackie", lease_hours=1)) == [0]
        if made:
            make_root(proxy, "jackie")
        with pytest.raises(NoneFree) as error:
            present(proxy, "eve", lease_hours=1)
        device, room_for_it = sorted(why(error, board)[0] for board in ("board1", "board2"))
        assert device.startswith("reserved for ann until "), "one of two"
        assert room_for_it.startswith("the room for a root of 917 GiB is reserved for ann until ")
        assert error.value.facts["unfit"] == {}, "it can be had later"
        assert set(error.value.facts["held"]) == {"board1", "board2"}
        assert boards(present(proxy, "own", owner="ann")) == [1]
        make_root(proxy, "own")


def test_a_lease_that_is_over_by_then_takes_the_room_meanwhile(disk):
    """Lost: room that nobody needs for hours; or that of the course, to a lease that was made longer."""
    node = disk(2)
    reserve(node, 5, 15, flavor=FLAVOR["name"], count=1)
    with node.proxy() as proxy:
        present(proxy, "jackie")
        with pytest.raises(NoneFree) as error:
            present(proxy, "eve")
        assert why(error, "board1")[0].endswith(" (course): until then with -e hours=4.9")
        assert boards(present(proxy, "eve", lease_hours=4)) == [1]
        make_root(proxy, "eve")
        (one,) = extended(proxy, "eve", 6)["boards"]
        assert one["error"].startswith("eve: would keep what is reserved for ann from ")
        assert not extended(proxy, "eve", 4.9)["boards"][0]["failed"]


@pytest.mark.parametrize("local_gb", [100, 900])
def test_its_owner_may_have_smaller_or_larger_roots(disk, local_gb):
    """Lost: the boards, to their own owner, whose roots are of another size than those that were reserved."""
    node = disk(2)
    reserve(node, -1, 10)
    node.config["reservations"]["flavors"] = {FLAVOR["name"]: dict(FLAVOR, local_gb=400)}
    with node.proxy() as proxy:
        for number in (0, 1):
            own = present(proxy, f"own{number}", owner="ann", flavor=dict(FLAVOR, local_gb=local_gb))
            assert boards(own) == [number]
            make_root(proxy, f"own{number}", local_gb)


def test_who_asks_first_of_two_whose_roots_do_not_fit_together_is_served(disk):
    """Lost: both courses, each to the reservation of the other."""
    node = disk(2)
    reserve(node, -1, 10, owner="ann", which=[0, 1])
    reserve(node, -1, 10, owner="bob", flavor=FLAVOR["name"], count=1)
    with node.proxy() as proxy:
        for one in information(proxy)["reservations"]:
            assert (one["lacks"] is None) is (one["owner"] == "ann"), one
        assert boards(present(proxy, "lab", owner="ann", count=2)) == [0, 1]
        make_root(proxy, "lab-1")
        make_root(proxy, "lab-2")
        with pytest.raises(NoneFree, match="no room for a root"):
            present(proxy, "own", owner="bob")


def test_status_says_that_there_is_too_little_room(disk):
    """Lost: the warning, until the first day of the course."""
    node = disk(1)
    reserve(node, 5, 15)
    with node.proxy() as proxy:
        (course,) = information(proxy)["reservations"]
        assert course["lacks"] == "1 of it cannot be had then by present leases: there is too little room for roots"
        present(proxy, "jackie", owner="bob", lease_hours=1)
        make_root(proxy, "jackie")
        (course,) = information(proxy)["reservations"]
        assert course["lacks"] == "1 of it cannot be had then by present leases: there is too little room for roots"


def test_who_waits_and_what_is_offered_count_the_room(disk):
    """Lost: the time of who waits for room that is another's, or was told that there is some."""
    node = disk(2)
    reserve(node, -1, 5, flavor=FLAVOR["name"], count=1)
    with node.proxy() as proxy:
        present(proxy, "jackie", lease_hours=1)
        make_root(proxy, "jackie")
        assert offer(node)[0] == 0
        assert offer(node, "ann")[0] == 1
        place = wait(node, "own", owner="eve", lease_hours=0.5)
        end = proxy.store.claim_of("jackie").expires
        assert (place["may"], place["steps"]) == (0, [[end, 1]])


def test_boards_with_their_roots_on_their_own_disks_need_no_room(disk):
    """Lost: boards that take nothing of what is reserved."""
    node = disk(2)
    reserve(node, -1, 5, flavor=FLAVOR["name"], count=1)
    for wire in node.config["boards"].values():
        wire["disk"] = "/dev/sda"
    node.config["ram_images"] = {"tilepro64": "ram"}
    with node.proxy() as proxy:
        make_root(proxy, *[boards(present(proxy, "jackie", lease_hours=1)) and "jackie"])
        assert boards(present(proxy, "eve", lease_hours=1, boot_source="disk")) == [1]
