# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's verdict on a request. If these fail, a user mends the one reason that was said and is refused again.

Tests scheduling/nodes.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import board_verdict, verdicts

FLAVOR = {"name": "big", "memory_mb": 4096, "vcpus": 4, "local_gb": 100}


def test_all_reasons_of_a_board_are_said():
    board = dict(id=0, name="board0", memory_mb=1024, vcpus=1, local_gb=10, state="power off", instance=None)
    verdict = board_verdict(FLAVOR, board, "proxy1", disk=True)
    assert verdict.never[:3] == ("memory_mb 1024 < 4096", "vcpus 1 < 4", "local_gb 10 < 100")
    assert len(verdict.never) == 4, "and that it has no disk"
    assert (verdict.room, verdict.most) == (0, 0)


def test_one_that_is_only_busy_has_room_when_it_is_not():
    board = dict(id=0, name="board0", memory_mb=8192, vcpus=8, local_gb=100, state="running", instance="jackie")
    verdict = board_verdict(FLAVOR, board, "proxy1")
    assert verdict.never == ()
    assert (len(verdict.busy), verdict.room, verdict.most) == (1, 0, 1)


@pytest.mark.parametrize(("wanted", "names"), [(None, ["board7"]), (7, ["board7"]), (3, [])])
def test_the_facts_of_one_board_are_a_node_too(wanted, names):
    """Lost: boards that an inventory has as hosts, each with its own facts: nothing would fit, without a reason."""
    facts = dict(id=7, name="board7", memory_mb=8192, vcpus=8, local_gb=100, state="power off", cpu_info={})
    assert [one.name for one in verdicts(FLAVOR, [facts], board=wanted)] == names


def test_a_board_that_its_node_gives_to_nobody_is_not_free():
    """Lost: a request that its node refuses with "no node", and no word that a part of it can be had."""
    board = dict(id=3, name="board3", memory_mb=8192, vcpus=8, local_gb=100, state="power off", instance=None)
    assert board_verdict(FLAVOR, dict(board, withheld=None), "proxy1").room == 1
    verdict = board_verdict(FLAVOR, dict(board, withheld="its outlet is on"), "proxy1")
    assert (verdict.busy, verdict.brief) == (("its outlet is on",), "given to nobody")
    assert (verdict.never, verdict.room, verdict.most) == ((), 0, 1)
    assert board_verdict(FLAVOR, dict(board, state="error", withheld="x"), "proxy1").busy == ("error",)
