# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances may move, and to which boards. If these fail, a tenant loses what lies on a board, or is told a way
out that is none. Whole moves are in tests/unit/verbs/test_migrated.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import disk_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.move_targets import (
    must_be_movable,
    target_of,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.board_states import GOES_THERE
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed

PLAY = "ansible-playbook hetero.compute"
#: What to do with one that cannot move.
COPY = (
    f"ask for another instance ({PLAY}.provision_instance -e instance=OTHER -e flavor=tp64.8x8), copy there what is "
    f"needed (rsync over ssh), then end this one ({PLAY}.terminate_instance -e instance=jackie)"
)


@pytest.fixture
def proxy(node):
    """A proxy with three boards, of which board 0 is jackie's."""
    node.image()
    node.config["boards"]["0"]["disk"] = ["/dev/sda"]
    with node.proxy() as opened:
        (claim,) = claimed(opened)
        node.root(0, claim)
        yield opened


def hers(proxy):
    return proxy.store.claim_of("jackie")


def test_a_root_on_the_proxy_may_move(proxy):
    """Lost: the move."""
    must_be_movable(proxy, hers(proxy), proxy.boards[0], check=False)


def test_what_lies_on_the_boards_own_disk_stays_there(proxy):
    """Lost: all that the tenant has; or the commands by which it is copied, which people paste."""
    proxy.store.put("jackie", boot_source="disk")
    with pytest.raises(Refused, match="has its root on board0's own disk") as refused:
        must_be_movable(proxy, hers(proxy), proxy.boards[0], check=False)
    assert refused.value.remedy == COPY


def test_what_may_lie_on_the_boards_own_disk_stays_there(proxy):
    """Lost: what the tenant wrote there beside its root, which the next tenant's wipe takes."""
    disk_records.withdraw(proxy, proxy.boards[0], "jackie")
    with pytest.raises(Refused, match="may have written to board0's own disk /dev/sda, and that would stay") as refused:
        must_be_movable(proxy, hers(proxy), proxy.boards[0], check=False)
    assert refused.value.remedy == COPY


def test_one_without_a_root_is_asked_for_anew(proxy):
    """Lost: what to do instead."""
    (claim,) = claimed(proxy, "eve", [1], made=False)
    with pytest.raises(Refused, match="eve has no root yet") as refused:
        must_be_movable(proxy, claim, proxy.boards[1], check=False)
    assert refused.value.remedy.startswith(f"terminate it ({PLAY}.terminate_instance -e instance=eve)")


def test_it_goes_to_the_board_that_failed_least(proxy):
    """Lost: the instance, to a board that is known to fail."""
    assert target_of(proxy, hers(proxy)).id == 1
    proxy.store.outcome(1, "boot", False, "stalled at tftp")
    assert target_of(proxy, hers(proxy)).id == 2
    assert target_of(proxy, hers(proxy), wanted=1).id == 1


def test_the_board_that_is_kept_for_it_comes_first(proxy):
    """Lost: the second half of a move that was killed; or a board, kept for nobody."""
    proxy.store.move(2, "maintenance")
    proxy.store.move(2, "shutting down", GOES_THERE.format(name="jackie"))
    assert target_of(proxy, hers(proxy)).id == 2
    (eve,) = claimed(proxy, "eve", [1], owner="eve")
    with pytest.raises(NoneFree) as none:
        target_of(proxy, eve, wanted=2)
    assert none.value.facts["rejected"] == {"board2": ["it is kept for jackie, which moves there, since 0 s"]}


def test_where_none_is_free_it_says_why_of_each(proxy):
    """Lost: whom to ask for a board."""
    claimed(proxy, "eve", [1], owner="eve")
    proxy.store.move(2, "maintenance", "its fan")
    with pytest.raises(NoneFree) as none:
        target_of(proxy, hers(proxy))
    head, *lines = none.value.what.splitlines()
    assert head.startswith("jackie is to move to another board that fits tp64.8x8 (")
    assert [line.strip() for line in lines] == ["board1: claimed for eve since 0 s", "board2: maintenance: its fan"]
